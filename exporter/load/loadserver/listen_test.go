package loadserver

import (
	"crypto/tls"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/clocks/static"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/load/traffictypes"
	"oneway.example/exporter/probe/link"
	"oneway.example/tests/await"
)

func TestPortInUseHasARemedy(t *testing.T) {
	s := newSite(t, Options{}, "a")
	o := s.o
	o.Listen = []netip.AddrPort{s.r.Addrs()[0]}
	second, err := New(o, Env{Sink: metric.Discard{}, Clock: static.New(time.Millisecond, metric.Discard{}), Links: link.NewTable(nil), Traffic: traffictypes.All()})
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Run(t.Context()); err == nil || !strings.HasSuffix(err.Error(), "address already in use: another program, possibly another load server, uses this port; stop it or listen on another port") {
		t.Errorf("got %v", err)
	}
}

// TestAddressThatIsMissingTakesNoOtherDown: the load server accepts at the others, and there when the address is free.
func TestAddressThatIsMissingTakesNoOtherDown(t *testing.T) {
	taken, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).AddrPort()
	s := newSite(t, Options{Listen: []netip.AddrPort{netip.MustParseAddrPort("192.0.2.77:0"), port, netip.MustParseAddrPort("127.0.0.1:0")}}, "a")
	if now := s.r.Status(); len(now.Addrs) != 1 || len(now.NotListening) != 2 || now.NotListening[1].Address != port {
		t.Fatalf("listens on %v, not on %v", now.Addrs, now.NotListening)
	}
	taken.Close()
	await.That(t, "the load server listens on the address that is free now", func() bool { return len(s.r.Addrs()) == 2 })
	c, err := tls.Dial("tcp", port.String(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ignored := func() (sum uint64) {
		for _, n := range s.r.Status().Discarded {
			sum += n
		}
		return sum
	}
	before := ignored()
	u, err := net.Dial("udp4", port.String())
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	await.That(t, "its test port receives", func() bool {
		_, _ = u.Write([]byte("no packet of a session"))
		return ignored() > before
	})
}
