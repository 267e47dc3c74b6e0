package abuse

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Addresses: attackers use the scraper's address, and a second scraper another one.
const (
	here      = "127.0.0.1"
	elsewhere = "127.0.0.2"
)

// TestAgentAmongAttackers attacks the agent's HTTP server, its files and its descriptors.
func TestAgentAmongAttackers(t *testing.T) {
	binary := buildProgram(t)
	for name, attack := range map[string]func(*testing.T, string){
		"idle connections":    idleConnections,
		"trickled headers":    trickledHeaders,
		"many sources":        manySources,
		"few descriptors":     fewDescriptors,
		"slow readers":        slowReaders,
		"slow readers, many":  manySlowReaders,
		"aborted scrapes":     abortedScrapes,
		"rebound names":       reboundNames,
		"no descriptors left": noDescriptors,
		"many reloads":        manyReloads,
		"secrets for all":     secretsForAll,
		"token in a new file": tokenInANewFile,
	} {
		t.Run(name, func(t *testing.T) { attack(t, binary) })
	}
}

// idleConnections opens 560 connections: idle after a request, without data, and in the middle of a header.
func idleConnections(t *testing.T, binary string) {
	s := startAgent(t, binary, manyPaths(1, ""))
	for i := range 560 {
		c := s.dial(here, 0)
		switch {
		case i < 500:
			if err := s.request(c, "/-/healthy", 10); err != nil {
				t.Fatal(err)
			}
		case i%2 == 0:
			fmt.Fprint(c, "GET /metrics HTTP/1.1\r\nHo")
		}
	}
	body := s.served(here, elsewhere)
	if open := value(t, body, "process_open_fds"); open > 100 {
		t.Errorf("%v descriptors are open, want at most 64 connections of one address", open)
	}
}

// trickledHeaders sends endless requests byte by byte, over both address families.
func trickledHeaders(t *testing.T, binary string) {
	const each = 60 // below the limit of one address
	s := startAgent(t, binary, manyPaths(1, ""), "--web.listen-address=[::1]:0")
	s.eventually("the agent listens on both addresses", func() bool { return len(listening.FindAllString(s.output.String(), -1)) == 2 })
	var cut atomic.Int64
	for _, m := range listening.FindAllStringSubmatch(s.output.String(), -1) {
		if strings.HasPrefix(m[1], here) {
			s.at = m[1]
		}
		for range each {
			c, err := net.Dial("tcp", m[1])
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			go func() {
				_, err := fmt.Fprintf(trickling{c, 200 * time.Millisecond}, "GET /metrics HTTP/1.1\r\nHost: h\r\nX: %0500d", 0)
				if errors.Join(err, gone(c)) != nil {
					cut.Add(1)
				}
			}()
		}
	}
	body := s.served(here, elsewhere)
	if open := value(t, body, "process_open_fds"); open < 2*each {
		t.Errorf("%v descriptors are open, want those of the trickling clients", open)
	}
	s.eventually("all trickling clients are disconnected", func() bool { return cut.Load() == 2*each })
	if open := value(t, s.served(here), "process_open_fds"); open > each {
		t.Errorf("%v descriptors are open after all clients were disconnected", open)
	}
	if all := append(s.lines("level=ERROR"), s.lines("level=WARN")...); len(all) > 0 {
		t.Errorf("%d log lines, the first is %s", len(all), all[0])
	}
}

func manySources(t *testing.T, binary string) {
	limiterIsFull(t, startAgent(t, binary, manyPaths(1, "")), 512)
}

func fewDescriptors(t *testing.T, binary string) {
	limited := filepath.Join(t.TempDir(), "oneway")
	if err := os.WriteFile(limited, []byte("#!/bin/sh\nulimit -n 400\nexec "+binary+" \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	limiterIsFull(t, startAgent(t, limited, manyPaths(1, "")), 200)
}

// limiterIsFull opens more connections than the limit, from 12 addresses with no more than each may have.
func limiterIsFull(t *testing.T, s *agentSite, most float64) {
	t.Helper()
	var first net.Conn
	for i := range 12 * 60 {
		c := s.dial(fmt.Sprintf("127.0.2.%d", 1+i%12), 0)
		if err := s.request(c, "/-/healthy", 10); err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = c
		}
	}
	const others = 50 // files of the process
	if open := value(t, s.served(here, elsewhere), "process_open_fds"); open < most || open > most+others {
		t.Errorf("%v descriptors are open, want those of %v connections", open, most)
	}
	if _, err := io.Copy(io.Discard, first); !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("the oldest connection: got %v, want a reset", err)
	}
}

