package tstamp

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
)

// judge compares transmit timestamps with the receive timestamps. On one path without reordering, packet i leaves after
// packet i-1 was received and before packet i is received: a timestamp shifted by one packet violates that.
func judge(t *testing.T, in []In, tx []TxStamp) (stamped int) {
	t.Helper()
	left := map[uint64]TxStamp{}
	for _, s := range tx {
		if s.Stamp.At < s.At {
			t.Errorf("packet %d has a TX timestamp %v before Send", s.Cookie, s.At.Sub(s.Stamp.At))
		}
		if s.Stamp.Origin == sample.Kernel {
			left[s.Cookie] = s
		}
	}
	for i, r := range in {
		s, ok := left[binary.BigEndian.Uint64(r.Payload)]
		if !ok || r.Stamp.Origin != sample.Kernel {
			continue
		}
		stamped++
		if r.Stamp.At < s.Stamp.At || i > 0 && s.Stamp.At < in[i-1].Stamp.At {
			t.Errorf("packet %d has TX timestamp %v and RX timestamp %v, the packet before it RX timestamp %v",
				s.Cookie, s.Stamp.At, r.Stamp.At, in[max(i-1, 0)].Stamp.At)
		}
	}
	return stamped
}

// mostly requires that nearly all packets have kernel timestamps at both ends.
func mostly(t *testing.T, stamped, of int) {
	t.Helper()
	if stamped < of*99/100 {
		t.Errorf("%d of %d packets have timestamps of both ends", stamped, of)
	}
}

func numbered(cookie uint64, o Out) Out {
	o.Payload = append(binary.BigEndian.AppendUint64(nil, cookie), o.Payload...)
	o.Cookie = cookie
	return o
}

// sendAll sends one batch, skips refused packets, and returns their errors.
func sendAll(t *testing.T, c *Conn, out []Out) (refused map[uint64]error) {
	t.Helper()
	refused = map[uint64]error{}
	for len(out) > 0 {
		n, err := c.Send(out)
		out = out[n:]
		if err == nil {
			continue
		}
		refused[out[0].Cookie] = err
		out = out[1:]
	}
	return refused
}

func TestFailuresInABatchDoNotShiftTimestamps(t *testing.T) {
	families(t, func(t *testing.T, v6 bool) {
		local, remote := open(t, loopback(v6), Options{}), open(t, loopback(v6), Options{})
		warm(t, local, remote)
		ip := remote.LocalAddr().Addr()
		gone := open(t, loopback(v6), Options{})
		closed := gone.LocalAddr()
		check(t, gone.Close())
		foreign := netip.MustParseAddr("192.0.2.1")
		if v6 {
			foreign = netip.MustParseAddr("2001:db8::1")
		}
		bad := []Out{
			{Peer: netip.AddrPortFrom(ip, 0)},                        // EINVAL before anything else
			{Peer: remote.LocalAddr(), Payload: make([]byte, 70000)}, // EMSGSIZE in udp_sendmsg
			{Peer: remote.LocalAddr(), Payload: make([]byte, 65530)}, // EMSGSIZE in ip_append_data
			{Peer: remote.LocalAddr(), Source: foreign},              // EINVAL: not a local address
			{Peer: closed}, // accepted; its ICMP error is reported with the next packet
			{Peer: remote.LocalAddr(), Source: ip, Payload: make([]byte, 64)}, // accepted
		}
		var cookie, good uint64
		var in []In
		var tx []TxStamp
		for round := range 60 {
			var batch []Out
			for i := range 20 {
				o := Out{Peer: remote.LocalAddr()}
				if i%3 == round%3 {
					o = bad[(round+i)%len(bad)]
				}
				batch = append(batch, numbered(cookie, o))
				cookie++
			}
			refused := sendAll(t, local, batch)
			for _, o := range batch {
				if refused[o.Cookie] == nil && o.Peer == remote.LocalAddr() {
					good++
				}
			}
			more, _, _ := collect(t, remote, packets(int(good)-len(in)))
			in = append(in, more...)
		}
		s := local.Stats()
		if s.SendErrors == 0 || s.Sent+s.SendErrors != cookie+1 { // one of warm
			t.Errorf("sent %d, refused %d of %d packets", s.Sent, s.SendErrors, cookie)
		}
		_, more, _ := collect(t, local, stamps(int(s.Sent)-1-len(tx)))
		mostly(t, judge(t, in, append(tx, more...)), len(in))
	})
}

// TestFailuresBehindTheSocketDoNotShiftTimestamps uses a queue that refuses packets after the kernel has numbered them.
func TestFailuresBehindTheSocketDoNotShiftTimestamps(t *testing.T) {
	l := newLink(t)
	local, remote := l.open(t, l.Local, l.LocalAddr, Options{}), l.open(t, l.Remote, l.RemoteAddr, Options{})
	warm(t, local, remote)
	l.slow(t, 10_000)
	var cookie, good uint64
	refusals := 0
	var in []In
	for range 20 {
		var batch []Out
		for range 40 {
			batch = append(batch, numbered(cookie, Out{Peer: remote.LocalAddr(), Payload: make([]byte, 500)}))
			cookie++
		}
		refused := sendAll(t, local, batch)
		for _, err := range refused {
			if !errors.Is(err, syscall.ENOBUFS) {
				t.Fatalf("refused with %v, want ENOBUFS", err)
			}
		}
		refusals += len(refused)
		good += uint64(len(batch) - len(refused))
		more, _, _ := collect(t, remote, packets(int(good)-len(in)))
		in = append(in, more...)
	}
	if refusals == 0 || good == 0 {
		t.Fatalf("the queue accepted %d packets and refused %d, want both above 0", good, refusals)
	}
	_, tx, _ := collect(t, local, stamps(int(good)))
	stamped := judge(t, in, tx)
	t.Logf("%d of %d packets have timestamps of both ends", stamped, len(in))
	mostly(t, stamped, len(in))
}

