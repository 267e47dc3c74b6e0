package ledger

import (
	"fmt"
	"testing"
	"time"
)

// TestRepliesToAFormerPortLoseNothing: a reflector that numbers the replies to each source port stands still while the path takes
// another one, twice. Then it replies to all requests, whose replies arrive port by port, in turn, or the last port's first.
func TestRepliesToAFormerPortLoseNothing(t *testing.T) {
	const before, each, after = 300, 100, 300
	orders := map[string]func(port, i int) time.Duration{
		"by port":         func(port, i int) time.Duration { return time.Duration(each*port + i) },
		"in turn":         func(port, i int) time.Duration { return time.Duration(3*i + port) },
		"last port first": func(port, i int) time.Duration { return time.Duration(each*(2-port) + i) },
	}
	for name, order := range orders {
		for _, late := range []bool{false, true} {
			for _, lost := range []int{0, 1} {
				t.Run(fmt.Sprintf("%s/late %v/%d lost forward before", name, late, lost), func(t *testing.T) {
					f := newRemoteAgent(t, RemoteUnknown, nil)
					f.calm = true
					for i := range before {
						if f.ask(); i < lost {
							f.onWay, f.next = f.onWay[:0], f.next-1
						}
					}
					f.wait(4 * f.s.opts.LossTimeout)
					s := f.s
					f.every = time.Millisecond
					arrive := f.now + 3*each*f.every + time.Millisecond
					if late {
						arrive += s.opts.LossTimeout + s.opts.LossTimeout/2
					}
					for port := range 3 {
						if f.port = port; port > 0 {
							f.next = 0
						}
						for i := range each {
							f.ask()
							f.onWay[len(f.onWay)-1].at = arrive + order(port, i)*time.Microsecond
						}
					}
					f.wait(arrive + time.Millisecond - f.now)
					for range after {
						f.ask()
					}
					f.wait(4 * s.opts.LossTimeout)
					requests := uint64(before + 3*each + after)
					if s.Restarts != 0 || s.fwd.now.lost != uint64(lost) || s.fwd.now.received+s.fwd.now.undecided != requests-uint64(lost) {
						t.Errorf("%d restarts, %d of %d requests lost forward, %d received, %d undecided", s.Restarts, s.fwd.now.lost, requests, s.fwd.now.received, s.fwd.now.undecided)
					}
					if s.rev.now.sent != requests-uint64(lost) || s.rev.now.received+s.rev.now.lost != s.rev.now.sent || s.answered() != requests-uint64(lost) {
						t.Errorf("reverse %+v, %d round trips, want %d", s.rev.now, s.answered(), requests-uint64(lost))
					}
					if !late && (s.rev.now.lost != 0 || s.RoundTripsLost != uint64(lost)) {
						t.Errorf("replies in time: %d lost in reverse, %d round trips", s.rev.now.lost, s.RoundTripsLost)
					}
					if s.faults != nil && s.faults.Discarded[DiscardWrongNumber] != 0 {
						t.Errorf("%d replies have a wrong number", s.faults.Discarded[DiscardWrongNumber])
					}
					if name == "by port" && s.fwd.now.undecided != 0 {
						t.Errorf("%d requests are undecided, and no reply overtook another", s.fwd.now.undecided)
					}
				})
			}
		}
	}
}
