package tstamp

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/tests/testseed"
)

func kernelAt(t instant.Time) sample.Stamp { return sample.Stamp{At: t, Origin: sample.Kernel} }
func userAt(t instant.Time) sample.Stamp   { return sample.Stamp{At: t, Origin: sample.User} }

func (p *pending) take() []TxStamp {
	p.report()
	return p.done.popInto(make([]TxStamp, 0, 1000))
}

// begun registers a packet whose call has not returned.
func (p *pending) begun(cookie uint64, at instant.Time) uint64 {
	p.add(cookie, at)
	return p.next - 1
}

// sent registers a packet whose call has returned at once: its TX uncertainty is zero.
func (p *pending) sent(cookie uint64, at instant.Time) uint64 {
	p.add(cookie, at)
	p.returned(1, at)
	return p.next - 1
}

func expectStamps(t *testing.T, p *pending, want ...TxStamp) {
	t.Helper()
	if diff := cmp.Diff(want, p.take(), cmp.Transformer("empty", func(s []TxStamp) []TxStamp { return append([]TxStamp{}, s...) })); diff != "" {
		t.Errorf("timestamps (-want +got):\n%s", diff)
	}
}

func TestTimestampsOutOfOrderMatchTheirPackets(t *testing.T) {
	p := newPending(8, 8, false)
	one, two := p.sent(11, 100), p.sent(22, 100)
	p.match(number(two), kernelAt(105))
	p.match(number(one), kernelAt(104))
	expectStamps(t, p, TxStamp{22, kernelAt(105), 100}, TxStamp{11, kernelAt(104), 100})
	if p.waiting != 0 {
		t.Errorf("%d packets wait, want 0", p.waiting)
	}
}

func TestTimestampHasItsTXUncertainty(t *testing.T) {
	held := func(at instant.Time, d time.Duration) sample.Stamp {
		return sample.Stamp{At: at, Origin: sample.Kernel, TXUncertainty: d}
	}
	t.Run("until the call returned", func(t *testing.T) {
		p := newPending(8, 8, false)
		one := p.begun(11, 100)
		p.returned(1, 150)
		p.match(number(one), kernelAt(110))
		expectStamps(t, p, TxStamp{11, held(110, 40), 100})
	})
	t.Run("until the next packet has a timestamp", func(t *testing.T) {
		p := newPending(8, 8, false)
		one, two := p.begun(11, 100), p.begun(22, 100)
		p.returned(2, 150)
		p.match(number(one), kernelAt(110))
		p.match(number(two), kernelAt(130))
		expectStamps(t, p, TxStamp{11, held(110, 20), 100}, TxStamp{22, held(130, 20), 100})
	})
	t.Run("timestamp before the call returned", func(t *testing.T) {
		p := newPending(8, 8, false)
		one, two := p.begun(11, 100), p.begun(22, 100)
		p.match(number(one), kernelAt(110))
		p.match(number(two), kernelAt(130))
		expectStamps(t, p, TxStamp{11, held(110, 20), 100})
		p.returned(2, 150)
		expectStamps(t, p, TxStamp{22, held(130, 20), 100})
		p.returned(2, 160)
		expectStamps(t, p)
		if p.waiting != 0 {
			t.Errorf("%d packets wait, want 0", p.waiting)
		}
	})
	t.Run("timestamp after the call returned", func(t *testing.T) {
		p := newPending(8, 8, false)
		one := p.begun(11, 100)
		p.returned(1, 105)
		p.match(number(one), kernelAt(110)) // a queue delayed it: nothing shows by how much
		expectStamps(t, p, TxStamp{11, kernelAt(110), 100})
	})
	t.Run("given up before the call returned", func(t *testing.T) {
		p := newPending(8, 8, false)
		one := p.begun(11, 100)
		p.match(number(one), kernelAt(110))
		p.expire(200)
		expectStamps(t, p, TxStamp{11, kernelAt(110), 100})
		if p.returned(1, 300); p.waiting != 0 || len(p.take()) != 0 || p.missing != 0 {
			t.Errorf("%d packets wait, %d missing", p.waiting, p.missing)
		}
	})
}

func TestTimestampBeforeTheSendIsRejected(t *testing.T) {
	p := newPending(8, 8, false)
	p.match(number(p.sent(1, 100)), kernelAt(99))
	expectStamps(t, p)
	if p.rejected != 1 || p.waiting != 1 {
		t.Errorf("rejected %d, waiting %d, want 1, 1", p.rejected, p.waiting)
	}
}

func TestSecondTimestampOfAPacketIsRejected(t *testing.T) {
	p := newPending(8, 8, false)
	id := number(p.sent(1, 100))
	p.match(id, kernelAt(101))
	p.match(id, kernelAt(102))
	expectStamps(t, p, TxStamp{1, kernelAt(101), 100})
	if p.rejected != 1 {
		t.Errorf("rejected %d, want 1", p.rejected)
	}
}

// refused registers a packet that the kernel refused.
func (p *pending) refused(at instant.Time) {
	p.begun(999, at)
	p.drop(1)
}

