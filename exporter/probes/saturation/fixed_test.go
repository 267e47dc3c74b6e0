package saturation_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/estimate/queue"
	"oneway.example/exporter/load/loadsession"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/loadtesttest"
	"oneway.example/exporter/load/stream"
	"oneway.example/exporter/load/traffictypes/udptraffic"
	"oneway.example/exporter/probe/endclock"
	"oneway.example/exporter/probes/saturation"
)

func TestFilledLinkHasItsRateQueueAndDelays(t *testing.T) {
	b := must(t, wibro(), func(o *saturation.Options) { o.ElapsedBins, o.ElapsedRange = queue.MaxBins, true }, "forward")
	b.expect(t, metric.UDPThroughput, 312_500, 0.005, "forward")
	b.expect(t, metric.UDPOffered, 625_000, 0.005, "forward")
	b.expect(t, metric.UDPUnderrun, 0, 0, "forward")
	b.expect(t, metric.LoadedLoss, 0.5, 0.05, "forward")
	b.expect(t, metric.QueueIdleDelay, 0.030, 1e-6, "forward")
	b.expect(t, metric.QueueFullDelay, 0.030+0.352, 0.02, "forward")
	b.expect(t, metric.QueueDelay, 0.352, 0.02, "forward", "0.5")
	b.expect(t, metric.QueueSize, 110_000, 0.02, "forward")
	b.expect(t, metric.QueueAtLeast, 108_500, 0.02, "forward")
	for _, q := range []string{"0.05", "0.5", "0.95"} {
		b.expect(t, metric.UDPRate, 312_500, 0.005, "forward", q)
		b.expect(t, metric.QueueDelay, 0.349, 0.01, "forward", q)
	}
	for state, want := range map[string]float64{"filled": 1, "not_filled": 0, "policer": 0, "aqm": 0, "time_limited": 0} {
		b.expect(t, metric.SaturationState, want, 0, "forward", state)
	}
	if bound, ok := b.sink.Value(metric.QueueDelayBound, "office", "saturation", "forward", "0.5"); !ok || bound <= 0 || bound > 0.005 {
		t.Errorf("bound of the queue's delay: %v %v", bound, ok)
	}
	// The error of absolute delays is at most 10 us of each clock and 25 us of each timestamp; that of their
	// difference is at most its own bound.
	for _, d := range []*metric.Desc{metric.QueueIdleDelayBound, metric.QueueFullDelayBound} {
		if bound, ok := b.sink.Value(d, "office", "saturation", "forward"); !ok || bound < 70e-6 || bound > 0.01 {
			t.Errorf("%s: %v %v", d.Name, bound, ok)
		}
	}
	if n, sum := b.sink.Observed(metric.LoadedDelay, "office", "saturation", "forward"); n < 6000 || sum/float64(n) < 0.3 {
		t.Errorf("%d delays under load with the sum %v", n, sum)
	}
	b.expect(t, metric.LoadedDelayElapsed, 0.03, 0.3, "forward", "0.05", "0")
	if words := b.words(); !strings.Contains(words, "queue forward: 109") && !strings.Contains(words, "queue forward: 110") {
		t.Errorf("%s", words)
	}
}

// With equal offsets of both clocks the queue's delay is known, whatever their size; one-way delays are not.
func TestQueueIsKnownWithUntrustedClocks(t *testing.T) {
	bad := loadtesttest.GoodClock()
	bad.Before.Reason, bad.After.Reason = "local_unsynchronized", "local_unsynchronized"
	for _, offset := range []time.Duration{-37 * time.Second, 0, time.Hour} {
		link := wibro()
		link.Offset, link.Local = offset, bad
		b := must(t, link, nil, "forward", "reverse")
		for _, d := range []string{"forward", "reverse"} {
			b.expect(t, metric.QueueDelay, 0.352, 0.02, d, "0.5")
			b.expect(t, metric.UDPThroughput, 312_500, 0.005, d)
		}
		b.absent(t, metric.QueueIdleDelay, metric.QueueIdleDelayBound, metric.QueueFullDelay, metric.QueueFullDelayBound, metric.LoadedDelayElapsed)
		if n, _ := b.sink.Observed(metric.LoadedDelay, "office", "saturation", "forward"); n != 0 {
			t.Errorf("%d delays with untrusted clocks", n)
		}
		if !strings.Contains(b.words(), "one-way delays are unknown: this host's clock is not synchronized") {
			t.Errorf("%s", b.words())
		}
		// The bound includes 100 ppm of two oscillators over the 30 s of the run.
		if bound, _ := b.sink.Value(metric.QueueDelayBound, "office", "saturation", "forward", "0.5"); bound < 0.001 {
			t.Errorf("bound %v lacks the clocks' drift", bound)
		}
	}
}

