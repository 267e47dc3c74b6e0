package abuse

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"oneway.example/tests/await"
)

// reload requests a reload from an address.
func (s *agentSite) reload(from string) error {
	ctx, cancel := context.WithTimeout(s.t.Context(), await.Timeout)
	defer cancel()
	transport := &http.Transport{DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).DialContext, DisableKeepAlives: true}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.at+"/-/reload", nil)
	if err != nil {
		return err
	}
	reply, err := transport.RoundTrip(r)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	if err == nil && reply.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %.200s", reply.Status, body)
	}
	return err
}

// configure replaces the configuration file atomically.
func (s *agentSite) configure(configuration string) {
	s.t.Helper()
	if err := os.WriteFile(s.config+".new", []byte(configuration), 0o600); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Rename(s.config+".new", s.config); err != nil {
		s.t.Fatal(err)
	}
}

// series returns the value of the series of a name whose labels contain part; -1: there is none.
func series(t *testing.T, body, name, part string) float64 {
	t.Helper()
	for line := range strings.Lines(body) {
		if labels, _, ok := strings.Cut(line, "} "); ok && strings.HasPrefix(line, name+"{") && strings.Contains(labels, part) {
			return value(t, line, labels+"}")
		}
	}
	return -1
}

// manyReloads requests reloads from many addresses and by signals while the agent measures and the configuration
// changes.
func manyReloads(t *testing.T, binary string) {
	u, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := u.LocalAddr().String()
	u.Close()
	configuration := func(last string) string {
		return fmt.Sprintf("reflector: {listen: [%q]}\n", at) + manyPaths(250, "") +
			fmt.Sprintf("  - {name: self, peer: %q, probes: [{type: stamp, interval: 20ms}]}\n", at) +
			fmt.Sprintf("  - {name: %s, peer: \"127.0.0.1:9\", probes: [{type: stamp, interval: 10s}]}\n", last)
	}
	s := startAgent(t, binary, configuration("first"))
	const self = `direction="forward",path="self"`
	received := func(body string) float64 { return series(t, body, "oneway_packets_received_total", self) }
	s.eventually("the agent measures", func() bool { return received(s.served(elsewhere)) > 0 })
	before := s.served(elsewhere)
	begin := time.Now()
	const each, sources = 25, 8
	var asking sync.WaitGroup
	for n := range each * sources {
		asking.Go(func() {
			if err := s.reload(fmt.Sprintf("127.0.1.%d", n%sources+1)); err != nil {
				t.Errorf("reload: %v", err)
			}
		})
		if n%20 == 0 {
			if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
				t.Fatal(err)
			}
		}
		if n == each*sources/2 {
			s.configure(configuration("second"))
		}
	}
	s.configure(configuration("last"))
	if err := s.reload(here); err != nil { // others are running and wait
		t.Errorf("the last reload: %v", err)
	}
	if body := s.served(elsewhere); !strings.Contains(body, `path="last"`) || strings.Contains(body, `path="second"`) {
		t.Error("the configuration is not in force after its reload")
	}
	asking.Wait()
	took := time.Since(begin)
	s.eventually("the agent continues to measure", func() bool { return received(s.served(elsewhere)) > received(before) })
	after := s.served(elsewhere)
	if lost := series(t, after, "oneway_packets_lost_total", self); lost != 0 {
		t.Errorf("%v packets of the path to the agent itself were lost, want 0", lost)
	}
	cpu := value(t, after, "process_cpu_seconds_total") - value(t, before, "process_cpu_seconds_total")
	reloads := len(s.lines(`msg="Configuration reloaded"`))
	t.Logf("%d reloads in %v, %.2f s of CPU time", reloads, took.Round(time.Millisecond), cpu)
	if most := 3 + int(took/time.Second); reloads > most {
		t.Errorf("requested %d reloads in %v, executed %d, want at most %d", each*sources, took, reloads, most)
	}
}
