package links

import (
	"slices"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/estimate/queue"
	"oneway.example/tests/bottleneck"
	"oneway.example/tests/testseed"
)

// TestQueueThatDrainsLongerThanTheIdlePhase has a load that exceeds the rate tenfold, and idle packets at the default
// interval, which take most of the rate: the queue drains for up to 33 s, and the idle phase has 2 s.
func TestQueueThatDrainsLongerThanTheIdlePhase(t *testing.T) {
	seed := testseed.Of(t)
	for _, kb := range []int{60, 100, 120, 130, 140, 150, 200, 300, 500} {
		c := filled("slow", 400e3, kb*1000, 50*ms)
		c.Every, c.Offered = 40*ms, 4e6
		v := Judge(c, seed)
		size := v.Told.Size
		if v.Told.State != queue.Filled || !v.Covered || size.OneSided || size.Value < 0.95*float64(kb)*1000 || size.Value > 1.05*float64(kb)*1000 {
			t.Errorf("%d kB: %v, size %+v: %s", kb, v.Told.State, size, v.Told.Evidence)
		}
	}
}

// TestQueueThatDrainsAtAChangingRate has links on which the idle packets exceed the rate at times, so that the queue may
// drain, hold its length or grow.
func TestQueueThatDrainsAtAChangingRate(t *testing.T) {
	seed := testseed.Of(t)
	known, all := 0, 0
	for i := range uint64(10) {
		for _, rate := range []float64{300e3, 500e3, 1e6} {
			for _, limit := range []int{60_000, 130_000, 300_000} {
				c := traced("slow", bottleneck.Cellular(seed+i, rate, 60*time.Second), limit)
				c.Every, c.Offered = 40*ms, 4e6
				v := Judge(c, seed)
				all++
				switch {
				case v.Told.Size.OK && v.Covered:
					known++
				case v.Told.Size.OK || strings.Contains(v.Told.Evidence, ": the path or a clock has changed"):
					t.Errorf("%.1f Mb/s, %d kB: %v: %s", rate/1e6, limit/1000, v.Row(), v.Told.Evidence)
				}
			}
		}
	}
	if known < all*3/4 {
		t.Errorf("a size of %d of %d", known, all)
	}
}

// TestWidenedSizeHasNoMiddle has a path with losses behind two queues and few idle packets, which widen the size to one
// side in some runs.
func TestWidenedSizeHasNoMiddle(t *testing.T) {
	made := Made()
	two := made[slices.IndexFunc(made, func(c Case) bool { return c.Name == "two queues" })]
	two.Outage, two.OutageAt, two.Idle, two.Loss = 800*ms, 9*time.Second, 10, 0.02
	oneSided := 0
	for seed := range uint64(20) {
		v := Judge(two, seed)
		size := v.Told.Size
		if size.OneSided {
			oneSided++
		} else if !v.Covered || size.Value < 0.9*v.True[0] || size.Value > 1.1*v.True[1] {
			t.Errorf("seed %d: size %+v, true %.0f: %s", seed, size, v.True, v.Told.Evidence)
		}
	}
	if oneSided == 0 {
		t.Error("no size is one-sided")
	}
	t.Logf("%d of 20 sizes are one-sided", oneSided)
}
