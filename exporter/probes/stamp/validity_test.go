package stamp

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/sched"
	"oneway.example/exporter/net/wire/timefmt"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes/stamp/ledger"
	"oneway.example/tests/testseed"
)

// pathSink is the sink of path p and probe stamp.
type pathSink struct{ metrictest.Sink }

// value is that of a series; of a histogram, its number of observations.
func (l *pathSink) value(d *metric.Desc, more ...string) (float64, bool) {
	if d.Kind == metric.Histogram {
		n := len(l.observed(d, more...))
		return float64(n), n > 0
	}
	return l.Value(d, append([]string{"p", "stamp"}, more...)...)
}

// observed returns all observations of a histogram.
func (l *pathSink) observed(d *metric.Desc, more ...string) []float64 {
	return l.History(d, append([]string{"p", "stamp"}, more...)...)
}

// fixedClock is a synchronized clock of a given bound.
type fixedClock struct {
	bound time.Duration
	steps uint64
	// reason is why the clock has no bound; Unknown: it is synchronized.
	reason sample.Reason
}

func (c *fixedClock) Quality(instant.Time) clock.Quality {
	if c.reason != sample.Unknown {
		return clock.Quality{State: clock.None, Bound: sample.Bound{Reason: c.reason}, Steps: c.steps}
	}
	return clock.Quality{State: clock.Synchronized, Bound: sample.Bound{Error: c.bound, Reason: sample.OK}, Steps: c.steps}
}

func (*fixedClock) Run(context.Context) error { return nil }

// sessionFixture is a session that receives simulated delays.
type sessionFixture struct {
	*session
	clock  *fixedClock
	ledger *pathSink
	seq    uint64
	now    instant.Time
	theta  time.Duration // remote minus local clock
	skew   time.Duration // of T3 alone
	judged [2]sample.Delay
}

// newSessionFixture has two clocks of this bound; the bound of a delay is twice as large, plus 50 us for the two
// timestamps.
func newSessionFixture(t *testing.T, bound time.Duration, change func(*Options)) *sessionFixture {
	t.Helper()
	o := DefaultOptions()
	if change != nil {
		change(&o)
	}
	if err := o.check(); err != nil {
		t.Fatal(err)
	}
	c := &sessionFixture{clock: &fixedClock{bound: bound}, ledger: &pathSink{}, now: instant.FromUnix(1_780_000_000, 0)}
	var err error
	c.session, err = newSession(nil, netip.MustParseAddrPort("127.0.0.1:862"), &o, c.clock, newSeries(c.ledger, "p", "stamp"))
	if err != nil {
		t.Fatal(err)
	}
	c.estimator.observe = func(_ sample.Packet, forward, reverse sample.Delay) { c.judged = [2]sample.Delay{forward, reverse} }
	c.account.Kind, c.estimator.ends.Remote.RunsOneway = ledger.RemoteOurs, true
	return c
}

// bring concludes one packet with these true delays.
func (c *sessionFixture) bring(forward, reverse time.Duration) (f, r sample.Delay) {
	c.now = c.now.Add(20 * time.Millisecond)
	stamp := func(at instant.Time) sample.Stamp { return sample.Stamp{At: at, Origin: sample.Kernel} }
	left := c.now.Add(forward + 100*time.Microsecond)
	c.estimator.conclude(&ledger.PendingReply{Clock: ledger.ThenOf(c.clock.Quality(c.now)), Era: c.estimator.era, Packet: sample.Packet{
		Seq: c.seq, ReverseSeq: c.seq, Remote: sample.Bound{Error: c.clock.bound, Reason: sample.OK},
		T1: stamp(c.now), T2: stamp(c.now.Add(forward + c.theta)), T3: stamp(left.Add(c.theta + c.skew)), T4: stamp(left.Add(reverse)),
	}})
	c.seq++
	return c.judged[0], c.judged[1]
}

// closed closes and publishes the window.
func (c *sessionFixture) closed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.window = c.estimator.close(c.account.Known())
	c.publish()
}

func (c *sessionFixture) told() *snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	v := c.snapshot()
	return &v
}

// count is a counter's value.
func (c *sessionFixture) count(d *metric.Desc, labels ...string) float64 {
	v, _ := c.ledger.value(d, labels...)
	return v
}

const us = time.Microsecond

