package loadserver

import (
	"errors"
	"os"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/stream"
	"oneway.example/exporter/load/traffic"
	"oneway.example/exporter/load/traffictypes/udptraffic"
	"oneway.example/tests/remoteend"
)

var errDrawn = errors.New("too much")

// atOnce draws this many bytes.
func atOnce(bytes float64) traffic.Consume {
	return func(b traffic.Bucket) (float64, error) {
		if bytes > b.Level {
			return 0, errDrawn
		}
		return b.Level - bytes, nil
	}
}

func TestManyShortTransfersAreNoFasterThanALongOne(t *testing.T) {
	const rate = 12_500 // 100 kb/s; 256 KiB at once
	burst := atOnce(200_000)
	r := rates{buckets: map[[2]string]bucket{}}
	now := time.Unix(1_700_000_000, 0)
	spend := func(name string, lasts time.Duration, draw traffic.Consume, at time.Time) (time.Duration, error) {
		_, again, err := r.consume([2]string{name, "forward"}, rate, lasts, draw, at)
		return again, err
	}
	if _, err := spend("a", 0, burst, now); err != nil {
		t.Fatal(err)
	}
	again, err := spend("a", 0, burst, now)
	if !errors.Is(err, errDrawn) || again != 16*time.Second {
		t.Errorf("a second one at once: %v, again in %v", err, again)
	}
	if _, err := spend("b", 0, burst, now); err != nil {
		t.Errorf("another name: %v", err)
	}
	if _, err := spend("a", 0, burst, now.Add(again)); err != nil {
		t.Errorf("after the time of a retry: %v", err)
	}
	if again, err := spend("c", 0, atOnce(300_000), now); err == nil || again != 0 {
		t.Errorf("a draw above the depth: %v, again in %v", err, again)
	}
	paced := func(b traffic.Bucket) (float64, error) { return b.Level, nil } // at the rate: the level stays
	if _, err := spend("d", 20*time.Second, paced, now); err != nil {
		t.Fatal(err)
	}
	if _, err := spend("d", 0, burst, now.Add(20*time.Second)); err != nil {
		t.Errorf("after a paced one at the rate: %v", err)
	}
	if again, err := spend("d", 0, burst, now.Add(10*time.Second)); err == nil || again != 26*time.Second {
		t.Errorf("before the end of the last draw: %v, again in %v", err, again)
	}
}

// A transfer that ends early counts with the bytes that it has sent.
func TestTransferThatEndsEarlyIsSettled(t *testing.T) {
	const rate = 1e6 // 256 KiB at once
	r := rates{buckets: map[[2]string]bucket{}}
	begin := time.Unix(1_700_000_000, 0)
	of := [2]string{"a", "forward"}
	var level float64
	look := func(b traffic.Bucket) (float64, error) { level = b.Level; return b.Level, nil }
	paced := func(b traffic.Bucket) (float64, error) { return b.Level, nil } // a minute at the rate
	for _, c := range []struct {
		moved int64
		want  float64
	}{
		{2_000_000, loadcontrol.MinBurstBytes},        // at the rate, to the end
		{2_200_000, loadcontrol.MinBurstBytes - 2e5},  // faster, after an initial burst
		{0, loadcontrol.MinBurstBytes},                // nothing moved
		{10_000_000, loadcontrol.MinBurstBytes - 8e6}, // more than the rate
	} {
		clear(r.buckets)
		settle, _, err := r.consume(of, rate, time.Minute, paced, begin)
		if err != nil {
			t.Fatal(err)
		}
		settle(c.moved, begin.Add(2*time.Second))
		settle(c.moved, begin.Add(2*time.Second)) // settling again does nothing
		if _, _, err := r.consume(of, rate, 0, look, begin.Add(2*time.Second)); err != nil || level != c.want {
			t.Errorf("%d bytes in 2 s of a minute: level %v, %v; want %v", c.moved, level, err, c.want)
		}
	}
	// A transfer that has ended, or was followed by another, is not settled.
	clear(r.buckets)
	settle, _, _ := r.consume(of, rate, time.Second, atOnce(200_000), begin)
	settle(0, begin.Add(time.Second))
	if _, _, _ = r.consume(of, rate, time.Second, look, begin.Add(time.Second)); level != loadcontrol.MinBurstBytes-200_000 {
		t.Errorf("after its end: level %v", level)
	}
	settle(0, begin)
	if _, _, _ = r.consume(of, rate, 0, look, begin.Add(2*time.Second)); level != loadcontrol.MinBurstBytes-200_000 {
		t.Errorf("after the begin of another: level %v", level)
	}
}

