package ondemand

import (
	"fmt"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/probe"
)

// Kind is why a request is refused; it is also the label result of oneway_on_demand_requests_total.
type Kind string

// The values of Kind.
const (
	// Unconfigured: nothing is measured on demand.
	Unconfigured Kind = "unconfigured"
	// Stopped: the agent is starting or ending.
	Stopped Kind = "stopped"
	// Malformed: the request is not valid.
	Malformed Kind = "malformed"
	// NotAllowed: module, target, port or address are not in the configuration.
	NotAllowed Kind = "not_allowed"
	// TooShort: the module needs more time than the request has.
	TooShort Kind = "too_short"
	// Paused: the target was measured a moment ago, or other requests wait for it.
	Paused Kind = "paused"
	// Busy: too many measurements run.
	Busy Kind = "busy"
	// Unusable: the module's options have become wrong, for example because its key file is gone.
	Unusable Kind = "unusable"
)

// Refused is the error of a request that is not measured.
type Refused struct {
	Kind Kind
	// Text is a sentence for the client.
	Text string
	// RetryAfter is when it may succeed; zero: unknown.
	RetryAfter time.Duration
}

// Error is the text.
func (r *Refused) Error() string { return r.Text }

func refused(k Kind, format string, args ...any) error {
	return &Refused{Kind: k, Text: fmt.Sprintf(format, args...)}
}

func unconfigured() error {
	return refused(Unconfigured, "This agent measures nothing on demand: its configuration has no section on_demand.")
}

// reply adds the families that users of blackbox_exporter expect to those of the path.
func reply(r Request, out probe.Outcome, took time.Duration) {
	loss := 1.0
	if all := out.Received + out.Lost; all > 0 {
		loss = float64(out.Lost) / float64(all)
	}
	r.Sink.Update(func() {
		r.Sink.Series(metric.OnDemandSuccess).Set(metric.Flag(out.Failure == ""))
		r.Sink.Series(metric.OnDemandDuration).Set(took.Seconds())
		r.Sink.Series(metric.OnDemandLoss).Set(loss)
		if out.Failure != "" {
			r.Sink.Series(metric.OnDemandFailure, string(out.Failure)).Set(1)
		}
	})
	if out.Failure != "" {
		r.Log.Warn("Probe failed", "reason", string(out.Failure), "detail", out.Detail)
		return
	}
	r.Log.Info("Probe succeeded", "received", out.Received, "lost", out.Lost, "duration_seconds", took.Seconds())
}
