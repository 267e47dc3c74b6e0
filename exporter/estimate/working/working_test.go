package working

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/core/sample"
)

const (
	ms    = time.Millisecond
	start = instant.Time(1_800_000_000_000_000_000)
)

// path makes the records of packets sent every 50 ms, with these delays, of which those are lost.
type path struct {
	all     []Packet
	replied uint64
	clocks  sample.Reason
}

func (p *path) send(at, forward, reverse time.Duration, lostForward, lostReverse bool) {
	r := record.Packet{Packet: sample.Packet{Seq: uint64(len(p.all))}}
	sent := start.Add(at)
	r.T1 = sample.Stamp{At: sent, Origin: sample.Kernel}
	if !lostForward {
		r.ReverseSeq = p.replied
		p.replied++
	}
	if lostForward || lostReverse {
		r.Outcome = record.Lost
	} else {
		r.T2 = sample.Stamp{At: sent.Add(forward), Origin: sample.InPacket}
		r.T3 = sample.Stamp{At: sent.Add(forward + ms), Origin: sample.FollowUp}
		r.T4 = sample.Stamp{At: sent.Add(forward + ms + reverse), Origin: sample.Kernel}
		reason := max(p.clocks, sample.OK)
		r.Forward = sample.Delay{Value: forward, Bound: ms + time.Duration(len(p.all)), Reason: reason}
		r.Reverse = sample.Delay{Value: reverse, Bound: 2 * ms, Reason: reason}
	}
	p.all = append(p.all, Keep(&r))
}

func span(from, to time.Duration) Span { return Span{start.Add(from), start.Add(to)} }

func near(t *testing.T, what string, got *float64, want float64) {
	t.Helper()
	if got == nil || math.Abs(*got-want) > 1e-9 {
		t.Errorf("%s: %v, want %v", what, show(got), want)
	}
}

func show(v *float64) any {
	if v == nil {
		return "absent"
	}
	return *v
}

// idle, forward load with a queue that fills and every fifth packet lost, a pause, reverse load with every fourth lost.
func loaded(clocks sample.Reason) (p path, idle Span, loads []Load) {
	p.clocks = clocks
	for i := range 20 {
		p.send(time.Duration(i)*50*ms, 14*ms, 10*ms, false, false)
	}
	for i := range 40 {
		p.send(2*time.Second+time.Duration(i)*50*ms, min(14*ms+time.Duration(i)*20*ms, 400*ms), 10*ms, i%5 == 4, false)
	}
	for i := range 10 { // the queue drains: in no part
		p.send(4*time.Second+time.Duration(i)*50*ms, 300*ms, 10*ms, false, false)
	}
	for i := range 40 {
		p.send(6*time.Second+time.Duration(i)*50*ms, 14*ms, 110*ms, false, i%4 == 2)
	}
	p.send(9*time.Second, 14*ms, 10*ms, false, false)
	return p, span(0, time.Second), []Load{{sample.Forward, span(2*time.Second, 4*time.Second-ms)}, {sample.Reverse, span(6*time.Second, 8*time.Second)}}
}

func TestPartsHaveTheDelayLossAndRatingOfTheirDirection(t *testing.T) {
	p, idle, loads := loaded(sample.OK)
	parts := Evaluate(p.all, idle, loads)
	var names []Loaded
	for _, part := range parts {
		names = append(names, part.Loaded)
	}
	if diff := cmp.Diff([]Loaded{None, Forward, Reverse}, names); diff != "" {
		t.Fatal(diff)
	}
	none, forward, reverse := parts[0], parts[1], parts[2]
	if none.Packets != 20 || forward.Packets != 40 || reverse.Packets != 40 {
		t.Errorf("%d, %d and %d packets", none.Packets, forward.Packets, reverse.Packets)
	}
	near(t, "idle delay", &none.Forward.Delay.P50, 0.014)
	near(t, "idle round trip", &none.RoundTrip.P50, 0.024)
	near(t, "idle round trips per minute", none.RoundTrips, 2500)
	near(t, "idle loss", none.Forward.Loss, 0)
	near(t, "working delay", forward.Forward.Delay.P95, 0.4)
	near(t, "working delay variation", forward.Forward.Variation.P95, 0.386)
	near(t, "bound", forward.Forward.Delay.ErrorBound, 0.001+58e-9) // the last packet of the load is lost
	near(t, "loss forward", forward.Forward.Loss, 0.2)
	near(t, "loss back, forward loaded", forward.Reverse.Loss, 0)
	near(t, "delay back, forward loaded", &forward.Reverse.Delay.P50, 0.01)
	near(t, "loss reverse", reverse.Reverse.Loss, 0.25)
	near(t, "loss forward, reverse loaded", reverse.Forward.Loss, 0)
	if forward.Reverse.Decided != 32 { // lost packets never reached that direction
		t.Errorf("%d packets decided in reverse, want those that arrived forward", forward.Reverse.Decided)
	}
	near(t, "delay reverse", &reverse.Reverse.Delay.P50, 0.11)
	if *none.Forward.R < 90 || *forward.Forward.R > 30 || *forward.Reverse.R < 90 || *reverse.Reverse.R > *none.Reverse.R-20 {
		t.Errorf("R idle %v, forward %v and back %v, reverse %v", *none.Forward.R, *forward.Forward.R, *forward.Reverse.R, *reverse.Reverse.R)
	}
}

