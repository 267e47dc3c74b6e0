package abuse

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"oneway.example/tests/await"
	"oneway.example/tests/oneway"
)

// buildProgram builds the program under attack.
func buildProgram(t *testing.T) string {
	t.Helper()
	binary, err := oneway.Build(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

// agentSite is an agent under attack.
type agentSite struct {
	t      *testing.T
	config string // the configuration file
	at     string // host:port of its HTTP server
	cmd    *exec.Cmd
	output *await.Text
	done   chan struct{}
}

// manyPaths is a configuration of n paths to a port without a reflector.
func manyPaths(n int, options string) string {
	var b strings.Builder
	b.WriteString("clock: {source: none}\npaths:\n")
	for i := range n {
		fmt.Fprintf(&b, "  - {name: path-%d, peer: \"127.0.0.1:9\", probes: [{type: stamp, interval: 10s%s}]}\n", i, options)
	}
	return b.String()
}

var listening = regexp.MustCompile(`msg="Listening on" address=(\S+)`)

// startAgent runs the program with a configuration until the test ends.
func startAgent(t *testing.T, binary, configuration string, args ...string) *agentSite {
	t.Helper()
	file := filepath.Join(t.TempDir(), "oneway.yml")
	if err := os.WriteFile(file, []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &agentSite{t: t, config: file, output: &await.Text{}, done: make(chan struct{})}
	s.cmd = exec.Command(binary, append([]string{"agent", "--config.file=" + file, "--web.listen-address=127.0.0.1:0", "--test.socket="}, args...)...)
	s.cmd.Stderr = s.output
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = s.cmd.Wait() // the status is in ProcessState
		close(s.done)
	}()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		<-s.done
	})
	s.eventually("the agent listens", func() bool {
		m := listening.FindStringSubmatch(s.output.String())
		if m != nil {
			s.at = m[1]
		}
		return m != nil && strings.Contains(s.output.String(), "msg=Measuring")
	})
	return s
}

func (s *agentSite) eventually(what string, is func() bool) {
	s.t.Helper()
	if !await.Within(await.Timeout, is) {
		s.t.Fatalf("%s: not within %v; log:\n%s", what, await.Timeout, s.output)
	}
}

// end stops the agent as a service manager does; afterwards its log is complete.
func (s *agentSite) end() string {
	s.t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	select {
	case <-s.done:
	case <-time.After(await.Timeout):
		s.t.Fatalf("the agent has not ended within %v; log:\n%s", await.Timeout, s.output)
	}
	return s.output.String()
}

// lines returns the log lines that contain part.
func (s *agentSite) lines(part string) (all []string) {
	for line := range strings.Lines(s.output.String()) {
		if strings.Contains(line, part) {
			all = append(all, line)
		}
	}
	return all
}

// dial connects from an address, with a receive buffer of this size in bytes; 0: the default.
func (s *agentSite) dial(from string, buffer int) net.Conn {
	s.t.Helper()
	c, err := s.tryDial(from, buffer)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	return c
}

func (s *agentSite) tryDial(from string, buffer int) (net.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: await.Timeout, Control: func(_, _ string, c syscall.RawConn) (err error) {
		if buffer > 0 {
			err = c.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, buffer) })
		}
		return err
	}}
	return d.DialContext(s.t.Context(), "tcp", s.at)
}

// request sends a request for a path and reads the first n bytes of the response.
func (s *agentSite) request(c net.Conn, path string, n int) error {
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", path, s.at); err != nil {
		return err
	}
	if err := c.SetReadDeadline(time.Now().Add(await.Timeout)); err != nil {
		return err
	}
	_, err := io.ReadFull(c, make([]byte, n))
	return err
}

// scrape gets /metrics from an address as Prometheus does, with its timeout of 10 s.
func (s *agentSite) scrape(from string) (string, error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 10*time.Second)
	defer cancel()
	transport := &http.Transport{DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).DialContext, DisableKeepAlives: true}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.at+"/metrics", nil)
	if err != nil {
		return "", err
	}
	reply, err := transport.RoundTrip(r)
	if err != nil {
		return "", err
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	if err == nil && reply.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %.200s", reply.Status, body)
	}
	if err == nil && !strings.Contains(string(body), "oneway_build_info{") {
		err = fmt.Errorf("no oneway_build_info in %d bytes", len(body))
	}
	return string(body), err
}

// served fails the test if a scrape from one of the addresses fails.
func (s *agentSite) served(from ...string) (body string) {
	s.t.Helper()
	for _, one := range from {
		begin := time.Now()
		var err error
		if body, err = s.scrape(one); err != nil {
			s.t.Errorf("a scrape from %s after %v: %v", one, time.Since(begin).Round(time.Millisecond), err)
		}
	}
	return body
}

// value is that of a series without labels in a scrape.
func value(t *testing.T, body, name string) float64 {
	t.Helper()
	for lines := bufio.NewScanner(strings.NewReader(body)); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
	}
	t.Errorf("no series %s in %d bytes", name, len(body))
	return 0
}
