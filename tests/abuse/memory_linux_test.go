package abuse

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"oneway.example/tests/await"
)

// mostMemory is the memory limit of an agent with 100 paths.
const mostMemory = 64 << 20

// memoryAttacks are the header lines of requests whose responses are never read. The shorter the names, the more memory
// they take.
func memoryAttacks() map[string]string {
	const host = "Host: h\r\n"
	names := func(n int) string {
		var b strings.Builder
		for i := int64(36 * 36); b.Len() < n; i++ {
			b.WriteString(strconv.FormatInt(i, 36) + ":\r\n")
		}
		return b.String()
	}
	return map[string]string{
		"slow readers": host + "\r\n", "many names": host + names(11_000) + "\r\n", "more names": host + names(60_000) + "\r\n",
		"names without end": host + names(60_000),
	}
}

// TestAgentKeepsToTheMemoryOfItsControlGroup: the kernel kills an agent that exceeds it.
func TestAgentKeepsToTheMemoryOfItsControlGroup(t *testing.T) {
	newMemoryGroup(t, mostMemory) // skips if it cannot
	binary := buildProgram(t)
	for name, header := range memoryAttacks() {
		t.Run(name, func(t *testing.T) {
			group := newMemoryGroup(t, mostMemory)
			s := startAgent(t, wrapped(t, binary, "unset GOMEMLIMIT; echo $$ >"+filepath.Join(group.dir, "cgroup.procs")), measuredPaths(t, 100))
			took, body := s.attackMemory(header)
			t.Logf("peak memory of the group %d kB of %d, of the process %d without files", group.peak()>>10, mostMemory>>10, took>>10)
			for _, name := range []string{"oneway_packets_sent_total", "oneway_packets_lost_total", "oneway_packets_host_dropped_total", "oneway_probe_schedule_skipped_total"} {
				t.Logf("sum of %s over all paths and directions: %.0f", name, sumOf(t, body, name))
			}
			if all := s.lines("memory limit"); len(all) != 1 {
				t.Errorf("%d log lines with the memory limit, want 1: %q", len(all), all)
			}
		})
	}
}

// TestAgentStaysWithinTheMemoryOfTheRuntime: without a control group, the agent uses no more than a group would allow
// with such a GOMEMLIMIT.
func TestAgentStaysWithinTheMemoryOfTheRuntime(t *testing.T) {
	binary := buildProgram(t)
	for name, header := range memoryAttacks() {
		t.Run(name, func(t *testing.T) {
			s := startAgent(t, wrapped(t, binary, fmt.Sprintf("export GOMEMLIMIT=%d", mostMemory/5*4)), measuredPaths(t, 100))
			took, _ := s.attackMemory(header)
			t.Logf("peak memory of the process %d kB of %d, without files", took>>10, mostMemory>>10)
			if took > mostMemory {
				t.Errorf("peak memory of the process %d bytes, want at most %d", took, mostMemory)
			}
		})
	}
}

// attackMemory sends requests from 8 addresses, 64 each, reads nothing, and then repeats; after each address a scrape
// from elsewhere must succeed. It returns the peak memory of the process in bytes, without files, and the last scrape.
func (s *agentSite) attackMemory(header string) (most int, body string) {
	s.t.Helper()
	s.served(elsewhere)
	var all []net.Conn
	defer func() {
		for _, c := range all {
			c.Close()
		}
	}()
	targets := []string{"/metrics", "/?all", "/metrics", "/api/v1/status"}
	for n := range 2 * 8 * 64 {
		c, err := s.tryDial(fmt.Sprintf("127.0.2.%d", n/64%8+1), 4096)
		if err != nil {
			s.t.Fatalf("after %d requests: %v\n%s", n, err, s.output)
		}
		all = append(all, c)
		// The server may have reset it.
		_, _ = fmt.Fprintf(c, "GET %s HTTP/1.1\r\n%s", targets[n%len(targets)], header)
		most = max(most, residentBytes(s.cmd.Process.Pid))
		if n%64 == 63 {
			body = s.served(elsewhere)
		}
		select {
		case <-s.done:
			s.t.Fatalf("the agent has ended after %d requests: %v", n, s.cmd.ProcessState)
		default:
		}
	}
	return most, body
}

// sumOf adds the series of a family with labels in a scrape.
func sumOf(t *testing.T, body, name string) (sum float64) {
	t.Helper()
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, name+"{") {
			f := strings.Fields(line)
			v, err := strconv.ParseFloat(f[len(f)-1], 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += v
		}
	}
	return sum
}

// residentBytes is a process's anonymous memory; 0: it has ended.
func residentBytes(pid int) int {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, found := strings.Cut(string(b), "RssAnon:")
	if !found {
		return 0
	}
	n, _ := strconv.Atoi(strings.Fields(rest)[0])
	return n << 10
}

// measuredPaths is a configuration of n paths to the agent's own reflector.
func measuredPaths(t *testing.T, n int) string {
	t.Helper()
	c, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := c.LocalAddr()
	c.Close()
	var b strings.Builder
	fmt.Fprintf(&b, "clock: {source: none}\nreflector: {listen: [%q]}\npaths:\n", at)
	for i := range n {
		fmt.Fprintf(&b, "  - {name: path-%d, peer: %q, probes: [{type: stamp, interval: 100ms}]}\n", i, at)
	}
	return b.String()
}

// wrapped is a program that runs a shell command first.
func wrapped(t *testing.T, binary, first string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "wrapped")
	if err := os.WriteFile(file, fmt.Appendf(nil, "#!/bin/sh\nset -e\n%s\nexec %s \"$@\"\n", first, binary), 0o700); err != nil {
		t.Fatal(err)
	}
	return file
}

// memoryGroup is a control group, of version 1 or 2, with a memory limit.
type memoryGroup struct {
	t    *testing.T
	dir  string
	most string // the file with the peak usage
}

// newMemoryGroup makes one, which is removed when all of the test's processes have ended.
func newMemoryGroup(t *testing.T, limit int) memoryGroup {
	t.Helper()
	var why []error
	for _, v := range []struct{ mount, limit, most string }{
		{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.max_usage_in_bytes"}, {"/sys/fs/cgroup", "memory.max", "memory.peak"},
	} {
		if _, err := os.Stat(filepath.Join(v.mount, "cgroup.procs")); err != nil {
			why = append(why, err) // not mounted
			continue
		}
		g := memoryGroup{t, filepath.Join(v.mount, fmt.Sprintf("oneway-abuse-%d-%d", os.Getpid(), time.Now().UnixNano())), v.most}
		err := os.Mkdir(g.dir, 0o700)
		if err == nil {
			t.Cleanup(g.remove)
			// The file exists if the kernel limits memory in groups of this version.
			err = writeTo(filepath.Join(g.dir, v.limit), strconv.Itoa(limit))
		}
		if err == nil {
			return g
		}
		why = append(why, err)
	}
	t.Skipf("no control group with a limit of memory can be made here, it needs root and the controller memory: %v", errors.Join(why...))
	return memoryGroup{}
}

func writeTo(file, text string) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

func (g memoryGroup) remove() {
	if !await.Within(await.Timeout, func() bool { return !errors.Is(syscall.Rmdir(g.dir), syscall.EBUSY) }) {
		g.t.Errorf("%s: processes are still running", g.dir)
	}
}

// peak is the peak usage in bytes; 0: the kernel does not report it (version 2 before Linux 5.19).
func (g memoryGroup) peak() int {
	b, err := os.ReadFile(filepath.Join(g.dir, g.most))
	if errors.Is(err, fs.ErrNotExist) {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		g.t.Fatal(err)
	}
	return n
}
