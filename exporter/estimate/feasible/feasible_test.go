package feasible

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/tests/testseed"
)

const ms = time.Millisecond

// begin is a time in 2026.
const begin = instant.Time(1_780_000_000_000_000_000)

// packet was sent at an instant, with zero residence time and these delays, between clocks theta apart.
func packet(at instant.Time, forward, reverse, theta time.Duration) *Packet {
	arrived := at.Add(forward + theta)
	return &Packet{T1: at, T2: arrived, T3: arrived, T4: at.Add(forward + reverse)}
}

// of is maxRate of a duration, rounded up.
func of(d time.Duration) time.Duration { return time.Duration(math.Ceil(maxRate * float64(d))) }

func TestIntervalIsWhatThePathsMinimumLeaves(t *testing.T) {
	const theta = 12 * ms
	e := Estimator{Minimum: 25 * ms}
	p := packet(begin, 30*ms, 80*ms, theta)
	if _, _, ok := e.Forward(p); ok || e.Contradictory(p) {
		t.Error("an interval, or a contradiction, without packets")
	}
	e.Add(p)
	// 25 - (80 - 12) and (30 + 12) - 25, and the movement of the local clock in 110 ms.
	if low, high, ok := e.Forward(p); !ok || low != -43*ms-of(110*ms) || high != 17*ms {
		t.Errorf("forward: %v to %v, %v; want -43 ms and a round trip, to 17 ms", low, high, ok)
	}
	if low, high, ok := e.Reverse(p); !ok || low != -43*ms || high != 17*ms+of(110*ms) {
		t.Errorf("reverse: %v to %v, %v; want -43 ms to 17 ms and a round trip", low, high, ok)
	}
	// The fastest packets of the two directions may be different ones.
	q := packet(begin.Add(ms), 90*ms, 60*ms, theta)
	e.Add(q)
	if low, high, ok := e.Reverse(q); !ok || low != -23*ms || high != 17*ms+of(151*ms+61*ms) { // q.T4 - p.T1, q.T3 - p.T2
		t.Errorf("%v to %v, %v; want -23 ms to 17 ms and what both clocks may have moved", low, high, ok)
	}
}

func TestOldPacketsCountLessUntilTheyExpire(t *testing.T) {
	var e Estimator
	e.Add(packet(begin, 10*ms, 20*ms, 0))
	for _, age := range []time.Duration{time.Second, -time.Second, 3 * time.Second} {
		low, high, ok := e.Forward(packet(begin.Add(age), 10*ms, 20*ms, 0))
		if !ok || high != 10*ms+of(2*age.Abs()) || (low+20*ms+of(2*age.Abs())).Abs() > of(40*ms) {
			t.Errorf("%v later: %v to %v, %v; want 10 ms and -20 ms, %v wider", age, low, high, ok, of(2*age.Abs()))
		}
	}
	late := packet(begin.Add(maxAge+time.Second), 10*ms, 20*ms, 0)
	if _, _, ok := e.Forward(late); ok {
		t.Errorf("a packet of %v still counts", maxAge+time.Second)
	}
	e.Add(packet(begin.Add(-time.Hour), ms, ms, 0))
	if _, high, ok := e.Forward(packet(begin, 10*ms, 20*ms, 0)); !ok || high != 10*ms {
		t.Errorf("a packet of an hour ago displaced a newer one: %v, %v", high, ok)
	}
}

func TestContradictionGivesNoInterval(t *testing.T) {
	e := Estimator{Minimum: 60 * ms} // more than half of the round trip
	p := packet(begin, 30*ms, 60*ms, 0)
	e.Add(p)
	if low, high, ok := e.Forward(p); ok || !e.Contradictory(p) {
		t.Errorf("%v to %v", low, high)
	}
	e.Reset()
	if e.Contradictory(p) {
		t.Error("a contradiction without packets")
	}
}

// slewing is a clock that is corrected repeatedly, at most at chronyd's rate, and stays within its bound.
type slewing struct {
	random *rand.Rand
	bound  float64 // ns
	// error is its offset, frequency the oscillator's error, slew the rate of correction.
	error, frequency, slew float64
	left                   float64 // ns, of the current correction
}

// maxSlew is chronyd's default (chrony.conf(5), maxslewrate), in seconds a second.
const maxSlew = 83_333e-6