// A clock that is proven wrong later takes the delays, and not their differences.
func TestDelaysAreWithheldAfterTheRun(t *testing.T) {
	b := must(t, wibro(), nil, "forward")
	res := b.run.Body.(*saturation.Result)
	if !res.Withhold() || res.Withhold() {
		t.Error("want delays at first, and none after that")
	}
	l := res.Directions[0].Load
	if l.Idle != nil || l.IdleBound != nil || l.Full != nil || l.FullBound != nil || l.PerSecond[0].Delays != nil || l.First[0].Delays != nil || l.Queue == nil || l.ClocksReason != sample.ClocksApart.String() {
		t.Errorf("%+v", l)
	}
}

func TestLinkThatCarriesAllIsNotFilled(t *testing.T) {
	link := wibro()
	link.Rate = 2e6
	b := must(t, link, nil, "forward")
	b.expect(t, metric.SaturationState, 1, 0, "forward", "not_filled")
	b.expect(t, metric.UDPThroughput, 625_000, 0.01, "forward")
	b.expect(t, metric.LoadedLoss, 0, 0, "forward")
	b.absent(t, metric.QueueDelay, metric.QueueDelayBound, metric.QueueSize, metric.QueueSizeBound, metric.QueueFullDelay, metric.QueueFullDelayBound)
	if !strings.Contains(b.words(), "forward: not filled: ") {
		t.Errorf("%s", b.words())
	}
}

func TestSeriesAreBoundedHoweverLongTheRun(t *testing.T) {
	b := must(t, wibro(), func(o *saturation.Options) { o.Duration = 10 * time.Minute }, "forward")
	for d, most := range map[*metric.Desc]int{metric.UDPThroughputElapsed: 60, metric.LoadedDelayElapsed: 180} {
		if n := len(b.sink.All(d)); n == 0 || n > most {
			t.Errorf("%s has %d series, want at most %d", d.Name, n, most)
		}
	}
}

// Where the rest does not fill the link, its rate is the sender's.
func TestSendersUnderrunIsNoLossOfTheLink(t *testing.T) {
	for name, c := range map[string]struct {
		rate    float64 // 0: not limited
		share   float64 // of the packets, not sent
		refused int     // 1: by the kernel; 0: the time ended
		reason  string
		cause   string
	}{
		"refused":             {0, 0.4, 1, runreason.NoResult, "its kernel refused "},
		"too slow":            {0, 0.4, 0, runreason.SenderSlow, "it cannot keep the rate"},
		"a few":               {0, 0.05, 1, "", ""},
		"the link was filled": {100_000, 0.4, 1, "", ""},
	} {
		link := &bottleneck{Rate: c.rate, Queue: 20_000, Each: func(_ sample.Direction, r *udptraffic.CarrierResult) error {
			unsent := 0
			sent := map[uint32]bool{}
			if c.refused == 0 {
				r.Sent.Packets = r.Sent.Packets[:int(float64(len(r.Sent.Packets))*(1-c.share))]
			}
			for i := range r.Sent.Packets {
				if p := &r.Sent.Packets[i]; c.refused != 0 && float64(i%100) < 100*c.share {
					p.Stamp = sample.Stamp{}
					unsent++
				} else {
					sent[uint32(i)] = true
				}
			}
			if c.refused == 1 {
				r.Sent.Refused = unsent
			}
			r.Received.Packets = slices.DeleteFunc(r.Received.Packets, func(p stream.ReceivedPacket) bool { return !sent[p.Seq] })
			return nil
		}}
		b, err := perform(t, link, nil, "forward")
		f, _ := errors.AsType[*loadtest.Failure](err)
		if (err != nil) != (c.reason != "") || f != nil && (f.Reason != c.reason || !strings.Contains(err.Error(), "did not fill the link: "+c.cause)) {
			t.Errorf("%s: %v", name, err)
		}
		b.expect(t, metric.UDPUnderrun, c.share, 0.02, "forward")
		if c.rate == 0 && c.reason == "" {
			b.expect(t, metric.LoadedLoss, 0, 0, "forward")
		}
		if c.reason != "" {
			b.absent(t, metric.UDPThroughput, metric.LoadedLoss, metric.SaturationState)
			if strings.Contains(b.words(), "the link carried") || !strings.Contains(fmt.Sprint(b.run.Body.(*saturation.Result).Directions[0].Partial), c.cause) {
				t.Errorf("%s: %s", name, b.words())
			}
		}
		// The session has the note about what its kernel refused.
		if notes := strings.Count(b.words(), "not sent, as the sending host's kernel refused to send: "); (notes == 1) != (c.refused == 1) || strings.Contains(b.words(), "did not send") {
			t.Errorf("%s: the packets are not told exactly once: %s", name, b.words())
		}
	}
}

