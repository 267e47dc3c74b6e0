package control

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// longestTimeout is the longest that TCP may wait until it says again what was lost, in
// milliseconds: the least that Linux takes.
const longestTimeout = 1000

// enough is for how long TCP says it again, in milliseconds. Left alone it gives up after
// 15 times, which is now 15 s. Who is silent is given up by the session, and sooner.
const enough = 120_000

// Tune prepares a connection for a path that is overloaded on purpose: most of what it
// says is lost there, and a time-out that doubles each time is soon longer than the load.
// An older kernel that knows only the first (six equal time-outs), or none, goes on as it
// was.
func Tune(c *net.TCPConn) {
	withSocket(c, func(fd int) {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_THIN_LINEAR_TIMEOUTS, 1)    // Linux 2.6.34
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, enough)       // 2.6.37
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_RTO_MAX_MS, longestTimeout) // Linux 6.15
	})
}

// segments is how many segments have come on a connection, those that the peer had to say
// again included, of which no octet is read; 0 if that cannot be told.
func segments(c net.Conn) (n uint32) {
	withSocket(c, func(fd int) {
		if i, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			n = i.Segs_in
		}
	})
	return n
}

// withSocket runs f with the socket of a connection that has one.
func withSocket(c net.Conn, f func(fd int)) {
	if wrapped, ok := c.(interface{ NetConn() net.Conn }); ok { // TLS
		c = wrapped.NetConn()
	}
	s, ok := c.(syscall.Conn)
	if !ok {
		return
	}
	if raw, err := s.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { f(int(fd)) }) // closed meanwhile: nothing to do
	}
}