func TestDelayBelowItsBoundIsCountedAndReported(t *testing.T) {
	for _, c := range []struct {
		name         string
		delay        time.Duration
		change       func(*Options)
		reason       sample.Reason
		low, invalid float64
	}{ // the bound is 2 x 225 us + 50 us
		{"bound far below", 2000 * us, nil, sample.OK, 0, 0},
		{"the delay itself", 500 * us, nil, sample.OK, 0, 0},
		{"more than the delay", 499 * us, nil, sample.OK, 1, 0},
		{"no delay at all", 0, nil, sample.OK, 1, 0},
		{"a fixed limit", 2000 * us, func(o *Options) { o.MaxBound = 499 * us }, sample.BoundTooLarge, 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			sessionFixture := newSessionFixture(t, 225*us, c.change)
			got, reverse := sessionFixture.bring(c.delay, time.Second)
			if got.Reason != c.reason || got.Value != c.delay || got.Bound != 500*us {
				t.Errorf("got %+v, want %v", got, c.reason)
			}
			if !reverse.OK() && sessionFixture.opts.MaxBound == 0 {
				t.Errorf("the other direction has no value: %+v", reverse)
			}
			sessionFixture.closed()
			if v := sessionFixture.count(metric.DelayLowConfidence, "forward"); v != c.low {
				t.Errorf("%v of low confidence, want %v", v, c.low)
			}
			if v := sessionFixture.count(metric.DelayInvalid, "forward", "bound_too_large"); v != c.invalid {
				t.Errorf("%v invalid, want %v", v, c.invalid)
			}
			if v := sessionFixture.count(metric.Delay, "forward"); v != 1-c.invalid {
				t.Errorf("%v in the histogram, want %v", v, 1-c.invalid)
			}
			_, told := sessionFixture.ledger.value(metric.DelayMin, "forward")
			_, bounded := sessionFixture.ledger.value(metric.DelayErrorBound, "forward")
			if want := c.invalid == 0; told != want || bounded != want {
				t.Errorf("smallest delay known: %v, its bound known: %v, want %v", told, bounded, want)
			}
			// The limit leaves the reverse direction without a valid delay as well.
			for component, want := range map[string]float64{"local_clock": 225e-6, "remote_clock": 225e-6, "timestamps": 50e-6} {
				v, known := sessionFixture.ledger.value(metric.DelayErrorComponent, component)
				if known != bounded || known && v != want {
					t.Errorf("%s: %v, known: %v; want %v, %v", component, v, known, want, bounded)
				}
			}
		})
	}
}

// A negative delay within its bound is no proof of a fault; beyond its bound it proves that a clock is wrong and is
// counted. Either is exported unchanged.
func TestNegativeDelayIsShownAndCountedWhereItIsProof(t *testing.T) {
	for delay, proof := range map[time.Duration]float64{-200 * us: 0, -5 * time.Millisecond: 1} {
		sessionFixture := newSessionFixture(t, 225*us, nil)
		sessionFixture.theta = delay - time.Millisecond
		if got, _ := sessionFixture.bring(time.Millisecond, time.Millisecond); !got.OK() || got.Value != delay {
			t.Errorf("%v: %+v", delay, got)
		}
		sessionFixture.closed()
		if v := sessionFixture.count(metric.DelayNegative, "forward"); v != proof {
			t.Errorf("%v: %v negative delays counted, want %v", delay, v, proof)
		}
		if v, shown := sessionFixture.ledger.value(metric.DelayMin, "forward"); !shown || v != delay.Seconds() {
			t.Errorf("%v: smallest delay %v (known %v)", delay, v, shown)
		}
	}
}

// TestDisprovedBoundsAreNotReported: a clock is an hour ahead, or behind, of what its bound allows. Neither direction's delays have a
// bound, and no call is rated by them, until sample.FaultTime has passed without such a delay or a clock was stepped: a queue of
// the same size hides the error.
func TestDisprovedBoundsAreNotReported(t *testing.T) {
	for _, wrong := range []time.Duration{time.Hour, -time.Hour, 20 * time.Millisecond} {
		for _, step := range []bool{false, true} {
			c := newSessionFixture(t, 225*us, nil)
			held := int(sample.FaultTime / c.opts.Window)
			if step {
				held = 1 // the window in which the clock is stepped has delays from before
			}
			thetas := append([]time.Duration{0, wrong}, make([]time.Duration, held+1)...)
			for window, theta := range thetas {
				if step && window == 2 {
					c.estimator.stepped()
				}
				for i := range 20 {
					if c.theta = theta; i > 0 && wrong == 20*time.Millisecond {
						c.theta = 0 // one packet is enough
					}
					c.bring(10*time.Millisecond, 10*time.Millisecond)
					for _, d := range sample.Directions() {
						c.estimator.ways[d].losses.Add(deltaOf(1))
					}
				}
				c.closed()
				v := c.told()
				r := v.ofWindow()
				cause, _ := v.defect()
				want := window == 0 || window == len(thetas)-1
				if disproved := cause == probe.CauseNegativeDelays; disproved == want {
					t.Errorf("window %d of %v: cause %q", window, wrong, cause)
				}
				for i, d := range []DirectionReport{r.Forward, r.Reverse} {
					dir := sample.Direction(i).String()
					_, bounded := c.ledger.value(metric.DelayErrorBound, dir)
					_, rated := c.ledger.value(metric.VoiceR, dir, "G.711-PLC", "g107", "adaptive")
					_, shown := c.ledger.value(metric.DelayMin, dir)
					if bounded != want || rated != want || !shown || d.Delay == nil || (d.Delay.ErrorBound != nil) != want || (len(d.Voice) > 0) != want {
						t.Errorf("window %d of %v, %s: bounded %v, rated %v, shown %v, want %v, %v, true: %s", window, wrong, dir, bounded, rated, shown, want, want, asJSON(t, d))
					}
				}
			}
		}
	}
}

