package ledger

import (
	"math/rand/v2"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/wire/stampfmt"
)

// tells delivers the reply of our reflector to a query: it has received all before next, and sent so many.
func (f *remoteAgent) tells(epoch, next, sent uint32) {
	rc := stampfmt.Receipt{Filled: true, StatsQuery: true, Words: 3, Epoch: epoch, Next: next, Base: next, Received: sent, Tx: sent}
	for i := range min(sent, 192) {
		rc.Recent[i/64] |= 1 << (i % 64)
	}
	f.s.learn(&Reply{Receipt: rc, HasReceipt: true}, f.now, true)
}

// known returns an agent on a path without losses, whose kind is known.
func known(t *testing.T, kind RemoteKind) *remoteAgent {
	f := newRemoteAgent(t, kind, rand.New(rand.NewPCG(1, 2)))
	f.calm = true
	return f
}

func (f *remoteAgent) askTimes(n int) {
	for range n {
		f.ask()
	}
}

// Replies to test packets may overtake the reply to the query that is the first to report the restart.
func TestRestartCountsOnceWhateverOvertakesTheQuerysReply(t *testing.T) {
	for overtook := range uint64(4) {
		f := known(t, RemoteOurs)
		f.tells(5, 0, 0)
		f.askTimes(200)
		f.wait(100 * time.Millisecond)
		f.tells(5, 200, 200)
		f.next = 0
		f.askTimes(50)
		f.wait(8 * time.Millisecond) // one or two are outstanding
		sent := f.s.order.next - overtook
		f.tells(6, uint32(200+sent), uint32(sent))
		f.askTimes(200)
		f.wait(5 * time.Second)
		if d := f.s.rev.now; f.s.Restarts != 1 || d.lost > 0 || d.sent > 450 {
			t.Errorf("overtaken by %d: %d restarts, %+v; want 1, nothing lost, and at most 450 sent", overtook, f.s.Restarts, d)
		}
	}
}

// An observer on the path forges replies; later the reflector restarts while the reverse path is down.
func TestForgedNumbersHideNoLaterRestart(t *testing.T) {
	for _, forged := range []int{0, 3} {
		f := known(t, RemoteOurs)
		f.tells(5, 0, 0)
		f.askTimes(20)
		f.wait(100 * time.Millisecond)
		for i := range forged { // before the true ones
			f.ask()
			seq := f.s.outstandingPackets.next - 1
			f.bring(seq, f.asked[seq], uint32(1<<30+i))
		}
		f.askTimes(20)
		f.wait(100 * time.Millisecond)
		for range 3 { // the reflector reports its only session repeatedly
			f.ask()
			f.wait(100 * time.Millisecond)
			f.tells(5, uint32(f.s.outstandingPackets.next), f.next)
		}
		before := f.s.Restarts
		f.next = 0
		f.losses, f.calm = 100, false
		f.copies = []int{1}
		f.askTimes(100) // no reply arrives
		f.calm = true
		f.tells(6, uint32(f.s.outstandingPackets.next), f.next)
		f.wait(5 * time.Second)
		if f.s.Restarts != before+1 {
			t.Errorf("%d replies forged: %d restarts and then %d, want one more", forged, before, f.s.Restarts)
		}
	}
}

func TestReflectorOfAnotherReplacedByOursBooksNoPacketTwice(t *testing.T) {
	f := known(t, RemoteUnknown)
	f.next = 1
	f.askTimes(50)
	f.wait(5 * time.Second)
	f.tells(5, uint32(f.s.outstandingPackets.next), 0)
	if d := f.s.fwd.now; d.received+d.lost > 50 {
		t.Errorf("%+v of 50 packets", d)
	}
}

// TestRestartBlamesNoDirection: replies are lost while the reflector restarts, before the first reply or later. Which requests
// arrived before it did, nobody knows.
func TestRestartBlamesNoDirection(t *testing.T) {
	for _, met := range []bool{true, false} {
		f := known(t, RemoteOurs)
		if met {
			f.tells(5, 0, 0)
			f.askTimes(100)
			f.wait(100 * time.Millisecond)
			f.tells(5, 100, 100)
		}
		f.losses, f.calm, f.copies = 100, false, []int{1}
		f.askTimes(100) // no reply arrives
		f.wait(5 * time.Second)
		lost := f.s.outstandingPackets.next
		if met {
			lost -= 100
		}
		if got := f.s.Known().Undecided; got != lost {
			t.Errorf("%d round trips are undecided before a reply, want %d", got, lost)
		}
		f.calm, f.next = true, 0
		f.tells(6, uint32(f.s.outstandingPackets.next), 0)
		f.askTimes(50)
		f.wait(100 * time.Millisecond)
		f.tells(6, uint32(f.s.outstandingPackets.next), 50)
		a := f.s
		d := a.Direction(sample.Forward)
		if d.Lost.Value != 0 || d.Undecided.Value != lost || a.Faults().LowConfidence[LowConfidenceRemoteRestart] != lost || a.Known().Undecided != 0 {
			t.Errorf("met before: %v: %+v, %v; want %d undecided and none lost", met, d, a.Faults().LowConfidence, lost)
		}
		if sum := d.Received.Value + d.Lost.Value + d.Dropped.Value + d.Undecided.Value + d.Outstanding.Value; sum != d.Sent.Value {
			t.Errorf("%+v: the sum is %d", d, sum)
		}
	}
}
