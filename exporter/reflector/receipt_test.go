package reflector

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"oneway.example/exporter/estimate/seqwin"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/tests/testseed"
)

func TestReceiptReportsTheOutcomeOfEachNumber(t *testing.T) {
	l := newLab(t, nil)
	k := l.poller("192.0.2.1:5000", 0xabcd)
	var last reply
	for _, seq := range []uint32{0, 1, 1, 4, 3, 6} { // 1 twice, 2 and 5 missing, 3 reordered
		last = k.poll(seq)
	}
	r := last.receipt
	if !r.Filled || r.Run != 0xabcd || r.Epoch == 0 {
		t.Fatalf("Receipt is not filled: %+v", r)
	}
	want := stampfmt.Receipt{Next: 7, Base: 2, Received: 5, Duplicated: 1, Reordered: 1, Tx: 6}
	got := stampfmt.Receipt{
		Next: r.Next, Base: r.Base, Received: r.Received, Lost: r.Lost, Duplicated: r.Duplicated,
		Reordered: r.Reordered, Late: r.Late, Tx: r.Tx,
	}
	if got != want {
		t.Errorf("counts are %+v, want %+v", got, want)
	}
	l.now += 4 * time.Second
	r = k.poll(7).receipt
	if r.Lost != 2 || r.Bursts != 2 || r.Base != 8 {
		t.Errorf("after the waiting time lost %d bursts %d base %d, want 2 2 8", r.Lost, r.Bursts, r.Base)
	}
	if want := uint64(0b11011011); r.Recent[0] != want {
		t.Errorf("recent is %b, want %b", r.Recent[0], want)
	}
	if l.now += time.Second; k.poll(2).receipt.Late != 1 {
		t.Error("a packet after its waiting time is not late")
	}
}

func TestSendersWaitingTimeIsUsed(t *testing.T) {
	for _, c := range []struct {
		tmax uint32
		lost uint32
	}{{0, 0}, {500, 1}, {5000, 0}} {
		l := newLab(t, nil)
		k := l.poller("192.0.2.1:5000", 1)
		k.tmax = c.tmax
		k.poll(0)
		k.poll(2)
		l.now += time.Second
		if got := k.poll(3).receipt.Lost; got != c.lost {
			t.Errorf("Tmax %d ms: %d lost after a second, want %d", c.tmax, got, c.lost)
		}
	}
}

func TestStatsQueryGetsAReplyAndIsNotCounted(t *testing.T) {
	l := newLab(t, nil)
	k := l.poller("192.0.2.1:5000", 1)
	for seq := range uint32(3) {
		k.poll(seq)
	}
	for range 5 {
		rep := k.statsQuery(3, false)
		if rep.result != AnsweredStatsQuery || rep.receipt.Received != 3 || rep.receipt.Tx != 3 || rep.base.Seq != 3 {
			t.Fatalf("statistics query: got %v, received %d, tx %d, number %d", rep.result, rep.receipt.Received, rep.receipt.Tx, rep.base.Seq)
		}
	}
	if rep := k.poll(3); rep.base.Seq != 3 || rep.receipt.Received != 4 {
		t.Errorf("the next reply is number %d, received %d; want 3, 4", rep.base.Seq, rep.receipt.Received)
	}
}

func TestFinishDecidesEverything(t *testing.T) {
	l := newLab(t, nil)
	k := l.poller("192.0.2.1:5000", 1)
	k.poll(0)
	k.poll(2)
	r := k.statsQuery(10, true).receipt
	if r.Received != 2 || r.Lost != 8 || r.Base != 10 || r.Next != 10 {
		t.Errorf("received %d lost %d base %d next %d, want 2 8 10 10", r.Received, r.Lost, r.Base, r.Next)
	}
}

func TestStatsQueryOpensASession(t *testing.T) {
	l := newLab(t, nil)
	k := l.poller("192.0.2.1:5000", 1)
	if r := k.statsQuery(100, false).receipt; r.Next != 100 || r.Received != 0 || r.Lost != 0 {
		t.Errorf("opening statistics query: next %d received %d lost %d", r.Next, r.Received, r.Lost)
	}
	k.poll(101)
	if r := k.statsQuery(102, true).receipt; r.Received != 1 || r.Lost != 1 {
		t.Errorf("received %d lost %d, want 1 1 (number 100 is lost)", r.Received, r.Lost)
	}
}