func newSlewing(random *rand.Rand) *slewing {
	bound := float64(time.Duration(random.Int64N(int64(100 * ms))))
	return &slewing{
		random: random, bound: bound, error: (2*random.Float64() - 1) * bound,
		frequency: (2*random.Float64() - 1) * 500e-6,
	}
}

// pass advances true time, in steps in which only the slew changes.
func (c *slewing) pass(d float64) {
	for d > 0 {
		if c.left <= 0 {
			c.left = c.random.ExpFloat64() * float64(200*ms)
			c.slew = (2*c.random.Float64() - 1) * maxSlew
			if c.random.IntN(3) == 0 {
				c.slew = maxSlew * float64(1-2*c.random.IntN(2))
			}
		}
		step := min(d, c.left, float64(ms))
		next := c.error + (c.frequency+c.slew)*step
		if math.Abs(next) > c.bound {
			c.left = 0 // another correction, or none
			next = c.error + max(-c.bound-c.error, min(c.bound-c.error, 0))
		}
		c.error, c.left, d = next, c.left-step, d-step
	}
}

// testbed is a pair of clocks and a path between them.
type testbed struct {
	random           *rand.Rand
	local, remote    *slewing
	forward, reverse time.Duration // least delays
	queue            time.Duration // mean
	now              float64       // true time since begin, in ns
}

func (b *testbed) pass(d time.Duration) {
	b.now += float64(d)
	b.local.pass(float64(d))
	b.remote.pass(float64(d))
}

// stamp is a clock's reading.
func (b *testbed) stamp(c *slewing) instant.Time {
	return begin.Add(time.Duration(math.Round(b.now + c.error)))
}

// packet sends one, and returns the clocks' offset in each delay.
func (b *testbed) packet() (p *Packet, forward, reverse float64) {
	queued := func() time.Duration { return time.Duration(b.random.ExpFloat64() * float64(b.queue)) }
	p = &Packet{T1: b.stamp(b.local)}
	local := b.local.error
	b.pass(b.forward + queued())
	p.T2 = b.stamp(b.remote)
	forward = b.remote.error - local
	b.pass(time.Duration(b.random.Int64N(int64(ms))))
	p.T3 = b.stamp(b.remote)
	remote := b.remote.error
	b.pass(b.reverse + queued())
	p.T4 = b.stamp(b.local)
	return p, forward, remote - b.local.error
}

func (b *testbed) check(t *testing.T, e *Estimator, p *Packet, forward, reverse float64) {
	t.Helper()
	for name, c := range map[string]struct {
		interval func(*Packet) (low, high time.Duration, ok bool)
		truth    float64
	}{"forward": {e.Forward, forward}, "reverse": {e.Reverse, reverse}} {
		low, high, ok := c.interval(p)
		// 2 ns for the rounding of the timestamps.
		if truth := time.Duration(c.truth); !ok || truth < low-2 || truth > high+2 {
			t.Fatalf("%s: the clocks are %v apart, the interval is %v to %v, %v", name, truth, low, high, ok)
		}
	}
}

// Both clocks drift and are slewed at up to chronyd's highest rate, each within a constant bound, over paths of any
// asymmetry: the true offset must be inside for each packet.
func TestTruthIsAlwaysInsideWhileClocksSlew(t *testing.T) {
	seed := testseed.Of(t)
	random := rand.New(rand.NewPCG(seed, 4))
	for range 300 {
		minimum := time.Duration(random.Int64N(int64(30 * ms)))
		b := &testbed{
			random: random, local: newSlewing(random), remote: newSlewing(random), forward: minimum, reverse: minimum,
			queue: time.Duration(random.Int64N(int64(20*ms)) + 1),
		}
		b.forward += time.Duration(random.Int64N(int64(100*ms)) * random.Int64N(2))
		b.reverse += time.Duration(random.Int64N(int64(100*ms)) * random.Int64N(2))
		interval := time.Duration(random.Int64N(int64(200*ms)) + 1)
		e := &Estimator{Minimum: minimum}
		var earlier *Packet
		var f0, r0 float64
		for range 200 {
			b.pass(time.Duration(random.Int64N(int64(interval))))
			p, f, r := b.packet()
			e.Add(p)
			b.check(t, e, p, f, r)
			if earlier != nil {
				b.check(t, e, earlier, f0, r0) // a packet is also judged after later ones
			}
			earlier, f0, r0 = p, f, r
		}
	}
}