func TestUnknownClocksLeaveRoundTripAndLoss(t *testing.T) {
	p, idle, loads := loaded(sample.ClockSilent)
	for _, part := range Evaluate(p.all, idle, loads) {
		for _, d := range sample.Directions() {
			if w := part.Way(d); w.Delay != nil || w.R != nil || w.Variation != nil || w.Reason != "clock_silent" || w.Loss == nil {
				t.Errorf("%s, %s: %+v", part.Loaded, d, w)
			}
		}
		if part.RoundTrip == nil || part.RoundTrips == nil {
			t.Errorf("%s: no round trip", part.Loaded)
		}
	}
}

// TestDisprovedClocksGiveNoDelay: packets arrive before they are sent, in one direction, by more than their bound.
func TestDisprovedClocksGiveNoDelay(t *testing.T) {
	for _, wrong := range []time.Duration{20 * ms, -20 * ms} {
		var p path
		for i := range 20 {
			p.send(time.Duration(i)*50*ms, 14*ms+wrong, 10*ms-wrong, false, false)
		}
		part := Evaluate(p.all, span(0, time.Second), nil)[0]
		for _, d := range sample.Directions() {
			if w := part.Way(d); w.Delay != nil || w.R != nil || w.Reason != "clocks_apart" || w.Loss == nil {
				t.Errorf("%v, %s: %+v", wrong, d, w)
			}
		}
		if part.RoundTrip == nil {
			t.Errorf("%v: no round trip", wrong)
		}
	}
}

func TestBothDirectionsTogetherAreAPartOfTheirOwn(t *testing.T) {
	var p path
	for i := range 60 {
		p.send(time.Duration(i)*50*ms, 10*ms, 10*ms, false, false)
	}
	parts := Evaluate(p.all, Span{}, []Load{{sample.Reverse, span(0, 3*time.Second)}, {sample.Forward, span(time.Second, 2*time.Second-ms)}})
	if len(parts) != 2 || parts[0].Loaded != Reverse || parts[0].Packets != 40 || parts[1].Loaded != Both || parts[1].Packets != 20 {
		t.Errorf("%+v", parts)
	}
}

// Short flows are thousands of loads. To compare each packet with each of them took half a minute.
func TestThousandsOfLoadsTakeLittleTime(t *testing.T) {
	const packets, flows = 100_000, 100_000
	var p path
	var loads []Load
	for i := range packets {
		p.send(time.Duration(i)*50*ms, 10*ms, 10*ms, false, false)
	}
	for i := range flows {
		at := time.Duration(i) * 50 * ms
		loads = append(loads, Load{sample.Direction(i % 2), span(at-10*ms, at+30*ms)})
	}
	begin := time.Now()
	parts := Evaluate(p.all, Span{}, loads)
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	if len(parts) != 2 || parts[0].Packets != packets/2 || parts[1].Packets != packets/2 {
		t.Errorf("%d parts", len(parts))
	}
}

// Loads of one direction may overlap, contain each other and come in any order.
func TestLoadsInAnyOrder(t *testing.T) {
	var p path
	for i := range 100 {
		p.send(time.Duration(i)*50*ms, 10*ms, 10*ms, false, false)
	}
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 0))
		var loads []Load
		want := map[Loaded]int{}
		for range rng.IntN(8) {
			from := time.Duration(rng.IntN(100)) * 50 * ms
			loads = append(loads, Load{sample.Direction(rng.IntN(2)), span(from, from+time.Duration(rng.IntN(40))*50*ms)})
		}
		for i := range p.all {
			var in [2]bool
			for _, l := range loads {
				in[l.Direction] = in[l.Direction] || l.From <= p.all[i].sent && p.all[i].sent <= l.To
			}
			want[map[[2]bool]Loaded{{true, false}: Forward, {false, true}: Reverse, {true, true}: Both, {}: None}[in]]++
		}
		got := map[Loaded]int{}
		for _, part := range Evaluate(p.all, span(0, time.Minute), loads) {
			got[part.Loaded] = part.Packets
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%v (-want +got):\n%s", loads, diff)
		}
	}
}

