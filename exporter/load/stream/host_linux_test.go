package stream

import (
	"net/netip"
	"testing"
	"time"
)

// Packets that the queue of this host refuses are retried and then given up. They are no loss of the path,
// and the stream does not exceed its planned time.
func TestPacketsRefusedByThisHostAreNoLoss(t *testing.T) {
	l := newLink(t)
	e := l.ends(t)
	l.shape(t, 1_000_000, 15_000) // 1 Mb/s, a queue of ten packets
	seg := Segment{PayloadBytes: 1400, Interval: 5 * time.Millisecond, Burst: 1, Bursts: 200}
	p := Plan{Segments: []Segment{seg}} // 2.3 Mb/s
	begin := time.Now()
	sent, received := transfer(t, e.here, e.there, p)
	took := time.Since(begin)
	t.Logf("%d sent in %v, %d refused, %d late; %d arrived", len(sent.Packets), took, sent.Refused, sent.Late, len(received.Packets))
	if sent.Refused == 0 || sent.Late == 0 {
		t.Errorf("%d refused, %d late; want some", sent.Refused, sent.Late)
	}
	if len(received.Packets) != len(sent.Packets)-sent.Refused {
		t.Errorf("%d of %d packets arrived", len(received.Packets), len(sent.Packets)-sent.Refused)
	}
	for _, r := range received.Packets {
		if !sent.Packets[r.Seq].Stamp.Present() {
			t.Errorf("packet %d arrived but was refused", r.Seq)
		}
	}
}

func TestChecksumErrorsAreNotCountedAsDrops(t *testing.T) {
	l := newLink(t)
	e := l.ends(t)
	r, err := e.there.Expect(1, Plan{Segments: []Segment{{PayloadBytes: 100, Burst: 1, Bursts: 5}}})
	check(t, err)
	for range 3 {
		l.sendDamaged(t, e.client.LocalAddr(), e.server.LocalAddr(), dataPacket(testSession, 1, 0, 100))
	}
	_, err = e.here.Send(t.Context(), 1, e.server.LocalAddr(), Plan{Segments: []Segment{{PayloadBytes: 100, Burst: 1, Bursts: 5}}}, SendOptions{})
	check(t, err)
	got := r.Finish(t.Context(), 5, testLimit)
	if got.ChecksumErrors != 3 || got.Dropped != 0 || len(got.Packets) != 5 {
		t.Errorf("%d checksum errors, %d dropped, %d arrived; want 3, 0 and 5", got.ChecksumErrors, got.Dropped, len(got.Packets))
	}
}

// The kernel does not segment packets above the MTU: they are sent one by one, and if fragmentation is
// disabled, not at all.
func TestPacketsThatTheKernelDoesNotSegmentAreSentOneByOne(t *testing.T) {
	l := newLink(t)
	e := l.ends(t)
	p := Plan{Unstamped: true, Fragment: true, Segments: []Segment{
		{PayloadBytes: 1000, Burst: 50, Bursts: 1}, {PayloadBytes: 3000, Burst: 50, Bursts: 1}, {PayloadBytes: 1000, Burst: 50, Bursts: 1},
	}}
	sent, received := transfer(t, e.here, e.there, p)
	if len(sent.Packets) != 150 || sent.Refused != 0 || len(received.Packets) != 150 {
		t.Errorf("%d sent, %d refused, %d arrived; want 150, 0 and 150", len(sent.Packets), sent.Refused, len(received.Packets))
	}
	for i, r := range received.Packets {
		if int(r.Seq) != i || r.Damage != Intact {
			t.Fatalf("packet %d arrived as number %d, %v", i, r.Seq, r.Damage)
		}
	}
	p.Fragment = false
	sent, received = transfer(t, e.here, e.there, p)
	if len(sent.Packets) != 150 || sent.Refused != 50 || sent.TooLarge != 50 || len(received.Packets) != 100 {
		t.Errorf("%d sent, %d refused, %d too large, %d arrived; want 150, 50, 50 and 100", len(sent.Packets), sent.Refused, sent.TooLarge, len(received.Packets))
	}
	for i, s := range sent.Packets {
		if tooLong := i >= 50 && i < 100; s.Stamp.Present() == tooLong {
			t.Fatalf("packet %d: %+v", i, s.Stamp)
		}
	}
}

// The kernel counts coalesced packets that it drops as one. The packets that this host dropped must still
// not count as loss of the path.
func TestDroppedCoalescedPacketsAreCountedAsPackets(t *testing.T) {
	l := newLink(t)
	server := l.openWith(t, l.Remote, Options{Local: netip.AddrPortFrom(l.RemoteAddr, 0), ReceiveBufferBytes: 256 << 10})
	e := joined(l.open(t, l.Local, l.LocalAddr), server)
	_, err := e.here.Hello(t.Context(), server.LocalAddr())
	check(t, err)
	p := Plan{Unstamped: true, Segments: []Segment{{PayloadBytes: 1400, Burst: 4000, Bursts: 1}}}
	r, err := e.there.Expect(1, p)
	check(t, err)
	e.there.mu.Lock() // stalls the receiver
	sent, err := e.here.Send(t.Context(), 1, server.LocalAddr(), p, SendOptions{})
	e.there.mu.Unlock()
	check(t, err)
	got := r.Finish(t.Context(), len(sent.Packets), 100*time.Millisecond)
	drops := server.Stats().Socket.Dropped
	t.Logf("%d of %d arrived; the kernel counts %d drops, converted to %d packets", len(got.Packets), len(sent.Packets), drops, got.Dropped)
	if drops == 0 || got.BacklogDropped == 0 && int(got.Dropped)+len(got.Packets) != len(sent.Packets) {
		t.Errorf("%d packets are missing, %d are reported as dropped", len(sent.Packets)-len(got.Packets), got.Dropped)
	}
}
