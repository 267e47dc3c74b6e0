package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"oneway.example/exporter/core/document"
	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/load/loadsession"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes/saturation"
	"oneway.example/exporter/probes/stamp"
	"oneway.example/tests/documents"
)

// ended decodes how a measurement ended, of a document that must be valid.
func ended(t *testing.T, kind document.Kind, text []byte) (o document.Outcome) {
	t.Helper()
	documents.Valid(t, kind, text)
	if err := json.Unmarshal(text, &o); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return o
}

func TestFailedProbeIsADocumentWithItsReason(t *testing.T) {
	for name, c := range map[string]struct {
		host   string
		ttl    int
		reason string
		usage  bool
	}{
		"no reflector": {"127.0.0.1:9", 255, "unreachable", false},
		"wrong flag":   {"127.0.0.1:9", 999, "usage", true},
	} {
		f := stampFlags(probeFlags{host: c.host, count: 2, json: true, clock: clockFlags{source: "none"}})
		f.options.Interval, f.options.LossTimeout, f.options.TTL = time.Millisecond, 50*time.Millisecond, c.ttl
		var out, live bytes.Buffer
		err := f.run(t.Context(), &out, &live)
		if _, usage := errors.AsType[usageError](err); err == nil || usage != c.usage {
			t.Errorf("%s: %v", name, err)
		}
		if o := ended(t, document.Probe, out.Bytes()); o.Result != runreason.Failed || o.Reason != c.reason || o.Error == "" {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

func TestInterruptedProbeIsADocumentWithItsValues(t *testing.T) {
	f := stampFlags(probeFlags{host: startReflector(t), count: 100_000, json: true, clock: clockFlags{source: "none"}})
	f.options.Interval, f.options.LossTimeout = time.Millisecond, time.Second
	ctx, interrupt := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, errors.New("interrupt signal received")) // some packets
	defer interrupt()
	var out, live bytes.Buffer
	if err := f.run(ctx, &out, &live); err != nil {
		t.Error(err)
	}
	if o := ended(t, document.Probe, out.Bytes()); o.Result != runreason.Incomplete || o.Reason != reasonInterrupted || o.Error == "" {
		t.Errorf("%+v", o)
	}
	var d struct {
		RoundTrips stamp.RoundTrips `json:"round_trips"`
	}
	if err := json.Unmarshal(out.Bytes(), &d); err != nil || d.RoundTrips.Received == 0 {
		t.Errorf("%v, %v", d, err)
	}
}

func TestInterruptionAfterTheLastPacketLeavesTheResultComplete(t *testing.T) {
	ctx, interrupt := context.WithCancelCause(t.Context())
	interrupt(errors.New("interrupt signal received"))
	for sent, want := range map[uint64]string{4: runreason.Incomplete, 5: runreason.Completed} {
		f := stampFlags(probeFlags{count: 5})
		r := &stamp.Report{Forward: stamp.DirectionReport{Sent: &sent}, RoundTrip: stamp.RoundTripReport{Received: sent}}
		found := r.Printed()
		if o := f.document(ctx, &found, nil).Outcome; o.Result != want || (o.Error == "") != (want == runreason.Completed) {
			t.Errorf("%d of 5 packets sent: %+v", sent, o)
		}
		var out bytes.Buffer
		if err := f.print(ctx, &out, &probe.Measured{Sent: sent, Received: sent}); err != nil || (out.Len() == 0) != (want == runreason.Completed) {
			t.Errorf("%d of 5 packets sent: %q, %v", sent, &out, err)
		}
	}
}

func TestTestWithAWrongFlagIsADocument(t *testing.T) {
	f := &testFlags{directions: both, json: jsonFlag{full: true}, host: "127.0.0.1:9", clock: clockFlags{source: "none"}}
	k := kindOf("saturation")
	k.Shared.(*loadsession.Options).DSCP = 64
	k.Own.(*saturation.Options).Rate.Forward, k.Own.(*saturation.Options).Rate.Reverse = 1000, 1000
	var out, live bytes.Buffer
	if _, usage := errors.AsType[usageError](f.run(t.Context(), k, &out, &live)); !usage {
		t.Error("no usage error")
	}
	if o := ended(t, document.Test, out.Bytes()); o.Result != "failed" || o.Reason != reasonUsage || o.Error == "" {
		t.Errorf("%+v", o)
	}
}

func TestFailedVoiceIsADocument(t *testing.T) {
	f := voiceDefaults()
	f.json, f.codec = true, "X"
	var out bytes.Buffer
	if err := f.run(&out); err == nil {
		t.Error("no error")
	}
	if o := ended(t, document.Voice, out.Bytes()); o.Reason != reasonUsage {
		t.Errorf("%+v", o)
	}
}
