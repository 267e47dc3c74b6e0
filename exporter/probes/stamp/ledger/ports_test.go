package ledger

import (
	"fmt"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
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
						if f.port = Port(port); port > 0 {
							f.next = 0
							s.Move(f.port)
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
					if s.Restarts != 0 || s.fwd.now.lost != uint64(lost) || s.fwd.now.received != requests-uint64(lost) || s.Faults().LowConfidence[LowConfidencePort] != 0 {
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
				})
			}
		}
	}
}

// TestOutageOverAChangeOfPortHasItsDirection: one direction is dead, in which the path takes another source port twice. A reflector has numbers for
// each port, which begin with 0, or one range for all. After few requests before the outage it may be either: then nothing is taken for lost that
// is not.
func TestOutageOverAChangeOfPortHasItsDirection(t *testing.T) {
	const each, after = 100, 300
	for _, before := range []int{20, 1000} {
		for _, dead := range sample.Directions() {
			for _, first := range []int{-1, 0} {
				t.Run(fmt.Sprintf("%d requests before/%v dead/begins with %d", before, dead, first), func(t *testing.T) {
					f := newRemoteAgent(t, RemoteUnknown, nil)
					f.calm = true
					for i := range before {
						if f.ask(); i == 5 {
							f.onWay, f.next = f.onWay[:len(f.onWay)-1], f.next-1
						}
					}
					f.wait(4 * f.s.opts.LossTimeout)
					s := f.s
					for port := range 3 {
						if f.port = Port(port); port > 0 {
							s.Move(f.port)
							if first >= 0 {
								f.next = uint32(first)
							}
						}
						for range each {
							f.ask()
							f.onWay = f.onWay[:0]
							if dead == sample.Forward {
								f.next--
							}
						}
					}
					for range after {
						f.ask()
					}
					f.wait(8 * s.opts.LossTimeout)
					lost := [2]uint64{s.fwd.now.lost, s.rev.now.lost}
					want := [2]uint64{sample.Forward: 1} // before the outage
					want[dead] += 3 * each
					unknown := s.Faults().LowConfidence[LowConfidencePort]
					switch {
					case first >= 0 && before > each: // the numbers of the former ports end before the outage
						want[dead] -= 2 * each
					case before < each:
						want[dead] = lost[dead]
					}
					if s.Restarts != 0 || lost != want || lost[0]+lost[1]+unknown != s.RoundTripsLost || s.RoundTripsLost != 3*each+1 {
						t.Errorf("%d restarts, lost %d, want %d, direction unknown %d; %d round trips lost, want %d", s.Restarts, lost, want, unknown, s.RoundTripsLost, 3*each+1)
					}
					if s.fwd.now.undecided != unknown || s.fwd.now.received+s.fwd.now.lost+s.fwd.now.undecided != s.Next() {
						t.Errorf("forward %+v of %d, direction unknown %d", s.fwd.now, s.Next(), unknown)
					}
				})
			}
		}
	}
}
