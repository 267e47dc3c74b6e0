// Package tcpsocket sets the options of TCP sockets, reads the kernel's state of their connections, and takes
// its timestamps of bytes of their streams (Linux). It has no goroutine and no protocol.
package tcpsocket

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"net"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Options of a socket. Zero values leave the kernel's defaults, except NoDelay.
type Options struct {
	// SendBuffer and ReceiveBuffer are sizes in bytes as an application sets them with SO_SNDBUF and
	// SO_RCVBUF; the kernel doubles them for its own overhead (socket(7)) and clips them to
	// net.core.wmem_max and rmem_max. Zero: auto-tuning. At most 1 GiB.
	SendBuffer    int `json:"send_buffer_bytes,omitempty"`
	ReceiveBuffer int `json:"receive_buffer_bytes,omitempty"`
	// CongestionControl is the kernel's name of the algorithm of the sending end; empty: its default.
	CongestionControl string `json:"congestion_control,omitempty"`
	// MSS is the largest segment, in bytes of payload and TCP options (TCP_MAXSEG): 88 to 32767.
	MSS int `json:"mss_bytes,omitempty"`
	// PacingRate is the highest rate at which segments leave, in IP bytes a second
	// (SO_MAX_PACING_RATE).
	PacingRate int64 `json:"pacing_bytes_per_second,omitempty"`
	// NoDelay disables Nagle's algorithm (TCP_NODELAY).
	NoDelay bool `json:"no_delay,omitempty"`
	// DSCP of the packets, 0..63.
	DSCP int `json:"dscp,omitempty"`
}

// Limits of Options.
const (
	MaxBuffer = 1 << 30
	// MinMSS and MaxMSS are TCP_MIN_MSS and MAX_TCP_WINDOW of Linux.
	MinMSS = 88
	MaxMSS = 32767
)

var algorithm = regexp.MustCompile(`^[a-z0-9_-]{1,15}$`) // TCP_CA_NAME_MAX

// Check validates the ranges, not what the kernel has.
func (o Options) Check() error {
	for _, f := range []struct {
		name    string
		v       int64
		lo, top int64
	}{
		{"send buffer", int64(o.SendBuffer), 0, MaxBuffer},
		{"receive buffer", int64(o.ReceiveBuffer), 0, MaxBuffer},
		{"pacing rate", o.PacingRate, 0, 1 << 50},
		{"DSCP", int64(o.DSCP), 0, 63},
		{"MSS", int64(cmp.Or(o.MSS, MinMSS)), MinMSS, MaxMSS},
	} {
		if f.v < f.lo || f.v > f.top {
			return fmt.Errorf("tcpsocket: %s is %d, want %d to %d", f.name, f.v, f.lo, f.top)
		}
	}
	if o.CongestionControl != "" && !algorithm.MatchString(o.CongestionControl) {
		return fmt.Errorf("tcpsocket: congestion control is %.40q, want a name such as cubic", o.CongestionControl)
	}
	return nil
}

// CongestionControlError is an algorithm that a socket cannot use.
type CongestionControlError struct {
	Name string
	// Available are those that the kernel has loaded, Allowed those for processes without privileges.
	Available, Allowed []string
}

// Error has both lists.
func (e *CongestionControlError) Error() string {
	return fmt.Sprintf("congestion control %s: the kernel has %s and allows %s", e.Name, strings.Join(e.Available, ", "), strings.Join(e.Allowed, ", "))
}

// CheckCongestionControl returns a *CongestionControlError if the kernel has not loaded an algorithm; an
// empty name is the default. A name from a peer must be checked before it is set: setting it may load a
// kernel module.
func CheckCongestionControl(name string) error {
	if e := algorithms(name); name != "" && !slices.Contains(e.Available, name) {
		return e
	}
	return nil
}

func algorithms(name string) *CongestionControlError {
	of := func(list string) []string {
		text, _ := os.ReadFile("/proc/sys/net/ipv4/tcp_" + list + "_congestion_control") // without /proc: empty
		return strings.Fields(string(text))
	}
	return &CongestionControlError{Name: name, Available: of("available"), Allowed: of("allowed")}
}

// Control sets the options before a socket connects or listens; it is a net.Dialer's or
// net.ListenConfig's Control. A listening socket's connections inherit them.
func (o Options) Control(network, _ string, raw syscall.RawConn) error {
	var err error
	if e := raw.Control(func(fd uintptr) { err = o.set(int(fd), strings.HasSuffix(network, "6")) }); e != nil {
		return e
	}
	return err
}

