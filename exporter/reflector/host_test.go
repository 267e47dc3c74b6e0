package reflector

import (
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/tstamp"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/tests/await"
)

func requestHost(r *stampfmt.Receipt) { r.Received = stampfmt.HostRequestBit }

// The Receipt of a sender that predates the host block is unchanged.
func TestHostBlockIsSentOnRequestOnly(t *testing.T) {
	l := newLab(t, nil)
	k := l.poller("192.0.2.1:5000", 1)
	for seq := range uint32(40) {
		l.s.drops.total = uint64(seq)
		if r := k.poll(seq).receipt; r.Host || r.Words != 4 || r.Received != seq+1 {
			t.Fatalf("reply %d: %+v, want no host block", seq, r)
		}
	}
	if r := k.statsQuery(40, true).receipt; r.Host || r.Words != 4 {
		t.Errorf("statistics query: %+v, want no host block", r)
	}
}

// A change is reported at once and three times, as replies may be lost; unchanged counts at intervals. The bitmap is a
// word shorter then, and no reply longer than its request (lab.send).
func TestSocketDropsAreReportedOnRequest(t *testing.T) {
	l := newLab(t, nil)
	k := l.poller("192.0.2.1:5000", 1)
	told := map[uint32]uint32{}
	for seq := range uint32(32) {
		switch seq {
		case 10:
			l.s.drops.total = 7
		case 26:
			l.s.drops.total = 1<<32 + 9 // modulo 2^32
		}
		r := k.send(k.request(seq, requestHost)).receipt
		if r.Host {
			told[seq] = r.SocketDrops
		}
		if want := 4; r.Host && r.Words != want-1 || !r.Host && (r.Words != want || r.SocketDrops != 0) || r.Recent[0] != 1<<min(seq+1, 63)-1 && seq < 63 {
			t.Errorf("reply %d: %+v", seq, r)
		}
	}
	for seq, want := range map[uint32]uint32{0: 0, 8: 0, 10: 7, 11: 7, 12: 7, 16: 7, 24: 7, 26: 9, 27: 9, 28: 9} {
		if got, ok := told[seq]; !ok || got != want {
			t.Errorf("reply %d has %d drops (host block %v), want %d", seq, got, ok, want)
		}
		delete(told, seq)
	}
	if len(told) != 0 {
		t.Errorf("further replies with a host block: %v", told)
	}
	statsQuery := k.send(k.request(32, func(r *stampfmt.Receipt) { r.StatsQuery, r.Next, r.Received = true, 32, stampfmt.HostRequestBit }))
	if r := statsQuery.receipt; !r.Host || r.SocketDrops != 9 {
		t.Errorf("reply to a statistics query: %+v, want a host block", r)
	}
	if r := k.send(k.request(32, func(r *stampfmt.Receipt) { requestHost(r); r.Words = 0 })).receipt; r.Host || !r.Filled {
		t.Errorf("Receipt without a bitmap: %+v, want no host block", r)
	}
}

// The lab delivers with DSCP 10: what was sent with another one, or comes with ECN CE, is counted.
func TestRemarkedAndMarkedRequestsAreCountedInTheHostBlock(t *testing.T) {
	l := newLab(t, nil)
	k := l.poller("192.0.2.1:5000", 1)
	for seq := range uint32(17) {
		dscp := uint8(10)
		if seq >= 8 && seq < 13 {
			dscp = 46
		}
		b := k.request(seq, func(r *stampfmt.Receipt) { r.Received = stampfmt.HostRequest(dscp) })
		if seq == 14 {
			_, _, _ = l.deliverIn(&tstamp.In{
				Payload: b, Peer: k.peer, Local: netip.MustParseAddr("127.0.0.1"), TTL: 61, DSCP: 10, ECN: 3,
				Stamp: sample.Stamp{At: l.wall(), Origin: sample.Kernel}, At: l.wall(),
			})
			continue
		}
		if r := k.send(b).receipt; seq == 16 && (!r.Host || r.TrafficClass != 10<<2 || r.Remarked != 5 || r.CE != 1) {
			t.Errorf("%+v, want a host block with Traffic Class 40, 5 remarked and 1 marked", r)
		}
	}
}

// The kernel drops requests while the reflector is suspended: the packets that a session lost are exactly those that
// its socket dropped.
func TestSocketDropsEqualThePacketsLostOnTheReflectorsHost(t *testing.T) {
	const sent = 1500
	r := running(t, Options{ReceiveBufferBytes: 16 << 10, RatePackets: -1}, metric.Discard{})
	k := newLab(t, nil).poller("192.0.2.1:1", 5)
	c := dial(t, r.Addrs()[0])
	if first := k.exchange(c, k.request(0, requestHost)).receipt; !first.Host || first.SocketDrops != 0 {
		t.Fatalf("before the overflow: Receipt %+v", first)
	}
	r.shards[0].mu.Lock()
	for seq := uint32(1); seq < sent; seq++ {
		if _, err := c.Write(k.request(seq, requestHost)); err != nil {
			r.shards[0].mu.Unlock()
			t.Fatal(err)
		}
	}
	r.shards[0].mu.Unlock()
	// The statistics query must not be dropped, too.
	await.Within(await.Timeout, func() bool { s := r.Stats(); return s.Answered()+s.SocketDrops >= sent })
	last := k.exchange(c, k.request(sent, func(r *stampfmt.Receipt) {
		r.StatsQuery, r.Finish, r.Next, r.Received = true, true, sent, stampfmt.HostRequestBit
	})).receipt
	for end := time.Now().Add(10 * time.Second); !last.StatsQuery && time.Now().Before(end); {
		last = k.read(c).receipt // the replies to the received requests precede it
	}
	t.Logf("received %d of %d, socket drops %d", last.Received, sent, last.SocketDrops)
	if last.SocketDrops == 0 || last.Received+last.Lost != sent || last.Lost != last.SocketDrops || !last.Host {
		t.Errorf("received %d, lost %d, socket drops %d (host block %v); want lost to be drops, of %d",
			last.Received, last.Lost, last.SocketDrops, last.Host, sent)
	}
}

// A socket's drops just before a session opens may be that session's first packets; earlier drops are not.
func TestDropsJustBeforeASessionAreReportedToIt(t *testing.T) {
	for _, c := range []struct {
		name    string
		updates map[time.Duration]uint64 // in the order of the keys
		want    uint64
	}{
		{"new socket", map[time.Duration]uint64{time.Second: 7}, 0},
		{"two seconds ago", map[time.Duration]uint64{time.Second: 7, 3 * time.Second: 9, 4 * time.Second: 11, 5100 * time.Millisecond: 12}, 7},
		{"long ago", map[time.Duration]uint64{time.Second: 7, time.Hour: 7, time.Hour + time.Second: 8}, 7},
	} {
		var d dropCount
		for _, at := range slices.Sorted(maps.Keys(c.updates)) {
			d.update(c.updates[at], at)
		}
		if d.before[0] != c.want {
			t.Errorf("%s: %+v, want %d drops before", c.name, d, c.want)
		}
	}
}
