package train

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadsession"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/stream"
	"oneway.example/tests/testseed"
)

// wibro is the rate of the thesis' downlink, evdo that of the WPI report's, in IP bytes a second.
const (
	wibro = 10e6 / 8
	evdo  = 514e3 / 8
)

// perform runs the probe over a simulated path. Pauses take no time.
func perform(t *testing.T, r *simulatedPath, o Options) (res *Result, run *loadtest.Run, err error) {
	t.Helper()
	if r.stamps == sample.Absent {
		r.stamps = sample.Kernel
	}
	if r.nic == 0 {
		r.nic = 5 * time.Microsecond
	}
	k, err := NewKind(loadsession.DefaultOptions(), o)
	if err != nil {
		t.Fatal(err)
	}
	run = &loadtest.Run{Directions: []sample.Direction{sample.Forward}}
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		err = k.Perform(t.Context(), r.session(), run)
		r.paused = time.Since(start)
	})
	return run.Body.(*Result), run, err
}

// must is perform without an error but that nothing was measured.
func must(t *testing.T, r *simulatedPath, o Options) (*Direction, *loadtest.Run) {
	t.Helper()
	res, run, err := perform(t, r, o)
	d := res.Directions[0]
	if f, ok := errors.AsType[*loadtest.Failure](err); err != nil && (!ok || !runreason.Find(f.Reason).Counted) {
		t.Fatal(err)
	} else if nothing := d.Capacity == nil && d.Shaper == nil; ok != nothing {
		t.Errorf("capacity %v, shaper %+v, and the error %v", d.Capacity, d.Shaper, err)
	}
	return d, run
}

func near(t *testing.T, what string, got *float64, want, share float64) {
	t.Helper()
	if got == nil {
		t.Fatalf("%s is unknown, want %.6g", what, want)
	}
	if math.Abs(*got-want) > share*want {
		t.Errorf("%s is %.6g, want %.6g", what, *got, want)
	}
}

func TestTrainsOfEverySizeFindTheLinksRate(t *testing.T) {
	for _, rate := range []float64{evdo, wibro} {
		d, _ := must(t, &simulatedPath{rate: rate, port: 1500}, DefaultOptions())
		if d.PathMTU != 1500 {
			t.Errorf("path MTU %d, want 1500", d.PathMTU)
		}
		if len(d.Sizes) != 4 {
			t.Fatalf("%d sizes, want 4", len(d.Sizes))
		}
		for _, z := range d.Sizes {
			if z.Trains["clean"] != 30 || len(z.Capacities) != 30 || *z.Fragmented {
				t.Errorf("%d B: %+v", z.PacketBytes, z)
			}
			near(t, "median", z.Median, rate, 0.001)
			near(t, "5th percentile", z.P5, rate, 0.001)
			near(t, "dispersion", z.Dispersion, float64(z.PacketBytes)/rate, 0.001)
		}
	}
}

// Figure 15 of the WPI report: medians of 517, 514 and 510 kb/s with mean dispersions of 19, 16 and 13 ms for
// payloads of 1200, 1000 and 800 B on one link: they agree only in IP bytes.
func TestDispersionsAreThoseOfTheReport(t *testing.T) {
	o := DefaultOptions()
	d, _ := must(t, &simulatedPath{rate: evdo, port: 1500}, o)
	for i, want := range map[int]float64{1: 0.019, 2: 0.016, 3: 0.013} {
		near(t, "dispersion", d.Sizes[i].Dispersion, want, 0.01)
	}
}

func TestLostTrainsAreRepeated(t *testing.T) {
	rng := rand.New(rand.NewPCG(testseed.Of(t), 5))
	o := DefaultOptions()
	o.PayloadBytes = []int{1000}
	o.PathMTU = false
	d, _ := must(t, &simulatedPath{rate: wibro, lose: func(int) bool { return rng.Float64() < 0.005 }}, o)
	z := d.Sizes[0]
	if z.Trains["clean"] != 30 || z.Trains["lost"] == 0 {
		t.Errorf("%v, want 30 clean trains beside some lost ones", z.Trains)
	}
	near(t, "median", z.Median, wibro, 0.001)
	if z.TrainPackets != 25 {
		t.Errorf("trains are %d packets long after random losses, want 25", z.TrainPackets)
	}
}