// addMarked registers a marked packet.
func (p *pending) addMarked(cookie uint64, at instant.Time) {
	p.begun(cookie, at)
	p.mark(at)
	p.returned(1, at)
}

func TestTimestampsBeforeAndAfterAFailedSendMatchTheirPackets(t *testing.T) {
	for _, used := range []uint32{0, 1} { // how many numbers the failed send used up
		p := newPending(8, 8, false)
		p.sent(1, 100) // number 0
		p.sent(2, 100) // 1
		p.refused(200)
		if how := p.stamping(200); how != marked {
			t.Fatalf("after the failed send: %v, want marked", how)
		}
		p.addMarked(3, 200)
		if how := p.stamping(201); how != withheld {
			t.Fatalf("while the marked packet is outstanding: %v, want withheld", how)
		}
		p.match(1, kernelAt(300)) // of an earlier packet: does not resolve the number
		p.setMarkedNumber(2 + used)
		if how := p.stamping(201); how != stamped {
			t.Fatalf("after its number is known: %v, want stamped", how)
		}
		p.sent(4, 201)
		p.match(2+used, kernelAt(301))
		p.match(0, kernelAt(302))
		p.match(3+used, kernelAt(303))
		expectStamps(t, p, TxStamp{2, kernelAt(300), 100}, TxStamp{3, kernelAt(301), 200}, TxStamp{1, kernelAt(302), 100}, TxStamp{4, kernelAt(303), 201})
		if p.rejected != 0 || p.waiting != 0 {
			t.Errorf("rejected %d, waiting %d, want 0, 0", p.rejected, p.waiting)
		}
	}
}

func TestTransmitTimestampResolvesTheNumberOfAMarkedPacket(t *testing.T) {
	p := newPending(8, 8, false)
	p.refused(100)
	p.addMarked(1, 100)
	p.match(1, kernelAt(101))
	p.match(number(p.sent(2, 102)), kernelAt(103))
	expectStamps(t, p, TxStamp{1, kernelAt(101), 100}, TxStamp{2, kernelAt(103), 102})
}

func TestSecondSchedulingTimestampDoesNotResolveTheNextMarkedPacket(t *testing.T) {
	p := newPending(8, 8, false)
	p.refused(100)
	p.addMarked(1, 100)
	p.setMarkedNumber(1)
	p.refused(200)
	p.addMarked(2, 200)
	p.setMarkedNumber(1) // from the interface below
	if how := p.stamping(200); how != withheld {
		t.Errorf("got %v, want withheld", how)
	}
	p.setMarkedNumber(3)
	p.match(3, kernelAt(201))
	p.match(1, kernelAt(202))
	expectStamps(t, p, TxStamp{2, kernelAt(201), 200}, TxStamp{1, kernelAt(202), 100})
}

func TestMarkedPacketIsReplacedAfterMarkWait(t *testing.T) {
	p := newPending(8, 8, false)
	p.refused(100)
	p.addMarked(1, 100)
	p.expire(200)
	later := instant.Time(100).Add(markWait)
	if before, after := p.stamping(later-1), p.stamping(later); before != withheld || after != marked {
		t.Errorf("got %v and then %v, want withheld and then marked", before, after)
	}
	p.addMarked(2, later)
	p.setMarkedNumber(1)
	p.match(1, kernelAt(later+1))
	expectStamps(t, p, TxStamp{1, userAt(100), 100}, TxStamp{2, kernelAt(later + 1), later})
}

func TestRefusedMarkedPacketResolvesNothing(t *testing.T) {
	p := newPending(8, 8, false)
	p.refused(100)
	p.begun(1, 100)
	p.mark(100)
	p.drop(1)
	p.setMarkedNumber(0)
	if how := p.stamping(100); how != marked {
		t.Errorf("got %v, want marked", how)
	}
}

func TestMarkedPacketReplacesAnOlderOneInItsSlot(t *testing.T) {
	p := newPending(4, 8, false)
	for i := range uint64(4) {
		p.sent(i, 100) // numbers 0 to 3
	}
	p.refused(101)
	p.addMarked(4, 101)  // takes the slot of number 0
	p.setMarkedNumber(5) // the slot of number 1
	expectStamps(t, p, TxStamp{0, userAt(100), 100}, TxStamp{1, userAt(100), 100})
	p.match(5, kernelAt(102))
	expectStamps(t, p, TxStamp{4, kernelAt(102), 101})
	if p.waiting != 2 {
		t.Errorf("%d packets wait, want 2", p.waiting)
	}
}

func TestPacketsWithoutTimestampGetTheUserSpaceOne(t *testing.T) {
	p := newPending(4, 8, false)
	for i := range 5 { // the fifth takes the first one's slot
		p.sent(uint64(i), instant.Time(100+i))
	}
	expectStamps(t, p, TxStamp{0, userAt(100), 100})
	if oldest := p.expire(103); oldest != 103 {
		t.Errorf("oldest waiting packet is of %d, want 103", oldest)
	}
	expectStamps(t, p, TxStamp{1, userAt(101), 101}, TxStamp{2, userAt(102), 102})
	if oldest := p.expire(1000); oldest != 0 || p.waiting != 0 || p.missing != 5 {
		t.Errorf("oldest %d waiting %d missing %d, want 0, 0, 5", oldest, p.waiting, p.missing)
	}
}

