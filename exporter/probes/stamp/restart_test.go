package stamp

import (
	"math/rand/v2"
	"testing"
	"time"

	wire "oneway.example/exporter/wire/stamp"
)

// tells is the reply of our reflector to a query: it has received all before next, and sent so many.
func (f *remoteAgent) tells(epoch, next, sent uint32) {
	rc := wire.Receipt{Filled: true, StatsQuery: true, Words: 3, Epoch: epoch, Next: next, Base: next, Received: sent, Tx: sent}
	for i := range min(sent, 192) {
		rc.Recent[i/64] |= 1 << (i % 64)
	}
	f.s.learn(&reply{receipt: rc, hasReceipt: true}, f.now, true)
}

// known is one whose path loses nothing, of the kind that is known so far.
func known(t *testing.T, kind remoteKind) *remoteAgent {
	f := newRemoteAgent(t, kind, rand.New(rand.NewPCG(1, 2)))
	f.calm = true
	return f
}

func (f *remoteAgent) askTimes(n int) {
	for range n {
		f.ask()
	}
}

// Answers to test packets may overtake the reply to the query, which tells of the restart first.
func TestRestartCountsOnceWhateverOvertakesTheQuerysReply(t *testing.T) {
	for overtook := range uint64(4) {
		f := known(t, remoteOurs)
		f.tells(5, 0, 0)
		f.askTimes(200)
		f.wait(100 * time.Millisecond)
		f.tells(5, 200, 200)
		f.next = 0
		f.askTimes(50)
		f.wait(8 * time.Millisecond) // one or two are under way
		sent := f.s.order.next - overtook
		f.tells(6, uint32(200+sent), uint32(sent))
		f.askTimes(200)
		f.wait(5 * time.Second)
		if d := f.s.rev.now; f.s.restarts != 1 || d.lost > 0 || d.sent > 450 {
			t.Errorf("overtaken by %d: %d restarts, %+v; want 1, nothing lost, and 450 sent at the most", overtook, f.s.restarts, d)
		}
	}
}

// Someone who sees the packets forges answers; later the reflector restarts while the way back is dead.
func TestForgedNumbersHideNoLaterRestart(t *testing.T) {
	for _, forged := range []int{0, 3} {
		f := known(t, remoteOurs)
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
		for range 3 { // the reflector tells of its only life again and again
			f.ask()
			f.wait(100 * time.Millisecond)
			f.tells(5, uint32(f.s.outstandingPackets.next), f.next)
		}
		before := f.s.restarts
		f.next = 0
		f.losses, f.calm = 100, false
		f.copies = []int{1}
		f.askTimes(100) // nothing comes back
		f.calm = true
		f.tells(6, uint32(f.s.outstandingPackets.next), f.next)
		f.wait(5 * time.Second)
		if f.s.restarts != before+1 {
			t.Errorf("%d answers forged: %d restarts and then %d, want one more", forged, before, f.s.restarts)
		}
	}
}

func TestReflectorOfAnotherReplacedByOursBooksNoPacketTwice(t *testing.T) {
	f := known(t, remoteUnknown)
	f.next = 1
	f.askTimes(50)
	f.wait(5 * time.Second)
	f.tells(5, uint32(f.s.outstandingPackets.next), 0)
	if d := f.s.fwd.now; d.received+d.lost > 50 {
		t.Errorf("%+v of 50 packets", d)
	}
}