// readSlowly opens connections that request all metrics, uncompressed, and read only the first bytes.
func (s *agentSite) readSlowly(from string, n int) {
	s.t.Helper()
	for range n {
		if err := s.request(s.dial(from, 4096), "/metrics", 10); err != nil {
			s.t.Fatal(err)
		}
	}
}

func slowReaders(t *testing.T, binary string) {
	s := startAgent(t, binary, manyPaths(250, ""))
	s.readSlowly(here, 10)
	t.Logf("a scrape has %d bytes", len(s.served(here, elsewhere)))
}

// manySlowReaders would need 800 MB in total.
func manySlowReaders(t *testing.T, binary string) {
	s := startAgent(t, binary, manyPaths(250, ""))
	for i := range 3 {
		s.readSlowly(fmt.Sprintf("127.0.1.%d", i+1), 50)
	}
	body := s.served(here, elsewhere, "127.0.1.1")
	heap := value(t, body, "go_memstats_heap_inuse_bytes")
	t.Logf("150 slow readers of %d bytes: heap of %.0f MB", len(body), heap/1e6)
	if heap > 400e6 {
		t.Errorf("150 slow readers of %d bytes: heap of %.0f bytes, want at most 64 MiB for responses", len(body), heap)
	}
}

func abortedScrapes(t *testing.T, binary string) {
	s := startAgent(t, binary, manyPaths(250, ""))
	for range 10 {
		c := s.dial(here, 4096)
		if err := s.request(c, "/metrics", 10); err != nil {
			t.Fatal(err)
		}
		if err := c.(*net.TCPConn).SetLinger(0); err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	s.served(here)
	s.end()
	for _, level := range []string{"level=ERROR", "level=WARN"} {
		if all := s.lines(level); len(all) > 0 {
			t.Errorf("%d log lines with %s, the first is %s", len(all), level, all[0])
		}
	}
}

// reboundNames does what a web page can whose name resolves to the agent's address (DNS rebinding): both have one
// origin for a browser.
func reboundNames(t *testing.T, binary string) {
	s := startAgent(t, binary, manyPaths(1, ""), "--web.external-host=Probe.Example.NET")
	own, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(s.at)
	for host, want := range map[string]int{
		s.at: http.StatusOK, "192.0.2.1": http.StatusOK, "[2001:db8::1]:" + port: http.StatusOK, "localhost:" + port: http.StatusOK, "LOCALHOST.": http.StatusOK,
		own + ":" + port: http.StatusOK, "probe.example.net:" + port: http.StatusOK, "probe.example.net.": http.StatusOK,
		"evil.example": http.StatusForbidden, "evil.example:" + port: http.StatusForbidden, "localhost.evil.example": http.StatusForbidden,
		"127.0.0.1.evil.example": http.StatusForbidden, "notprobe.example.net": http.StatusForbidden, "0x7f000001": http.StatusForbidden,
	} {
		for _, c := range []struct {
			method, path string
			want         int
		}{{http.MethodPost, "/-/reload", want}, {http.MethodGet, "/api/v1/status", http.StatusOK}} {
			r, err := http.NewRequestWithContext(t.Context(), c.method, "http://"+s.at+c.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Host = host
			r.Header.Set("Origin", "http://"+host) // as a browser sets it: of the same origin
			r.Header.Set("Sec-Fetch-Site", "same-origin")
			reply, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			reply.Body.Close()
			if reply.StatusCode != c.want {
				t.Errorf("%s %s with Host %q: %s, want %d", c.method, c.path, host, reply.Status, c.want)
			}
		}
	}
}

// secretsForAll makes secret files readable for all users.
func secretsForAll(t *testing.T, binary string) {
	dir := t.TempDir()
	loadTest := "paths: [{name: a, peer: h, probes: [{type: train, %s}]}]\n"
	for name, configuration := range map[string]string{
		"stamp.key":     "paths: [{name: a, peer: h, probes: [{type: stamp, key_file: stamp.key}]}]\n",
		"reflector.key": "reflector: {key_file: reflector.key}\n",
		"token":         fmt.Sprintf(loadTest, "token_file: token"),
		"server.key":    "load_server: {listen: [\"127.0.0.1:0\"], tokens_file: tokens, cert_file: tokens, key_file: server.key}\n",
		"agent.key":     fmt.Sprintf(loadTest, "cert_file: tokens, key_file: agent.key"),
	} {
		secret, file := filepath.Join(dir, name), filepath.Join(dir, "oneway.yml")
		for path, content := range map[string]string{secret: "a-shared-secret\n", file: configuration, filepath.Join(dir, "tokens"): ""} {
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for mode, allowed := range map[os.FileMode]bool{0o600: true, 0o400: true, 0o640: true, 0o644: false, 0o604: false, 0o602: false, 0o601: false} {
			if err := os.Chmod(secret, mode); err != nil {
				t.Fatal(err)
			}
			out, err := exec.CommandContext(t.Context(), binary, "check-config", file).CombinedOutput()
			named := strings.Contains(string(out), fmt.Sprintf("mode %#o", mode))
			// The private keys are refused by their content here, whatever their mode.
			if refused := err != nil; named == allowed || refused == allowed && name != "server.key" && name != "agent.key" {
				t.Errorf("%s with mode %#o: %v\n%s", name, mode, err, out)
			}
		}
	}
}

func tokenInANewFile(t *testing.T, binary string) {
	dir := t.TempDir()
	tokens, out := filepath.Join(dir, "tokens"), filepath.Join(dir, "token")
	create := func(name string) (string, error) {
		said, err := exec.CommandContext(t.Context(), "sh", "-c", `umask 0; exec "$@"`, "sh",
			binary, "token", "new", "--file="+tokens, "--name="+name, "--out="+out).CombinedOutput()
		return string(said), err
	}
	said, err := create("a")
	if err != nil {
		t.Fatalf("token new: %v: %s", err, said)
	}
	info, err := os.Stat(out)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("mode %v, %v; want 0600", info, err)
	}
	text, err := os.ReadFile(out)
	if err != nil || !strings.HasPrefix(string(text), "owt_") || strings.Contains(said, strings.TrimSpace(string(text))) {
		t.Errorf("the file contains %.4q..., %v; stdout\n%s", text, err, said)
	}
	if said, err = create("b"); err == nil || !strings.Contains(said, "file exists") {
		t.Errorf("a second token to the same file: %v: %s", err, said)
	}
	if known, err := os.ReadFile(tokens); err != nil || strings.Count(string(known), "\n") != 1 {
		t.Errorf("tokens file %q, %v; want one line", known, err)
	}
}

// noDescriptors takes a running agent's right to open files, and restores it.
func noDescriptors(t *testing.T, binary string) {
	const paths = 20
	// The agent retries such paths.
	s := startAgent(t, binary, manyPaths(paths, ", hardware: absent0"))
	c := s.dial(here, 0) // before the limit applies
	// faulty counts the paths whose error contains part.
	faulty := func(part string) (n int) {
		if err := s.request(c, "/api/v1/status", 0); err != nil {
			t.Fatal(err)
		}
		reply, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer reply.Body.Close()
		body, err := io.ReadAll(reply.Body)
		if err != nil {
			t.Fatal(err)
		}
		for _, reason := range strings.Split(string(body), `"error":`)[1:] {
			if strings.Contains(reason, part) {
				n++
			}
		}
		return n
	}
	s.eventually("all paths lack their interface", func() bool { return faulty("absent0") == paths && len(s.lines("absent0")) == paths })
	const message = "too many open files"
	before := len(s.lines("level="))
	restore := limitDescriptors(t, s.cmd.Process.Pid)
	s.eventually("all paths lack a descriptor", func() bool { return faulty(message) == paths })
	s.eventually("the error is logged", func() bool { return len(s.lines(message)) > 0 })
	for range 10 { // accept fails, too
		_, _ = net.DialTimeout("tcp", s.at, time.Second)
	}
	restore()
	s.eventually("the end of the error is logged", func() bool { return len(s.lines("There are file descriptors again")) > 0 })
	s.eventually("all paths lack their interface again", func() bool { return faulty(message) == 0 })
	s.served(elsewhere)
	if all := s.lines("level=")[before:]; len(all) != 2 {
		t.Errorf("%d log lines, want one when descriptors run out and one when they are available again:\n%s", len(all), strings.Join(all, ""))
	}
}

// limitDescriptors keeps a process from opening files, until restore is called.
func limitDescriptors(t *testing.T, pid int) (restore func()) {
	t.Helper()
	var old unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &old); err != nil {
		t.Fatal(err)
	}
	set := func(limit unix.Rlimit) {
		if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &limit, nil); err != nil {
			t.Fatal(err)
		}
	}
	set(unix.Rlimit{Cur: 3, Max: old.Max})
	return func() { set(old) }
}