// The bucket is full again at the end of the plan, after a long pause; after a cancellation it must
// not be.
func TestCancelingATransferDoesNotRefillTheBucket(t *testing.T) {
	s := newSite(t, Options{}, "a rate=100kbit") // 12,500 bytes a second, 262,144 at once
	p := s.ready("a", 1<<30)
	begin := time.Now()
	var err error
	for id := uint16(1); id <= 20 && err == nil; id++ {
		x := udptraffic.Start{ID: id, Direction: sample.Reverse, Idle: udptraffic.MinIdle, Plan: stream.Plan{Segments: []stream.Segment{
			{PayloadBytes: 1000, Burst: 250, Bursts: 1},
			{PayloadBytes: 100, Burst: 1, Bursts: 1, Pause: 30 * time.Second},
		}}}
		reception, expectErr := p.session.Expect(id, x.Plan)
		if expectErr != nil {
			t.Fatal(expectErr)
		}
		if _, err = p.Start(t.Context(), x); err == nil {
			remoteend.Eventually(t, "the burst", func() bool { return reception.Progress().Packets >= 250 })
			_ = p.SendMessage("cancel", udptraffic.Cancel{ID: id})
			if _, _, err := p.Wait(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
		reception.Finish(t.Context(), 0, 0)
	}
	if remoteend.Refusal(t, err).Reason != loadcontrol.RateLimit {
		t.Errorf("%v, want the rate's refusal", err)
	}
	p.Close()
	remoteend.Eventually(t, "the session's end", func() bool { return s.r.Status().Sessions == 0 })
	if sent, most := float64(s.r.Status().Sent), 262_144+12_500*time.Since(begin).Seconds()+1000; sent > most {
		t.Errorf("%.0f bytes were sent, want at most %.0f", sent, most)
	}
}

// A stream that paces itself may take the level below zero, and waits until it is refilled.
func TestNegativeLevelHoldsForAllSessionsOfAToken(t *testing.T) {
	const rate = 1e6 // 256 KiB at once
	r := rates{buckets: map[[2]string]bucket{}}
	now := time.Unix(1_700_000_000, 0)
	var level float64
	for i, want := range []float64{162_144, 62_144, -37_856, -137_856, -37_856} {
		if i == 4 {
			now = now.Add(200 * time.Millisecond)
		}
		_, _, err := r.consume([2]string{"a", "reverse"}, rate, 0, func(b traffic.Bucket) (float64, error) {
			level = b.Level - 100_000
			return level, nil
		}, now)
		if err != nil || level != want {
			t.Errorf("draw %d: level %v, %v; want %v", i, level, err, want)
		}
	}
}

// At this rate the bucket takes days to refill.
func TestRateIsOfAllSessionsOfATokenInEachDirection(t *testing.T) {
	s := newSite(t, Options{}, "a rate=8bit", "b rate=8bit", "c")
	for _, c := range []struct {
		token   string
		refused bool
	}{{"a", false}, {"a", true}, {"b", false}, {"c", false}} {
		p := s.ready(c.token, 1<<20)
		for _, d := range sample.Directions() {
			x := transferOf(uint16(d+1), d)
			x.Plan.Segments[0] = stream.Segment{PayloadBytes: 1000, Burst: 200, Bursts: 1}
			switch _, err := p.Start(t.Context(), x); {
			case c.refused && remoteend.Refusal(t, err).Reason != loadcontrol.RateLimit, !c.refused && err != nil:
				t.Errorf("token %s, %s: %v; want refused: %v", c.token, d, err, c.refused)
			}
		}
		p.Close()
		remoteend.Eventually(t, "the session's end", func() bool { return s.r.Status().Sessions == 0 })
	}
}

func TestCountedBytesSettleTheRate(t *testing.T) {
	s, l := lease(t, Options{}, "a rate=1Mbit")
	_, h := s.lease(l, 1)
	paced := func(b traffic.Bucket) (float64, error) { return b.Level, nil }
	if r := h.ConsumeRate(sample.Forward, time.Hour, paced); r != nil {
		t.Fatal(r)
	}
	if r := h.ConsumeRate(sample.Forward, 0, atOnce(1)); r == nil || r.Reason != loadcontrol.RateLimit || r.RetryAfter < 50*time.Minute {
		t.Errorf("during the transfer: %+v", r)
	}
	if r := h.ConsumeRate(sample.Reverse, 0, atOnce(1)); r != nil {
		t.Errorf("the other direction: %+v", r)
	}
	h.CountBytes(sample.Forward, 1000, 28)
	if r := h.ConsumeRate(sample.Forward, 0, atOnce(1)); r != nil {
		t.Errorf("after its early end: %+v", r)
	}
}

func TestRevokedTokenConsumesNothing(t *testing.T) {
	s, l := lease(t, Options{}, "a rate=1Mbit")
	_, h := s.lease(l, 1)
	if r := h.ConsumeRate(sample.Forward, 0, atOnce(1)); r != nil {
		t.Fatal(r)
	}
	if r := h.ConsumeRate(sample.Forward, 0, atOnce(1<<20)); r == nil || r.Reason != loadcontrol.RateLimit || r.Detail != "too much" || r.RetryAfter != 0 {
		t.Errorf("a draw above the depth: %+v", r)
	}
	if err := os.WriteFile(s.o.TokensFile, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := h.ConsumeRate(sample.Forward, 0, atOnce(1)); r == nil || r.Reason != loadcontrol.Unauthorized {
		t.Errorf("%+v", r)
	}
}
