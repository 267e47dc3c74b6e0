package tcpstate

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"oneway.example/tests/testseed"
)

const ms = time.Millisecond

func equal(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(math.Abs(a), math.Abs(b)) }

// ramp receives slow bytes a second for one second, then fast, in samples that are step apart.
func ramp(from, until, step time.Duration, slow, fast int64) (all []Arrival) {
	for at := from; at <= until; at += step {
		past := at - from
		all = append(all, Arrival{at, slow*int64(min(past, time.Second))/1e9 + fast*int64(max(0, past-time.Second))/1e9})
	}
	return all
}

func TestRateIsWithoutTheOmittedTime(t *testing.T) {
	flows := [][]Arrival{ramp(80*ms, 5080*ms, 100*ms, 500_000, 1_000_000), ramp(80*ms, 5080*ms, 50*ms, 500_000, 3_000_000), nil}
	for _, c := range []struct {
		planned, omit time.Duration
		want          float64
	}{{5 * time.Second, time.Second, 4e6}, {0, time.Second, 4e6}, {0, 0, 3.4e6}, {0, 500 * ms, 16.5e6 / 4.5}, {0, 2500 * ms, 3.4e6}, {2 * time.Second, time.Second - 1, 4e6}, {10 * time.Second, 0, 1.7e6}} {
		got, ok := Rate(flows, c.planned, c.omit)
		if !ok || math.Abs(got.Rate/c.want-1) > 1e-6 {
			t.Errorf("%v: %+v", c, got)
		}
	}
	got, _ := Rate(flows, 0, 0)
	if len(got.PerSecond) != 5 || !equal(got.PerSecond[0], 1e6) || !equal(got.PerSecond[4], 4e6) || got.Seconds != 5 {
		t.Errorf("%+v", got)
	}
	for _, none := range [][][]Arrival{nil, {nil}, {{{At: time.Second}}}} {
		if got, ok := Rate(none, 0, 0); ok {
			t.Errorf("%v: %+v", none, got)
		}
	}
}

// Seconds and the rate conserve the payload, whatever the samples.
func TestRateConservesPayload(t *testing.T) {
	rng := rand.New(rand.NewPCG(testseed.Of(t), 1))
	for range 500 {
		var flows [][]Arrival
		total := int64(0)
		for range 1 + rng.IntN(4) {
			at, n := time.Duration(rng.IntN(1e9)), int64(0)
			f := []Arrival{{at, 0}}
			for range 1 + rng.IntN(50) {
				at += time.Duration(1 + rng.IntN(2e8))
				n += int64(rng.IntN(1e6))
				f = append(f, Arrival{at, n})
			}
			flows, total = append(flows, f), total+n
		}
		got, ok := Rate(flows, 0, 0)
		sum := 0.0
		for _, n := range got.PerSecond {
			if n < 0 {
				t.Fatalf("%v in a second", n)
			}
			sum += n
		}
		if !ok || math.Abs(got.Rate*got.Seconds-float64(total)) > 1e-6*float64(total) || sum > float64(total)*(1+1e-9) || len(got.PerSecond) != int(got.Seconds) {
			t.Fatalf("%+v of %d bytes", got, total)
		}
	}
}

// A trace of 10 ms weighs no more than the samples of 100 ms after it, and a late sample no more than others.
func TestRoundTripsAreWeightedByTime(t *testing.T) {
	var f []State
	for at := time.Duration(0); at < 10*time.Second; {
		rtt := 10 * ms
		if at >= 2*time.Second {
			rtt = 20 * ms
		}
		if at >= 6*time.Second {
			rtt = 40 * ms
		}
		f = append(f, State{At: at, RTT: rtt, Outstanding: int64(rtt/ms) * 1000})
		if at < 3*time.Second {
			at += 10 * ms
		} else {
			at += 100 * ms
		}
	}
	got, ok := Sent([][]State{f, nil}, 100*ms, 0)
	if !ok || got.Quartiles != [3]time.Duration{20 * ms, 20 * ms, 40 * ms} || got.Mean != 26*ms || got.MeanWindow != 26_000 || got.Window != 20_000 {
		t.Errorf("%+v", got)
	}
	if got, _ := Sent([][]State{f}, 100*ms, 6*time.Second); got.Quartiles[0] != 40*ms || got.Mean != 40*ms {
		t.Errorf("after 6 s: %+v", got)
	}
	late := []State{{At: 350 * ms, RTT: ms}, {At: 360 * ms, RTT: 9 * ms}, {At: 400 * ms, RTT: 3 * ms}, {At: 500 * ms}}
	if got, _ := Sent([][]State{late}, 100*ms, 0); got.Mean != 2*ms {
		t.Errorf("late: %+v", got)
	}
	if got, ok := Sent([][]State{{{At: time.Second}}}, 100*ms, 0); ok {
		t.Errorf("without a sample: %+v", got)
	}
}