// TestWindowHasThePacketsThatAreFasterThanTheirBound: a filter by size would keep only the packets slowed by
// queues, and bias the median.
func TestWindowHasThePacketsThatAreFasterThanTheirBound(t *testing.T) {
	sessionFixture := newSessionFixture(t, 225*us, nil)
	for i := range 100 {
		delay := 300 * us
		if i%10 == 0 {
			delay = 3 * time.Millisecond
		}
		sessionFixture.bring(delay, delay)
	}
	sessionFixture.closed()
	if all, low := sessionFixture.count(metric.Delay, "forward"), sessionFixture.count(metric.DelayLowConfidence, "forward"); all != 100 || low != 90 {
		t.Errorf("%v delays reported, want 100; %v of low confidence, want 90", all, low)
	}
	for q, want := range map[string]float64{"0.5": 300e-6, "0.95": 3e-3, "0.99": 3e-3} {
		if v, told := sessionFixture.ledger.value(metric.DelayQuantile, "forward", q); !told || v != want {
			t.Errorf("quantile %s is %v (known %v), want %v", q, v, told, want)
		}
	}
	least, _ := sessionFixture.ledger.value(metric.DelayMin, "forward")
	most, _ := sessionFixture.ledger.value(metric.DelayMax, "forward")
	if off, _ := sessionFixture.ledger.value(metric.DelayErrorBound, "forward"); least != 300e-6 || most != 3e-3 || off != 500e-6 {
		t.Errorf("from %v to %v, bound %v", least, most, off)
	}
	if cause, why := sessionFixture.told().defect(); cause != "" || why != "" {
		t.Errorf("status %q (%s) for a short path with a good clock, want no defect", why, cause)
	}
}

func TestRemoteClockIsToldWhileItIsHeard(t *testing.T) {
	sessionFixture := newSessionFixture(t, us, nil)
	say := func(e timefmt.ErrorEstimate) {
		user := wheelStart
		replyArrives(t, sessionFixture.session, sessionFixture.account.Send(sched.Now(), user, ledger.ClockThen{}), user, sched.Now())
		sessionFixture.estimator.remote.heard(e)
		sessionFixture.closed()
	}
	check := func(when string, synchronized, bound float64, known bool) {
		t.Helper()
		s, ok := sessionFixture.ledger.value(metric.RemoteClockSynchronized)
		if ok != known || s != synchronized {
			t.Errorf("%s: synchronized %v (known %v), want %v (%v)", when, s, ok, synchronized, known)
		}
		if b, ok := sessionFixture.ledger.value(metric.RemoteClockErrorBound); ok != (bound > 0) || b < bound || b > 1.01*bound {
			t.Errorf("%s: bound %v (known %v), want %v", when, b, ok, bound)
		}
	}
	sessionFixture.closed()
	check("before the first reply", 0, 0, false)
	say(timefmt.MakeErrorEstimate(300*us, true, timefmt.NTP))
	check("synchronized", 1, 300e-6, true)
	say(timefmt.MakeErrorEstimate(300*us, false, timefmt.NTP))
	check("unsynchronized", 0, 0, true)
	say(timefmt.ErrorEstimate(0x8000)) // a multiplier of zero
	check("not to be used", 0, 0, true)
	say(timefmt.MakeErrorEstimate(2*time.Second, true, timefmt.PTP))
	check("a poor clock", 1, 2, true)
	for later, end := sched.Now(), sched.Now()+time.Minute; later < end; later += ledger.TickInterval {
		sessionFixture.account.Tick(later, later)
	}
	sessionFixture.closed()
	check("silent for a minute", 0, 0, false)
}

