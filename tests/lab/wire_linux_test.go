package lab

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/tests/await"
)

func TestAWireDelaysFramesAndTakesAnotherProfile(t *testing.T) {
	Require(t)
	l := &Lab{}
	t.Cleanup(func() {
		if err := l.remove(); err != nil {
			t.Error(err)
		}
	})
	if err := l.buildHosts(); err != nil {
		t.Fatal(err)
	}
	for i := range l.wan {
		for _, err := range []error{l.wan[i].plainFrames(), l.inner[i].plainFrames(), l.wan[i].up(l.wan[1-i]), l.inner[i].up(end{})} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	var w *Wire
	err := l.router.do(func() (err error) {
		w, err = NewWire(l.inner[0].name, l.inner[1].name, Options{Profile: Profile{Forward: Link{Delay: 20 * time.Millisecond}}})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, delay := range []time.Duration{20 * time.Millisecond, 120 * time.Millisecond} {
		if err := w.SetProfile(Profile{Forward: Link{Delay: delay}}); err != nil {
			t.Fatal(err)
		}
		if took := l.oneWay(t); took < delay {
			t.Errorf("a packet took %v, want at least %v", took, delay)
		}
	}
	if err := w.SetProfile(Profile{Forward: Link{Loss: 3}}); err == nil {
		t.Error("no error for a loss of 3")
	}
	if counts, _ := w.Counts(sample.Forward); counts.Delivered < 2 || counts.Inside() != 0 {
		t.Errorf("counts %+v, want 2 delivered and none inside", counts)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// oneWay is the time from a packet's sending by the client until the server has read it.
func (l *Lab) oneWay(t *testing.T) time.Duration {
	t.Helper()
	var from, to *net.UDPConn
	open := func(host *Host, c **net.UDPConn, local, remote netip.Addr) {
		err := host.Do(func() (err error) {
			*c, err = net.DialUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(local, 7000)), net.UDPAddrFromAddrPort(netip.AddrPortFrom(remote, 7000)))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	open(l.Client, &from, l.Client.Addr4, l.Server.Addr4)
	defer from.Close()
	open(l.Server, &to, l.Server.Addr4, l.Client.Addr4)
	defer to.Close()
	// Frames that were sent before both ends had their carrier have vanished.
	var took time.Duration
	await.That(t, "a packet arrives", func() bool {
		began := time.Now()
		if _, err := from.Write([]byte("packet")); err != nil {
			return false
		}
		_ = to.SetReadDeadline(began.Add(time.Second))
		_, err := to.Read(make([]byte, 10))
		took = time.Since(began)
		return err == nil
	})
	return took
}
