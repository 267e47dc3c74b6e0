// Package tcpshort is the probe that measures how long short TCP flows take, as those of web pages do: a few round trips
// decide, not the rate of the link (RFC 5166 section 2.1; RFC 6349 section 4.1).
//
// A flow is one new connection. Its completion time begins with the handshake and ends with the arrival of the last byte,
// both by the clock of the client, which opens all connections. In reverse direction the load server sends when it has read the
// client's first bytes, as an HTTP server replies to a request. In forward direction the client sends at once, and the end is
// the load server's own end of the stream, which it sends when it has read all: half a round trip after the arrival.
// Nothing is subtracted. Nagle's algorithm is off.
//
// Flows of all sizes and directions are measured one after the other, each repetition in its own random order, so that a path
// that changes with time affects no size in particular. The kernel keeps round-trip time and slow-start threshold of earlier
// connections to a host (tcp_no_metrics_save), as it does for the flows of users.
package tcpshort

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"oneway.example/exporter/core/errtext"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/loadsession"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/traffictypes/tcptraffic"
	"oneway.example/exporter/probe/report"
)

// Kind is the load test "tcp_short". Make it with NewKind.
type Kind struct {
	opts       Options
	directions int
}

// NewKind checks the options.
func NewKind(shared loadsession.Options, own Options) (*Kind, error) {
	if err := option.Check(&own); err != nil {
		return nil, err
	}
	return &Kind{own, len(shared.Directions)}, nil
}

// NewType makes the type for the registry.
func NewType() loadsession.Type[Options] {
	t := loadsession.NewType("tcp_short", DefaultOptions, NewKind)
	t.Doc = "Completion time of short TCP flows, one connection each: from the beginning of the handshake to the last byte."
	t.Unused = loadsession.PacketKeys()
	t.Help, t.Results = help, Result{}
	return t
}

// Kind is "tcp_short".
func (*Kind) Kind() string { return "tcp_short" }

// Traffic is TCP transfers.
func (*Kind) Traffic() loadsession.Traffic[*tcptraffic.Session] { return tcptraffic.Local{} }

// Bytes is the limit of all flows.
func (k *Kind) Bytes(int64) (n int64) {
	for _, size := range k.opts.FlowBytes {
		n += int64(k.directions*k.opts.Repetitions) * most(int64(size))
	}
	return n
}

// Fit limits a run to what the token has left of its day.
func (*Kind) Fit(l loadcontrol.Limits, _ int) int64 { return l.LeftOfDay() }

// Duration is half the limit of time of all flows: the default timeout of a run is twice that, and most flows are short.
func (k *Kind) Duration() time.Duration {
	return time.Duration(k.directions*k.opts.Repetitions*len(k.opts.FlowBytes)) * k.opts.FlowTimeout / 2
}

// minFailures is how many flows, at least one of each size and direction, may not end one after the other before the run
// does: the path is down.
const minFailures = 3

// Perform measures the flows of each size as often as configured.
func (k *Kind) Perform(ctx context.Context, s *tcptraffic.Session, r *loadtest.Run) error {
	all := k.opts.groups(r.Directions)
	done := make([][]Flow, len(all))
	res := &Result{Seed: loadtest.Seed(k.opts.Seed), FlowTimeout: report.Seconds(k.opts.FlowTimeout)}
	r.Body = res
	defer func() {
		for i, g := range all {
			if len(done[i]) > 0 {
				res.Sizes = append(res.Sizes, k.summarize(g, done[i]))
			}
		}
		res.conclude(r)
	}()
	failures, unfinished := 0, false
	turns := loadtest.Turns(len(all), k.opts.Repetitions, res.Seed)
	for i, turn := range turns {
		g := all[turn]
		if left := s.Left(); left < most(g.bytes) {
			if i == 0 {
				left, need := unit.DistinctBytes(left, most(g.bytes))
				return &loadtest.Failure{Reason: runreason.DayLimit, Err: fmt.Errorf("tcpshort: the token has only %s left of its day; a flow needs %s: %s", left, need, loadcontrol.RaiseLimit("per-day"))}
			}
			r.Note(fmt.Sprintf("%d of %d flows: the token has no data left for the others", i, len(turns)))
			return nil
		}
		r.Phase(fmt.Sprintf("%d of %d, %v: %s", i+1, len(turns), g.direction, unit.Bytes.Format(float64(g.bytes))))
		r.Share(float64(i) / float64(len(turns)))
		f, err := k.measure(ctx, s, g)
		if err != nil {
			return err
		}
		done[turn] = append(done[turn], f)
		loadsession.NoteTokenRate(r, s.Limits(), k.meanRate(f, g.bytes))
		if f.Unfinished == "" {
			failures = 0
			continue
		}
		if !unfinished {
			r.Note(fmt.Sprintf("the first unfinished flow, %v, %s: %s", g.direction, unit.Bytes.Format(float64(g.bytes)), f.Unfinished))
			unfinished = true
		}
		if failures++; failures >= max(minFailures, len(all)) {
			return &loadtest.Failure{Reason: runreason.Timeout, Err: fmt.Errorf("tcpshort: %d flows one after the other did not end; the last: %s", failures, f.Unfinished)}
		}
	}
	return nil
}

// meanRate is the mean rate of a flow in bytes per second; an unfinished one took flow_timeout.
func (k *Kind) meanRate(f Flow, bytes int64) float64 {
	return float64(bytes) / cmp.Or(f.took, k.opts.FlowTimeout).Seconds()
}

// measure measures a flow. An error ends the run; a flow that fails alone is unfinished.
func (k *Kind) measure(ctx context.Context, s *tcptraffic.Session, g group) (f Flow, err error) {
	t, err := s.Transfer(ctx, k.opts.plan(g))
	failure, failed := errors.AsType[*loadtest.Failure](err)
	if err != nil && (!failed || failure.Reason != runreason.Socket || ctx.Err() != nil) {
		return f, err
	}
	if t != nil {
		f = k.evaluate(t)
	}
	if err != nil {
		f.took, f.Completion, f.Unfinished = 0, nil, errtext.Words(err)
	}
	return f, nil
}

// ranks are the label values of Completion's quantiles.
const (
	medianRank = "0.5"
	tailRank   = "0.95"
)

// Counters returns the counters and histograms of flows.
func (k *Kind) Counters(netip.Addr) []loadtest.Counter {
	sizes := metric.Values{}
	for _, size := range k.opts.FlowBytes {
		sizes[metric.FlowBytesL] = append(sizes[metric.FlowBytesL], strconv.FormatInt(int64(size), 10))
	}
	return []loadtest.Counter{{Desc: metric.TCPCompletion, Values: sizes}, {Desc: metric.TCPUnfinished, Values: sizes}}
}

// Publish adds the flows to the histogram and sets the quantiles of the run.
func (*Kind) Publish(v *loadtest.Values, r *loadtest.Run) {
	res, ok := r.Body.(*Result)
	if !ok {
		return
	}
	for _, z := range res.Sizes {
		labels := []string{z.Direction, strconv.FormatInt(z.FlowBytes, 10)}
		for _, took := range z.times() {
			v.Observe(metric.TCPCompletion, took.Seconds(), labels...)
		}
		v.Add(metric.TCPUnfinished, float64(z.Unfinished), labels...)
		for rank, q := range map[string]*Quantile{medianRank: z.Completion.Median, tailRank: z.Completion.Tail} {
			if q != nil {
				v.Set(metric.TCPCompletionQuantile, q.Value, append(labels, rank)...)
			}
		}
	}
}

var _ loadsession.Kind[*tcptraffic.Session] = (*Kind)(nil)
