package tstamp

import (
	"bytes"
	"errors"
	"net/netip"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// arrivals receives n packets, or those before a timeout.
func arrivals(tb testing.TB, c *Conn, n int) (payloads [][]byte) {
	tb.Helper()
	guard := time.AfterFunc(limit, func() { _ = c.Close() })
	defer guard.Stop()
	b := NewBatch(8, 1<<16)
	for len(payloads) < n {
		if err := c.Receive(b); err != nil {
			tb.Fatalf("receive after %d of %d packets: %v", len(payloads), n, err)
		}
		for _, in := range b.In {
			payloads = append(payloads, bytes.Clone(in.Payload))
		}
	}
	return payloads
}

func TestSegmentedPacketsAreReceivedSeparatelyWithAndWithoutCoalescing(t *testing.T) {
	for _, local := range []string{"127.0.0.1:0", "[::1]:0"} {
		for _, coalesce := range []bool{false, true} {
			localEnd, remote := open(t, netip.MustParseAddrPort(local), Options{}), open(t, netip.MustParseAddrPort(local), Options{})
			check(t, remote.Coalesce(coalesce))
			payload := make([]byte, 10*100+30)
			for i := range payload {
				payload[i] = byte(i / 100)
			}
			out := []Out{{Payload: payload, Peer: remote.LocalAddr(), Segment: 100}, {Payload: payload[:50], Peer: remote.LocalAddr(), Segment: 100}}
			n, err := localEnd.SendAs(SendOptions{Unstamped: true}, out)
			if n != 2 || err != nil {
				t.Fatalf("%s: sent %d, %v", local, n, err)
			}
			got := arrivals(t, remote, 12)
			for i, p := range got[:11] {
				if want := payload[i*100 : min(i*100+100, len(payload))]; !bytes.Equal(p, want) {
					t.Errorf("%s, coalesced %v: packet %d has %d bytes of value %d, want %d of %d", local, coalesce, i, len(p), p[0], len(want), want[0])
				}
			}
			if len(got) != 12 || len(got[11]) != 50 {
				t.Errorf("%s, coalesced %v: received %d packets, the last of %d bytes", local, coalesce, len(got), len(got[len(got)-1]))
			}
			if s, r := localEnd.Stats(), remote.Stats(); s.Sent != 12 || r.Received != 12 || s.TxStamps != [Origins]uint64{} {
				t.Errorf("%s: counts: %d sent, %d received, timestamps %v", local, s.Sent, r.Received, s.TxStamps)
			}
		}
	}
}

func TestTimestampsMatchTheirPacketsAmongUnstampedOnes(t *testing.T) {
	local, remote := open(t, netip.MustParseAddrPort("127.0.0.1:0"), Options{}), open(t, netip.MustParseAddrPort("127.0.0.1:0"), Options{})
	var got []uint64
	b := NewBatch(8, 100)
	guard := time.AfterFunc(limit, func() { _ = local.Close() })
	defer guard.Stop()
	for i := range uint64(20) {
		out := []Out{{Payload: make([]byte, 50), Peer: remote.LocalAddr(), Cookie: 100 + i}}
		_, err := local.SendAs(SendOptions{Unstamped: i%2 == 1}, out)
		check(t, err)
	}
	for len(got) < 10 {
		check(t, local.Receive(b))
		for _, s := range b.Tx {
			got = append(got, s.Cookie)
		}
	}
	slices.Sort(got)
	if want := []uint64{100, 102, 104, 106, 108, 110, 112, 114, 116, 118}; !slices.Equal(got, want) {
		t.Errorf("timestamps of packets %v, want %v", got, want)
	}
}

func TestSegmentedPacketsWithTimestampsAreRefused(t *testing.T) {
	c := open(t, netip.MustParseAddrPort("127.0.0.1:0"), Options{})
	_, err := c.Send([]Out{{Payload: make([]byte, 200), Peer: c.LocalAddr(), Segment: 100}})
	if !errors.Is(err, syscall.EINVAL) {
		t.Errorf("got %v, want EINVAL", err)
	}
}

func TestSendOptionsApplyPerCall(t *testing.T) {
	for _, c := range []struct {
		local         string
		level, option int
	}{{"127.0.0.1:0", unix.SOL_IP, unix.IP_MTU_DISCOVER}, {"[::1]:0", unix.SOL_IPV6, unix.IPV6_MTU_DISCOVER}} {
		local := open(t, netip.MustParseAddrPort(c.local), Options{})
		read := func(level, option int) int {
			v, err := unix.GetsockoptInt(local.fd, level, option)
			check(t, err)
			return v
		}
		before := read(c.level, c.option)
		for _, step := range []struct {
			m                   SendOptions
			discovery, checksum int
		}{
			{SendOptions{Fragmentation: NoFragmentation}, unix.IP_PMTUDISC_PROBE, 0},
			{SendOptions{Fragmentation: Fragmented, NoChecksum: true}, unix.IP_PMTUDISC_DONT, 1},
			{SendOptions{NoChecksum: true}, before, 1},
			{SendOptions{}, before, 0},
		} {
			_, err := local.SendAs(step.m, []Out{{Payload: []byte{1}, Peer: local.LocalAddr()}})
			check(t, err)
			if d, n := read(c.level, c.option), read(unix.SOL_SOCKET, unix.SO_NO_CHECK); d != step.discovery || n != step.checksum {
				t.Errorf("%s, %+v: IP_MTU_DISCOVER %d, SO_NO_CHECK %d; want %d and %d", c.local, step.m, d, n, step.discovery, step.checksum)
			}
		}
	}
}

// A packet longer than the interface's MTU is refused unless it may be fragmented.
func TestFragmentationIsForbiddenOrAllowed(t *testing.T) {
	l := newLink(t)
	local, remote := l.open(t, l.Local, l.LocalAddr, Options{}), l.open(t, l.Remote, l.RemoteAddr, Options{})
	out := []Out{{Payload: make([]byte, 3000), Peer: remote.LocalAddr()}}
	if _, err := local.SendAs(SendOptions{Fragmentation: NoFragmentation}, out); !errors.Is(err, syscall.EMSGSIZE) {
		t.Errorf("got %v, want EMSGSIZE", err)
	}
	_, err := local.SendAs(SendOptions{Fragmentation: Fragmented}, out)
	check(t, err)
	if got := arrivals(t, remote, 1); len(got[0]) != 3000 {
		t.Errorf("received %d bytes", len(got[0]))
	}
}

func TestSendAsDoesNotAllocate(t *testing.T) {
	local, remote := open(t, netip.MustParseAddrPort("127.0.0.1:0"), Options{}), open(t, netip.MustParseAddrPort("127.0.0.1:0"), Options{})
	out := []Out{{Payload: make([]byte, 640), Peer: remote.LocalAddr(), Segment: 64, DSCP: 46}}
	if n := testing.AllocsPerRun(200, func() {
		_, err := local.SendAs(SendOptions{Unstamped: true, Fragmentation: NoFragmentation}, out)
		check(t, err)
	}); n > 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
