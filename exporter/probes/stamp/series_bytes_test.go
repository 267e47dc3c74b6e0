package stamp

import (
	"fmt"
	"math"
	"testing"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/output/promsink"
)

// TestSeriesOfAPathKeepToTheirMemory: all that scope, sink and publisher keep of the series of a path. Its histograms have no
// observations, and are 130 bytes each; a slim path has two of them.
func TestSeriesOfAPathKeepToTheirMemory(t *testing.T) {
	w := newWheel(t)
	for range 100 {
		w.turn()
	}
	w.s.window = w.s.estimator.close(w.s.account.Known())
	v := w.s.snapshot()
	names := make([]string, 1000)
	for i := range names {
		names[i] = fmt.Sprintf("site-%05d", (i*7919)%10_000) // in no order
	}
	all := make([]*series, len(names))
	for profile, most := range map[metric.Profile]uint64{metric.Slim: 3550 + 2*130, metric.Full: 24_000} {
		each := uint64(math.MaxUint64)
		for range 3 { // the runtime allocates, too: the least is the measurement
			sink := promsink.New(promsink.Options{})
			before := heapBytes()
			for i, name := range names {
				all[i] = seriesOf(profile.Scope(sink, name, "stamp"))
				all[i].publish(&v)
			}
			each = min(each, (heapBytes()-before)/uint64(len(all)))
			for _, one := range all {
				one.scope.Close()
			}
			clear(all)
		}
		t.Logf("%v: %d bytes per path", profile, each)
		if each > most {
			t.Errorf("%v: %d bytes per path, want at most %d", profile, each, most)
		}
	}
}