func TestFewPacketsGiveNoValue(t *testing.T) {
	var p path
	for i := range 9 {
		p.send(time.Duration(i)*50*ms, 10*ms, 10*ms, false, false)
	}
	part := Evaluate(p.all, span(0, time.Second), nil)[0]
	if part.RoundTrip != nil || part.Forward.Delay != nil || part.Forward.Loss != nil || part.Forward.Reason != "few_packets" || part.Forward.Decided != 9 {
		t.Errorf("%+v", part)
	}
}

// Neither the packets after the last reply nor those around a restart of the reflector are lost.
func TestUndecidedPacketsAreNotLost(t *testing.T) {
	var p path
	for i := range 20 {
		p.send(time.Duration(i)*50*ms, 10*ms, 10*ms, false, i == 10 || i == 12 || i > 14)
	}
	for i := 12; i < len(p.all); i++ {
		p.all[i].restarts, p.all[i].reverseSeq = 1, p.all[i].reverseSeq-12
	}
	part := Evaluate(p.all, span(0, time.Minute), nil)[0]
	if w := part.Forward; w.Decided != 14 || w.Lost != 0 {
		t.Errorf("forward %+v", w)
	}
	if w := part.Reverse; w.Decided != 14 || w.Lost != 1 {
		t.Errorf("reverse %+v, want the packet before the restart", w)
	}
	silent := Evaluate(p.all[15:], span(0, time.Minute), nil)[0]
	if silent.Forward.Decided != 0 || silent.Reverse.Decided != 0 || silent.Packets != 5 {
		t.Errorf("without any reply: %+v", silent)
	}
}

// Numbers of replies that grow faster than those of the requests are impossible: nothing follows from them.
func TestImpossibleNumbersDecideNothing(t *testing.T) {
	var p path
	for i := range 20 {
		p.send(time.Duration(i)*50*ms, 10*ms, 10*ms, i%2 == 1, false)
		p.all[i].reverseSeq = uint64(3 * i)
	}
	part := Evaluate(p.all, span(0, time.Minute), nil)[0]
	if w := part.Forward; w.Decided != 10 || w.Lost != 0 {
		t.Errorf("%+v", w)
	}
}

// A reply after the loss timeout: lost where its delay exceeded that, and otherwise only without a round trip.
func TestLateReplyReplacesTheLoss(t *testing.T) {
	var p path
	for i := range 20 {
		p.send(time.Duration(i)*50*ms, 10*ms, 10*ms, false, false)
	}
	lostBefore := p.all[5]
	lostBefore.outcome = record.Lost
	p.all[5].outcome, p.all[5].delays[sample.Forward].tooLate, p.all[5].roundTrip = record.Late, true, noTime
	all := append([]Packet{lostBefore}, p.all...)
	part := Evaluate(all, span(0, time.Minute), nil)[0]
	if part.Packets != 20 || part.Forward.Lost != 1 || part.Reverse.Lost != 0 || part.Forward.Decided != 20 {
		t.Errorf("%+v", part)
	}
}

// The link is down from the middle of the load until the end: 28 of 40 packets have no reply, and nothing says where they were
// lost.
func TestMostlyUndecidedPacketsGiveNoLoss(t *testing.T) {
	var p path
	for i := range 40 {
		p.send(time.Duration(i)*50*ms, 14*ms, 10*ms, i >= 12, false)
	}
	part := Evaluate(p.all, Span{}, []Load{{sample.Forward, span(0, 2*time.Second)}})[0]
	for _, d := range sample.Directions() {
		if w := part.Way(d); w.Decided != 12 || w.Loss != nil || w.R != nil || (w.Delay == nil) != (d == sample.Forward) {
			t.Errorf("%s: %d decided, loss %v, R %v, delay %v; want the delay in reverse only, where each that arrived is known", d, w.Decided, show(w.Loss), show(w.R), w.Delay)
		}
	}
}

// The description of oneway_working_r_factor has these figures.
func TestOnePacketLowersRByWhatTheMetricSays(t *testing.T) {
	for _, c := range []struct {
		packets int
		lowers  float64
	}{{20, 50}, {100, 18}} {
		var whole, lost, late path
		for i := range c.packets {
			at, delay := time.Duration(i)*100*ms, 14*ms
			if i == c.packets/2 {
				delay += 60 * ms
			}
			whole.send(at, 14*ms, 10*ms, false, false)
			lost.send(at, 14*ms, 10*ms, i == 3, false)
			late.send(at, delay, 10*ms, false, false)
		}
		r := func(p *path) float64 { return *Evaluate(p.all, span(0, time.Minute), nil)[0].Forward.R }
		step := func(p *path) float64 { return *Evaluate(p.all, span(0, time.Minute), nil)[0].Forward.RStep }
		if math.Abs(step(&lost)-(r(&whole)-r(&lost))) > 1e-9 || math.Abs(step(&whole)-(r(&whole)-r(&lost))) > 1e-9 {
			t.Errorf("the step of R is %v and %v, want %v", step(&whole), step(&lost), r(&whole)-r(&lost))
		}
		for _, one := range []float64{r(&whole) - r(&lost), r(&whole) - r(&late)} {
			if math.Abs(one-c.lowers) > 2 {
				t.Errorf("one of %d packets lowers R by %v, want %v", c.packets, one, c.lowers)
			}
		}
	}
}