func TestClockStepInvalidatesTheRun(t *testing.T) {
	link := wibro()
	link.Remote = loadtesttest.GoodClock()
	link.Remote.After.Steps++
	_, err := perform(t, link, nil, "forward")
	if f, ok := errors.AsType[*loadtest.Failure](err); !ok || f.Reason != runreason.Clock {
		t.Errorf("%v", err)
	}
}

// A clock that has not settled since a step before the run gives no absolute delays; rates and the queue need their differences only.
func TestClockStepBeforeTheRunLeavesAResultWithoutAbsoluteDelays(t *testing.T) {
	link := wibro()
	link.Local, link.Remote = loadtesttest.GoodClock(), loadtesttest.GoodClock()
	link.Local.Before = endclock.State{Reason: sample.LocalStepped.String(), Steps: 1}
	link.Local.After = link.Local.Before
	b := must(t, link, nil, "forward")
	d := b.run.Body.(*saturation.Result).Directions[0]
	if d.Load == nil || d.Load.Trusted || d.Load.Idle != nil || d.Load.Throughput == 0 || d.Load.Queue == nil {
		t.Errorf("%+v; want throughput and queue, and no absolute delay", d.Load)
	}
}

func TestTransferThatIsCutIsNoResult(t *testing.T) {
	link := wibro()
	link.Each = func(d sample.Direction, c *udptraffic.CarrierResult) error {
		if d == sample.Reverse {
			c.Cut = "the token's day is over"
		}
		return nil
	}
	b, err := perform(t, link, nil, "forward", "reverse")
	if err == nil || !strings.Contains(err.Error(), "the token's day is over") {
		t.Fatalf("%v", err)
	}
	if found := b.run.Body.(*saturation.Result).Directions; len(found) != 1 || found[0].Direction != "forward" {
		t.Errorf("the completed direction: %+v", found)
	}
}

func TestDirectionsFollowEachOtherUnlessConfigured(t *testing.T) {
	for _, together := range []bool{false, true} {
		shared, own := loadsession.DefaultOptions(), wibroOptions()
		own.Together = together
		kind, err := saturation.NewKind(shared, own)
		if err != nil {
			t.Fatal(err)
		}
		c := &overlap{entered: make(chan sample.Direction, 2), leave: make(chan struct{}), link: wibro()}
		done := make(chan error, 1)
		go func() {
			done <- kind.Perform(t.Context(), udptraffic.NewSession(c, udptraffic.SessionOptions{}), &loadtest.Run{Directions: sample.Directions()})
		}()
		<-c.entered
		if together {
			<-c.entered // the other one, before the first has ended
		}
		close(c.leave)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if !together && c.most != 1 {
			t.Errorf("%d concurrent transfers", c.most)
		}
	}
}