// Over 30/80 ms NTP is wrong by 25 ms, without notice. A minimum of 28 ms in each direction limits the offset to 54
// ms plus the movement of the clocks in a round trip, with or without queues.
func TestAsymmetricPathIsBoundedByItsMinimum(t *testing.T) {
	random := rand.New(rand.NewPCG(testseed.Of(t), 4))
	still := func(off time.Duration) *slewing {
		return &slewing{random: random, bound: float64(off.Abs()), error: float64(off), left: math.Inf(1)}
	}
	b := &testbed{random: random, local: still(0), remote: still(-25 * ms), forward: 30 * ms, reverse: 80 * ms, queue: 2 * ms}
	e := &Estimator{Minimum: 28 * ms}
	for range 1000 {
		b.pass(20 * ms)
		p, f, r := b.packet()
		e.Add(p)
		b.check(t, e, p, f, r)
		low, high, ok := e.Forward(p)
		// The largest delay that both queues added to p.
		queued := p.T4.Sub(p.T1) - 110*ms
		if width := high - low; !ok || width < 54*ms || width > 54*ms+of(p.T4.Sub(p.T1)+ms)+queued {
			t.Fatalf("%v to %v (%v), want 54 ms, %v of queues, and the movement of the clocks in a round trip", low, high, ok, queued)
		}
	}
}

func TestUnreportedStepExpires(t *testing.T) {
	e := &Estimator{Minimum: 9 * ms}
	theta := time.Duration(0)
	contradicted := 0
	var p *Packet
	for i := range 200 {
		if i == 100 {
			theta += time.Second
		}
		p = packet(begin.Add(time.Duration(i)*100*ms), 10*ms, 10*ms, theta)
		e.Add(p)
		if e.Contradictory(p) {
			contradicted++
		}
	}
	if contradicted == 0 || contradicted > int(maxAge/(100*ms)) {
		t.Errorf("a step of 1 s contradicted %d packets, want 1 to %d", contradicted, maxAge/(100*ms))
	}
	if low, high, ok := e.Forward(p); !ok || theta < low || theta > high {
		t.Errorf("after the step: %v to %v, %v", low, high, ok)
	}
}

func TestNothingIsAllocated(t *testing.T) {
	e, p := &Estimator{}, packet(begin, ms, ms, 0)
	if n := testing.AllocsPerRun(1000, func() {
		p.T1, p.T2, p.T3, p.T4 = p.T1.Add(time.Second), p.T2.Add(time.Second), p.T3.Add(time.Second), p.T4.Add(time.Second)
		e.Add(p)
		if _, _, ok := e.Forward(p); !ok {
			t.Fatal("no interval")
		}
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func FuzzEstimator(f *testing.F) {
	f.Add(int64(1), int64(2), int64(3), int64(4), int64(5), int64(6))
	f.Add(int64(math.MaxInt64), int64(math.MinInt64), int64(0), int64(-1), int64(math.MaxInt64), int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, f1, r1, f2, r2, gap, minimum int64) {
		// Timestamps of the protocol differ by at most half an era of NTP.
		const most = int64(1<<31) * int64(time.Second)
		at := func(from instant.Time, d int64) instant.Time { return from.Add(time.Duration(d % most)) }
		e := Estimator{Minimum: time.Duration(max(0, minimum%int64(time.Hour)))}
		e.Add(&Packet{T1: begin, T2: at(begin, f1), T3: at(begin, r1), T4: begin})
		now := begin.Add(time.Duration(gap % int64(time.Hour)))
		p := &Packet{T1: now, T2: at(begin, f2), T3: at(begin, r2), T4: now}
		e.Add(p)
		for _, interval := range []func(*Packet) (low, high time.Duration, ok bool){e.Forward, e.Reverse} {
			if low, high, ok := interval(p); ok && low > high {
				t.Errorf("%v to %v", low, high)
			}
		}
	})
}

func BenchmarkAddAndInterval(b *testing.B) {
	e, p := &Estimator{}, packet(begin, ms, ms, 0)
	b.ReportAllocs()
	for b.Loop() {
		p.T1, p.T2, p.T3, p.T4 = p.T1.Add(20*ms), p.T2.Add(20*ms), p.T3.Add(20*ms), p.T4.Add(20*ms)
		e.Add(p)
		if _, _, ok := e.Forward(p); !ok {
			b.Fatal("no interval")
		}
	}
}