func TestPathMinimumNarrowsTheClocksBound(t *testing.T) {
	seed := testseed.Of(t)
	random := rand.New(rand.NewPCG(seed, 5))
	queue := func() time.Duration { return time.Duration(random.ExpFloat64() * float64(2*time.Millisecond)) }
	const ms = time.Millisecond
	run := func(minimum, theta time.Duration) (median time.Duration, c *sessionFixture) {
		c = newSessionFixture(t, 50*ms, func(o *Options) { o.PathMinimum = minimum })
		c.theta = theta
		var bounds []time.Duration
		for i := range 500 {
			forward, reverse := 30*ms+queue(), 80*ms+queue()
			f, r := c.bring(forward, reverse)
			if f.Value != forward+theta || r.Value != reverse-theta {
				t.Fatalf("a value was changed: %+v, %+v", f, r)
			}
			if theta.Abs() > f.Bound || theta.Abs() > r.Bound {
				t.Fatalf("minimum %v: off by %v, bound %v and %v", minimum, theta, f.Bound, r.Bound)
			}
			if i > 100 {
				bounds = append(bounds, max(f.Bound, r.Bound))
			}
		}
		slices.Sort(bounds)
		return bounds[len(bounds)/2], c
	}
	// The change of a local clock in a round trip of 110 ms, 12.4 ms, is in all bounds; so are the queues of the
	// packet itself or of those around it. -25 ms is a typical NTP offset over this path; 28 ms is the propagation
	// delay of light.
	if median, _ := run(0, -25*ms); median != 100*ms+50*us {
		t.Errorf("without a minimum the median bound is %v, want 100.05 ms", median)
	}
	if median, _ := run(28*ms, -25*ms); median < 25*ms || median > 95*ms {
		t.Errorf("with a minimum of 28 ms the median bound is %v, want 90 ms or a little more", median)
	}
	if median, _ := run(28*ms, 25*ms); median < 25*ms || median > 45*ms {
		t.Errorf("with the offset on the other side the median bound is %v, want 40 ms or a little more", median)
	}
	median, c := run(80*ms, -25*ms) // more than half of the round trip: impossible
	if cause, why := c.told().defect(); median != 100*ms+50*us || cause != "path_minimum" || !strings.Contains(why, "path_minimum exceeds") {
		t.Errorf("with an impossible minimum the median bound is %v, the status %q (%s)", median, why, cause)
	}
}

// The remote clock is 40 ms ahead, within the bound of both, and is slewed back at chronyd's maximum rate while a
// queue stands: the limit derived from an earlier packet does not hold any more.
func TestPathMinimumHoldsWhileAClockSlews(t *testing.T) {
	const ms = time.Millisecond
	for _, sign := range []time.Duration{1, -1} {
		for _, interval := range []time.Duration{20 * ms, 100 * ms, time.Second} {
			c := newSessionFixture(t, 50*ms, func(o *Options) { o.PathMinimum = 10 * ms })
			c.theta = 0
			for i := range 200 {
				c.now = c.now.Add(interval - 20*ms) // bring adds 20 ms
				queue := time.Duration(0)
				if i >= 100 {
					queue = 200 * ms
					c.theta = sign * min(time.Duration(i-100)*interval*83_333/1_000_000, 90*ms)
				}
				f, r := c.bring(10*ms+queue, 10*ms+queue)
				if c.theta.Abs() > f.Bound || c.theta.Abs() > r.Bound {
					t.Fatalf("every %v, packet %d: the clocks are %v apart, the bounds %v and %v", interval, i, c.theta, f.Bound, r.Bound)
				}
			}
		}
	}
}

// The clocks' bounds are smaller than the path allows: one of the two is wrong, so neither is trusted.
func TestLargerBoundIsTakenWherePathAndClocksContradictEachOther(t *testing.T) {
	c := newSessionFixture(t, us, func(o *Options) { o.PathMinimum = 30 * time.Millisecond })
	c.theta = 20 * time.Millisecond
	if f, _ := c.bring(31*time.Millisecond, 31*time.Millisecond); f.Bound < 20*time.Millisecond {
		t.Errorf("off by 20 ms, bound %v", f.Bound)
	}
	// A step discards the offset's bound.
	c.clock.steps++
	c.theta = 0
	for range 2 {
		if f, _ := c.bring(31*time.Millisecond, 31*time.Millisecond); f.Bound > 1200*us {
			t.Errorf("after the step the bound is %v, want 1 ms and that of the timestamps", f.Bound)
		}
	}
}

func TestPathMinimumOutOfRangeIsRefused(t *testing.T) {
	o := DefaultOptions()
	o.PathMinimum = -1
	var wrong *option.Error
	if err := o.check(); !errors.As(err, &wrong) || wrong.Key != "path_minimum" {
		t.Error(err)
	}
}
