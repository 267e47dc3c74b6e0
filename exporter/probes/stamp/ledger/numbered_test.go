package ledger

import (
	"testing"
	"time"
)

// TestRequestsThatOvertakeAreCountedByNumbersOfReplies: 0 and 3 are lost forward, 2 is overtaken by 4 and 5, and 5
// is duplicated.
func TestRequestsThatOvertakeAreCountedByNumbersOfReplies(t *testing.T) {
	var n numbered
	for i, seq := range []uint64{1, 4, 5, 5, 2, 6} {
		n.add(seq, 100+uint64(i), i == 3, time.Duration(i))
	}
	if decided, _ := n.settle(100, 6, time.Second); decided != 0 {
		t.Errorf("%d decided before the loss timeout, want 0", decided)
	}
	if decided, missing := n.settle(100, 2*time.Second, time.Second); decided != 7 || missing != 2 {
		t.Errorf("%d decided and %d missing, want 7 and 2", decided, missing)
	}
}

// A forged reply, whose number is refused, is no copy of a request: the path has lost nothing. A request that the path has duplicated
// has two numbers.
func TestForgedNumbersLoseNoRequest(t *testing.T) {
	for name, forge := range map[string]func(f *remoteAgent, seq uint64){
		"none": func(*remoteAgent, uint64) {},
		"before the reply": func(f *remoteAgent, seq uint64) {
			f.bring(seq, f.asked[seq], 1<<30)
		},
		"after the reply": func(f *remoteAgent, seq uint64) {
			f.wait(20 * time.Millisecond)
			f.bring(seq, f.asked[seq], 1<<30)
		},
		"before and after it": func(f *remoteAgent, seq uint64) {
			f.bring(seq, f.asked[seq], 1<<30)
			f.wait(20 * time.Millisecond)
			f.bring(seq, f.asked[seq], 1<<30)
		},
		"with a copy of each request": func(f *remoteAgent, _ uint64) { f.calm, f.copies, f.losses = false, []int{2}, 0 },
		"with a copy of the request": func(f *remoteAgent, seq uint64) {
			f.bring(seq, f.asked[seq], 1<<30)
			f.onWay = append(f.onWay, replyOnWay{f.now + 10*time.Millisecond, seq, f.next, 0})
			f.next++
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := known(t, RemoteUnknown)
			f.next = 1000
			f.askTimes(100)
			f.ask()
			forge(f, f.s.outstandingPackets.next-1)
			f.askTimes(2000) // longer than the loss timeout: the forward direction is decided while requests are outstanding
			if d := f.s.fwd.now; !f.s.fwd.known || d.lost != 0 || d.received < 1000 {
				t.Errorf("forward %+v, want nothing lost", d)
			}
			f.wait(3 * f.s.opts.LossTimeout)
			if d := f.s.fwd.now; d.lost != 0 || d.received != f.s.outstandingPackets.next {
				t.Errorf("at the end: forward %+v, want nothing lost of %d", d, f.s.outstandingPackets.next)
			}
		})
	}
}
