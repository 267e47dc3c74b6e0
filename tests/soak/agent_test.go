package soak

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/hostport"
	"oneway.example/exporter/core/memlimit"
	"oneway.example/tests/lab"
	"oneway.example/tests/program"
)

// agentAddress is that of each agent's HTTP server, in its host's own network.
const agentAddress = "127.0.0.1:" + hostport.Agent

// agent is one on a host of the site.
type agent struct {
	*program.Program
	host *lab.Host
	http *http.Client
}

// startAgent starts one with a configuration file, and waits until it serves.
func startAgent(t *testing.T, host *lab.Host, file string) *agent {
	t.Helper()
	a := &agent{host: host, http: program.Client(t, host)}
	// No time limit that a busy machine reaches: how long a scrape took is printed.
	a.http.Timeout = program.Timeout
	a.Program = program.Start(t, host, binary, "agent", "--config.file="+file, "--web.listen-address="+agentAddress, "--test.socket=")
	a.Serves(t, a.http, agentAddress)
	return a
}

// reload makes the agent read its configuration again.
func (a *agent) reload() error {
	r, err := a.http.Post("http://"+agentAddress+"/-/reload", "", nil)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	if text, err := io.ReadAll(r.Body); err != nil || r.StatusCode != http.StatusOK {
		return fmt.Errorf("reload: %s: %s, %w", r.Status, text, err)
	}
	return nil
}

// scrape has the values of one scrape.
type scrape struct {
	begin, end time.Time
	// rss is in bytes.
	rss, descriptors, goroutines float64
	// heap is the live heap after the last collection, in bytes.
	heap  float64
	paths map[string]*counts
}

// counts are a path's, as exported.
type counts struct {
	up         bool
	directions [2]direction
}

// direction has the packets of one, forward or reverse.
type direction struct {
	sent, received, lost, hostDropped, outstanding float64
	known                                          int
}

// conserved reports whether every sent packet has an outcome; counts are integers, so
// floats are exact. Series that are not exported yet are ignored.
func (d direction) conserved() bool {
	const all = 5
	return d.known < all || d.sent == d.received+d.lost+d.hostDropped+d.outstanding
}

// scrape requests as Prometheus does, and reads the process's values from /proc.
func (a *agent) scrape(ctx context.Context) (s *scrape, err error) {
	s = &scrape{begin: time.Now(), paths: map[string]*counts{}}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+agentAddress+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.5")
	r.Header.Set("Accept-Encoding", "gzip")
	reply, err := a.http.Do(r)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		return nil, errors.New(reply.Status)
	}
	var body io.Reader = reply.Body
	if reply.Header.Get("Content-Encoding") == "gzip" {
		if body, err = gzip.NewReader(body); err != nil {
			return nil, err
		}
	}
	if err := s.read(body); err != nil {
		return nil, err
	}
	if err := s.process(a.Cmd.Process.Pid); err != nil {
		return nil, err
	}
	s.end = time.Now()
	return s, nil
}

