package ledger

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"oneway.example/tests/testseed"
)

// TestNumbersThatOtherSendersUseAreIgnored: the reflector counts the replies to all of its senders together. This sender was alone
// first. Of its 2000 requests since then none, or a tenth of the requests and of the replies, is lost; the latter with others that are
// no rarer than these losses, which explain what is missing.
func TestNumbersThatOtherSendersUseAreIgnored(t *testing.T) {
	seed := testseed.Of(t)
	for name, others := range map[string]func(i int) uint32{
		"one as fast":     func(int) uint32 { return 1 },
		"two":             func(int) uint32 { return 2 },
		"one of 50 times": func(int) uint32 { return 50 },
		"one of a 20th":   func(i int) uint32 { return uint32(max(0, 1-i%20)) },
		"one in bursts":   func(i int) uint32 { return uint32(max(0, i%200-100)) },
	} {
		for _, alone := range []int{0, 500} {
			for _, losses := range []int{0, 10} {
				if losses > 0 && (name == "one of a 20th" || name == "one in bursts") {
					continue
				}
				t.Run(fmt.Sprintf("%s/%d alone/%d %% lost", name, alone, losses), func(t *testing.T) {
					f := newRemoteAgent(t, RemoteUnknown, rand.New(rand.NewPCG(seed, uint64(losses))))
					f.copies, f.losses, f.every, f.calm = []int{0, 1, 1, 1, 1, 1, 1, 1, 1, 1}, losses, 20*time.Millisecond, losses == 0
					f.next = 1000
					for range alone {
						f.ask()
					}
					falsely := f.s.rev.now.lost
					if f.s.Shared != SharedByNone || losses == 0 && falsely > 0 {
						t.Fatalf("shared by %v while alone, %d replies lost", f.s.Shared, falsely)
					}
					for i := range 2000 {
						f.next += others(i)
						f.ask()
						if i == 9 && losses == 0 && others(i) > 0 && f.s.Shared == SharedByNone { // as many packets as oneway probe sends
							t.Errorf("after ten requests the numbers are taken for the replies to this sender, excess %d", f.s.order.excess)
						}
					}
					f.wait(3 * f.s.opts.LossTimeout)
					if s := f.s; s.Shared != SharedByAll || s.Kind != RemoteStateless || s.fwd.known || s.rev.known || losses == 0 && s.Restarts > 0 {
						t.Errorf("shared by %v, kind %v, directions known %v %v, %d restarts, excess %d", s.Shared, s.Kind, s.fwd.known, s.rev.known, s.Restarts, s.order.excess)
					}
					if s := f.s; losses == 0 && (s.RoundTripsReceived != s.Next() || s.RoundTripsLost != 0 || s.rev.now.lost > 50*(copyTolerance+2)) {
						t.Errorf("%d of %d answered, %d lost, %d replies lost", s.RoundTripsReceived, s.Next(), s.RoundTripsLost, s.rev.now.lost)
					}
					if s := f.s; losses > 0 && s.Faults().LowConfidence[LowConfidenceForeign] != s.RoundTripsLost {
						t.Errorf("%d lost, %d of an unknown direction", s.RoundTripsLost, s.Faults().LowConfidence[LowConfidenceForeign])
					}
				})
			}
		}
	}
}

// TestNumbersOfOneSenderAreItsOwn: the reflector restarts, with lower and higher numbers, and the path loses, copies and reorders
// requests, and loses and reorders replies. Up to a hundred requests are on their way. Copies are taken for replies to others if six are
// made, and their replies lost, before the reply to any copy arrives or a request is lost: fewer than one in 1,000,000 seeds.
func TestNumbersOfOneSenderAreItsOwn(t *testing.T) {
	for _, every := range []time.Duration{100 * time.Microsecond, 2 * time.Millisecond, 20 * time.Millisecond} {
		for _, calm := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v/calm %v", every, calm), func(t *testing.T) {
				f := newRemoteAgent(t, RemoteUnknown, rand.New(rand.NewPCG(testseed.Of(t), uint64(every))))
				f.calm, f.every, f.s = calm, every, idleAccountOf(time.Second)
				f.now = f.s.now
				restarts := uint64(0)
				for i := range 20_000 {
					if i%1000 == 999 {
						f.next = []uint32{0, f.next + 1<<20, f.rng.Uint32() >> 1}[i/1000%3]
						restarts++
					}
					if last := len(f.onWay) - 1; !calm && i%20 == 7 && last > 1 { // two requests overtake each other, and the reply to one is lost
						f.onWay[last].number, f.onWay[last-1].number = f.onWay[last-1].number, f.onWay[last].number
						f.onWay = f.onWay[:last]
					}
					f.ask()
				}
				if f.s.Shared != SharedByNone || f.s.Kind != RemoteStateful || f.s.Restarts < restarts*3/4 {
					t.Errorf("shared by %v, kind %v, %d restarts of %d", f.s.Shared, f.s.Kind, f.s.Restarts, restarts)
				}
			})
		}
	}
}
