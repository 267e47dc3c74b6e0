package stamp

import (
	"encoding/binary"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/reflector"
)

// rawBad sends a UDP datagram with a wrong checksum, like a path that damages packets.
func rawBad(t *testing.T, fd int, from, to netip.AddrPort, payload []byte) {
	n := 28 + len(payload)
	b := make([]byte, n)
	b[0], b[8], b[9] = 0x45, 64, syscall.IPPROTO_UDP
	binary.BigEndian.PutUint16(b[2:], uint16(n))
	src, dst := from.Addr().Unmap().As4(), to.Addr().Unmap().As4()
	copy(b[12:], src[:])
	copy(b[16:], dst[:])
	binary.BigEndian.PutUint16(b[20:], from.Port())
	binary.BigEndian.PutUint16(b[22:], to.Port())
	binary.BigEndian.PutUint16(b[24:], uint16(8+len(payload)))
	copy(b[28:], payload)
	sum := uint32(syscall.IPPROTO_UDP) + uint32(8+len(payload))
	for i := 12; i+1 < n; i += 2 {
		sum += uint32(b[i])<<8 | uint32(b[i+1])
	}
	if n%2 == 1 {
		sum += uint32(b[n-1]) << 8
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	wrong := ^uint16(sum) ^ 0x0400 // one bit
	if wrong == 0 {
		wrong = 1
	}
	binary.BigEndian.PutUint16(b[26:], wrong)
	if err := syscall.Sendto(fd, b, 0, &syscall.SockaddrInet4{Addr: dst}); err != nil {
		t.Error(err)
	}
}

// TestDamagedPacketsAreLostByThePath: the path flips a bit in each tenth packet; the receiving kernel detects the
// wrong UDP checksum and adds the packet to the socket's drops (udp_queue_rcv_one_skb of Linux). By RFC 7680
// section 2.5 it is lost.
func TestDamagedPacketsAreLostByThePath(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("NOT TESTED: a raw socket and a network namespace need root")
	}
	// The kernel counters that distinguish damage from drops are those of the whole namespace, and other tests drop
	// packets too. This test therefore runs alone, in its own namespace.
	if os.Getenv("ONEWAY_TEST_ALONE") == "" {
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		c.Env = append(os.Environ(), "ONEWAY_TEST_ALONE=1")
		c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(lo)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range sample.Directions() {
		damaged(t, dir)
	}
}

// damaged measures over a path that damages 50 of 500 packets of one direction.
func damaged(t *testing.T, dir sample.Direction) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_RAW, syscall.IPPROTO_RAW)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	b := newTestbed(t, reflector.Options{})
	remote := netip.MustParseAddrPort(b.peer)
	var carrier atomic.Pointer[proxy]
	p := newProxy(t, b.peer, func(d sample.Direction, _ time.Duration, payload []byte) (time.Duration, bool) {
		if d != dir || isStatsQuery(payload) || numberOf(d, payload)%10 != 3 {
			return 0, false
		}
		p := carrier.Load()
		if d == sample.Forward {
			rawBad(t, fd, p.remote.LocalAddr().(*net.UDPAddr).AddrPort(), remote, payload)
		} else {
			p.mu.Lock()
			to := p.client
			p.mu.Unlock()
			rawBad(t, fd, p.local.LocalAddr().(*net.UDPAddr).AddrPort(), to, payload)
		}
		return 0, true
	})
	carrier.Store(p)
	o := quick()
	o.LossTimeout = 300 * time.Millisecond
	r := b.to(p.addr).measure(t, o, 500)
	got := []DirectionReport{r.Forward, r.Reverse}[dir]
	if *got.Lost != 50 || *got.HostDropped != 0 {
		t.Errorf("%v: 50 of 500 damaged by the path: lost %d, host_dropped %d, corrupted %d; want lost 50, host_dropped 0", dir, *got.Lost, *got.HostDropped, *got.Corrupted)
	}
}