// An interruption of the path loses whole trains, several in a row: no queue is the cause, and the trains after it are as long as before.
func TestInterruptionDoesNotShortenTrains(t *testing.T) {
	o := DefaultOptions()
	o.PayloadBytes, o.PathMTU = []int{1000}, false
	d, run := must(t, &simulatedPath{rate: wibro, lose: func(n int) bool { return n >= 100 && n < 100+25*10 }}, o)
	z := d.Sizes[0]
	if z.TrainPackets != 25 || z.Trains["clean"] != 30 || z.Trains["lost"] != 10 {
		t.Errorf("trains of %d packets, %v, want 25, and 30 clean beside 10 lost; %q", z.TrainPackets, z.Trains, run.Notes)
	}
	near(t, "median", z.Median, wibro, 0.001)
}

func TestTooManyDiscardedTrainsAreARefusalWithItsReason(t *testing.T) {
	o := DefaultOptions()
	o.PayloadBytes = []int{1000}
	o.PathMTU = false
	rng := rand.New(rand.NewPCG(testseed.Of(t), 6))
	r := &simulatedPath{rate: wibro, lose: func(int) bool { return rng.Float64() < 0.4 }}
	d, run := must(t, r, o)
	z := d.Sizes[0]
	if z.Median != nil || z.Dispersion != nil || !strings.Contains(z.Refusal, "lost") {
		t.Errorf("%+v, want a refusal because of lost packets", z)
	}
	if n := z.Trains["lost"]; n != o.Repeats+1 {
		t.Errorf("%d trains discarded, want %d", n, o.Repeats+1)
	}
	if len(run.Notes) == 0 || run.Summary[0].Text() == "" {
		t.Errorf("notes %q, summary %v: want the refusal in them", run.Notes, run.Summary)
	}
}

func TestTrainsTooLongForTheQueueAreMadeShorter(t *testing.T) {
	const up = 153e3 / 8 // the WPI report's uplink
	for _, interval := range []time.Duration{time.Second, 200 * time.Millisecond} {
		o := DefaultOptions()
		o.PayloadBytes, o.TrainInterval = []int{1472}, interval
		d, run := must(t, &simulatedPath{rate: up, queue: 20_000, port: 1500}, o)
		z := d.Sizes[0]
		near(t, "median", z.Median, up, 0.001)
		// Packets that arrive before the previous ones have left have space in the queue: about 14.
		if z.TrainPackets < 11 || z.TrainPackets > 14 || z.Trains["clean"] != 30 || z.Trains["lost"] != lostInARow {
			t.Errorf("%v apart: trains of %d packets, %v, want 12 or so, and 30 clean after %d lost", interval, z.TrainPackets, z.Trains, lostInARow)
		}
		if len(run.Notes) == 0 {
			t.Error("no note about the shorter trains")
		}
	}
}

func TestKnownQueueCostsNoTrainOfTheNextSize(t *testing.T) {
	o := DefaultOptions()
	d, _ := must(t, &simulatedPath{rate: 153e3 / 8, queue: 20_000, port: 1500}, o)
	for i, z := range d.Sizes {
		if i > 0 && (z.Trains["lost"] > 0 || z.TrainPackets < 14 || z.TrainPackets*z.PacketBytes > 20_000+2*z.PacketBytes) {
			t.Errorf("trains of %d B: %d packets, %v", z.PacketBytes, z.TrainPackets, z.Trains)
		}
	}
}

