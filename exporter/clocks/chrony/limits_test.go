package chrony

import (
	"encoding/binary"
	"errors"
	"math"
	"testing"
	"time"

	fb "github.com/facebook/time/ntp/chrony"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/sample"
)

// floats are the numbers of a tracking reply, by their byte (candm.h, RPY_Tracking).
var floats = map[string]int{
	"offset": 68, "last offset": 72, "frequency": 80, "residual frequency": 84, "skew": 88,
	"root delay": 92, "root dispersion": 96, "update interval": 100,
}

// floatPatterns calls f with every exponent of chrony's float, and at each of them the
// coefficients at which it begins, ends or changes its sign: 128 x 10 patterns.
func floatPatterns(f func(pattern uint32)) {
	for exponent := range uint32(128) {
		for _, c := range []int32{0, 1, 2, -1, -2, 1<<24 - 1, 1 << 23, 1<<23 - 1, -1 << 24, -1 << 23} {
			f(exponent<<25 | uint32(c)&(1<<25-1))
		}
	}
}

// decoded is the value of a pattern (chrony, util.c, UTI_FloatNetworkToHost), computed independently of the tested
// decoder.
func decoded(pattern uint32) float64 {
	exponent := int(int32(pattern) >> 25)
	coefficient := int(int32(pattern<<7) >> 7)
	return math.Ldexp(float64(coefficient), exponent-25)
}

// Whatever number is in chronyd's reply, the clock has a bound from zero to an hour that is not below the reply's, or none.
func TestNoPatternOfANumberMakesABoundThatIsTooSmall(t *testing.T) {
	for name, at := range floats {
		refused, accepted := 0, 0
		floatPatterns(func(pattern uint32) {
			datagram := correctTracking()
			binary.BigEndian.PutUint32(datagram[at:], pattern)
			tracking, err := request[*fb.ReplyTracking](newLink(&canned{datagram: datagram, fix: true}), fb.NewTrackingPacket())
			if err != nil {
				t.Fatalf("%s %#08x: %v", name, pattern, err)
			}
			own := math.Abs(tracking.CurrentCorrection) + tracking.RootDispersion + math.Abs(tracking.RootDelay)/2
			r, err := newReport(&tracking.Tracking, clock.Check{Now: clock.Reading{Wall: 1e18, Mono: 10}}, clock.Check{Now: clock.Reading{Wall: 1e18, Mono: 20}})
			if err != nil {
				var q *queryError
				if !errors.As(err, &q) || q.reason != implausible {
					t.Fatalf("%s %#08x: %v, want implausible", name, pattern, err)
				}
				if v := decoded(pattern); v >= 0 && v <= 1 {
					t.Fatalf("%s %g was refused: %v", name, v, err)
				}
				refused++
				return
			}
			accepted++
			if !(own <= 3600) {
				t.Fatalf("%s %#08x: a bound of %g s was accepted", name, pattern, own)
			}
			checkAges(t, r, own)
		})
		if refused == 0 || accepted == 0 {
			t.Errorf("%s: %d patterns refused, %d accepted", name, refused, accepted)
		}
	}
}

// checkAges requests the bound of r at moments near and far, after silence of any length.
func checkAges(t *testing.T, r *report, own float64) {
	t.Helper()
	m, err := New(Options{silentAfter: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	m.options.silentAfter = math.MaxInt64 // for a bound at any age
	for _, drift := range []drift{{}, {maxRate, true}, {maxRate, false}} {
		k := &replyState{last: r, previous: r, drift: drift, holdover: math.MaxInt64}
		for _, mono := range []time.Duration{10, time.Hour, math.MaxInt64} {
			for _, at := range []instant.Time{0, 1, 1e18, 2e18, math.MaxInt64, -1e18, math.MinInt64} {
				check := clock.Check{Now: clock.Reading{Wall: 1e18, Mono: mono}}
				q := m.qualityAt(k, check, at)
				switch b := q.Bound; {
				case b.Reason == sample.BoundTooLarge && q.State == clock.Unsynchronized:
				case b.Reason == sample.OK && b.Error.Seconds() >= own*(1-1e-12) && b.Error <= time.Hour:
				default:
					t.Fatalf("%+v, %+v, at %d, monotonic %d: %+v, state %v; the reply alone says %g s", *r, drift, at, mono, b, q.State, own)
				}
			}
		}
	}
}

// Numbers that chronyd sends beyond the range of its float, and near it.
func TestImpossibleReplyIsCountedAndNotUsed(t *testing.T) {
	for name, change := range map[string]func(*daemon){
		"dispersion at the float's limit": func(d *daemon) { d.dispersion = 4e18 },
		"delay at the float's limit":      func(d *daemon) { d.delay = 4e18 },
		"negative delay at the limit":     func(d *daemon) { d.delay = -4e18 },
		"offset at the float's limit":     func(d *daemon) { d.correction = 4e18 },
		"fast by the float's limit":       func(d *daemon) { d.correction = -4e18 },
		"skew at the float's limit":       func(d *daemon) { d.skew = 4e18 },
		"residual at the float's limit":   func(d *daemon) { d.residual = -4e18 },
		"negative dispersion":             func(d *daemon) { d.dispersion = -1e-3 },
		"an hour and more, together":      func(d *daemon) { d.correction, d.dispersion, d.delay = 1200, 1200, 2402 },
	} {
		t.Run(name, func(t *testing.T) {
			inTestbed(t, Options{}, func(b *testbed) {
				b.expect("at first", clock.Synchronized, sample.OK)
				b.daemon.set(change)
				for range 40 {
					// simulated time (synctest)
					time.Sleep(time.Second)
					if q := b.quality(); q.Synchronized() && q.Bound.Error > time.Second {
						t.Errorf("valid: %+v", q)
						break
					}
				}
				b.expect("then", clock.Silent, sample.ClockSilent)
				if n, ok := b.sink.Value(metric.ClockQueryFailures, Name, "implausible"); !ok || n < 3 {
					t.Errorf("%v implausible replies were counted", n)
				}
			})
		})
	}
}

func TestDifferencesOfInstantsAreClamped(t *testing.T) {
	const lo, hi = time.Duration(math.MinInt64), time.Duration(math.MaxInt64)
	for _, c := range []struct{ a, b, want time.Duration }{
		{5, 3, 2},
		{3, 5, -2},
		{hi, -1, hi},
		{lo, 1, lo},
		{lo, lo, 0},
		{hi, hi, 0},
		{0, lo, hi},
		{-1, lo, hi},
		{-2, hi, lo},
		{-1, hi, lo},
	} {
		if got := minus(c.a, c.b); got != c.want {
			t.Errorf("%d - %d = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
