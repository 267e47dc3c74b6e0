package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"time"

	"oneway.example/exporter/core/document"
	"oneway.example/exporter/core/errtext"
	"oneway.example/exporter/core/lightreason"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/report"
)

// Reasons of measurements from the terminal, besides those of METRICS.md.
const (
	reasonInterrupted = "interrupted" // by Ctrl-C or SIGTERM
	reasonNotFound    = "not_found"   // the store of histories has no such path, label or value, or no sample in the time
	reasonUsage       = "usage"       // a wrong flag or argument
)

// outcomeOf is the outcome of a measurement that ended with err.
func outcomeOf(ctx context.Context, err error) document.Outcome {
	if err == nil && ctx.Err() == nil {
		return document.Outcome{Result: runreason.Completed, Reason: runreason.OK}
	}
	o := document.Outcome{Result: runreason.Failed, Reason: runreason.Internal}
	if err != nil {
		o.Error = errtext.Words(err)
	}
	_, usage := errors.AsType[usageError](err)
	_, lookup := errors.AsType[*net.DNSError](err)
	switch {
	case ctx.Err() != nil:
		o.Result, o.Reason, o.Error = runreason.Incomplete, reasonInterrupted, errtext.Words(context.Cause(ctx))
	case usage:
		o.Reason = reasonUsage
	case lookup:
		o.Reason = string(lightreason.Unresolved)
	case errors.Is(err, probe.ErrNoReply):
		o.Reason = string(lightreason.NoReply)
	}
	return o
}

// settings joins flags, and those of the clock.
func settings(clock clockFlags, all ...document.Settings) document.Settings {
	s := clock.settings()
	for _, one := range all {
		maps.Copy(s, one)
	}
	return s
}

// probeDocument is the output of `oneway probe --json`, and of the commands of other light probes.
type probeDocument struct {
	probeHead
	// values are the fields of the type of the probe; nil without a test packet.
	values any
}

// probeHead has the fields that the documents of all light probes begin with.
type probeHead struct {
	document.Envelope
	// Settings are the options in use.
	Settings document.Settings `json:"settings"`
	document.Outcome
}

// MarshalJSON makes one object of the fields.
func (d probeDocument) MarshalJSON() ([]byte, error) { return document.Join(d.probeHead, d.values) }

// document returns the result of a measurement; a nil result: there was none.
func (f *probeFlags) document(ctx context.Context, found *probe.Measured, err error) probeDocument {
	own, _ := f.measurement.Options()
	d := probeDocument{probeHead: probeHead{
		Envelope: document.New(f.measurement.Command().Document), Outcome: outcomeOf(ctx, err),
		Settings: settings(f.clock, option.Settings(own), document.Settings{"count": f.count}),
	}}
	if found == nil {
		return d
	}
	d.values = found.Values
	switch {
	case errors.Is(err, probe.ErrNoReply) && found.Failure != "":
		d.Reason = string(found.Failure)
	case err == nil && !f.stopped(ctx, found): // also Ctrl-C after the last packet, or without a number of packets
		d.Outcome = document.Outcome{Result: runreason.Completed, Reason: runreason.OK}
	}
	return d
}

// testDocument is the output of `oneway test --json`.
type testDocument struct {
	document.Envelope
	*loadtest.Outcome
}

// document returns the result of a run; a nil outcome: it did not come to a run.
func (f *testFlags) document(ctx context.Context, k testKind, o *loadtest.Outcome, err error) testDocument {
	if o == nil {
		how := outcomeOf(ctx, err)
		o = &loadtest.Outcome{
			Run:    &loadtest.Run{ID: report.NewID(time.Now(), nil), Path: f.host, Probe: k.name, Kind: k.name, Peer: f.host},
			Result: loadtest.Result(how.Result), Reason: how.Reason, Error: how.Error, Ended: time.Now().UTC(),
		}
	}
	if ctx.Err() != nil && o.Reason == runreason.Stopped {
		o.Reason = reasonInterrupted
	}
	o.Settings = settings(f.clock, option.Settings(k.Shared, k.Own))
	return testDocument{document.New(document.Test), o}
}

// voiceDocument is the output of `oneway voice --json`.
type voiceDocument struct {
	document.Envelope
	// Settings are the call.
	Settings document.Settings `json:"settings"`
	document.Outcome
	*voiceRating
}

func (f *voiceFlags) document(v *voiceRating, err error) voiceDocument {
	d := voiceDocument{
		Envelope: document.New(document.Voice), Outcome: outcomeOf(context.Background(), err), Settings: document.Settings{},
	}
	if v == nil {
		return d
	}
	d.voiceRating = v
	d.Settings = document.Settings{
		"codec": v.Codec, "model": v.Model, "mouth_to_ear_delay_seconds": v.Delay, "loss_ratio": v.Loss, "loss_burst_ratio": v.BurstR,
	}
	if v.TELR != nil {
		d.Settings["talker_echo_loudness_rating_db"] = *v.TELR
	}
	return d
}

// printed prints a document, and returns the error of the measurement, or of printing.
func printed(out io.Writer, d any, err error) error {
	if failed := printJSON(out, d); failed != nil {
		return errors.Join(err, fmt.Errorf("print the document: %w", failed))
	}
	return err
}