// A packet too small for a Receipt is counted in the session that statistics queries open.
func TestSmallPacketsAreCountedInTheSessionOfStatsQueries(t *testing.T) {
	for _, statsQueryFirst := range []bool{true, false} {
		l := newLab(t, nil)
		k := l.poller("192.0.2.1:5000", 9)
		if statsQueryFirst {
			k.statsQuery(0, false)
		}
		for _, seq := range []uint32{0, 1, 3} {
			if rep := k.send(k.base(seq)); rep.result != Answered {
				t.Fatalf("small packet: got %v", rep.result)
			}
		}
		r := k.statsQuery(5, true).receipt
		if r.Received != 3 || r.Lost != 2 || r.Tx != 3 {
			t.Errorf("query first %v: received %d lost %d tx %d, want 3 2 3", statsQueryFirst, r.Received, r.Lost, r.Tx)
		}
		if l.s.table.len() != 1 {
			t.Errorf("query first %v: %d sessions, want 1", statsQueryFirst, l.s.table.len())
		}
		l.s.table.check(t)
	}
}

// The HMAC of the base packet is valid, and the TLVs are unreadable: a statistics query, which has the number of the
// next test packet, must not be counted as that packet.
func TestStatsQueryWithDamagedTLVsIsNotATestPacket(t *testing.T) {
	_, k := keyedLab(t)
	k.statsQuery(0, false)
	for seq := range uint32(2) {
		k.send(k.base(seq))
	}
	const next = 2
	whole := k.request(next, func(r *stampfmt.Receipt) { r.StatsQuery, r.Next = true, next })
	for bit := 8 * stampfmt.AuthenticatedBytes; bit < 8*len(whole); bit++ {
		b := slices.Clone(whole)
		b[bit/8] ^= 1 << (bit % 8)
		if r := k.send(b).result; r != Corrupted {
			t.Errorf("statistics query with bit %d of byte %d flipped: got %v, want corrupted", bit%8, bit/8, r)
		}
	}
	if r := k.send(k.base(next)).result; r != Answered {
		t.Errorf("the test packet of that number: got %v", r)
	}
	if r := k.statsQuery(next+1, true).receipt; r.Received != 3 || r.Tx != 3 || r.Lost != 0 || r.Duplicated != 0 {
		t.Errorf("received %d, tx %d, lost %d, duplicated %d; want 3 3 0 0", r.Received, r.Tx, r.Lost, r.Duplicated)
	}
}

// The next sender at that address may not sign TLVs.
func TestTLVsWithoutHMACGetRepliesLongAfterTheLastReceipt(t *testing.T) {
	l, k := keyedLab(t)
	k.statsQuery(0, false)
	l.now += receiptMemory + 1
	if r := k.send(append(k.base(0), tlv(200, 1)...)).result; r != AnsweredUnverified {
		t.Errorf("got %v, want answered, unverified", r)
	}
}

func TestNewRunIsANewSession(t *testing.T) {
	l := newLab(t, nil)
	k := l.poller("192.0.2.1:5000", 1)
	for seq := range uint32(5) {
		k.poll(seq)
	}
	old := k.epoch
	k.run, k.epoch = 2, 0
	rep := k.poll(0)
	if rep.receipt.Received != 1 || rep.receipt.Epoch == old || rep.base.Seq != 0 || rep.receipt.Tx != 1 {
		t.Errorf("new run: received %d, same epoch %v, number %d", rep.receipt.Received, rep.receipt.Epoch == old, rep.base.Seq)
	}
	// A late packet of the old run must not affect the new one.
	k.run, k.epoch = 1, old
	k.poll(5)
	k.run = 2
	if r := k.poll(1).receipt; r.Received != 2 || r.Duplicated != 0 {
		t.Errorf("after a late packet of the old run: received %d duplicated %d, want 2 0", r.Received, r.Duplicated)
	}
}

func TestRunZeroIsAValidRun(t *testing.T) {
	l := newLab(t, nil)
	k := l.poller("192.0.2.1:5000", 0)
	k.poll(0)
	if r := k.poll(1).receipt; !r.Filled || r.Received != 2 || r.Epoch == 0 {
		t.Errorf("Receipt of run 0: %+v", r)
	}
}

func TestLostSessionGetsANewEpoch(t *testing.T) {
	l := newLab(t, nil)
	k := l.poller("192.0.2.1:5000", 1)
	k.poll(0)
	k.poll(1)
	old := k.epoch
	l.s.table.expire(time.Hour, time.Minute)
	rep := k.poll(2)
	if rep.receipt.Epoch == old || rep.receipt.Received != 1 || rep.base.Seq != 0 {
		t.Errorf("epoch %#x -> %#x, received %d, number %d", old, rep.receipt.Epoch, rep.receipt.Received, rep.base.Seq)
	}
}

