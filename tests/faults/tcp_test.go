package faults

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/traffic"
	"oneway.example/tests/loadsite"
	"oneway.example/tests/program"
)

// dailyBytes allows one run of both directions with faultyBytes each, and no second one before the first is settled.
const dailyBytes, faultyBytes = "100MB", "45MB"

// limitToken replaces the token by one with a quota of the day.
func (s *site) limitToken(t *testing.T) {
	t.Helper()
	out, err := exec.Command(binary, "token", "new", "--name=daily", "--per-day="+dailyBytes, "--file="+s.TokensFile).Output()
	if err != nil {
		t.Fatal(err)
	}
	token, _, _ := strings.Cut(string(out), "\n")
	s.TokenFile = filepath.Join(s.Dir, "daily")
	if err := os.WriteFile(s.TokenFile, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// startFaulty starts a run that a fault ends, and waits until each of its directions moves.
func (s *site) startFaulty(t *testing.T, directions []sample.Direction, more ...string) *loadsite.Process {
	t.Helper()
	args := []string{"--congestion-control=cubic", "--omit=0s", "--max-bytes=" + faultyBytes, "--direction=" + directions[0].String()}
	if len(directions) > 1 {
		args[len(args)-1] = "--together"
	}
	p := s.StartTCP(t, append(args, more...)...)
	for _, d := range directions {
		program.Eventually(t, "the transfer runs", func() bool {
			_, now := s.Network.Counts(d)
			return now.Delivered > uint64(500*len(directions)) // up to half of them acknowledge the other direction
		})
	}
	return p
}

// freeTCP fails unless the load server serves the next run at once, with the quota that the run before did not use, and has
// closed the sockets of that.
func (s *site) freeTCP(t *testing.T) {
	t.Helper()
	if r := s.StartTCP(t, "--duration=1s", "--omit=0s", "--direction=reverse", "--max-bytes="+faultyBytes).FinishTCP(t, 0); r.Outcome != "completed" {
		t.Errorf("the next run: %s, %s", r.Outcome, r.Error)
	}
	var open []string
	program.Eventually(t, "the load server has closed its sockets", func() bool {
		out, err := s.Network.Server.Command("cat", "/proc/net/tcp", "/proc/net/tcp6").Output()
		if err != nil {
			t.Fatal(err)
		}
		open = slices.DeleteFunc(strings.Split(strings.TrimSpace(string(out)), "\n"), func(line string) bool {
			const local, inode = 1, 9
			f := strings.Fields(line)
			return f[local] == "local_address" || f[inode] == "0" // the kernel's alone: closed, and not acknowledged yet
		})
		return len(open) == 1 // it listens
	})
}

// partial fails unless each direction of a run has results, with the reason why they are partial.
func partial(t *testing.T, o *loadsite.TCPOutcome, directions int, reason string) {
	t.Helper()
	if o.Outcome != "incomplete" || o.Reason != reason || len(o.Result.Directions) != directions {
		t.Fatalf("%s, %s with %d directions, want %d and %s: %s", o.Outcome, o.Reason, len(o.Result.Directions), directions, reason, o.Error)
	}
	for _, d := range o.Result.Directions {
		if d.Partial == "" {
			t.Errorf("%s: not marked as partial", d.Direction)
		}
	}
}

// A run survives an outage of 30 s, and its throughput has the hole. TCP sends again after twice the time of each attempt
// before (RFC 6298 section 5.5): up to a minute after the beginning.
func TestTCPRunSurvivesHalfAMinute(t *testing.T) {
	const outage = 30 * time.Second
	s := newSite(t, loadsite.OverSlow())
	p := s.startFaulty(t, sample.Directions(), "--bytes=4MB", "--duration=100s", "--idle-timeout=65s")
	s.cut(t)
	time.Sleep(outage) // what is tested
	s.mend(t)
	for _, d := range p.FinishTCP(t, 0).Result.Directions {
		silent := 0
		for _, rate := range d.PerSecond {
			if rate == 0 {
				silent++
			}
		}
		t.Logf("%s: %d of %d seconds without payload; %d timeouts", d.Direction, silent, len(d.PerSecond), *d.Timeouts)
		if d.Partial != "" || counted(d.Payload) != 4_000_000 || silent < 28 || len(d.PerSecond) < silent+2 {
			t.Errorf("%s: partial %q, %d bytes; per second %.0f", d.Direction, d.Partial, counted(d.Payload), d.PerSecond)
		}
	}
	s.freeTCP(t)
}

// The idle timeout ends a run in an outage; link, quota and sockets are free after it.
func TestTCPRunEndsInALongOutage(t *testing.T) {
	s := newSite(t, loadsite.OverSlow())
	s.limitToken(t)
	p := s.startFaulty(t, sample.Directions(), "--duration=60s", "--idle-timeout=3s")
	s.cut(t)
	time.Sleep(8 * time.Second) // the outage: longer than the idle timeout and the checks of it
	s.mend(t)
	r := p.FinishTCP(t, 1)
	partial(t, &r, 2, "timeout")
	for _, d := range r.Result.Directions {
		if counted(d.Payload) < 400*1000 || !strings.Contains(d.Partial, "idle") {
			t.Errorf("%s: %d bytes; %s", d.Direction, counted(d.Payload), d.Partial)
		}
	}
	s.freeTCP(t)
}

// Both ends end when the path is gone for good.
func TestTCPRunEndsOnAPathThatIsGone(t *testing.T) {
	s := newSite(t, loadsite.OverSlow())
	s.limitToken(t)
	p := s.startFaulty(t, sample.Directions(), "--duration=30s", "--idle-timeout=2s")
	cut := s.cut(t)
	r := p.FinishTCP(t, 1)
	t.Logf("the client ended after %v: %s", p.Ended.Sub(cut), r.Error)
	partial(t, &r, 2, "session_lost")
	if took := p.Ended.Sub(cut); took > traffic.IdleTimeout+5*time.Second {
		t.Errorf("the client ended after %v", took)
	}
	s.mend(t)
	s.freeTCP(t)
}

// Ctrl-C ends a run at once, with its partial results.
func TestInterruptedTCPRunPrintsItsResults(t *testing.T) {
	t.Parallel()
	for _, d := range sample.Directions() {
		t.Run(d.String(), func(t *testing.T) {
			s := newSite(t, loadsite.OverSlow())
			s.limitToken(t)
			p := s.startFaulty(t, []sample.Direction{d}, "--duration=60s")
			at := time.Now()
			p.Signal(t, syscall.SIGINT)
			r := p.FinishTCP(t, 1)
			partial(t, &r, 1, "interrupted")
			if got := r.Result.Directions[0]; counted(got.Payload) < 400*1000 || got.RTTMin == nil || r.Forward+r.Reverse < counted(got.Payload) {
				t.Errorf("%d bytes, %d and %d IP bytes: %+v", counted(got.Payload), r.Forward, r.Reverse, got)
			}
			punctual(t, "the client's end", p.Ended.Sub(at), 2*time.Second)
			s.freeTCP(t)
		})
	}
}

// A load server that is killed ends the run at once; started again it serves the next.
func TestTCPRunOfAKilledLoadServerEndsWithTheReason(t *testing.T) {
	t.Parallel()
	for _, d := range sample.Directions() {
		t.Run(d.String(), func(t *testing.T) {
			s := newSite(t, loadsite.OverSlow())
			p := s.startFaulty(t, []sample.Direction{d}, "--duration=60s")
			killed := s.LoadServer.Kill(t)
			r := p.FinishTCP(t, 1)
			partial(t, &r, 1, "session_lost")
			if said := p.Stderr.String(); !strings.Contains(said, s.At.String()) || strings.Count(said, "\n") != 1 {
				t.Errorf("stderr is %q; want one line with the load server", said)
			}
			punctual(t, "the client's end", p.Ended.Sub(killed), 2*time.Second)
			s.Respond(t)
			s.freeTCP(t)
		})
	}
}

// A client that stands still, as a receiver that does not read and a sender that does not send, reports that when it goes on,
// and not what became of its transfers.
func TestTCPClientThatStandsStillLosesItsTransfers(t *testing.T) {
	s := newSite(t, loadsite.OverSlow())
	s.limitToken(t)
	p := s.startFaulty(t, sample.Directions(), "--duration=60s", "--idle-timeout=1s")
	p.Signal(t, syscall.SIGSTOP)
	time.Sleep(5 * time.Second) // longer than what the queues and buffers hold, and the idle timeout
	p.Signal(t, syscall.SIGCONT)
	r := p.FinishTCP(t, 1)
	for _, d := range r.Result.Directions {
		t.Logf("%s: %d bytes; %s", d.Direction, counted(d.Payload), d.Partial)
	}
	partial(t, &r, 2, "host_paused")
	if !strings.Contains(r.Error, "this host did not run for 5") && !strings.Contains(r.Error, "this host did not run for 4.9") {
		t.Errorf("the error is %q", r.Error)
	}
	s.freeTCP(t)
}

// So does a run of the load server that stands still, for less than any timeout; it serves the next.
func TestRunOfALoadServerThatStandsStillIsIncomplete(t *testing.T) {
	s := newSite(t, loadsite.OverSlow())
	p := s.startFaulty(t, []sample.Direction{sample.Forward}, "--duration=4s")
	s.LoadServer.Signal(t, syscall.SIGSTOP)
	time.Sleep(2 * time.Second) // longer than what counts as a busy host
	s.LoadServer.Signal(t, syscall.SIGCONT)
	r := p.FinishTCP(t, 1)
	if r.Outcome != "incomplete" || r.Reason != "remote_paused" || !strings.Contains(r.Error, "the load server did not run for ") {
		t.Errorf("%s, %s: %s", r.Outcome, r.Reason, r.Error)
	}
	s.freeTCP(t)
}

// A run survives an outage that is shorter than its idle timeout, and otherwise ends with the results so far.
func TestTCPRunEndsOrSurvivesAnOutageAsConfigured(t *testing.T) {
	s := newSite(t, loadsite.OverSlow())
	for _, c := range []struct {
		idle   string
		status int
	}{{"--idle-timeout=1s", 1}, {"--idle-timeout=30s", 0}} {
		p := s.StartTCP(t, "--congestion-control=cubic", "--duration=8s", "--omit=0s", "--direction=reverse", c.idle)
		_, before := s.Network.Counts(sample.Reverse)
		program.Eventually(t, "the transfer runs", func() bool {
			_, now := s.Network.Counts(sample.Reverse)
			return now.Delivered > before.Delivered+500
		})
		s.cut(t)
		time.Sleep(2500 * time.Millisecond) // the outage: longer than the first idle timeout, with its checks
		s.mend(t)
		r := p.FinishTCP(t, c.status)
		d := r.Result.Directions[0]
		t.Logf("%s: %s, %s, %q; per second %.0f", c.idle, r.Outcome, r.Reason, d.Partial, d.PerSecond)
		if c.status == 0 {
			if r.Outcome != "completed" || slices.Min(d.PerSecond) > 1000 || d.PerSecond[len(d.PerSecond)-1] < 1e5 {
				t.Errorf("%s: %s; per second %.0f", c.idle, r.Outcome, d.PerSecond)
			}
		} else if r.Outcome != "incomplete" || r.Reason != "timeout" || !strings.Contains(d.Partial, "idle") || counted(d.Payload) < 500_000 {
			t.Errorf("%s: %s, %s: %s", c.idle, r.Outcome, r.Reason, r.Error)
		}
	}
}

// A path that drops UDP is no fault of a TCP test, which measures without light packets.
func TestTCPRunOfAPathWithoutUDPIsCompleted(t *testing.T) {
	s := newSite(t, loadsite.OverSlow())
	nft(t, s.Network.Server, "inet", "input", "meta l4proto udp")
	for _, d := range sample.Directions() {
		r := s.StartTCP(t, "--duration=5s", "--omit=0s", "--direction="+d.String()).FinishTCP(t, 0)
		if r.Outcome != "completed" || counted(r.Result.Directions[0].Payload) < 500_000 {
			t.Errorf("%s: %s, %s: %s", d, r.Outcome, r.Reason, r.Error)
		}
	}
}

// A killed client leaves nothing at the load server: the next run has the link.
func TestKilledTCPClientFreesTheLink(t *testing.T) {
	s := newSite(t, loadsite.OverSlow())
	for _, d := range sample.Directions() {
		p := s.StartTCP(t, "--duration=60s", "--direction="+d.String())
		_, before := s.Network.Counts(d)
		program.Eventually(t, "the transfer runs", func() bool {
			_, now := s.Network.Counts(d)
			return now.Delivered > before.Delivered+300
		})
		p.Kill(t)
	}
	if r := s.StartTCP(t, "--duration=1s", "--omit=0s", "--direction=reverse").FinishTCP(t, 0); r.Outcome != "completed" {
		t.Errorf("%s: %s", r.Outcome, r.Error)
	}
}

// counted is a count of a document; 0 where the end that has it is unknown.
func counted(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}
