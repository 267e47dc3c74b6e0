package reflector

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"oneway.example/exporter/net/wire/stampfmt"
)

// short sends test packets without a Receipt, 20 ms apart, and a statistics query before the first one and each second, as our sender
// does. It returns the reply to the last query.
func (k *poller) short(count uint32, finish bool) (last reply) {
	k.l.t.Helper()
	for seq := range count {
		if seq%50 == 0 {
			k.statsQuery(seq, false)
		}
		if r := k.send(k.base(seq)); r.result != Answered || r.base.Seq != seq {
			k.l.t.Fatalf("packet %d of run %d: got %v, number %d", seq, k.run, r.result, r.base.Seq)
		}
		k.l.now += 20 * time.Millisecond
	}
	return k.statsQuery(count, finish)
}

// TestRestartedSenderOfPacketsWithoutAReceiptLosesNothing: its local port is fixed, so that the session of the former run has the same flow.
func TestRestartedSenderOfPacketsWithoutAReceiptLosesNothing(t *testing.T) {
	for name, former := range map[string]func(k *poller){
		"killed":                        func(k *poller) { k.short(500, false) },
		"killed after the second query": func(k *poller) { k.short(60, false) },
		"killed before the second query": func(k *poller) {
			k.statsQuery(0, false)
			for seq := range uint32(10) {
				k.send(k.base(seq))
				k.l.now += 20 * time.Millisecond
			}
		},
		"ended":                     func(k *poller) { k.short(500, true) },
		"ended after a few packets": func(k *poller) { k.short(10, true) },
		"with Receipts":             func(k *poller) { k.statsQuery(0, false); k.recorded(0, 500) },
		"killed twice": func(k *poller) {
			k.short(500, false)
			other := *k
			other.run, other.epoch = 3, 0
			other.statsQuery(0, false)
			other.send(other.base(0))
			k.l.now += 20 * time.Millisecond
		},
		"another maker's": func(k *poller) {
			for seq := range uint32(500) {
				k.send(k.base(seq))
				k.l.now += 20 * time.Millisecond
			}
		},
		"a packet after the end": func(k *poller) {
			k.short(500, true)
			k.send(k.base(499))
			k.l.now += 2 * time.Second
		},
	} {
		for _, keyed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/keyed %v", name, keyed), func(t *testing.T) {
				l, k := keyedLab(t)
				if !keyed {
					l = newLab(t, nil)
					k = l.poller("192.0.2.1:5000", 1)
				}
				former(k)
				next := *k
				next.run, next.epoch = 2, 0
				if r := next.short(100, false).receipt; r.Received != 100 || r.Lost != 0 || r.Next != 100 || r.Tx != 100 || r.Duplicated != 0 {
					t.Errorf("received %d, lost %d, next %d, tx %d, duplicated %d; want 100, 0, 100, 100, 0", r.Received, r.Lost, r.Next, r.Tx, r.Duplicated)
				}
				l.s.table.check(t)
			})
		}
	}
}

// TestSpoofedQueryTakesNoPackets: whoever sends from another host's address opens a session, but the packets of that host stay in its own one.
func TestSpoofedQueryTakesNoPackets(t *testing.T) {
	l := newLab(t, nil)
	k := l.poller("192.0.2.1:5000", 1)
	forged := *k
	forged.run = 9
	for seq := range uint32(1000) {
		if seq%50 == 0 {
			k.statsQuery(seq, false)
		}
		switch seq % 7 {
		case 0:
			if seq < 100 { // not proven yet
				break
			}
			forged.l.deliver(forged.peer, forged.request(seq, func(r *stampfmt.Receipt) { r.StatsQuery, r.Finish, r.Next, r.Epoch = true, seq%2 == 0, seq, 0 }))
		case 3:
			l.deliver(k.peer, k.base(seq-3)) // a copy of a packet that has arrived, with a later time
		}
		if r := k.send(k.base(seq)); r.result != Answered {
			t.Fatalf("packet %d: got %v", seq, r.result)
		}
		l.now += 20 * time.Millisecond
	}
	if r := k.statsQuery(1000, false).receipt; r.Received != 1000 || r.Lost != 0 || r.Next != 1000 {
		t.Errorf("received %d, duplicated %d, lost %d, next %d; want 1000, any, 0, 1000", r.Received, r.Duplicated, r.Lost, r.Next)
	}
}

// TestPacketsAtANewAddressJoinHoweverLateTheQueryIs: a busy host sends the query before the packets that it announces, and it arrives two seconds after them.
func TestPacketsAtANewAddressJoinHoweverLateTheQueryIs(t *testing.T) {
	l := newLab(t, nil)
	k := l.poller("192.0.2.1:5000", 1)
	k.short(100, false)
	k.peer = netip.MustParseAddrPort("192.0.2.1:6000")
	l.now += 20 * time.Millisecond
	late := k.request(101, func(r *stampfmt.Receipt) { r.StatsQuery, r.Next = true, 101 })
	for seq := uint32(100); seq < 150; seq++ {
		k.send(k.base(seq))
		l.now += 20 * time.Millisecond
	}
	l.now += 2 * time.Second
	k.send(late)
	if r := k.statsQuery(150, true).receipt; r.Received != 150 || r.Lost != 0 || r.Next != 150 {
		t.Errorf("received %d, lost %d, next %d; want 150, 0, 150", r.Received, r.Lost, r.Next)
	}
	l.s.table.check(t)
}