func TestLimitIsThatOfMostOfTheTime(t *testing.T) {
	s := func(busy, window, buffer float64) State {
		of := func(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }
		return State{At: 10 * time.Second, Busy: of(busy), RwndLimited: of(window), SndbufLimited: of(buffer)}
	}
	for _, c := range []struct {
		last   []State
		want   Limit
		shares [4]float64 // network, receiver, send buffer, application
	}{
		{[]State{s(9, 6, 1)}, LimitReceiver, [4]float64{0.2, 0.6, 0.1, 0.1}},
		{[]State{s(10, 1, 7)}, LimitSendBuffer, [4]float64{0.2, 0.1, 0.7, 0}},
		{[]State{s(10, 0, 0), s(10, 5, 0)}, LimitNetwork, [4]float64{0.75, 0.25, 0, 0}},
		{[]State{s(2, 0, 0)}, LimitApplication, [4]float64{0.2, 0, 0, 0.8}},
		{[]State{s(10, 5, 5)}, "", [4]float64{0, 0.5, 0.5, 0}},
		{[]State{s(9, 3, 3)}, "", [4]float64{0.3, 0.3, 0.3, 0.1}},
		// The kernel's ticks can be more than the time.
		{[]State{s(11, 11, 0)}, LimitReceiver, [4]float64{0, 1, 0, 0}},
		{[]State{s(10, 6, 6)}, "", [4]float64{0, 0.5, 0.5, 0}},
		{[]State{s(9, 5.5, 4.5)}, "", [4]float64{0, 0.5, 0.4090909090909091, 0.0909090909090909}},
	} {
		got, ok := Limited(c.last)
		if !ok || got.Main() != c.want {
			t.Errorf("%v: %v, limited by %q", c, got, got.Main())
		}
		for i, l := range []Limit{LimitNetwork, LimitReceiver, LimitSendBuffer, LimitApplication} {
			if math.Abs(got[l]-c.shares[i]) > 1e-9 {
				t.Errorf("%v: %s is %v", c, l, got[l])
			}
		}
	}
	if got, ok := Limited([]State{{}}); ok {
		t.Errorf("without time: %v", got)
	}
}

func BenchmarkRate(b *testing.B) {
	flows := make([][]Arrival, 64)
	for i := range flows {
		flows[i] = ramp(0, time.Minute, 100*ms, 1e6, 2e6)
	}
	for b.Loop() {
		Rate(flows, 0, time.Second)
	}
}

// The rates of flows are those of one time, in which all sent: a flow that ended, or never began, has no advantage.
func TestRatesOfFlowsAreThoseOfTheTimeInWhichAllSent(t *testing.T) {
	flows := [][]Arrival{ramp(80*ms, 5080*ms, 100*ms, 1_000_000, 1_000_000), ramp(580*ms, 4080*ms, 100*ms, 3_000_000, 3_000_000), nil}
	for _, c := range []struct {
		planned, omit time.Duration
		seconds       float64
		want          []float64
	}{
		{5 * time.Second, time.Second, 5, []float64{1e6, 3e6 * 3 / 4, 0}},
		{0, time.Second, 4, []float64{1e6, 3e6, 0}},
		{0, 0, 4, []float64{1e6, 3e6 * 3.5 / 4, 0}},
	} {
		got, ok := Each(flows, c.planned, c.omit)
		if !ok || got.Seconds != c.seconds {
			t.Fatalf("%v: %+v", c, got)
		}
		for i, want := range c.want {
			if math.Abs(got.Rates[i]-want) > 1 || len(got.PerSecond[i]) != int(c.seconds-c.omit.Seconds()) {
				t.Errorf("%v: flow %d: %v, per second %v", c, i, got.Rates[i], got.PerSecond[i])
			}
		}
	}
	if got, _ := Each(flows, 0, 0); math.Abs(got.PerSecond[1][0]-1.5e6) > 1 || math.Abs(got.PerSecond[1][3]-3e6) > 1 {
		t.Errorf("per second %v", got.PerSecond)
	}
	for _, none := range [][][]Arrival{nil, {nil, nil}, {{{At: time.Second}}}} {
		if got, ok := Each(none, 0, 0); ok {
			t.Errorf("%v: %+v", none, got)
		}
	}
}

// A window of 64 kB over a link that carries 50 kB/s and 500 kB/s in turns of 10 s: the time with the long round trips has few of
// the bytes.
func TestWindowModelHoldsWhereTheRateVaries(t *testing.T) {
	var f []State
	const interval, window = 100 * time.Millisecond, 64_000
	acked := int64(0)
	for i := range 600 {
		rate := []int64{50_000, 500_000}[i/100%2]
		acked += rate / 10
		f = append(f, State{At: time.Duration(i) * interval, RTT: time.Duration(window * int64(time.Second) / rate), Acked: acked, Outstanding: window})
	}
	s, ok := Sent([][]State{f}, interval, 0)
	rate, known := Window(Conditions{MeanWindow: s.MeanWindow, RTT: s.OfBytes.Seconds()})
	if want := 275_000.0; !ok || !known || math.Abs(rate/want-1) > 0.01 {
		t.Errorf("%v, want %v", rate, want)
	}
	if s.Mean != 704*time.Millisecond {
		t.Errorf("mean of the time %v", s.Mean)
	}
}
