package tcpsocket

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"oneway.example/exporter/core/tcpstamp"
	"oneway.example/tests/namespace"
)

// handshakes are those that both ends tell.
func handshakes(t *testing.T, from, to *Conn) (near, far tcpstamp.Handshake) {
	t.Helper()
	near, err := from.Handshake()
	far, err2 := to.Handshake()
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v, %+v", near, far)
	return near, far
}

// apart is how far apart both TSvals of a SYN are.
func apart(near, far tcpstamp.Handshake) int64 {
	d := int64(int32(near.TSval - far.TSval))
	return max(d, -d)
}

func TestBothEndsTellTheSameHandshake(t *testing.T) {
	for _, address := range []string{"127.0.0.1", "::1"} {
		for _, o := range []Options{{}, {MSS: 700, ReceiveBuffer: 20 << 10}} {
			from, to := pair(t, address, o, Options{})
			near, far := handshakes(t, from, to)
			if !far.SYN || near.SYN || near.TSvalError < 2 || apart(near, far) > int64(near.TSvalError) || near.TSvalError > 10_000 {
				t.Errorf("timestamps %d +- %d and %d", near.TSval, near.TSvalError, far.TSval)
			}
			if near.OwnScale != far.PeerScale || near.PeerScale != far.OwnScale || near.MSS != far.MSS || near.TTL != far.TTL || !near.Timestamps || !far.SACK {
				t.Errorf("%+v\n%+v", near, far)
			}
			again, err := to.Handshake()
			if err != nil || again.SYN || again.PeerScale != far.PeerScale {
				t.Errorf("a second time: %+v, %v", again, err)
			}
		}
	}
}

// A router and a NAT keep the timestamp and the window scale of a SYN, also one that clamps the MSS. After a lost SYN it
// is not known which of both arrived, which the error says.
func TestTimestampOfTheSYNPassesRoutersAndNAT(t *testing.T) {
	if _, err := exec.LookPath("nft"); err != nil {
		t.Skipf("SKIPPED, NOT PASSED: nft is missing: %v (package nftables)", err)
	}
	const forward = "add table ip x; add chain ip x f { type filter hook forward priority 0; }; add rule ip x f tcp flags syn "
	for _, c := range []struct {
		name, rule string
		features   int
		mss        int32
		least      uint32
	}{
		{"router", "", 0, 1460, 2},
		{"microseconds", "", 1 << 4, 1460, 4}, // RTAX_FEATURE_TCP_USEC_TS
		{"NAT", "add table ip x; add chain ip x p { type nat hook postrouting priority 100; }; add rule ip x p oifname right masquerade", 0, 1460, 2},
		{"clamped", forward + "tcp option maxseg size set 1200", 0, 1200, 2},
		{"lost", forward + "ip daddr 10.77.2.2 numgen inc mod 100 == 0 drop", 0, 1460, 500},
	} {
		t.Run(c.name, func(t *testing.T) {
			local, router, remote := route(t, 20e6/8)
			if c.rule != "" {
				namespace.Do(t, router, func() {
					if out, err := exec.Command("nft", c.rule).CombinedOutput(); err != nil {
						t.Fatalf("nft: %v: %s", err, out)
					}
				})
			}
			namespace.Do(t, local, func() {
				namespace.Check(t, netlink.RouteReplace(&netlink.Route{Gw: net.ParseIP("10.77.1.2"), Features: c.features}))
			})
			from, to := across(t, local, remote, "10.77.2.2:0", Options{})
			time.Sleep(100 * time.Millisecond) // no event: a timestamp of the SYN that is not computed back would be wrong by this time
			near, far := handshakes(t, from, to)
			if far.TTL != near.TTL-1 || near.MSS != 1460 || far.MSS != c.mss || near.OwnScale != far.PeerScale {
				t.Errorf("%+v\n%+v", near, far)
			}
			if !far.SYN || apart(near, far) > int64(near.TSvalError) || near.TSvalError < c.least {
				t.Errorf("timestamps %d +- %d and %d", near.TSval, near.TSvalError, far.TSval)
			}
		})
	}
}

// across connects two namespaces.
func across(t *testing.T, local, remote netns.NsHandle, address string, o Options) (from, to *Conn) {
	t.Helper()
	config := Options{}.ListenConfig()
	namespace.Do(t, remote, func() {
		l, err := config.Listen(t.Context(), "tcp", address)
		namespace.Check(t, err)
		defer l.Close()
		namespace.Do(t, local, func() {
			from, _, err = o.Dial(t.Context(), netip.Addr{}, netip.MustParseAddrPort(l.Addr().String()))
			namespace.Check(t, err)
		})
		nc, err := l.Accept()
		namespace.Check(t, err)
		to, err = Options{}.Accepted(nc.(*net.TCPConn))
		namespace.Check(t, err)
	})
	t.Cleanup(func() { _, _ = from.Close(), to.Close() })
	return from, to
}