func (o Options) set(fd int, ipv6 bool) error {
	if err := CheckCongestionControl(o.CongestionControl); err != nil {
		return err
	}
	level, class := unix.IPPROTO_IP, unix.IP_TOS
	if ipv6 {
		level, class = unix.IPPROTO_IPV6, unix.IPV6_TCLASS
	}
	for _, s := range []struct {
		what       string
		level, opt int
		value      int
	}{
		{"SO_SNDBUF", unix.SOL_SOCKET, unix.SO_SNDBUF, o.SendBuffer},
		{"SO_RCVBUF", unix.SOL_SOCKET, unix.SO_RCVBUF, o.ReceiveBuffer},
		{"TCP_MAXSEG", unix.IPPROTO_TCP, unix.TCP_MAXSEG, o.MSS},
		{"DSCP", level, class, o.DSCP << 2},
	} {
		if s.value == 0 {
			continue
		}
		if err := unix.SetsockoptInt(fd, s.level, s.opt, s.value); err != nil {
			return fmt.Errorf("tcpsocket: set %s to %d: %w", s.what, s.value, err)
		}
	}
	if o.PacingRate > 0 {
		if err := setPacing(fd, o.PacingRate); err != nil {
			return fmt.Errorf("tcpsocket: set SO_MAX_PACING_RATE to %d: %w", o.PacingRate, err)
		}
	}
	if o.CongestionControl == "" {
		return nil
	}
	switch err := unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, o.CongestionControl); {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.ENOENT):
		return algorithms(o.CongestionControl)
	case err != nil:
		return fmt.Errorf("tcpsocket: set congestion control %s: %w", o.CongestionControl, err)
	}
	return nil
}

// ListenConfig listens with the options, without Multipath TCP, whose sockets have other options. The kernel saves the SYN
// of each connection for Handshake.
func (o Options) ListenConfig() net.ListenConfig {
	l := net.ListenConfig{KeepAlive: -1, Control: func(network, address string, raw syscall.RawConn) error {
		if err := raw.Control(saveSYN); err != nil {
			return err
		}
		return o.Control(network, address, raw)
	}}
	l.SetMultipathTCP(false)
	return l
}

// Dial connects with the options; an invalid local address: the kernel chooses. took is the time of the
// handshake, with this host's.
func (o Options) Dial(ctx context.Context, local netip.Addr, to netip.AddrPort) (c *Conn, took time.Duration, err error) {
	var dialing time.Time
	d := net.Dialer{KeepAlive: -1, Control: func(network, address string, raw syscall.RawConn) error {
		err := o.Control(network, address, raw)
		dialing = time.Now() // connect(2) is next
		return err
	}}
	d.SetMultipathTCP(false)
	if local.IsValid() {
		d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(local, 0))
	}
	begin := time.Now()
	nc, err := d.DialContext(ctx, "tcp", to.String())
	took = time.Since(begin)
	if err != nil {
		return nil, took, fmt.Errorf("tcpsocket: %w", err)
	}
	c, err = wrap(nc.(*net.TCPConn))
	if err == nil {
		c.dialing, c.dialed = dialing, begin.Add(took)
		err = c.SetNoDelay(o.NoDelay)
	}
	if err != nil {
		_ = nc.Close() // err is returned
		return nil, took, fmt.Errorf("tcpsocket: %v: %w", to, err)
	}
	return c, took, nil
}

// Accepted sets the options of an accepted connection. ReceiveBuffer and MSS take full effect only if
// the listening socket had them too, as the handshake announces the window's scale and the MSS.
func (o Options) Accepted(nc *net.TCPConn) (*Conn, error) {
	c, err := wrap(nc)
	if err != nil {
		return nil, err
	}
	o.MSS = 0 // the handshake is over
	if err := o.Control(c.network(), "", c.raw); err != nil {
		return nil, err
	}
	return c, c.SetNoDelay(o.NoDelay)
}

// setPacing sets an unsigned long of the kernel (sk_setsockopt): one of 32 bits reads four bytes, of a 64-bit number in big
// endian those above 4 GiB. Its largest number is no limit.
func setPacing(fd int, rate int64) error {
	if bits.UintSize == 32 {
		return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, int(uint32(min(rate, math.MaxUint32))))
	}
	return unix.SetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, uint64(rate))
}
