package reflector

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"oneway.example/exporter/net/wire/stampfmt"
)

// keyedLab is a reflector with a key, and a sender with the same key.
func keyedLab(t *testing.T) (*lab, *poller) {
	t.Helper()
	key := newKey(t, "k")
	l := newLab(t, func(o *Options) { o.Keys, o.RequireKey = []*stampfmt.Key{key}, true })
	k := l.poller("192.0.2.1:5000", 1)
	k.key = key
	return l, k
}

// recorded sends requests, 10 ms apart, and returns them.
func (k *poller) recorded(from, to uint32) (all [][]byte) {
	k.l.t.Helper()
	for seq := from; seq < to; seq++ {
		q := k.request(seq, nil)
		all = append(all, q)
		if r := k.send(q); r.result != Answered {
			k.l.t.Fatalf("request %d: got %v", seq, r.result)
		}
		k.l.now += 10 * time.Millisecond
	}
	return all
}

func TestCopyOfAnAuthenticatedRequestIsCountedAndGetsNoReply(t *testing.T) {
	_, k := keyedLab(t)
	k.statsQuery(0, false)
	all := k.recorded(0, 700)
	for range 3 {
		for _, q := range all {
			if r := k.send(q).result; r != Repeated {
				t.Fatalf("a copy: got %v, want repeated", r)
			}
		}
	}
	// The window has 512 numbers; older ones may be copies or late.
	if r := k.poll(700).receipt; r.Tx != 701 || r.Received != 701 || r.Lost != 0 || r.Late != 0 || r.Duplicated != 3*512 {
		t.Errorf("tx %d received %d lost %d late %d duplicated %d; want 701 701 0 0 %d", r.Tx, r.Received, r.Lost, r.Late, r.Duplicated, 3*512)
	}
}

func TestOldRequestFromAnotherAddressDoesNotMoveTheSession(t *testing.T) {
	for _, keyed := range []bool{true, false} {
		l, k := keyedLab(t)
		if !keyed {
			l = newLab(t, nil)
			k = l.poller("192.0.2.1:5000", 1)
		}
		k.statsQuery(0, false)
		all := k.recorded(0, 100)
		for i, q := range all {
			from := netip.MustParseAddrPort(fmt.Sprintf("203.0.113.%d:7000", i+1))
			if _, _, r := l.deliver(from, q); r != Repeated {
				t.Fatalf("keyed %v, request %d from another address: got %v", keyed, i, r)
			}
		}
		if r := k.poll(100).receipt; r.Tx != 101 || r.Received != 101 || r.Duplicated != 0 || r.Late != 0 {
			t.Errorf("keyed %v: tx %d received %d duplicated %d late %d; want 101 101 0 0", keyed, r.Tx, r.Received, r.Duplicated, r.Late)
		}
	}
}

// A change of the NAT binding may reorder packets: an undecided number from the former address is received.
func TestLatePacketFromTheFormerAddressIsReceived(t *testing.T) {
	l, k := keyedLab(t)
	k.statsQuery(0, false)
	k.recorded(0, 10)
	straggler, former := k.request(10, nil), k.peer
	k.peer = netip.MustParseAddrPort("198.51.100.9:6000")
	k.recorded(11, 13)
	if _, _, r := l.deliver(former, straggler); r != Answered {
		t.Errorf("the late packet: got %v", r)
	}
	if s := l.s.table.byEpoch[k.epoch]; s.key.port != 6000 {
		t.Error("the late packet moved the session back")
	}
	if r := k.poll(13).receipt; r.Received != 14 || r.Lost != 0 {
		t.Errorf("received %d lost %d, want 14 0", r.Received, r.Lost)
	}
}

// A repeated statistics query does not move the session, though the packets that it reports were lost.
func TestReplayedStatsQueryDoesNotMoveTheSession(t *testing.T) {
	l, k := keyedLab(t)
	k.statsQuery(0, false)
	k.recorded(0, 10)
	q := k.request(12, func(r *stampfmt.Receipt) { r.StatsQuery, r.Next = true, 12 })
	k.send(q)
	if _, _, r := l.deliver(netip.MustParseAddrPort("203.0.113.66:7000"), q); r != AnsweredStatsQuery {
		t.Errorf("from another address: got %v", r)
	}
	if s := l.s.table.byEpoch[k.epoch]; s.key.port != 5000 {
		t.Error("the replayed statistics query moved the session")
	}
}