// slow adds a token bucket of 1 MB/s with a queue of limitBytes to the local end.
func (l link) slow(t *testing.T, limitBytes uint32) {
	t.Helper()
	h, err := netlink.NewHandleAt(l.Local)
	check(t, err)
	defer h.Close()
	ifi, err := h.LinkByName("near")
	check(t, err)
	check(t, h.QdiscAdd(&netlink.Tbf{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: ifi.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
		Rate:       1_000_000, Limit: limitBytes, Buffer: 100_000, // in ticks of 64 ns: a burst of 6.4 kB
	}))
}

func TestNoRouteIsAnErrorOfThatPacketOnly(t *testing.T) {
	l := newLink(t)
	local, remote := l.open(t, l.Local, l.LocalAddr, Options{}), l.open(t, l.Remote, l.RemoteAddr, Options{})
	nowhere := netip.MustParseAddrPort("198.51.100.1:862") // the namespace has no default route
	n, err := local.Send([]Out{{Peer: remote.LocalAddr()}, {Peer: nowhere}, {Peer: remote.LocalAddr()}})
	if n != 1 || !errors.Is(err, syscall.ENETUNREACH) {
		t.Errorf("sent %d, %v; want 1, ENETUNREACH", n, err)
	}
}

func TestUndeliverablePacketGetsTheUserSpaceTimestamp(t *testing.T) {
	l := newLink(t)
	local := l.open(t, l.Local, l.LocalAddr, Options{})
	local.wait = 100 * time.Millisecond
	// No host has this address: the packet waits for neighbor resolution and never reaches the driver.
	out := []Out{{Peer: netip.MustParseAddrPort("10.77.0.99:862"), Cookie: 5}}
	_, err := local.Send(out)
	check(t, err)
	_, tx, _ := collect(t, local, stamps(1))
	if want := (TxStamp{5, sample.Stamp{At: out[0].At, Origin: sample.User}, out[0].At}); tx[0] != want {
		t.Errorf("got %+v, want %+v", tx[0], want)
	}
	if s := local.Stats(); s.TxMissing != 1 {
		t.Errorf("missing %d, want 1", s.TxMissing)
	}
}

// TestTimestampsArriveWhileTheSendBufferIsFull: the socket then reports only EPOLLERR, which the runtime's poller alone
// treats as a failure.
func TestTimestampsArriveWhileTheSendBufferIsFull(t *testing.T) {
	l := newLink(t)
	local, remote := l.open(t, l.Local, l.LocalAddr, Options{SendBufferBytes: 4096}), l.open(t, l.Remote, l.RemoteAddr, Options{})
	warm(t, local, remote)
	l.slow(t, 1_000_000)
	full, sent := 0, 0
	var tx []TxStamp
	for sent < 200 {
		n, err := local.Send([]Out{{Peer: remote.LocalAddr(), Payload: make([]byte, 400), Cookie: uint64(sent)}})
		sent += n
		if errors.Is(err, syscall.EAGAIN) {
			full++
			_, more, _ := collect(t, local, stamps(1))
			tx = append(tx, more...)
		} else if err != nil {
			t.Fatal(err)
		}
	}
	_, more, _ := collect(t, local, stamps(sent-len(tx)))
	if full == 0 {
		t.Error("the send buffer was never full")
	}
	for _, s := range append(tx, more...) {
		if s.Stamp.Origin != sample.Kernel {
			t.Errorf("timestamp %+v, want a kernel timestamp", s)
		}
	}
}

// noCard is a card whose clock has no relation to the system clock.
type noCard struct{}

func (noCard) System(instant.Time) (instant.Time, bool) { return 0, false }

func TestWithoutACardKernelTimestampsAreReported(t *testing.T) {
	local, remote := open(t, loopback(false), Options{Hardware: noCard{}}), open(t, loopback(false), Options{Hardware: noCard{}})
	local.wait = 20 * time.Millisecond
	warm(t, local, remote)
	_, err := local.Send([]Out{{Peer: remote.LocalAddr(), Cookie: 3}})
	check(t, err)
	in, _, _ := collect(t, remote, packets(1))
	_, tx, _ := collect(t, local, stamps(1))
	if in[0].Stamp.Origin != sample.Kernel || tx[0].Stamp.Origin != sample.Kernel || tx[0].Cookie != 3 {
		t.Errorf("RX timestamp %v, TX timestamp %+v, want origin Kernel", in[0].Stamp, tx[0])
	}
}
