package middlebox

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"oneway.example/exporter/core/sample"
	"oneway.example/tests/lab"
)

func TestMain(m *testing.M) { os.Exit(lab.Main(m.Run)) }

func tenMilliseconds() lab.Options {
	link := lab.Link{Rate: 20e6, Delay: 10 * time.Millisecond, Queue: 60_000}
	return lab.Options{Profile: lab.Profile{Name: "ten milliseconds", Forward: link, Reverse: link}, Seed: 1}
}

// Payload and its echo pass each box, in order, over TCP and over UDP; a proxy splits the connection, and no other box does.
func TestEachBoxPassesTCPAndUDP(t *testing.T) {
	none := func(lab.TB, *Path) *atomic.Int64 { return nil }
	split := func(x Proxy) func(lab.TB, *Path) *atomic.Int64 {
		return func(t lab.TB, p *Path) *atomic.Int64 { return p.Split(t, x) }
	}
	kept := func(x Proxy) Proxy {
		x.KeepSource = true
		return x
	}
	does := func(f func(*Path, lab.TB)) func(lab.TB, *Path) *atomic.Int64 {
		return func(t lab.TB, p *Path) *atomic.Int64 {
			f(p, t)
			return nil
		}
	}
	for _, c := range []struct {
		name string
		at   Place
		box  func(lab.TB, *Path) *atomic.Int64
		// from is the client's address at the server.
		from string
	}{
		{"no box", None, none, "10.79.0.1"},
		{"router", Near, none, "10.79.0.1"},
		{"router between links", Middle, none, "10.79.0.1"},
		{"NAT", Near, does((*Path).Masquerade), "10.77.0.1"},
		{"MSS", Far, does(func(p *Path, t lab.TB) { p.ClampMSS(t, 1200) }), "10.79.0.1"},
		{"SYN proxy", Far, does(func(p *Path, t lab.TB) { p.ProxySYN(t, 7) }), "10.79.0.1"},
		{"separate routes", None, does(func(p *Path, t lab.TB) { p.SeparateTCP(t, tenMilliseconds()) }), "10.79.0.1"},
		{"proxy near the client", Near, split(Large()), "10.77.0.1"},
		{"proxy near the server", Far, split(Small()), "10.78.0.1"},
		{"proxy with the client's address", Middle, split(kept(Large())), "10.79.0.1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := New(t, c.at, tenMilliseconds())
			n := c.box(t, p)
			p.serve(t, c.from)
			for _, network := range []string{"tcp4", "udp4"} {
				if took := p.echo(t, network); took < 20*time.Millisecond {
					t.Errorf("%s: the echo arrived after %v, the links alone take 20ms", network, took)
				}
			}
			if n != nil && n.Load() != 1 {
				t.Errorf("%d connections were split, want 1", n.Load())
			}
			if n == nil && p.Links[0].Err() != nil {
				t.Error(p.Links[0].Err())
			}
		})
	}
}

const echoPort = 7777

// serve echoes at the server until the test ends, and checks whose address the client has there.
func (p *Path) serve(t *testing.T, from string) {
	t.Helper()
	var l net.Listener
	var u *net.UDPConn
	at := netip.AddrPortFrom(Server, echoPort)
	must(t, p.Server.Do(func() (err error) {
		if l, err = net.Listen("tcp4", at.String()); err == nil {
			u, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(at))
		}
		return err
	}))
	t.Cleanup(func() { _, _ = l.Close(), u.Close() })
	check := func(a net.Addr) {
		if got := netip.MustParseAddrPort(a.String()).Addr().String(); got != from {
			t.Errorf("the client is %v at the server, want %s", a, from)
		}
	}
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		check(c.RemoteAddr())
		_, _ = io.Copy(c, c)
	}()
	go func() {
		b := make([]byte, 1500)
		for {
			n, a, err := u.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = u.WriteTo(b[:n], a)
		}
	}()
}

// dial connects the client to the server.
func (p *Path) dial(t *testing.T, network string) (c net.Conn) {
	t.Helper()
	must(t, p.Client.Do(func() (err error) {
		c, err = net.DialTimeout(network, fmt.Sprintf("%s:%d", Server, echoPort), 20*time.Second)
		return err
	}))
	return c
}

// echo sends from the client, and returns the time until all has come back.
func (p *Path) echo(t *testing.T, network string) time.Duration {
	t.Helper()
	c := p.dial(t, network)
	defer c.Close()
	begin, sent, got := time.Now(), make([]byte, 1000), make([]byte, 1000)
	for i := range sent {
		sent[i] = byte(i * 7)
	}
	_ = c.SetDeadline(begin.Add(20 * time.Second)) // it only detects a hang
	_, err := c.Write(sent)
	if err == nil {
		_, err = io.ReadFull(c, got)
	}
	if err != nil || string(got) != string(sent) {
		t.Fatalf("%s: the echo of %d bytes: %v", network, len(sent), err)
	}
	return time.Since(begin)
}

// The SYN proxy has answered the SYN, and the box has lowered the MSS: the paths are what they are said to be.
func TestBoxesDoWhatTheyAreFor(t *testing.T) {
	t.Run("SYN proxy", func(t *testing.T) {
		p := New(t, Far, tenMilliseconds())
		p.ProxySYN(t, 7)
		p.serve(t, "10.79.0.1")
		p.echo(t, "tcp4")
		out, err := p.Box.Command("cat", "/proc/net/stat/synproxy").Output()
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(string(out)), "\n") // a head, and a line for each processor
		syns := uint64(0)
		for _, line := range lines[1:] {
			n, err := strconv.ParseUint(strings.Fields(line)[1], 16, 64) // syn_received
			if err != nil {
				t.Fatal(err)
			}
			syns += n
		}
		if syns != 1 {
			t.Errorf("it has answered %d SYNs, want 1:\n%s", syns, out)
		}
	})
	t.Run("MSS", func(t *testing.T) {
		p := New(t, Far, tenMilliseconds())
		p.ClampMSS(t, 1200)
		p.serve(t, "10.79.0.1")
		c := p.dial(t, "tcp4").(*net.TCPConn)
		defer c.Close()
		raw, err := c.SyscallConn()
		must(t, err, raw.Control(func(fd uintptr) {
			got, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG)
			if err != nil || got != 1200-12 { // the option with timestamps
				t.Errorf("MSS %d, %v", got, err)
			}
		}))
	})
}

// UDP passes one link, and TCP the other.
func TestSeparateRoutesAreThoseOfUDPAndTCP(t *testing.T) {
	p := New(t, None, tenMilliseconds())
	p.SeparateTCP(t, tenMilliseconds())
	p.serve(t, "10.79.0.1")
	p.echo(t, "tcp4")
	p.echo(t, "udp4")
	for i, want := range []uint64{1, 0} {
		udp, others := p.Links[i].Counts(sample.Forward)
		if udp.Entered != want || others.Entered > 0 != (want == 0) {
			t.Errorf("link %d: %d packets of UDP, %d others", i, udp.Entered, others.Entered)
		}
	}
}
