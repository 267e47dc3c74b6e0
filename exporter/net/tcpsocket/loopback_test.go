package tcpsocket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"oneway.example/tests/await"
)

// pair connects two sockets with options over an address.
func pair(t testing.TB, address string, dialing, listening Options) (from, to *Conn) {
	t.Helper()
	config := listening.ListenConfig()
	l, err := config.Listen(t.Context(), "tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	from, took, err := dialing.Dial(t.Context(), netip.Addr{}, l.Addr().(*net.TCPAddr).AddrPort())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = from.Close() })
	if took <= 0 || took > 20*time.Second {
		t.Errorf("the handshake took %v", took)
	}
	nc, err := l.Accept()
	if err == nil {
		to, err = listening.Accepted(nc.(*net.TCPConn))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = to.Close() })
	return from, to
}

func info(t *testing.T, c *Conn) Info {
	t.Helper()
	i, err := c.Info()
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// sysctl is the first number of a file below /proc/sys/net.
func sysctl(t *testing.T, name string) int {
	t.Helper()
	text, err := os.ReadFile("/proc/sys/net/" + name)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.Fields(string(text))[0])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestBuffersAreDoubledAndClippedAsTheKernelDoes(t *testing.T) {
	wmem, rmem := sysctl(t, "core/wmem_max"), sysctl(t, "core/rmem_max")
	for _, c := range []struct {
		o             Options
		send, receive Buffer
	}{
		{Options{SendBuffer: 64 << 10, ReceiveBuffer: 17 << 10}, Buffer{64 << 10, 128 << 10, false}, Buffer{17 << 10, 34 << 10, false}},
		{Options{SendBuffer: wmem, ReceiveBuffer: rmem}, Buffer{wmem, 2 * wmem, false}, Buffer{rmem, 2 * rmem, false}},
		{Options{SendBuffer: wmem + 4096, ReceiveBuffer: 4 * rmem}, Buffer{wmem + 4096, 2 * wmem, true}, Buffer{4 * rmem, 2 * rmem, true}},
	} {
		for _, swap := range []bool{false, true} { // the options at the connecting end, and at the accepting one
			dialing, listening := c.o, Options{}
			if swap {
				dialing, listening = listening, dialing
			}
			from, to := pair(t, "127.0.0.1", dialing, listening)
			if swap {
				from, to = to, from
			}
			send, receive, err := from.Buffers(c.o)
			if err != nil || send != c.send || receive != c.receive {
				t.Errorf("%+v: %+v, %+v, %v", c.o, send, receive, err)
			}
			m, err := from.Memory()
			if err != nil || m.SendBuffer != c.send.Effective || m.ReceiveBuffer != c.receive.Effective {
				t.Errorf("%+v: memory %+v, %v", c.o, m, err)
			}
			if send, receive, err := to.Buffers(Options{}); err != nil || send.Asked != 0 || receive.Clipped || send.Effective == 0 {
				t.Errorf("auto-tuning: %+v, %+v, %v", send, receive, err)
			}
		}
	}
}

func TestOptionsReachTheSocket(t *testing.T) {
	for _, c := range []struct {
		address    string
		level, opt int
	}{{"127.0.0.1", unix.IPPROTO_IP, unix.IP_TOS}, {"::1", unix.IPPROTO_IPV6, unix.IPV6_TCLASS}} {
		o := Options{CongestionControl: "reno", MSS: 600, PacingRate: 1_000_000, NoDelay: true, DSCP: 46}
		from, to := pair(t, c.address, Options{}, o)
		for _, s := range []struct{ level, opt, want int }{
			{c.level, c.opt, 46 << 2}, {unix.IPPROTO_TCP, unix.TCP_NODELAY, 1}, {unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, 1_000_000},
		} {
			err := to.control(func(fd int) error {
				got, err := unix.GetsockoptInt(fd, s.level, s.opt)
				if err == nil && got != s.want {
					err = fmt.Errorf("option %d is %d, want %d", s.opt, got, s.want)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		}
		if name, err := to.CongestionControl(); err != nil || name != "reno" {
			t.Errorf("%s: congestion control %q, %v", c.address, name, err)
		}
		i := info(t, from)
		if want := int64(600 - 12); i.MSS != want { // the timestamps take 12
			t.Errorf("%s: the peer's MSS is %d, want %d", c.address, i.MSS, want)
		}
		if i.Negotiated&(Timestamps|SACK|WindowScale) == 0 || from.IPv6() != (c.address == "::1") {
			t.Errorf("%s: negotiated %b, IPv6 %v", c.address, i.Negotiated, from.IPv6())
		}
		if from, _ := pair(t, c.address, Options{}, Options{}); from.NoDelay(t) {
			t.Error("Nagle's algorithm is off without the option")
		}
	}
}

func (c *Conn) NoDelay(t *testing.T) (on bool) {
	t.Helper()
	err := c.control(func(fd int) error {
		v, err := unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY)
		on = v != 0
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return on
}

func TestMissingCongestionControlIsAnErrorWithTheList(t *testing.T) {
	o := Options{CongestionControl: "nonesuch"}
	_, _, err := o.Dial(t.Context(), netip.Addr{}, netip.MustParseAddrPort("127.0.0.1:1"))
	e, ok := errors.AsType[*CongestionControlError](err)
	if !ok || !slices.Contains(e.Available, "reno") || !slices.Contains(e.Allowed, "reno") || !strings.Contains(err.Error(), "nonesuch: the kernel has "+strings.Join(e.Available, ", ")) {
		t.Errorf("dial: %v", err)
	}
	config := o.ListenConfig()
	if _, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0"); !errors.As(err, &e) {
		t.Errorf("listen: %v", err)
	}
	if err := CheckCongestionControl(""); err != nil {
		t.Error(err)
	}
}

func TestOptionsOutOfRangeAreErrors(t *testing.T) {
	for _, o := range []Options{
		{SendBuffer: -1},
		{ReceiveBuffer: MaxBuffer + 1},
		{MSS: MinMSS - 1},
		{MSS: MaxMSS + 1},
		{PacingRate: -1},
		{DSCP: 64},
		{CongestionControl: "../x"},
		{CongestionControl: "a name"},
		{CongestionControl: strings.Repeat("x", 16)},
	} {
		if o.Check() == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
	if err := (Options{SendBuffer: MaxBuffer, MSS: MaxMSS, DSCP: 63, CongestionControl: "westwood"}).Check(); err != nil {
		t.Error(err)
	}
}

// What one end writes is what both kernels count, and both ways of reading return it.
func TestTotalsOfBothEndsAgreeWithTheBytesWritten(t *testing.T) {
	const bytes = 3 << 20
	for _, discard := range []bool{false, true} {
		from, to := pair(t, "127.0.0.1", Options{}, Options{})
		go func() {
			_, _ = from.Write(make([]byte, bytes)) // the counts below show an error
			_ = from.CloseWrite()
		}()
		read, buf := to.Read, make([]byte, 100_000)
		if discard {
			read = to.Discard
		}
		total := 0
		for {
			n, err := read(buf)
			total += n
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if total != bytes {
			t.Errorf("discard %v: read %d of %d", discard, total, bytes)
		}
		var out Info
		await.That(t, "all is acknowledged", func() bool { out = info(t, from); return out.Unacked == 0 })
		in := info(t, to)
		if out.Sent-out.Retransmitted != bytes || in.Received-1 != bytes || out.Acked < bytes || out.Acked > bytes+2 || out.Outstanding() != 0 || out.NotSent != 0 { // Received counts the FIN
			t.Errorf("discard %v: sent %d - %d, acked %d, received %d, outstanding %d", discard, out.Sent, out.Retransmitted, out.Acked, in.Received, out.Outstanding())
		}
		if out.RTT <= 0 || out.MinRTT <= 0 || out.MinRTT > out.RTT+4*out.RTTVar || out.Cwnd == 0 || out.Delivered == 0 || out.SegmentsOut < bytes/65536 {
			t.Errorf("discard %v: %+v", discard, out)
		}
	}
}

func TestDiscardDoesNotAllocate(t *testing.T) {
	from, to := pair(t, "127.0.0.1", Options{NoDelay: true}, Options{})
	out, buf := make([]byte, 100), make([]byte, 1000)
	if n := testing.AllocsPerRun(100, func() {
		_, _ = from.Write(out)
		if _, err := to.Discard(buf); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
	if err := to.SetReadDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := to.Discard(buf); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("after the deadline: %v", err)
	}
}

// A receiver that does not read fills both buffers: the state shows it.
func TestReceiverThatDoesNotReadShowsInTheSendersState(t *testing.T) {
	o := Options{SendBuffer: 64 << 10}
	from, to := pair(t, "127.0.0.1", o, Options{ReceiveBuffer: 32 << 10})
	if err := from.SetWriteDeadline(time.Now().Add(300 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	n, err := from.Write(make([]byte, 4<<20))
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("wrote %d, %v", n, err)
	}
	i := info(t, from)
	if i.RwndLimited <= 0 || i.RwndLimited > i.Busy || i.NotSent == 0 {
		t.Errorf("receive window %v of %v, not sent %d", i.RwndLimited, i.Busy, i.NotSent)
	}
	if m, err := to.Memory(); err != nil || m.Receive == 0 {
		t.Errorf("memory of the receiver: %+v, %v", m, err)
	}
	if err := from.SetWriteDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	to.Abort()
	await.That(t, "the reset ends the sender", func() bool {
		_, err := from.Write([]byte{0})
		return errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE)
	})
	if _, err := to.Info(); err == nil {
		t.Error("a closed connection has a state")
	}
}

func TestFieldsBeyondTheKernelsLengthAreNotKnown(t *testing.T) {
	full := raw{Snd_wnd: 5, Total_rto: 6, Rtt: 1500, Min_rtt: ^uint32(0), Bytes_sent: 9, Options: ECN}
	for _, c := range []struct {
		size         uintptr
		window, rtos bool
	}{
		{unsafe.Sizeof(full), true, true},
		{unsafe.Offsetof(full.Total_rto), true, false},
		{unsafe.Offsetof(full.Snd_wnd), false, false},
		{required, false, false},
	} {
		i, err := parse(&full, uint32(c.size))
		if err != nil || i.Known(SendWindow) != c.window || i.Known(RTOs) != c.rtos {
			t.Errorf("%d bytes: window %v, RTOs %v, %v", c.size, i.Known(SendWindow), i.Known(RTOs), err)
		}
		if i.RTT != 1500*time.Microsecond || i.MinRTT != 0 || i.Sent != 9 || i.Negotiated&ECN == 0 {
			t.Errorf("%d bytes: %+v", c.size, i)
		}
	}
	if _, err := parse(&full, uint32(required)-1); !errors.Is(err, errShort) {
		t.Errorf("a short structure: %v", err)
	}
}

func TestHeadersFollowFamilyAndTimestamps(t *testing.T) {
	i := Info{Negotiated: Timestamps, Sent: 1000, SegmentsOut: 10}
	if v4, v6 := i.SentIPBytes(false), i.SentIPBytes(true); v4 != 1000+520 || v6 != 1000+720 {
		t.Errorf("%d, %d", v4, v6)
	}
	if i.Negotiated = 0; i.HeaderBytes(false) != 40 {
		t.Error(i.HeaderBytes(false))
	}
}

func TestDialEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := (Options{}).Dial(ctx, netip.MustParseAddr("127.0.0.1"), netip.MustParseAddrPort("127.0.0.1:1")); err == nil {
		t.Error("no error")
	}
}

func TestMessageThatFindsNoRoomIsReportedAsWaiting(t *testing.T) {
	from, to := pair(t, "127.0.0.1", Options{SendBuffer: 8 << 10}, Options{ReceiveBuffer: 8 << 10})
	out, buf := make([]byte, 100), make([]byte, 1000)
	if n := testing.AllocsPerRun(100, func() {
		if n, waited, err := from.WriteMessage(out); n != 100 || waited || err != nil {
			t.Errorf("wrote %d, waited %v, %v", n, waited, err)
		}
		_, _ = to.Discard(buf)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
	if err := from.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	large := make([]byte, 1<<20)
	if n, waited, err := from.WriteMessage(large); n == 0 || n == len(large) || !waited || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("wrote %d, waited %v, %v", n, waited, err)
	}
	to.Abort()
	if _, _, err := from.WriteMessage(out); err == nil {
		t.Error("a connection that was reset takes a message")
	}
}

func TestRoundTripOfAConnection(t *testing.T) {
	from, _ := pair(t, "127.0.0.1", Options{}, Options{})
	if got := RTT(from.TCPConn); got <= 0 || got > time.Second {
		t.Errorf("%v over loopback", got)
	}
	here, there := net.Pipe()
	defer here.Close()
	defer there.Close()
	if got := RTT(here); got != 0 {
		t.Errorf("%v of a pipe", got)
	}
}
