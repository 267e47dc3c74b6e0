package chrony

import (
	"context"
	"math"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/clock/clocktest"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/tests/await"
)

func TestInvalidAddressesAreErrorsWithTheExpectation(t *testing.T) {
	for s, want := range map[string]string{
		"/run/chrony/chronyd.sock": "want unix:///run/chrony/chronyd.sock or udp://127.0.0.1:323",
		"unix://chronyd.sock":      "want an absolute path",
		"udp://localhost:323":      "want an IP address and a port",
		"udp://127.0.0.1":          "want an IP address and a port",
		"tcp://127.0.0.1:323":      "want unix:///",
	} {
		if _, err := New(Options{Address: s}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", s, err, want)
		}
	}
	for _, s := range []string{"", "unix:///x", "udp://127.0.0.1:323", "udp://[::1]:323"} {
		if _, err := New(Options{Address: s}); err != nil {
			t.Errorf("%q: %v", s, err)
		}
	}
}

func TestChronydIsThisHostsByDefault(t *testing.T) {
	all, err := parseAddresses("")
	if err != nil || len(all) == 0 {
		t.Fatalf("%d addresses, %v", len(all), err)
	}
	for _, a := range all {
		if at, err := netip.ParseAddrPort(a.target); a.network != "unixgram" && (err != nil || !at.Addr().IsLoopback()) {
			t.Errorf("%v is not of this host", a)
		}
	}
}

func TestOptionsOutOfRangeAreRejected(t *testing.T) {
	for _, o := range []Options{
		{Interval: -1},
		{MaxClockError: -1},
		{MaxClockError: 2},
		{Interval: math.MaxInt64},
		{MaxClockError: math.NaN()},
		{MaxClockError: math.Inf(1)},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
}

// socketDir has a path short enough for a socket.
func socketDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "chrony")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func listenUnix(t *testing.T, path string) *net.UnixConn {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", unixAddr(path))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func TestClientSocketIsWritableByAllAndRemoved(t *testing.T) {
	dir := socketDir(t)
	server := filepath.Join(dir, "chronyd.sock")
	listenUnix(t, server)
	conn, err := address{"unixgram", server}.dial("")
	if err != nil {
		t.Fatal(err)
	}
	paths, _ := filepath.Glob(filepath.Join(dir, clientPrefix+"*"))
	if len(paths) != 1 {
		t.Fatalf("client sockets: %v", paths)
	}
	info, err := os.Stat(paths[0])
	if err != nil || info.Mode().Perm() != 0o666 {
		t.Errorf("mode %v (%v), want 0666", info.Mode(), err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	if paths, _ = filepath.Glob(filepath.Join(dir, clientPrefix+"*")); len(paths) != 0 {
		t.Errorf("left behind: %v", paths)
	}
}

func TestStaleClientSocketsAreRemovedAndLiveOnesKept(t *testing.T) {
	dir := socketDir(t)
	server := filepath.Join(dir, "chronyd.sock")
	listenUnix(t, server)
	stale := filepath.Join(dir, clientPrefix+"1.1")
	dead, err := net.ListenUnixgram("unixgram", unixAddr(stale))
	if err != nil {
		t.Fatal(err)
	}
	dead.Close() // the file stays, as after SIGKILL
	if _, err := os.Stat(stale); err != nil {
		t.Fatal(err)
	}
	first, err := address{"unixgram", server}.dial("")
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	second, err := address{"unixgram", server}.dial("")
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	paths, _ := filepath.Glob(filepath.Join(dir, clientPrefix+"*"))
	if len(paths) != 2 || slices.Contains(paths, stale) {
		t.Errorf("sockets %v, want the two in use", paths)
	}
}

func TestFailedDialLeavesNoFile(t *testing.T) {
	dir := socketDir(t)
	if _, err := (address{"unixgram", filepath.Join(dir, "nobody.sock")}).dial(""); err == nil {
		t.Fatal("connected to nobody")
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// Over real sockets, with a chronyd that floods.
func TestQualityDoesNotBlockWhileChronydFloods(t *testing.T) {
	server, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	c := clocktest.NewClock()
	fake := newDaemon(c)
	var flooding atomic.Bool
	go func() {
		request := make([]byte, 2048)
		for {
			n, client, err := server.ReadFromUDP(request)
			if err != nil {
				return
			}
			if !flooding.Load() {
				for _, reply := range fake.datagrams(request[:n]) {
					_, _ = server.WriteToUDP(reply, client)
				}
				continue
			}
			junk := make([]byte, 104)
			for range 1000 {
				_, _ = server.WriteToUDP(junk, client)
			}
		}
	}()
	sink := &metrictest.Sink{}
	m, err := New(Options{
		Address: "udp://" + server.LocalAddr().String(), Interval: 20 * time.Millisecond,
		maxBackOff: 40 * time.Millisecond, Sink: sink,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	if !await.Within(10*time.Second, state(m, clock.Synchronized)) {
		t.Fatalf("never synchronized: %+v", m.Quality(instant.Now()))
	}
	flooding.Store(true)
	flooded := func() bool {
		v, _ := sink.Value(metric.ClockQueryFailures, Name, string(flood))
		return v >= 3
	}
	if !await.Within(10*time.Second, flooded) {
		t.Errorf("failures: %v", sink.Present(metric.ClockQueryFailures.Name))
	}
	if q := m.Quality(instant.Now()); !q.Synchronized() {
		t.Errorf("the last reply is not used: %+v", q)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Run = %v", err)
	}
}