func TestLoopbackRunIsPublishedAndReported(t *testing.T) {
	shared := loadtesttest.RemoteEnd(t.Context(), t, loadtesttest.End{})
	shared.Every, shared.DrainTimeout = 10*time.Second, 20*time.Second // nothing is lost, but a busy host may pause
	own := wibroOptions()
	own.Duration, own.Idle.Duration = time.Second, 200*time.Millisecond
	kind, err := saturation.NewKind(shared, own)
	if err != nil {
		t.Fatal(err)
	}
	sink := &metrictest.Keeping{}
	outcome, err := loadtesttest.RunKind(t.Context(), envWith(sink), target, shared, kind, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"forward", "reverse"} {
		if v, ok := sink.Value(metric.LoadedLoss, "office", "saturation", d); !ok || v != 0 {
			t.Errorf("%s: loss %v %v over loopback", d, v, ok)
		}
		for _, family := range []*metric.Desc{metric.UDPThroughput, metric.UDPOffered, metric.UDPUnderrun} {
			if _, ok := sink.Value(family, "office", "saturation", d); !ok {
				t.Errorf("%s: %s has no value", d, family.Name)
			}
		}
	}
	if diff := cmp.Diff(map[string]float64{"office,saturation,completed,ok": 1}, sink.All(metric.Runs)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if outcome.ForwardBytes < 600_000 || outcome.ReverseBytes < 1_400_000 || len(outcome.Transfers.([]*udptraffic.Series)) != 2 {
		t.Errorf("%+v", outcome)
	}
}

var _ udptraffic.Carrier = (*overlap)(nil)

// overlap blocks transfers until they are released.
type overlap struct {
	entered chan sample.Direction
	leave   chan struct{}
	link    *bottleneck
	gate
}

// Transfer is udp.Carrier.
func (o *overlap) Transfer(ctx context.Context, d sample.Direction, p stream.Plan, idle time.Duration, progress func(loadtest.Progress), adjustRate stream.Adjuster) (*udptraffic.CarrierResult, error) {
	o.enter()
	defer o.exit()
	o.entered <- d
	<-o.leave
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.link.Transfer(ctx, d, p, idle, progress, adjustRate)
}

// Every outcome of the packets gives a report that can be encoded, without a panic.
func TestEveryOutcomeGivesAReport(t *testing.T) {
	keep := func(n int) func(sample.Direction, *udptraffic.CarrierResult) error {
		return func(_ sample.Direction, c *udptraffic.CarrierResult) error {
			c.Received.Packets = c.Received.Packets[:min(n, len(c.Received.Packets))]
			return nil
		}
	}
	for name, each := range map[string]func(sample.Direction, *udptraffic.CarrierResult) error{
		"one arrives": keep(1), "the idle ones arrive": keep(50), "one of the load": keep(51), "ten of the load": keep(60),
	} {
		for _, mode := range []string{saturation.ModeFixed, saturation.ModeSweep, saturation.ModeSearch} {
			for _, idle := range []time.Duration{0, 2 * time.Second} {
				link := wibro()
				link.Each = each
				b, err := perform(t, link, func(o *saturation.Options) { o.Mode, o.Idle.Duration = mode, idle }, "forward")
				if f, ok := errors.AsType[*loadtest.Failure](err); err != nil && (!ok || f.Reason != runreason.NoResult) || (err != nil) != (mode == saturation.ModeFixed) {
					t.Errorf("%s, %s: %v", name, mode, err)
				}
				if _, err := json.Marshal(b.run); err != nil {
					t.Errorf("%s, %s: %v", name, mode, err)
				}
				for family, values := range map[string]map[string]float64{"throughput": b.sink.All(metric.UDPThroughput), "loss": b.sink.All(metric.LoadedLoss)} {
					for labels, v := range values {
						if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
							t.Errorf("%s, %s: %s of %s is %v", name, mode, family, labels, v)
						}
					}
				}
				b.absent(t, metric.QueueSize, metric.QueueDelay)
			}
		}
	}
}

func TestSenderThatCannotSendIsAFailure(t *testing.T) {
	for name, each := range map[string]func(*udptraffic.CarrierResult){
		"all are refused": func(c *udptraffic.CarrierResult) {
			for i := range c.Sent.Packets {
				c.Sent.Packets[i].Stamp = sample.Stamp{}
			}
		},
		"none is tried": func(c *udptraffic.CarrierResult) { c.Sent.Packets = nil },
	} {
		for _, mode := range []string{saturation.ModeFixed, saturation.ModeSweep, saturation.ModeSearch} {
			link := wibro()
			link.Each = func(_ sample.Direction, c *udptraffic.CarrierResult) error {
				each(c)
				c.Received.Packets = nil
				return nil
			}
			_, err := perform(t, link, func(o *saturation.Options) { o.Mode = mode }, "reverse")
			if f, ok := errors.AsType[*loadtest.Failure](err); !ok || f.Reason != runreason.Socket || !strings.Contains(err.Error(), "MTU") {
				t.Errorf("%s, %s: %v", name, mode, err)
			}
		}
	}
}