func TestSessionFollowsItsSenderThroughNATRebinding(t *testing.T) {
	l := newLab(t, nil)
	k := l.poller("192.0.2.1:5000", 1)
	k.poll(0)
	k.poll(1)
	k.peer = netip.MustParseAddrPort("198.51.100.9:6000")
	rep := k.poll(2)
	if rep.receipt.Received != 3 || rep.base.Seq != 2 || l.s.table.len() != 1 {
		t.Errorf("after rebinding: received %d, number %d, %d sessions; want 3 2 1", rep.receipt.Received, rep.base.Seq, l.s.table.len())
	}
	l.s.table.check(t)
}

// TestSessionCountsTheTestPacketsOfItsNewAddress: a sender whose test packets have no Receipt changes its address. Its first statistics query
// there comes before, or after, so many of them, and number 3 is lost.
func TestSessionCountsTheTestPacketsOfItsNewAddress(t *testing.T) {
	for before := range uint32(5) {
		l := newLab(t, nil)
		k := l.poller("192.0.2.1:5000", 1)
		for i := range uint32(3) {
			k.send(k.base(i))
		}
		k.statsQuery(3, false)
		k.peer = netip.MustParseAddrPort("198.51.100.9:6000")
		l.now += time.Second
		for i := range uint32(5) {
			if i == before {
				k.statsQuery(4+i, false)
			}
			if i != 3 {
				k.send(k.base(3 + i))
			}
		}
		if r := k.statsQuery(8, true).receipt; r.Next != 8 || r.Received != 7 || r.Lost != 1 || l.s.table.len() != 1 {
			t.Errorf("%d test packets before the query: next %d, received %d, lost %d, %d sessions, want 8, 7, 1, 1", before, r.Next, r.Received, r.Lost, l.s.table.len())
		}
		l.s.table.check(t)
	}
}

func TestReplayFromAnotherAddressDoesNotMoveTheSession(t *testing.T) {
	l := newLab(t, nil)
	k := l.poller("192.0.2.1:5000", 1)
	k.poll(0)
	captured := k.request(1, nil)
	k.send(captured)
	attacker := *k
	attacker.peer = netip.MustParseAddrPort("203.0.113.66:7000")
	attacker.send(captured)
	if s := l.s.table.byEpoch[k.epoch]; s.key.port != 5000 {
		t.Error("a replayed packet moved the session")
	}
	attacker.epoch = k.epoch + 1 // a wrong epoch
	attacker.poll(2)
	if s := l.s.table.byEpoch[k.epoch]; s.key.port != 5000 || l.s.table.len() != 2 {
		t.Error("a guessed epoch moved the session")
	}
}

func TestCorruptPacketIsCountedForItsSession(t *testing.T) {
	l := newLab(t, nil)
	k := l.poller("192.0.2.1:5000", 1)
	k.poll(0)
	good := k.request(1, nil)
	want := uint32(0)
	for at := range good {
		bad := slices.Clone(good)
		bad[at] ^= 0x10
		switch _, _, r := l.deliver(k.peer, bad); r {
		case Corrupted:
			want++
		case Loop: // damage that looks like a reply: refused as well
		default:
			t.Fatalf("byte %d damaged: got %v", at, r)
		}
	}
	if int(want) < len(good)-8 {
		t.Fatalf("detected %d of %d damaged packets", want, len(good))
	}
	if r := k.send(good).receipt; r.Corrupted != want || r.Received != 2 {
		t.Errorf("corrupted %d received %d, want %d 2", r.Corrupted, r.Received, want)
	}
}

func TestPacketWithoutItsReceiptIsCorrupted(t *testing.T) {
	l := newLab(t, nil)
	k := l.poller("192.0.2.1:5000", 1)
	k.poll(0)
	for _, at := range []int{45, 47, 65, 67, 68, 69, 70} { // types, lengths, magic, version
		bad := k.request(1, nil)
		bad[at] ^= 0x40
		if _, _, r := l.deliver(k.peer, bad); r != Corrupted {
			t.Errorf("byte %d damaged: got %v, want corrupted", at, r)
		}
	}
	if r := k.poll(1).receipt; r.Corrupted != 7 {
		t.Errorf("corrupted %d, want 7", r.Corrupted)
	}
	l.now += 2 * receiptMemory
	if rep := k.send(k.base(2)); rep.result != Answered {
		t.Errorf("another sender at the same address later: got %v", rep.result)
	}
}

