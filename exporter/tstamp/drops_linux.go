package tstamp

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"oneway.example/exporter/kernelcounts"
)

// dropCount counts what the kernel dropped at a socket for want of buffer.
//
// The socket's own count takes in packets with a wrong UDP checksum, too (udp_queue_rcv_one_skb
// of Linux's net/ipv4/udp.c): the path has damaged those. So no more are taken than the
// whole host had no room for in the same time.
type dropCount struct {
	kernel kernelcounts.Files
	// before is the host's count when it was last looked at, at that time.
	before uint64
	known  bool
	at     time.Time
	raw    uint32 // the socket's, up to then
	total  uint64
}

// dropsEvery is how rarely the host's counts are read while a socket drops packets: it takes
// some 0.1 ms.
const dropsEvery = 20 * time.Millisecond

// begin is called in the socket's network namespace.
func (d *dropCount) begin() {
	d.kernel = kernelcounts.Open()
	now := d.kernel.Read()
	d.before, d.known = now.NoBuffer, now.Known
}

// read returns the count; it may be behind by dropsEvery, unless at the last.
func (d *dropCount) read(fd int, last bool) uint64 {
	raw, err := drops(fd)
	if err != nil || raw == d.raw {
		return d.total
	}
	at := time.Now()
	if at.Sub(d.at) < dropsEvery && !last {
		return d.total
	}
	n := uint64(raw - d.raw)
	if now := d.kernel.Read(); d.known && now.Known {
		n = min(n, kernelcounts.Since(now.NoBuffer, d.before))
		d.before = now.NoBuffer
	}
	d.raw, d.at = raw, at
	d.total += n
	return d.total
}

// drops reads how many packets the kernel dropped at the socket: the same
// counter that SO_RXQ_OVFL attaches to packets, but current even if no packet
// comes any more (SO_MEMINFO, Linux 4.12).
func drops(fd int) (uint32, error) {
	const dropped = 8 // SK_MEMINFO_DROPS (linux/sock_diag.h)
	var info [dropped + 1]uint32
	length := uint32(unsafe.Sizeof(info))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_MEMINFO,
		uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&length)), 0)
	if errno != 0 {
		return 0, errno
	}
	return info[dropped], nil
}