// Without arrivals the packets may be too large for the path: there is no throughput of zero, and no loss of all.
func TestTransferWithoutArrivalsIsNoResult(t *testing.T) {
	for _, mode := range []string{saturation.ModeFixed, saturation.ModeSweep, saturation.ModeSearch} {
		link := wibro()
		link.Each = func(_ sample.Direction, c *udptraffic.CarrierResult) error {
			c.Received.Packets = nil
			return nil
		}
		_, err := perform(t, link, func(o *saturation.Options) { o.Mode = mode }, "forward")
		if f, ok := errors.AsType[*loadtest.Failure](err); !ok || f.Reason != runreason.TooLarge || !strings.Contains(err.Error(), "choose a smaller packet_bytes") {
			t.Errorf("%s: %v", mode, err)
		}
	}
}

// WPI's EvDO uplink: 153 kb/s, thirteen packets a second. The default idle phase would fill it, and a second has
// too few packets for a rate.
func TestSlowLinkIsNotFilledByTheIdlePhase(t *testing.T) {
	link := &bottleneck{Rate: 153e3 / 8, Queue: 20_000, Delay: 100 * time.Millisecond}
	b := must(t, link, func(o *saturation.Options) { o.Rate.Forward = 250e3 / 8 }, "forward")
	b.expect(t, metric.QueueIdleDelay, 0.1, 1e-6, "forward")
	b.expect(t, metric.UDPThroughput, 153e3/8, 0.01, "forward")
	b.expect(t, metric.QueueSize, 20_000, 0.05, "forward")
}

func TestDelayBelowItsBoundIsReportedWithItsBound(t *testing.T) {
	link := wibro()
	link.Local = loadtesttest.GoodClock()
	link.Local.After.Bound = 100 * time.Millisecond
	b := must(t, link, nil, "forward")
	b.expect(t, metric.QueueIdleDelay, 0.030, 0.02, "forward") // +- 100 ms
	b.expect(t, metric.QueueIdleDelayBound, 0.10006, 0.01, "forward")
	b.expect(t, metric.QueueFullDelay, 0.382, 0.02, "forward")    // +- 100 ms
	b.expect(t, metric.QueueDelay, 0.352, 0.02, "forward", "0.5") // the offset cancels in it
}

// TestPacketsThatTheReceiverDroppedAreNoLossOfThePath: the receiving host drops half of the packets.
func TestPacketsThatTheReceiverDroppedAreNoLossOfThePath(t *testing.T) {
	for _, mode := range []string{saturation.ModeFixed, saturation.ModeSweep} {
		link := &bottleneck{Rate: 100e6 / 8, Queue: 1e6, Delay: 5 * time.Millisecond} // faster than the offered rate
		link.Each = func(_ sample.Direction, c *udptraffic.CarrierResult) error {
			kept := c.Received.Packets[:0]
			for i, p := range c.Received.Packets {
				if i%4 == 3 {
					c.Received.Dropped++
					continue
				}
				kept = append(kept, p)
			}
			c.Received.Packets = kept
			return nil
		}
		b := must(t, link, func(o *saturation.Options) { o.Mode = mode }, "forward")
		text, err := json.Marshal(b.run.Body)
		if err != nil {
			t.Fatal(err)
		}
		var body struct {
			Directions []struct {
				Dropped uint64 `json:"host_dropped_packets"`
				Load    *struct {
					Loss float64 `json:"loss_ratio"`
				} `json:"load"`
				Steps []struct {
					Loss float64 `json:"loss_ratio"`
				} `json:"steps"`
			} `json:"directions"`
		}
		if err := json.Unmarshal(text, &body); err != nil || len(body.Directions) != 1 {
			t.Fatalf("%v in %s", err, text[:min(len(text), 400)])
		}
		d := body.Directions[0]
		if d.Dropped == 0 || d.Load != nil && d.Load.Loss != 0 || d.Load == nil && len(d.Steps) == 0 {
			t.Errorf("%s: %d dropped, load %+v, steps %+v; want no loss of the path", mode, d.Dropped, d.Load, d.Steps)
		}
		for _, s := range d.Steps {
			if s.Loss != 0 {
				t.Errorf("%s: a step lost %v", mode, s.Loss)
			}
		}
	}
}