func TestConnectionWithoutOptionsHasNone(t *testing.T) {
	p := namespace.NewPair(t)
	namespace.Do(t, p.Local, func() {
		for _, name := range []string{"timestamps", "sack", "window_scaling"} {
			namespace.Check(t, os.WriteFile("/proc/sys/net/ipv4/tcp_"+name, []byte("0"), 0))
		}
	})
	from, to := across(t, p.Local, p.Remote, "10.77.0.2:0", Options{})
	near, far := handshakes(t, from, to)
	for _, h := range []tcpstamp.Handshake{near, far} {
		if h.Timestamps || h.SACK || h.PeerScale != -1 || h.OwnScale != -1 || h.TSval != 0 || h.MSS != 1460 || h.TTL != 64 {
			t.Errorf("%+v", h)
		}
	}
}

func TestTSvalIsComputedBack(t *testing.T) {
	for _, c := range []struct {
		unit, least, most time.Duration
		want, wrong       uint32
	}{
		{time.Millisecond, 90 * time.Millisecond, 110 * time.Millisecond, 0xffffffff - 49, 13},
		{time.Microsecond, 40 * time.Microsecond, 60 * time.Microsecond, 0, 13},
		{time.Millisecond, 60 * time.Millisecond, 40 * time.Millisecond, 0, 13},
	} {
		if got, wrong := sentTSval(50, c.unit, c.least, c.most); got != c.want || wrong != c.wrong {
			t.Errorf("%+v: %d +- %d", c, got, wrong)
		}
	}
}

// header is a SYN with a TTL or hop limit of 57 and these options.
func header(ipv6 bool, options ...byte) []byte {
	b := make([]byte, 20, 120)
	b[0], b[8], b[9] = 0x45, 57, unix.IPPROTO_TCP
	if ipv6 {
		b = b[:40]
		clear(b)
		b[0], b[6], b[7] = 0x60, unix.IPPROTO_HOPOPTS, 57
		b = append(b, unix.IPPROTO_TCP, 0, 1, 4, 0, 0, 0, 0)
	}
	for len(options)%4 != 0 {
		options = append(options, 0)
	}
	tcp := make([]byte, 20)
	tcp[12], tcp[13] = byte(20+len(options))/4<<4, 2
	return append(append(b, tcp...), options...)
}

func TestSYNIsParsedStrictly(t *testing.T) {
	all := []byte{2, 4, 0x05, 0xb4, 4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0, 1, 3, 3, 7, 254, 2}
	want := syn{ttl: 57, mss: 1460, scale: 7, tsval: 0x01020304}
	for _, ipv6 := range []bool{false, true} {
		b := header(ipv6, all...)
		if got, ok := parseSYN(b); !ok || got != want {
			t.Errorf("%+v, %v", got, ok)
		}
		for n := range b {
			if got, ok := parseSYN(b[:n]); ok {
				t.Errorf("%d of %d bytes: %+v", n, len(b), got)
			}
		}
		if got, ok := parseSYN(header(ipv6)); !ok || got != (syn{ttl: 57, scale: -1}) {
			t.Errorf("without options: %+v, %v", got, ok)
		}
		if got, ok := parseSYN(header(ipv6, 3, 3, 200)); !ok || got.scale != 14 {
			t.Errorf("%+v, %v", got, ok)
		}
		for _, bad := range [][]byte{{2, 3, 5, 0}, {3, 4, 1, 1}, {8, 4, 0, 0}, {4, 3, 0, 0}, {254, 1, 0, 0}, {254, 9, 0, 0}, {1, 1, 1, 2}} {
			if got, ok := parseSYN(header(ipv6, bad...)); ok {
				t.Errorf("options %v: %+v", bad, got)
			}
		}
	}
	for at, v := range map[int]byte{0: 0x55, 9: unix.IPPROTO_UDP, 33: 18} { // another version, protocol, a SYN-ACK
		b := header(false)
		b[at] = v
		if got, ok := parseSYN(b); ok {
			t.Errorf("byte %d is %d: %+v", at, v, got)
		}
	}
}

func FuzzSYN(f *testing.F) {
	f.Add(header(false, 2, 4, 5, 180, 3, 3, 7))
	f.Add(header(true, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, ok := parseSYN(b)
		if ok && (len(b) < 40 || s.scale < -1 || s.scale > 14 || s.mss < 0 || s.mss > 65535) {
			t.Errorf("%+v from %x", s, b)
		}
	})
}
