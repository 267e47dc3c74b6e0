package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"oneway.example/exporter/core/sample"
	"oneway.example/tests/await"
	"oneway.example/tests/precision"
)

func TestTCPFillsTheLink(t *testing.T) {
	bothFamilies(t, func(t *testing.T, v6 bool) {
		profile, err := LoadProfile("wibro")
		if err != nil {
			t.Fatal(err)
		}
		l := Start(t, Options{Profile: profile})
		address := l.Server.Addr4
		if v6 {
			address = l.Server.Addr6
		}
		const size = 500_000
		got := make(chan int64, 1)
		at := listen(t, l.Server, netip.AddrPortFrom(address, 0), func(c net.Conn) {
			n, _ := io.Copy(io.Discard, c)
			got <- n
		})
		c, err := l.Client.DialContext(t.Context(), "tcp", at.String())
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		if _, err := c.Write(make([]byte, size)); err != nil {
			t.Fatal(err)
		}
		c.Close()
		n := <-got
		rate := float64(n*8) / time.Since(begin).Seconds()
		t.Logf("%d bytes at %.0f bit/s", n, rate)
		if n != size {
			t.Errorf("%d bytes came, want %d", n, size)
		}
		if rate > 2_500_000 {
			t.Errorf("%.0f bit/s over a link of 2.5 Mbit", rate)
		}
		if rate < 1_900_000 {
			precision.Missed(t, fmt.Errorf("%.0f bit/s over a link of 2.5 Mbit", rate))
		}
		if _, others := l.Counts(sample.Forward); others.Entered == 0 {
			t.Error("TCP did not take the link")
		}
	})
}

// listen accepts on a host until the test ends.
func listen(t *testing.T, h *Host, at netip.AddrPort, serve func(net.Conn)) netip.AddrPort {
	t.Helper()
	var listener net.Listener
	err := h.Do(func() (err error) {
		listener, err = net.Listen("tcp", at.String())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				serve(c)
			}()
		}
	}()
	return listener.Addr().(*net.TCPAddr).AddrPort()
}

func TestLANIsUnimpaired(t *testing.T) {
	dead := Link{Loss: 1}
	l := Start(t, Options{Profile: Profile{Name: "dead", Forward: dead, Reverse: dead}})
	for _, address := range []netip.Addr{l.Server.LAN4, l.Server.LAN6} {
		at := listen(t, l.Server, netip.AddrPortFrom(address, 0), func(c net.Conn) { io.Copy(c, c) })
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		c, err := l.Client.DialContext(ctx, "tcp", at.String())
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	for _, d := range sample.Directions() {
		if counted, others := l.Counts(d); counted.Entered+others.Entered != 0 {
			t.Errorf("%s: the LAN's packets took the link: %+v %+v", d, counted, others)
		}
	}
}

func TestIdleNetworkIsSilent(t *testing.T) {
	l := Start(t, Options{})
	time.Sleep(1500 * time.Millisecond) // router solicitations and DAD come within a second
	for _, d := range sample.Directions() {
		if counted, others := l.Counts(d); counted.Entered+others.Entered != 0 {
			t.Errorf("%s: packets that nobody sent: %+v %+v", d, counted, others)
		}
	}
}

func TestCommandsAndDoAreInsideTheSameNamespace(t *testing.T) {
	l := Start(t, Options{})
	seen := map[string]string{}
	for _, h := range []*Host{l.Client, l.Server} {
		out, err := h.Command("readlink", "/proc/self/ns/net").CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		var inside string
		err = h.Do(func() (err error) {
			inside, err = os.Readlink(threadNamespace())
			return err
		})
		if got := strings.TrimSpace(string(out)); err != nil || got != inside {
			t.Errorf("%s: command in %s, Do in %s, %v", h.Name, got, inside, err)
		}
		seen[inside] = h.Name
	}
	own, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	seen[own] = "outside"
	if len(seen) != 3 {
		t.Errorf("client, server and outside share a namespace: %v", seen)
	}
}

func TestDoReportsGoexit(t *testing.T) {
	l := Start(t, Options{})
	if err := l.Client.Do(func() error { runtime.Goexit(); return nil }); !errors.Is(err, errExited) {
		t.Errorf("got %v, want %v", err, errExited)
	}
}

func TestPublishedServerIsReachableFromOutside(t *testing.T) {
	l := Start(t, Options{})
	var listener net.Listener
	err := l.Server.Do(func() (err error) {
		listener, err = net.Listen("tcp", "127.0.0.1:9862")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "inside") })}
	go server.Serve(listener)
	defer server.Close()
	at, stop, err := l.Server.Publish("127.0.0.1:0", "127.0.0.1:9862")
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get("http://" + at.String())
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, _ := io.ReadAll(response.Body); string(body) != "inside" {
		t.Errorf("got %q", body)
	}
}

// footprint is the kernel state that a lab could leave.
type footprint struct {
	interfaces, goroutines, namespaces, descriptors, procs int
}

// more reports whether f has more of anything; earlier tests may still have been
// closing their connections when before was taken.
func (f footprint) more(before footprint) bool {
	return f.interfaces > before.interfaces || f.goroutines > before.goroutines || f.namespaces > before.namespaces ||
		f.descriptors > before.descriptors || f.procs != before.procs
}

func measure(t *testing.T) footprint {
	t.Helper()
	links, err := netlink.LinkList()
	if err != nil {
		t.Fatal(err)
	}
	spaces := map[string]bool{}
	tasks, _ := filepath.Glob("/proc/self/task/*/ns/net")
	descriptors, _ := filepath.Glob("/proc/self/fd/*")
	for _, path := range append(tasks, descriptors...) {
		if target, err := os.Readlink(path); err == nil && strings.HasPrefix(target, "net:") {
			spaces[target] = true
		}
	}
	return footprint{len(links), runtime.NumGoroutine(), len(spaces), len(descriptors), runtime.GOMAXPROCS(0)}
}

func TestCloseLeavesNothingBehind(t *testing.T) {
	Require(t)
	before := measure(t)
	for range 2 {
		l, err := New(Options{Profile: Profile{Name: "gone", Forward: Link{Delay: time.Second}}})
		if err != nil {
			t.Fatal(err)
		}
		s := newStation(t, l.Client, l.Server, false)
		s.send(0, 60) // is inside when the lab ends
		s.close()
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if err := l.Close(); err != nil {
			t.Errorf("second Close: %v", err)
		}
	}
	var after footprint
	// The links' threads end after their goroutines: give the kernel its time.
	if !await.Within(await.Timeout, func() bool { after = measure(t); return !after.more(before) }) {
		t.Errorf("before %+v, after %+v", before, after)
	}
}

func TestFailedStartLeavesNothingBehind(t *testing.T) {
	Require(t)
	before := measure(t)
	var l Lab
	if err := l.build(&Options{}); err != nil {
		t.Fatal(err)
	}
	if err := l.remove(); err != nil { // as New does after an error
		t.Error(err)
	}
	if after := measure(t); after.more(before) {
		t.Errorf("before %+v, after %+v", before, after)
	}
}

func TestOptionsAreCheckedLikeFiles(t *testing.T) {
	_, err := New(Options{Profile: Profile{Name: "bad", Reverse: Link{Loss: 2}}})
	const want = `lab: profile "bad": reverse.loss: 2 is no probability, want 0% to 100%`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