// A sender of another implementation has no Run: after a restart it reuses its numbers, at later times.
func TestRestartedForeignSenderGetsReplies(t *testing.T) {
	l, k := keyedLab(t)
	var last []byte
	for range 3 {
		for seq := range uint32(200) {
			last = k.base(seq)
			if r := k.send(last).result; r != Answered {
				t.Fatalf("number %d: got %v", seq, r)
			}
			l.now += 10 * time.Millisecond
		}
	}
	s := l.s.table.byFlow[makeFlow(k.peer, netip.MustParseAddr("127.0.0.1"), k.ssid, true)]
	tx := s.tx
	for range 10 {
		if r := k.send(last).result; r != Repeated {
			t.Errorf("a copy: got %v", r)
		}
	}
	if s.tx != tx {
		t.Errorf("%d replies to copies have numbers, want 0", s.tx-tx)
	}
}

// A sender of another implementation may reuse its numbers after a restart or for each burst: none of its packets is a
// copy, in any order and with any clock.
func TestForeignSenderMayReuseNumbersInAnyOrder(t *testing.T) {
	const tick = 10 * time.Millisecond
	swapped := func(n uint32) (all []uint32) {
		for seq := uint32(0); seq < n; seq += 2 {
			all = append(all, seq+1, seq)
		}
		return all
	}
	for name, c := range map[string]struct {
		numbers []uint32 // after its restart
		behind  time.Duration
		perTick int
	}{
		"pairs swapped":               {swapped(500), 0, 1},
		"four packets per tick":       {[]uint32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, 0, 4},
		"clock 30 s behind":           {swapped(100), 30 * time.Second, 1},
		"clock an hour behind":        {swapped(100), time.Hour, 1},
		"clock behind, four per tick": {[]uint32{0, 1, 2, 3, 4, 5, 6, 7}, time.Minute, 4},
	} {
		l, k := keyedLab(t)
		l.now += 2 * time.Hour
		for seq := range uint32(1000) {
			k.send(k.base(seq))
			l.now += tick
		}
		for i, seq := range c.numbers {
			if i%c.perTick == 0 {
				l.now += tick
			}
			l.now -= c.behind
			b := k.base(seq)
			l.now += c.behind
			if r := k.send(b).result; r != Answered {
				t.Errorf("%s: number %d, the %dth: got %v", name, seq, i+1, r)
			}
		}
	}
}

// Only copies use up the rate of the peer's address.
func TestCopiesDoNotUseUpTheRateOfTheirSession(t *testing.T) {
	l, k := keyedLab(t)
	k.statsQuery(0, false)
	all := k.recorded(0, 20)
	l.s.perSource = newLimit(100, 50)
	for seq := range uint32(100) {
		for range 50 {
			k.send(all[seq%20])
		}
		if r := k.poll(20 + seq).result; r != Answered {
			t.Fatalf("request %d: got %v", 20+seq, r)
		}
		l.now += 20 * time.Millisecond
	}
}

// The reflector has restarted, and receives recorded requests before the sender's next one.
func TestSessionOpenedByRecordedRequestsRestartsWithItsSender(t *testing.T) {
	for name, which := range map[string]func(all [][]byte, small [][]byte, statsQuery []byte) [][]byte{
		"the opening statistics query": func(_, _ [][]byte, statsQuery []byte) [][]byte { return [][]byte{statsQuery} },
		"one request":                  func(all, _ [][]byte, _ []byte) [][]byte { return all[5:6] },
		"all before the last waiting time": func(all, _ [][]byte, _ []byte) [][]byte {
			return all[:len(all)-500]
		},
		"small ones":                 func(_, small [][]byte, _ []byte) [][]byte { return small[:20] },
		"small and statistics query": func(_, small [][]byte, statsQuery []byte) [][]byte { return append(small[:20:20], statsQuery) },
	} {
		t.Run(name, func(t *testing.T) {
			l, k := keyedLab(t)
			statsQuery := k.request(0, func(r *stampfmt.Receipt) { r.StatsQuery, r.Next = true, 0 })
			k.send(statsQuery)
			all := k.recorded(0, 1000)
			var small [][]byte
			for i := range uint32(20) {
				other := *k
				l.now -= 10 * time.Second
				small = append(small, other.base(i))
				l.now += 10 * time.Second
			}
			l.s.table.expire(l.now+time.Hour, time.Minute)
			for range 2 {
				for _, q := range which(all, small, statsQuery) {
					k.l.deliver(k.peer, q)
				}
				l.now += time.Millisecond
			}
			k.recorded(1000, 1005)
			for _, q := range which(all, small, statsQuery) {
				k.l.deliver(k.peer, q) // and a copy
			}
			l.now += 4 * time.Second
			rep := k.poll(1005)
			if r := rep.receipt; r.Received != 6 || r.Lost != 0 || r.Duplicated != 0 || r.Late != 0 || r.Tx != 6 || rep.base.Seq != 5 {
				t.Errorf("received %d lost %d duplicated %d late %d tx %d number %d; want 6 0 0 0 6 5",
					r.Received, r.Lost, r.Duplicated, r.Late, r.Tx, rep.base.Seq)
			}
			l.s.table.check(t)
		})
	}
}

