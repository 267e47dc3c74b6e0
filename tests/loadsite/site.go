// Package loadsite is a link with a load server at its server end, on which clients and agents run load tests as real processes: for the
// tests of their results (tests/loadtest) and of their faults (tests/faults).
package loadsite

import (
	"context"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/net/wire/loadfmt"
	"oneway.example/tests/lab"
	"oneway.example/tests/program"
	"oneway.example/tests/standstill"
	"oneway.example/tests/tcplog"
)

// Process is a program under test.
type Process struct {
	*program.Program
	// watch watches this host since begun; nil: an agent.
	watch *standstill.Watch
	begun instant.Time
}

// Site is a link with a load server at its server end.
type Site struct {
	// Network is nil for a site Between hosts.
	Network *lab.Lab
	// Client and LoadServerHost are where tests and the load server run.
	Client, LoadServerHost *lab.Host
	// Dir has the files of the site, and is removed with the test.
	Dir string
	// At is the address of the load server, TokenFile the client's token, TokensFile the load server's, and Pin that of its certificate.
	At                    netip.AddrPort
	TokenFile, TokensFile string
	Pin                   string
	LoadServer            *Process
	// Mounts is the file of the mount namespace of agents; empty: the host's.
	Mounts string
	binary string
	watch  *standstill.Watch
}

// OverSlow is a site's link: Slow.
func OverSlow() lab.Options { return lab.Options{Profile: Slow()} }

// Slow is a link with a queue of half a second, of which the default rates use half.
func Slow() lab.Profile {
	return lab.Profile{
		Name:    "slow",
		Forward: lab.Link{Rate: 4e6, Delay: 10 * time.Millisecond, Queue: 250_000},
		Reverse: lab.Link{Rate: 8e6, Delay: 10 * time.Millisecond, Queue: 500_000},
	}
}

// New makes a site for a binary of `oneway`, and lets the test run in parallel. Sites of one test run are independent.
func New(t *testing.T, binary string, o lab.Options) *Site {
	t.Helper()
	t.Parallel()
	if o.Seed = 1; o.Classifier == nil {
		o.Classifier = testPackets
	}
	if o.Segments != nil { // a run of TCP has UDP packets, too
		o.Classifier = tcplog.Others(o.Classifier)
	}
	network := lab.Start(t, o)
	s := Between(t, binary, network.Client, network.Server, network.Server.Addr4)
	s.Network = network
	return s
}

// Between makes a site of two hosts, with the load server at an address of the second one.
func Between(t *testing.T, binary string, client, server *lab.Host, at netip.Addr) *Site {
	t.Helper()
	s := &Site{Client: client, LoadServerHost: server, Dir: t.TempDir(), At: netip.AddrPortFrom(at, loadcontrol.DefaultPort), binary: binary, watch: standstill.Begin(t)}
	s.TokenFile, s.TokensFile = filepath.Join(s.Dir, "token"), filepath.Join(s.Dir, "tokens")
	out, err := exec.Command(binary, "token", "new", "--name=lab", "--file="+s.TokensFile).Output()
	if err != nil {
		t.Fatal(err)
	}
	token, _, _ := strings.Cut(string(out), "\n")
	if err := os.WriteFile(s.TokenFile, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Respond(t)
	return s
}

// Start starts `oneway` on a host.
func (s *Site) Start(t *testing.T, host *lab.Host, args ...string) *Process {
	t.Helper()
	return &Process{program.Start(t, host, s.binary, args...), s.watch, instant.Now()}
}

// Test starts `oneway test` of a kind on the client, without an agent unless a flag gives its socket.
func (s *Site) Test(t *testing.T, kind string, more ...string) *Process {
	t.Helper()
	args := []string{"test", kind, s.At.String(), "--token-file=" + s.TokenFile, "--pin=" + s.Pin, "--clock=static", "--json"}
	if !slices.ContainsFunc(more, func(arg string) bool { return strings.HasPrefix(arg, "--agent-socket=") }) {
		args = append(args, "--no-agent")
	}
	return s.Start(t, s.Client, append(args, more...)...)
}

// Respond starts the load server, and waits until it listens.
func (s *Site) Respond(t *testing.T) {
	t.Helper()
	s.LoadServer = s.Start(t, s.LoadServerHost, "load-server", "--tokens-file="+s.TokensFile, "--state-dir="+s.Dir,
		"--listen="+s.At.String(), "--clock=static", "--clock-bound=1ms")
	program.Eventually(t, "the load server prints its pin", func() bool {
		for line := range strings.Lines(s.LoadServer.Stdout.String()) {
			if pin, ok := strings.CutPrefix(line, "pin "); ok && strings.HasSuffix(pin, "\n") {
				s.Pin = strings.TrimSpace(pin)
				return true
			}
		}
		return false
	})
}

// Drained returns all test packets in the link's log, of both directions.
func (s *Site) Drained(t *testing.T) (all []lab.Record) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), program.Timeout)
	defer cancel()
	if err := s.Network.Drain(ctx); err != nil {
		t.Fatal(err)
	}
	for _, d := range sample.Directions() {
		all = append(all, s.Network.Log(d)...)
	}
	return all
}

// testPackets selects the packets of streams for the link's log, by their session.
func testPackets(payload []byte, _, _ netip.AddrPort) (session uint64, ok bool) {
	h, err := loadfmt.Parse(payload)
	return h.Session, err == nil && h.Type == loadfmt.Data
}
