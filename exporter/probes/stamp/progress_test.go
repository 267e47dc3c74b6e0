package stamp

import (
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/estimate/loss"
	"oneway.example/exporter/probes/stamp/ledger"
)

// TestProgressChangesNoRating: a route that becomes 100 ms longer makes packets too late for a playout buffer, also where the progress was
// reported after each packet.
func TestProgressChangesNoRating(t *testing.T) {
	rate := func(progress bool) rated {
		s := newSessionFixture(t, us, func(o *Options) { o.Codecs = []string{"G.711-PLC"} })
		known := ledger.Known{Directions: [2]bool{true, true}}
		for i := range 100 {
			d := 10 * time.Millisecond
			if i >= 50 {
				d += 100 * time.Millisecond
			}
			s.bring(d, 10*time.Millisecond)
			if progress {
				s.partial(s.estimator.soFar)
			}
		}
		for _, d := range sample.Directions() {
			s.estimator.take(ledger.Verdict{Kind: ledger.PacketsDecided, Direction: d, Losses: loss.Delta{Decided: 100, Received: 100}})
		}
		return s.estimator.window(known).directions[sample.Forward].ratings[0]
	}
	want, got := rate(false), rate(true)
	if want.Loss < 0.05 || got.R != want.R || got.Loss != want.Loss {
		t.Errorf("R %.1f with %.0f %% missed; without progress %.1f with %.0f %%", got.R, 100*got.Loss, want.R, 100*want.Loss)
	}
}