func TestHardwareTimestampFollowsTheKernels(t *testing.T) {
	hardware := sample.Stamp{At: 103, Origin: sample.Hardware}
	p := newPending(8, 8, true)
	id := number(p.sent(1, 100))
	p.match(id, kernelAt(101))
	p.match(id, hardware)
	expectStamps(t, p, TxStamp{1, kernelAt(101), 100}, TxStamp{1, hardware, 100})
	p.match(number(p.sent(2, 100)), kernelAt(101))
	p.expire(1000)
	expectStamps(t, p, TxStamp{2, kernelAt(101), 100})
	if p.missing != 0 || p.waiting != 0 {
		t.Errorf("missing %d, waiting %d, want 0, 0: a kernel timestamp suffices", p.missing, p.waiting)
	}
}

func TestNumbersWrapAround(t *testing.T) {
	p := newPending(8, 8, false)
	p.next = math.MaxUint32 // so that the next numbers are 2^32-2, 2^32-1, 0, 1
	for i := range 4 {
		p.match(number(p.sent(uint64(i), 100)), kernelAt(101))
	}
	if got := len(p.take()); got != 4 {
		t.Errorf("%d timestamps, want 4", got)
	}
}

func TestTimestampOfAnExpiredPacketMatchesNoOther(t *testing.T) {
	p := newPending(8, 8, false)
	p.sent(1, 100)
	p.expire(150)
	p.refused(150)
	p.addMarked(2, 200)
	p.match(0, kernelAt(300))
	p.match(2, kernelAt(301))
	expectStamps(t, p, TxStamp{1, userAt(100), 100}, TxStamp{2, kernelAt(301), 200})
	if p.rejected != 1 {
		t.Errorf("rejected %d, want 1", p.rejected)
	}
}

// TestNoTimestampMatchesTheWrongPacket simulates a kernel that numbers packets, some of whose failures use up a number,
// and that returns timestamps late, out of order or never.
func TestNoTimestampMatchesTheWrongPacket(t *testing.T) {
	seed := testseed.Of(t)
	for round := range uint64(300) {
		k := countingKernel{rng: rand.New(rand.NewPCG(seed, round)), now: 1000, p: newPending(64, 1024, false), truth: map[uint64]instant.Time{}}
		for cookie := range uint64(500) {
			k.send(cookie)
			k.handOut(k.rng.IntN(4))
			for _, s := range k.p.take() {
				if s.Stamp.Origin == sample.Kernel && s.Stamp.At != k.truth[s.Cookie] {
					t.Fatalf("round %d: packet %d got timestamp %d, want %d", round, s.Cookie, s.Stamp.At, k.truth[s.Cookie])
				}
			}
		}
		if given := k.p.txStamps[sample.Kernel]; given < 100 {
			t.Fatalf("round %d: %d of 500 packets have timestamps", round, given)
		}
	}
}

type countingKernel struct {
	rng   *rand.Rand
	p     *pending
	now   instant.Time
	count uint32
	held  []TxStamp // Cookie is the number
	truth map[uint64]instant.Time
}

func (k *countingKernel) send(cookie uint64) {
	k.now += instant.Time(k.rng.IntN(10))
	how := k.p.stamping(k.now)
	if how == withheld {
		k.now += instant.Time(k.rng.IntN(2)) * instant.Time(markWait/10)
		return
	}
	k.p.add(cookie, k.now)
	if how == marked {
		k.p.mark(k.now)
	}
	k.now++
	if k.rng.IntN(10) == 0 {
		k.p.drop(1)
		k.count += k.rng.Uint32N(2)
		return
	}
	k.truth[cookie] = k.now
	k.p.returned(1, k.now+instant.Time(k.rng.IntN(3)))
	if how == marked && k.rng.IntN(5) > 0 { // otherwise its scheduling timestamp is lost
		k.p.setMarkedNumber(k.count)
	}
	if k.rng.IntN(50) > 0 {
		k.held = append(k.held, TxStamp{Cookie: uint64(k.count), Stamp: kernelAt(k.now)})
	}
	k.count++
	k.p.expire(k.now - 200)
}

func (k *countingKernel) handOut(n int) {
	for ; n > 0 && len(k.held) > 0; n-- {
		i := k.rng.IntN(len(k.held))
		if k.now.Sub(k.held[i].Stamp.At) < markWait { // no timestamp arrives later than that
			k.p.match(uint32(k.held[i].Cookie), k.held[i].Stamp)
		}
		k.held = append(k.held[:i], k.held[i+1:]...)
	}
}

func BenchmarkPending(b *testing.B) {
	p := newPending(1<<15, 1024, false)
	into := make([]TxStamp, 0, 64)
	b.ReportAllocs()
	for i := range b.N {
		p.match(number(p.sent(uint64(i), 100)), kernelAt(101))
		if i%64 == 63 {
			into = p.done.popInto(into[:0])
		}
	}
}
