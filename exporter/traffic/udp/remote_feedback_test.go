package udp

import (
	"context"
	"sync"
	"testing"
	"time"

	"oneway.example/exporter/loadcontrol"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/stream"
	"oneway.example/tests/remoteend"
)

// adjustedOf is startOf with feedback.
func adjustedOf(id uint16, d sample.Direction) Start {
	t := startOf(id, d)
	t.Plan.Feedback = stream.MinFeedback
	return t
}

// What a client orders is within what was authorized, or is not done.
func TestOrdersDoNotExceedWhatWasAuthorized(t *testing.T) {
	p := ready(t)
	p.host.limits.BytesPerSecond, p.host.left = 500_000, 50_000 // what the plan may send at once, and no more
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
			time.Sleep(time.Millisecond) // orders come in while the stream runs
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
	sent, err := stream.ParseSent(records)
	if err != nil || len(sent) > x.Plan.Packets() || len(sent) != f.Sent.Planned {
		t.Errorf("%d packets were sent of %d, %d told: %v", len(sent), x.Plan.Packets(), f.Sent.Planned, err)
	}
	for i := 1; i < len(sent); i++ {
		if d := sent[i].Due.Sub(sent[i-1].Due); d < x.Plan.Segments[0].Interval-100*time.Microsecond { // the clock is read anew
			t.Errorf("packet %d was due %v after the one before", i, d)
		}
	}
	reception.Finish(t.Context(), len(sent), remoteend.Timeout)

	// Though it may be sent slower, the whole plan must be allowed.
	fast := adjustedOf(2, sample.Reverse)
	fast.Plan.Segments[0].Interval /= 2
	fast.Plan.Segments[0].Bursts = 50
	_, err = p.Start(t.Context(), fast)
	if got := remoteend.Refusal(t, err); got.Reason != loadcontrol.BadRequest && got.Reason != loadcontrol.RateLimit {
		t.Errorf("%+v", got)
	}
}

// The load server reports no more bytes than it has received, and only to who sends.
func TestReportsAreFewerThanWhatIsReceived(t *testing.T) {
	p := ready(t)
	x := adjustedOf(1, sample.Forward)
	if _, err := p.Start(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var last stream.Status
	sent, err := p.session.Send(t.Context(), 1, p.at(), x.Plan, stream.How{AdjustRate: func(st stream.Status) time.Duration {
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
	got, err := stream.ParseReceived(records)
	if err != nil || len(got) != len(sent.Packets) {
		t.Errorf("%d of %d packets arrived, %v", len(got), len(sent.Packets), err)
	}
	if last.Serial == 0 || uint64(last.Serial)*stream.MinReport > last.Bytes {
		t.Errorf("%d reports of %d bytes received", last.Serial, last.Bytes)
	}
}