// TestPathThatDiesHasNoLossOfADirection: 49 of 100 packets have no reply to the end.
func TestPathThatDiesHasNoLossOfADirection(t *testing.T) {
	p := path{}
	for i := range 100 {
		p.send(time.Duration(i)*100*ms, 20*ms, 20*ms, false, i >= 51)
	}
	part := Evaluate(p.all, Span{}, []Load{{sample.Forward, span(0, time.Hour)}})[0]
	for _, d := range sample.Directions() {
		w := part.Way(d)
		if w.Loss != nil || w.R != nil || w.Decided != 51 || w.Delay == nil || (w.Delay.P95 == nil) != (d == sample.Forward) {
			t.Errorf("%s: %d decided, loss %v, R %v; want 51 and neither", d, w.Decided, show(w.Loss), show(w.R))
		}
		if l := w.LossLimits; l == nil || l.Low != 0 || l.High != 0.49 || l.Undecided != 49 {
			t.Errorf("%s: loss within %+v, want 0 to 0.49", d, l)
		}
	}
}

// TestDelaysOfLostRepliesAreUnknown: an uplink is loaded, and while its queue is full replies are lost, too: the packets that took long
// have no delay.
func TestDelaysOfLostRepliesAreUnknown(t *testing.T) {
	for name, c := range map[string]struct {
		lost             int // of each ten packets, which took 500 ms
		median, p95, r   bool
		reason           string
		invalid, reverse bool
	}{
		"none":                             {0, true, true, true, "", false, true},
		"a tenth":                          {1, true, false, false, "", false, true},
		"three tenths":                     {3, true, false, false, "", false, true},
		"six tenths":                       {6, false, false, false, UnknownDelays, false, true},
		"a tenth without a trusted clock":  {1, true, false, false, "", true, false},
		"six tenths without trusted clock": {6, false, false, false, "clock_silent", true, false},
	} {
		var p path
		for i := range 101 {
			slow := i%10 >= 2 && i%10 < 2+c.lost
			forward := 40 * ms
			if slow {
				forward = 500 * ms
			}
			if p.clocks = sample.OK; slow && c.invalid {
				p.clocks = sample.ClockSilent
			}
			p.send(time.Duration(i)*50*ms, forward, 10*ms, false, slow && !c.invalid)
		}
		part := Evaluate(p.all, Span{}, []Load{{sample.Forward, span(0, time.Hour)}})[0]
		w := part.Forward
		if (w.Delay != nil) != c.median || c.median && ((w.Delay.P95 != nil) != c.p95 || (w.Variation.P95 != nil) != c.p95 || w.Delay.P50 != 0.04) || (w.R != nil) != c.r || w.Reason != c.reason {
			t.Errorf("%s: delay %+v, R %v, reason %q", name, w.Delay, show(w.R), w.Reason)
		}
		if w.Loss == nil || *w.Loss != 0 {
			t.Errorf("%s: loss %v, want 0", name, show(w.Loss))
		}
		if back := part.Reverse; c.reverse && (back.Delay == nil || back.Delay.P95 == nil) {
			t.Errorf("%s: reverse %+v, want its delay: each that arrived is known", name, back)
		}
	}
}

// The queue of the load makes the delays of a clock that is behind positive again: the idle link has proven it wrong. One packet suffices.
func TestClocksDisprovedOnTheIdleLinkGiveNoDelayUnderLoad(t *testing.T) {
	const wrong = 25 * ms
	for _, negative := range []int{20, 1} {
		var p path
		for i := range 40 {
			forward := 20 * ms
			if i >= negative {
				forward = 120 * ms
			}
			p.send(time.Duration(i)*50*ms, forward-wrong, 10*ms+wrong, false, false)
		}
		for _, part := range Evaluate(p.all, span(0, 999*ms), []Load{{sample.Forward, span(time.Second, 2*time.Second)}}) {
			for _, d := range sample.Directions() {
				if w := part.Way(d); w.Delay != nil || w.R != nil || w.Reason != "clocks_apart" || w.Loss == nil {
					t.Errorf("%d negative, %s, %s: %+v", negative, part.Loaded, d, w)
				}
			}
			if part.RoundTrip == nil {
				t.Errorf("%s: no round trip", part.Loaded)
			}
		}
	}
}