// A step of a sender's clock during its session is not a replay.
func TestSessionContinuesAcrossAStepOfItsSendersClock(t *testing.T) {
	for _, step := range []time.Duration{time.Hour, -time.Hour} {
		for _, small := range []bool{true, false} {
			l, k := keyedLab(t)
			ask := func(seq uint32) reply {
				if small {
					return k.send(k.base(seq))
				}
				return k.poll(seq)
			}
			for seq := range uint32(20) {
				ask(seq)
				l.now += time.Second
			}
			l.now += step
			for seq := uint32(20); seq < 30; seq++ {
				b := k.base(seq)
				if !small {
					b = k.request(seq, nil)
				}
				l.now -= step // the clock was set, and no time has passed
				if rep := k.send(b); rep.result != Answered || rep.base.Seq != seq {
					t.Fatalf("step %v, small %v, request %d: got %v, reply %d", step, small, seq, rep.result, rep.base.Seq)
				}
				l.now += step + time.Second
			}
		}
	}
}

// An off-path attacker without a key cannot add to a session's corrupted packets.
func TestForgedDamageIsNotCounted(t *testing.T) {
	for _, keyed := range []bool{true, false} {
		l, k := keyedLab(t)
		if !keyed {
			l = newLab(t, nil)
			k = l.poller("192.0.2.1:5000", 1)
		}
		k.poll(0)
		attacker := *k
		attacker.run, attacker.epoch = 2, k.epoch+1
		if keyed {
			attacker.key = newKey(t, "guessed")
		}
		forged := attacker.request(1, nil)
		forged[len(forged)-1] ^= 1
		forged[40] ^= 1
		for range 50 {
			l.deliver(k.peer, forged)
		}
		if r := k.poll(1).receipt; r.Corrupted != 0 || r.Received != 2 {
			t.Errorf("keyed %v: corrupted %d received %d, want 0 2", keyed, r.Corrupted, r.Received)
		}
		// A recorded packet with other TLVs: the base packet is authentic.
		copied := k.request(1, nil)
		copied[len(copied)-30] ^= 1
		l.deliver(k.peer, copied)
		if r := k.poll(2).receipt; keyed && r.Corrupted != 0 {
			t.Errorf("a copy: corrupted %d, want 0", r.Corrupted)
		}
	}
}

// TestRestartedSenderWithoutReceiptsGetsReplies: our sender of test packets without a Receipt begins another run from the same port, whose first
// packets belong to the former session as long as the new one is not proven. Copies of the former run's packets get no reply.
func TestRestartedSenderWithoutReceiptsGetsReplies(t *testing.T) {
	l, k := keyedLab(t)
	k.statsQuery(0, false)
	var recorded [][]byte
	for seq := range uint32(10) {
		recorded = append(recorded, k.base(seq))
		k.send(recorded[seq])
		l.now += 10 * time.Millisecond
	}
	k.statsQuery(10, false)
	again := *k
	again.run, again.epoch = 2, 0
	again.statsQuery(0, false)
	l.now += 10 * time.Millisecond
	for seq := range uint32(5) {
		if r := again.send(again.base(seq)).result; r != Answered {
			t.Errorf("request %d of the new run: got %v", seq, r)
		}
		l.now += 10 * time.Millisecond
	}
	for seq, q := range recorded {
		if r := k.send(q).result; r != Repeated {
			t.Errorf("a copy of request %d of the former run: got %v", seq, r)
		}
	}
}
