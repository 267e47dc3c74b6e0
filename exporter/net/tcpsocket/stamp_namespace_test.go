package tcpsocket

import (
	"errors"
	"testing"

	"github.com/vishvananda/netlink"

	"oneway.example/exporter/core/instant"
	"oneway.example/tests/namespace"
)

// A short queue drops packets. Segments leave one by one, each of them a record, so that the kernel's counters of segments are
// the truth of the stamps.
func TestStampsTellFirstTransmissionsFromRetransmissions(t *testing.T) {
	const size, writes = 1000, 4000
	stamping(t)
	local, _, remote := route(t, 20e6/8)
	from, to := across(t, local, remote, "10.77.2.2:0", Options{NoDelay: true, CongestionControl: "cubic"})
	got := collected{}
	enable(t, from, to, got.take)
	done := make(chan error, 1)
	read, last, state := 0, instant.Time(0), Reception{}
	go func() {
		done <- discard(to, func(a Arrival) {
			read += a.N
			last = a.At
			state, _ = to.Reception() // without it no segment was out of order
		})
	}()
	b := make([]byte, size)
	for range writes {
		if _, _, err := from.WriteStamped(b, WantLeft|WantScheduled, true); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(from.Finish(), <-done); err != nil || read != writes*size || last == 0 {
		t.Fatalf("read %d, the last at %v, %v", read, last, err)
	}
	i := info(t, from)
	var before instant.Time
	left, scheduled, groups := int64(0), int64(0), map[int64]instant.Time{}
	for at := int64(size); at <= writes*size; at += size {
		l, s, a := got.of(at, Left), got.of(at, Scheduled), got.of(at, Acked)
		if len(l) == 0 || len(l) != len(s) || len(a) != 1 {
			t.Fatalf("byte %d: %+v", at, got[at])
		}
		left += int64(len(l))
		scheduled += int64(len(s))
		for k := range l {
			if l[k].At < s[k].At || k > 0 && l[k].At <= l[k-1].At {
				t.Fatalf("byte %d: %+v", at, got[at])
			}
		}
		if l[0].At < before {
			t.Fatalf("byte %d left for the first time before the one before it", at)
		}
		before = l[0].At
		ack := a[0]
		if ack.At < l[0].At || !ack.Known || ack.Through < at || ack.Early < 0 {
			t.Fatalf("byte %d: %+v", at, got[at])
		}
		if first, ok := groups[ack.Through]; !ok {
			groups[ack.Through] = ack.At
		} else if ack.At < first {
			t.Fatalf("byte %d is stamped before those before it of one acknowledgment", at)
		}
	}
	t.Logf("%d stamps of segments that left, %d retransmissions of %d segments; %d acknowledgments", left, i.RetransmittedSegments, writes, len(groups))
	if again := left - writes; again != i.RetransmittedSegments || again == 0 {
		t.Errorf("%d stamps of retransmissions, want %d", again, i.RetransmittedSegments)
	}
	if state.OutOfOrder == 0 || !state.Known {
		t.Errorf("with losses the receiver has %+v", state)
	}
	if n := int64(len(groups)); n < writes/10 || n > i.SegmentsIn {
		t.Errorf("%d acknowledgments, %d segments came in", n, i.SegmentsIn)
	}
}

// The packet scheduler of the sending host has a short queue and refuses packets, which the kernel counts each time.
func TestStampsTellWhatIsAcknowledgedWhenThisHostDropsPackets(t *testing.T) {
	const size, writes = 1000, 4000
	stamping(t)
	p := namespace.NewPair(t)
	namespace.Do(t, p.Local, func() {
		near, err := netlink.LinkByName("near")
		namespace.Check(t, err)
		namespace.Check(t, netlink.LinkSetGSOMaxSegs(near, 1))
		namespace.Check(t, netlink.QdiscAdd(&netlink.Tbf{
			QdiscAttrs: netlink.QdiscAttrs{LinkIndex: near.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
			Rate:       20e6 / 8, Buffer: netlink.Xmittime(20e6/8, 5000), Limit: 8000,
		}))
	})
	from, to := across(t, p.Local, p.Remote, "10.77.0.2:0", Options{NoDelay: true, CongestionControl: "cubic"})
	written, before, late := int64(0), Stamp{}, 0
	enable(t, from, to, func(s Stamp) {
		if s.Kind != Acked {
			return
		}
		if !s.Known || s.Through < s.Offset || s.Through > written+size || s.Through < before.Through {
			t.Errorf("%d bytes written: %+v after %+v", written, s, before)
		}
		if s.Through%size != 0 {
			late++
		}
		before = s
	})
	done := make(chan error, 1)
	go func() { done <- discard(to, func(Arrival) {}) }()
	for b := make([]byte, size); written < writes*size; written += size {
		if _, _, err := from.WriteStamped(b, WantAcked, true); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(from.Finish(), <-done); err != nil {
		t.Fatal(err)
	}
	i := info(t, from)
	twice := i.Sent - i.Retransmitted - writes*size
	t.Logf("%d bytes counted twice", twice)
	if twice == 0 || before.Through != writes*size || late > 0 {
		t.Errorf("%d bytes counted twice; the last acknowledgment %+v, %d within a segment", twice, before, late)
	}
}
