package udptraffic

import (
	"context"
	"sync"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/stream"
	"oneway.example/tests/remoteend"
)

// adjustedOf returns startOf with feedback.
func adjustedOf(id uint16, d sample.Direction) Start {
	t := startOf(id, d)
	t.Plan.Feedback = stream.MinFeedback
	return t
}

// Orders outside the authorized plan have no effect.
func TestOrdersDoNotExceedWhatWasAuthorized(t *testing.T) {
	p := ready(t)
	p.host.limits.BytesPerSecond, p.host.left = 500_000, 50_000 // exactly the plan's bytes
	x := adjustedOf(1, sample.Reverse)
	reception, err := p.session.Expect(1, x.Plan)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var ordering sync.WaitGroup
	ordering.Go(func() {
		for serial := uint32(1); ctx.Err() == nil; serial++ {
			if err := p.session.Order(1, p.at(), serial, 1); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Millisecond) // orders arrive during the stream
		}
	})
	if _, err := p.Start(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	f, records, err := p.Wait(t.Context(), 1)
	cancel()
	ordering.Wait()
	if err != nil || f.Error != "" || f.Sent == nil {
		t.Fatalf("%+v, %v", f, err)
	}
	sent, err := stream.ParseSent(records, stream.MaxPackets)
	if err != nil || len(sent) > x.Plan.Packets() || len(sent) != f.Sent.Planned {
		t.Errorf("%d packets were sent of %d, %d told: %v", len(sent), x.Plan.Packets(), f.Sent.Planned, err)
	}
	for i := 1; i < len(sent); i++ {
		if d := sent[i].Due.Sub(sent[i-1].Due); d < x.Plan.Segments[0].Interval-100*time.Microsecond { // tolerance for a new reading of the clock
			t.Errorf("packet %d was due %v after the previous one", i, d)
		}
	}
	reception.Finish(t.Context(), len(sent), remoteend.Timeout)

	// The whole plan must be allowed, even if less is sent.
	fast := adjustedOf(2, sample.Reverse)
	fast.Plan.Segments[0].Interval /= 2
	fast.Plan.Segments[0].Bursts = 50
	_, err = p.Start(t.Context(), fast)
	if got := remoteend.Refusal(t, err); got.Reason != loadcontrol.BadRequest && got.Reason != loadcontrol.RateLimit {
		t.Errorf("%+v", got)
	}
}

// The reports have fewer bytes than were received, and go to the sender only.
func TestReportsAreFewerThanWhatIsReceived(t *testing.T) {
	p := ready(t)
	x := adjustedOf(1, sample.Forward)
	if _, err := p.Start(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var last stream.Status
	sent, err := p.session.Send(t.Context(), 1, p.at(), x.Plan, stream.SendOptions{AdjustRate: func(st stream.Status) time.Duration {
		mu.Lock()
		defer mu.Unlock()
		last = st
		return time.Millisecond
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Sent(t.Context(), 1, len(sent.Packets)-sent.Refused); err != nil {
		t.Fatal(err)
	}
	f, records, err := p.Wait(t.Context(), 1)
	if err != nil || f.Error != "" {
		t.Fatalf("%+v, %v", f, err)
	}
	got, err := stream.ParseReceived(records, stream.MaxPackets)
	if err != nil || len(got) != len(sent.Packets) {
		t.Errorf("%d of %d packets arrived, %v", len(got), len(sent.Packets), err)
	}
	if last.Serial == 0 || uint64(last.Serial)*stream.MinReport > last.Bytes {
		t.Errorf("%d reports of %d bytes received", last.Serial, last.Bytes)
	}
}
