package faults

import (
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"oneway.example/exporter/core/sample"
	"oneway.example/tests/loadsite"
	"oneway.example/tests/program"
)

// lessor starts an agent on the client that leases one link at a socket.
func (s *site) lessor(t *testing.T) (a *loadsite.Agent, socket string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "oneway") // t.TempDir may exceed the length of a socket path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	socket = filepath.Join(dir, "agent.sock")
	return s.leaseAt(t, socket), socket
}

func (s *site) leaseAt(t *testing.T, socket string) *loadsite.Agent {
	t.Helper()
	a := s.AgentOn(t, s.Network.Client, "links: [{name: uplink, quota_bytes: 1GB}]\npaths: []\n", "--test.socket="+socket)
	program.Eventually(t, "the agent leases", func() bool { // a killed agent leaves its socket, so wait for a connection
		c, err := net.Dial("unix", socket)
		if err != nil {
			return false
		}
		c.Close()
		info, err := os.Stat(socket)
		return err == nil && info.Mode().Perm() == 0o600
	})
	return a
}

const onUplink = `link="uplink"`

func TestKilledTerminalGivesTheAgentsLinkBack(t *testing.T) {
	s := newSite(t, loadsite.OverSlow())
	a, socket := s.lessor(t)
	at := "--agent-socket=" + socket
	c := s.saturation(t, "--direction=reverse", "--duration=20s", overload, at)
	s.underLoad(t, c, sample.Reverse)
	if n := loadsite.Sum(a.Metrics(t, "oneway_test_running"), onUplink); n != 1 {
		t.Errorf("oneway_test_running is %v during a test", n)
	}
	waiting := s.saturation(t, "--direction=reverse", "--max-wait=40s", at)
	program.Eventually(t, "the second waits", func() bool {
		return strings.Contains(waiting.Stderr.String(), "Waiting for link uplink, for at most 40s: terminal/saturation (oneway test, process ")
	})
	c.Kill(t)
	if r := waiting.Finish(t, 0); r.Outcome != "completed" {
		t.Errorf("%s, %s: %s", r.Outcome, r.Reason, r.Error)
	}
	if n := loadsite.Sum(a.Metrics(t, "oneway_test_running"), onUplink); n != 0 {
		t.Errorf("oneway_test_running is %v after the tests", n)
	}
	// What the first could have sent, 24 Mbit/s for 20 s, and what the second sent.
	program.Eventually(t, "the bytes are counted", func() bool {
		used := loadsite.Sum(a.Metrics(t, "oneway_data_quota_used_bytes"), onUplink)
		return used > 60e6 && used < 70e6
	})
	disjoint(t, spans(s.Drained(t)))
}

func TestKilledAgentEndsNoTestAndTheNextTakesItsPlace(t *testing.T) {
	s := newSite(t, loadsite.OverSlow())
	a, socket := s.lessor(t)
	at := "--agent-socket=" + socket
	c := s.saturation(t, "--direction=reverse", "--duration=4s", overload, at)
	s.underLoad(t, c, sample.Reverse)
	a.Kill(t)
	before, _ := s.Network.Counts(sample.Reverse)
	if r := c.Finish(t, 0); r.Outcome != "completed" {
		t.Errorf("%s, %s: %s", r.Outcome, r.Reason, r.Error)
	}
	if after, _ := s.Network.Counts(sample.Reverse); after.Entered == before.Entered {
		t.Error("no packet was sent after the end of the agent")
	}
	if said := c.Stderr.String(); !strings.Contains(said, "leases link uplink") || !strings.Contains(said, "has ended, or has taken link uplink back: this test goes on") {
		t.Errorf("stderr is %q", said)
	}
	alone := s.saturation(t, "--direction=reverse", at) // with the socket of the killed agent
	alone.Finish(t, 0)
	if said := alone.Stderr.String(); !strings.HasPrefix(said, "No agent runs on this host (no process listens at "+socket+"): the link is not reserved") {
		t.Errorf("stderr is %q", said)
	}
	s.leaseAt(t, socket)
	c = s.saturation(t, "--direction=reverse", at)
	c.Finish(t, 0)
	if said := c.Stderr.String(); !strings.HasPrefix(said, "The agent on this host leases link uplink, for path terminal and probe saturation: ") {
		t.Errorf("stderr is %q", said)
	}
}

func TestUserWithoutAccessToTheAgentGetsARemedy(t *testing.T) {
	s := newSite(t, loadsite.OverSlow())
	_, socket := s.lessor(t)
	program := filepath.Join(openDir(t), "oneway") // that user nobody can run
	if content, err := os.ReadFile(binary); err != nil {
		t.Fatal(err)
	} else if err := os.WriteFile(program, content, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		user int
		want string
	}{
		"nobody":                    {65534, "permission denied: run this as root, as the agent's user, or as a member of the group of its flag --test.socket-group; or add --no-agent"},
		"another network namespace": {0, "No agent runs on this host (the agent at " + socket + " is in another network namespace)"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(program, "test", "train", "127.0.0.1:1", "--token-file="+ownToken(t, s.TokenFile, c.user), "--clock=none", "--agent-socket="+socket)
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(c.user), Gid: uint32(c.user)}}
			var said bytes.Buffer
			cmd.Stderr = &said
			_ = cmd.Run() // the test checks its status
			if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(said.String(), c.want) {
				t.Errorf("status %d: %s", cmd.ProcessState.ExitCode(), &said)
			}
			if c.user != 0 && strings.Count(said.String(), "\n") != 1 {
				t.Errorf("stderr is %q, want one line", &said)
			}
		})
	}
}

// ownToken copies a token file for a user, since the options, with their files, are checked before a link is leased.
func ownToken(t *testing.T, file string, user int) string {
	t.Helper()
	token, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(openDir(t), "token")
	if err := errors.Join(os.WriteFile(own, token, 0o600), os.Chown(own, user, user)); err != nil {
		t.Fatal(err)
	}
	return own
}

// openDir is a directory that other users can read: t.TempDir is closed to them.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "oneway")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}