// The first packet of a session cannot be distinguished from another sender's if its Receipt is damaged; the next
// packet shows it.
func TestFirstPacketWithoutItsReceiptIsCountedAsCorruptedLater(t *testing.T) {
	for _, at := range []int{47, 65, 67, 68, 69, 70} { // lengths, type, magic, version
		for _, statsQuery := range []string{"before", "after", "none"} {
			l := newLab(t, nil)
			k := l.poller("192.0.2.1:5000", 1)
			if statsQuery == "before" {
				k.statsQuery(0, false)
			}
			bad := k.request(0, nil)
			bad[at] ^= 0x40
			for range 2 { // the packet and a copy
				if _, _, r := l.deliver(k.peer, bad); !r.Answered() {
					t.Fatalf("byte %d damaged: got %v, want answered: the session is new", at, r)
				}
			}
			if statsQuery == "after" {
				k.statsQuery(1, false)
			}
			k.poll(1)
			k.poll(2)
			if r := k.statsQuery(3, true).receipt; r.Received != 2 || r.Lost != 1 || r.Duplicated != 0 || r.Corrupted != 2 || r.Tx != 4 {
				t.Errorf("byte %d damaged, statistics query %s: received %d, lost %d, duplicated %d, corrupted %d, tx %d; want 2, 1, 0, 2, 4",
					at, statsQuery, r.Received, r.Lost, r.Duplicated, r.Corrupted, r.Tx)
			}
			l.s.table.check(t)
		}
	}
}

// TestCountsAreExactUnderLossDuplicationAndReordering sends numbers over a lossy path and compares the Receipts with
// the true counts.
func TestCountsAreExactUnderLossDuplicationAndReordering(t *testing.T) {
	for _, loss := range []float64{0, 0.02, 0.3} {
		for _, dup := range []float64{0, 0.05} {
			for _, spread := range []int{0, 40} {
				t.Run(fmt.Sprintf("loss=%v,dup=%v,spread=%d", loss, dup, spread), func(t *testing.T) {
					conserve(t, loss, dup, spread)
				})
			}
		}
	}
}

func conserve(t *testing.T, loss, dup float64, spread int) {
	seed := testseed.Of(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	l := newLab(t, nil)
	k := l.poller("192.0.2.1:5000", 1)
	const packets, start = 5000, 1<<32 - 2000 // across the wrap of the wire's 32 bits
	type arrival struct {
		at  time.Duration
		seq uint32
	}
	var all []arrival
	var lost, copies uint32
	for i := range packets {
		at := time.Duration(i) * 10 * time.Millisecond
		seq := uint32(uint64(start) + uint64(i))
		if i > 0 && rng.Float64() < loss {
			lost++
			continue
		}
		jitter := func() time.Duration {
			if i == 0 || spread == 0 {
				return 0
			}
			return time.Duration(rng.IntN(spread)) * 10 * time.Millisecond
		}
		all = append(all, arrival{at + jitter(), seq})
		for rng.Float64() < dup {
			all = append(all, arrival{at + jitter() + 1, seq})
			copies++
		}
	}
	slices.SortStableFunc(all, func(a, b arrival) int { return cmp.Compare(a.at, b.at) })
	reordered, highest, seen := uint32(0), uint64(0), map[uint64]bool{}
	for i, v := range all {
		l.now = v.at
		n := seqwin.Extend(highest, v.seq)
		if i == 0 {
			n = uint64(v.seq)
		}
		if !seen[n] && i > 0 && n < highest {
			reordered++
		}
		seen[n], highest = true, max(highest, n)
		r := k.poll(v.seq).receipt
		if r.Tx != uint32(i+1) {
			t.Fatalf("reply %d has Tx %d", i, r.Tx)
		}
		if got := r.Received + r.Duplicated + r.Late; got != uint32(i+1) {
			t.Fatalf("after %d arrivals: received %d + duplicated %d + late %d", i+1, r.Received, r.Duplicated, r.Late)
		}
	}
	end := uint64(start) + packets
	r := k.statsQuery(uint32(end), true).receipt
	switch {
	case r.Received != packets-lost, r.Lost != lost:
		t.Errorf("received %d lost %d, want %d %d", r.Received, r.Lost, packets-lost, lost)
	case r.Duplicated != copies, r.Reordered != reordered, r.Late != 0:
		t.Errorf("duplicated %d reordered %d late %d, want %d %d 0", r.Duplicated, r.Reordered, r.Late, copies, reordered)
	}
}