// read extracts the asserted values from OpenMetrics text.
func (s *scrape) read(body io.Reader) error {
	whole := false
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 1<<16), 1<<20)
	for lines.Scan() {
		line := lines.Bytes()
		switch {
		case string(line) == "# EOF":
			whole = true
		case len(line) > 0 && line[0] == '#':
		default:
			name, rest := cut(line)
			if into := s.family(string(name)); into != nil {
				labels, text, _ := strings.Cut(rest, " ")
				v, err := strconv.ParseFloat(text, 64)
				if err != nil {
					return fmt.Errorf("%q: %w", line, err)
				}
				into(labels, v)
			}
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	if !whole {
		return errors.New("the scrape has no end: want a line # EOF")
	}
	return nil
}

// cut parts a sample's name from the rest, which begins with its labels or with a space.
func cut(line []byte) (name []byte, rest string) {
	for i, c := range line {
		if c == '{' || c == ' ' {
			if len(line) > 8 && string(line[:8]) != "oneway_d" { // most lines are of histograms not read here
				return line[:i], string(line[i:])
			}
			return line[:i], ""
		}
	}
	return line, ""
}

// family is the destination of a sample of that name; nil: none.
func (s *scrape) family(name string) func(labels string, v float64) {
	count := func(field func(*direction) *float64) func(string, float64) {
		return func(labels string, v float64) {
			if !strings.Contains(labels, `probe="stamp"`) {
				return
			}
			i := 0
			if strings.Contains(labels, `direction="reverse"`) {
				i = 1
			}
			d := &s.path(labels).directions[i]
			*field(d) = v
			d.known++
		}
	}
	switch name {
	case "go_goroutines":
		return func(_ string, v float64) { s.goroutines = v }
	case "go_memstats_next_gc_bytes":
		// The agent's next collection begins when the live heap has grown by GCPercent.
		return func(_ string, v float64) { s.heap = v / (1 + memlimit.GCPercent/100.) }
	case "oneway_probe_up":
		return func(labels string, v float64) {
			if strings.Contains(labels, `probe="stamp"`) {
				s.path(labels).up = v == 1
			}
		}
	case "oneway_packets_sent_total":
		return count(func(d *direction) *float64 { return &d.sent })
	case "oneway_packets_received_total":
		return count(func(d *direction) *float64 { return &d.received })
	case "oneway_packets_lost_total":
		return count(func(d *direction) *float64 { return &d.lost })
	case "oneway_packets_host_dropped_total":
		return count(func(d *direction) *float64 { return &d.hostDropped })
	case "oneway_packets_outstanding":
		return count(func(d *direction) *float64 { return &d.outstanding })
	}
	return nil
}

func (s *scrape) path(labels string) *counts {
	_, name, _ := strings.Cut(labels, `path="`)
	name, _, _ = strings.Cut(name, `"`)
	if s.paths[name] == nil {
		s.paths[name] = &counts{}
	}
	return s.paths[name]
}

// process reads the kernel's values of the process.
func (s *scrape) process(pid int) error {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		return err
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	var kib float64
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		return fmt.Errorf("VmRSS of process %d: %w", pid, err)
	}
	s.rss = kib * 1024
	files, err := os.ReadDir(filepath.Join(dir, "fd"))
	s.descriptors = float64(len(files))
	return err
}

func TestScrapeIsReadWhole(t *testing.T) {
	text := `# TYPE oneway_packets_sent counter
oneway_packets_sent_total{direction="forward",path="a",probe="stamp"} 12.0
oneway_packets_received_total{direction="forward",path="a",probe="stamp"} 7.0
oneway_packets_lost_total{direction="forward",path="a",probe="stamp"} 2.0
oneway_packets_host_dropped_total{direction="forward",path="a",probe="stamp"} 1.0
oneway_packets_outstanding{direction="forward",path="a",probe="stamp"} 2.0
oneway_packets_lost_total{direction="reverse",path="a",probe="stamp"} 3.0
oneway_delay_seconds_bucket{direction="forward",path="a",probe="stamp",le="0.5"} 7 # {} 0.1 1.0
oneway_packets_sent_total{direction="forward",path="a",probe="load"} 5.0
oneway_probe_up{path="a",probe="stamp"} 1.0
go_goroutines 7.0
go_memstats_next_gc_bytes 8e+06
`
	s := scrape{paths: map[string]*counts{}}
	if err := s.read(strings.NewReader(text)); err == nil {
		t.Error("a scrape without its end is taken")
	}
	s = scrape{paths: map[string]*counts{}}
	if err := s.read(strings.NewReader(text + "# EOF\n")); err != nil {
		t.Fatal(err)
	}
	a := s.paths["a"]
	if len(s.paths) != 1 || !a.up || s.goroutines != 7 || s.heap != 8e6/1.25 {
		t.Fatalf("%d paths, %+v, %v goroutines, %v bytes", len(s.paths), a, s.goroutines, s.heap)
	}
	if d := a.directions[0]; d.sent != 12 || d.known != 5 || !d.conserved() {
		t.Errorf("forward: %+v", d)
	}
	if d := a.directions[1]; d.lost != 3 || !d.conserved() {
		t.Errorf("reverse: %+v", d)
	}
	if a.directions[0].outstanding++; a.directions[0].conserved() {
		t.Error("a packet too many is conserved")
	}
}
