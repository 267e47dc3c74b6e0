package stamp

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"oneway.example/exporter/clocks/static"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/sched"
	"oneway.example/exporter/probes/stamp/ledger"
	"oneway.example/tests/testseed"
)

// TestBurstAfterAStallLosesNothing: a session at the highest rate gets all replies of 0.4 s at once.
func TestBurstAfterAStallLosesNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(testseed.Of(t), 5))
	for name, arrange := range map[string]func(seqs []int){
		"in order": func([]int) {},
		"reversed": slices.Reverse[[]int],
		"random":   func(s []int) { rng.Shuffle(len(s), func(i, j int) { s[i], s[j] = s[j], s[i] }) },
	} {
		t.Run(name, func(t *testing.T) {
			w, o := newWheel(t), DefaultOptions()
			o.Interval = minInterval
			if err := o.check(); err != nil {
				t.Fatal(err)
			}
			s, err := newSession(nil, netip.MustParseAddrPort("127.0.0.1:862"), &o, static.New(time.Microsecond, metric.Discard{}), newSeries(metric.Discard{}, "p", "stamp"))
			if err != nil {
				t.Fatal(err)
			}
			s.run = 7
			concluded := map[uint64]int{}
			s.estimator.observe = func(p sample.Packet, _, _ sample.Delay) {
				if concluded[p.Seq]++; p.T1.Origin != sample.Kernel {
					t.Fatalf("packet %d has T1 of origin %v, want the kernel's", p.Seq, p.T1.Origin)
				}
			}
			order := make([]int, wheelTurn)
			for seq := range order {
				order[seq] = seq
				s.account.Send(sched.Now(), userTime(uint32(seq)), ledger.ClockThen{Bound: sample.Bound{Reason: sample.OK}})
				s.transmitted(s.cookie(uint64(seq)), sample.Stamp{At: userTime(uint32(seq)) + 20_000, Origin: sample.Kernel}, &w.hub)
			}
			arrange(order)
			for _, seq := range order {
				s.received(0, &w.replies[seq], sched.Now())
			}
			const most = 5 // the last one, and those for which it and three others may have had the true T3
			if waiting := wheelTurn - len(concluded); waiting > most {
				t.Errorf("%d replies wait for their T3, want at most %d", waiting, most)
			}
			s.account.Flush(1 << 62)
			a, reverse := s.account, s.account.Direction(sample.Reverse)
			if a.RoundTripsReceived != wheelTurn || reverse.Received.Value != wheelTurn || a.RoundTripsLost+reverse.Lost.Value+reverse.Late.Value != 0 {
				t.Errorf("%d round trips, %d lost; reverse %+v; want %d, none lost", a.RoundTripsReceived, a.RoundTripsLost, reverse, wheelTurn)
			}
			for seq := range uint64(wheelTurn) {
				if concluded[seq] != 1 {
					t.Fatalf("packet %d was evaluated %d times", seq, concluded[seq])
				}
			}
		})
	}
}