func TestProgressIsRelativeToTheExpectedDuration(t *testing.T) {
	o := DefaultOptions()
	o.PathMTU = false
	r := &simulatedPath{rate: wibro, stamps: sample.Kernel, nic: 5 * time.Microsecond}
	k, err := NewKind(loadsession.DefaultOptions(), o)
	if err != nil {
		t.Fatal(err)
	}
	between := k.Duration()
	var done time.Duration
	var shares []float64
	r.watch = func(p stream.Plan) {
		done += p.Duration()
		shares = append(shares, done.Seconds()/k.Duration().Seconds())
	}
	synctest.Test(t, func(t *testing.T) {
		err = k.Perform(t.Context(), r.session(), &loadtest.Run{Directions: sample.Directions()})
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; i < len(shares); i++ {
		if shares[i] < shares[i-1] || shares[i] > 1.0001 {
			t.Errorf("share %.3f after %.3f", shares[i], shares[i-1])
		}
	}
	if last := shares[len(shares)-1]; last < 0.99 {
		t.Errorf("the run ends at a share of %.3f", last)
	}
	if k.Duration() != between {
		t.Errorf("between runs it takes %v, before it was %v", k.Duration(), between)
	}
}

func TestTrainsHaveLongerIntervalsOnASlowLink(t *testing.T) {
	o := DefaultOptions()
	o.PayloadBytes = []int{1472}
	o.TrainInterval = 200 * time.Millisecond // a train takes 584 ms
	o.LongTrainPackets = 0
	r := &simulatedPath{rate: evdo, port: 1500}
	must(t, r, o)
	last := r.plans[len(r.plans)-1].Segments[0]
	if last.Interval < 584*time.Millisecond || last.Interval > time.Second {
		t.Errorf("trains are %v apart, want somewhat more than the 584 ms that each takes", last.Interval)
	}
}

func TestContaminatedTrainsAreRefusedSoon(t *testing.T) {
	o := DefaultOptions()
	o.PayloadBytes = []int{1000}
	o.PathMTU = false
	for name, r := range map[string]*simulatedPath{
		"no_timestamp": {rate: wibro, stamps: sample.User},
		"sender_pace":  {rate: 100 * wibro, nic: time.Millisecond},
		"coalesced": {rate: wibro, arrival: func(at instant.Time, i int) instant.Time {
			return at - at%instant.Time(8*time.Millisecond)
		}},
		"batched": {rate: wibro, arrival: func(at instant.Time, _ int) instant.Time {
			const slot = instant.Time(4 * time.Millisecond)
			return at - at%slot + slot + at%slot/50 // an interrupt each slot, then back to back
		}},
		"token_bucket": {rate: wibro, arrival: func(at instant.Time, i int) instant.Time {
			gap, line := 822_400*time.Nanosecond, 80*time.Microsecond
			j := time.Duration(i % 25)
			return at.Add(-min(j, 10) * (gap - line)) // as many as the bucket passes before its rate applies
		}},
	} {
		t.Run(name, func(t *testing.T) {
			d, _ := must(t, r, o)
			z := d.Sizes[0]
			if z.Median != nil || z.Refusal == "" || z.Trains["clean"] > 0 {
				t.Fatalf("%+v, want a refusal", z)
			}
			n := 0
			for result, trains := range z.Trains {
				n += trains
				if result != name {
					t.Errorf("%d trains are %s (%s), want %s", trains, result, z.Evidence[result], name)
				}
			}
			if n > maxDiscarded+o.Group {
				t.Errorf("%d trains sent although none can be clean", n)
			}
		})
	}
}

func TestTrainsDelayedByTheSenderDoNotAffectTheOthers(t *testing.T) {
	o := DefaultOptions()
	o.PayloadBytes, o.Trains = []int{1000}, 10
	o.PathMTU = false
	d, _ := must(t, &simulatedPath{rate: wibro, pace: func(train int) time.Duration {
		if train%3 > 0 { // two of three
			return time.Millisecond
		}
		return 5 * time.Microsecond
	}}, o)
	z := d.Sizes[0]
	near(t, "median", z.Median, wibro, 0.001)
	if z.Trains["clean"] != 10 || z.Trains["sender_pace"] < 17 {
		t.Errorf("trains %v, want 10 clean among more that the sender delayed", z.Trains)
	}
}

func TestGroupsAndPausesAreThoseOfTheReport(t *testing.T) {
	o := DefaultOptions()
	o.PayloadBytes = []int{1000}
	o.PathMTU = false
	o.LongTrainPackets = 0
	r := &simulatedPath{rate: wibro}
	must(t, r, o)
	sent, groups := 0, 0
	for _, p := range r.plans {
		for _, one := range p.Segments {
			if one.Burst != 25 || one.Bursts != 1 || one.Interval != time.Second || one.Pause < 0 || one.Pause > startJitter {
				t.Errorf("%+v, want trains of 25 packets, a second apart or a little more", one)
			}
		}
		if sent += len(p.Segments); sent%10 == 0 {
			groups++
		}
	}
	if sent != 30 || groups != 3 || r.paused != 20*time.Second {
		t.Errorf("%d trains, %d groups of ten, pauses of %v together; want 30, 3 and 20 s", sent, groups, r.paused)
	}
}

func TestOneDelayedTrainDoesNotSlowDownTheOthers(t *testing.T) {
	o := DefaultOptions()
	o.PayloadBytes = []int{1000}
	o.PathMTU = false
	n := 0
	r := &simulatedPath{rate: wibro, arrival: func(at instant.Time, i int) instant.Time {
		if n++; n > 10 && n <= 25 {
			return at.Add(20 * time.Second) // the last packets of the first train
		}
		return at
	}}
	d, _ := must(t, r, o)
	near(t, "median", d.Sizes[0].Median, wibro, 0.001)
	slow := 0
	for _, p := range r.plans {
		if p.Segments[0].Interval > time.Second {
			slow += len(p.Segments)
		}
		if p.Segments[0].Interval > 10*time.Second {
			t.Errorf("trains %v apart", p.Segments[0].Interval)
		}
	}
	if slow > 2 {
		t.Errorf("%d trains sent slowly because of one, want at most 2", slow)
	}
}

func TestTokensRateIsKept(t *testing.T) {
	c := newTrainPlan(DefaultOptions(), 25)
	const limit = 10_000 // bytes a second; a train has 36,800
	if got := c.interval(1472, limit); float64(25*1472)/got.Seconds() > limit {
		t.Errorf("a train each %v is more than %d bytes a second", got, limit)
	}
	if got := c.interval(1472, 0); got != time.Second {
		t.Errorf("without a limit a train each %v, want 1 s", got)
	}
}

func TestFailedTransferEndsTheRunWithItsResultsSoFar(t *testing.T) {
	failure := errors.New("the session has ended")
	res, _, err := perform(t, &simulatedPath{rate: wibro, err: failure}, DefaultOptions())
	if !errors.Is(err, failure) || res == nil || len(res.Directions) != 1 {
		t.Errorf("error %v, result %+v", err, res)
	}
}

func TestRunMovesAtMostTheAnnouncedBytes(t *testing.T) {
	for _, r := range []*simulatedPath{{rate: evdo, mtu: 1300}, {rate: evdo, port: 1500, ipv6: true}} {
		rng := rand.New(rand.NewPCG(testseed.Of(t), 7))
		r.lose = func(int) bool { return rng.Float64() < 0.02 }
		o := DefaultOptions()
		must(t, r, o)
		k, err := NewKind(loadsession.DefaultOptions(), o)
		if err != nil {
			t.Fatal(err)
		}
		var moved int64
		for _, p := range r.plans {
			moved += p.Bytes() + int64(p.Packets()*r.overhead())
		}
		if most := k.Bytes(math.MaxInt64) / 2; moved > most {
			t.Errorf("one direction moved %d bytes, announced %d", moved, most)
		}
	}
}

// A busy host sends with pauses in which the link is idle: the run has no result, and the path is not the cause. Losses are the path's.
func TestRunOfASlowSenderHasAReasonOfItsOwn(t *testing.T) {
	for want, path := range map[string]*simulatedPath{
		runreason.SenderSlow: {rate: wibro, nic: 5 * time.Millisecond},
		runreason.NoResult:   {rate: wibro, lose: func(n int) bool { return n%2 == 1 }},
	} {
		res, _, err := perform(t, path, DefaultOptions())
		f, ok := errors.AsType[*loadtest.Failure](err)
		if !ok || f.Reason != want || !strings.Contains(err.Error(), res.Directions[0].DirectionName) {
			t.Errorf("got %v, want %s; trains %v", err, want, res.Directions[0].Sizes[0].Trains)
		}
	}
}
