package influxdb

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/influxdata/line-protocol/v2/lineprotocol"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/output"
	"oneway.example/exporter/output/point"
	"oneway.example/exporter/output/promsink"
	"oneway.example/tests/await"
	"oneway.example/tests/freeport"
)

// store is a fake InfluxDB. It keeps the lines of requests that it accepts.
type store struct {
	*httptest.Server
	t *testing.T

	mu       sync.Mutex
	requests []request
	lines    []string
	reply    func(w http.ResponseWriter, r request) bool // nil or false: accept
}

// request is what the store has received.
type request struct {
	*http.Request
	lines []string
	bytes int
}

func newStore(t *testing.T) *store {
	t.Helper()
	s := &store{t: t}
	l, err := net.Listen("tcp", freeport.Address(t)) // no other test gets the port of a store that is closed
	if err != nil {
		t.Fatal(err)
	}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	_ = s.Listener.Close()
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func (s *store) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client went away
	}
	n := len(body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(bytes.NewReader(body))
		if err == nil {
			body, err = io.ReadAll(z)
		}
		if err != nil {
			s.t.Errorf("body: %v", err)
		}
	}
	got := request{Request: r, bytes: n}
	for lines := bufio.NewScanner(bytes.NewReader(body)); lines.Scan(); {
		got.lines = append(got.lines, lines.Text())
	}
	s.mu.Lock()
	s.requests = append(s.requests, got)
	reply := s.reply
	s.mu.Unlock()
	if reply != nil && reply(w, got) {
		return
	}
	s.accept(got.lines...)
	w.WriteHeader(http.StatusNoContent)
}

func (s *store) accept(lines ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, lines...)
}

// on sets how the store replies.
func (s *store) on(reply func(w http.ResponseWriter, r request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reply = reply
}

func (s *store) received() (lines []string, requests []request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.lines), slices.Clone(s.requests)
}

// values are the numbers of the accepted points, in their order.
func (s *store) values() (all []int64) {
	lines, _ := s.received()
	return numbers(s.t, lines)
}

// numbers are the values of the field n.
func numbers(t testing.TB, lines []string) (all []int64) {
	t.Helper()
	for _, line := range lines {
		d := lineprotocol.NewDecoderWithBytes([]byte(line))
		for d.Next() {
			if _, err := d.Measurement(); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			for {
				k, _, err := d.NextTag()
				if err != nil {
					t.Fatalf("%q: %v", line, err)
				}
				if k == nil {
					break
				}
			}
			_, v, err := d.NextField()
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			all = append(all, v.IntV())
		}
	}
	return all
}

// sequence is count numbers from first on.
func sequence(first, count int) (all []int64) {
	for i := range count {
		all = append(all, int64(first+i))
	}
	return all
}

// rig is an output that a test runs.
type rig struct {
	*Output
	t    *testing.T
	sink *promsink.Sink
	log  await.Text
	add  func(first, count int)
	stop func()
}

// options of an output to a store of version 1, whose pauses are short.
func options(s *store) Options {
	o := DefaultOptions()
	o.URL, o.Version, o.Database = s.URL, 1, "oneway"
	return o
}

// start runs an output until the end of the test, or until stop. Its series are the points that add adds, one a call of Series.
func start(t *testing.T, o Options, stateDir string) *rig {
	t.Helper()
	r := &rig{t: t, sink: promsink.New(promsink.Options{})}
	scopes, recorder := new(metric.Scopes), new(record.Recorder)
	var err error
	r.Output, err = newOutput(output.Env{
		Name: "test", Groups: metric.Groups(), Log: slog.New(slog.NewTextHandler(&r.log, nil)), Sink: r.sink, Scopes: scopes, Recorder: recorder, StateDir: stateDir,
	}, o)
	if err != nil {
		t.Fatal(err)
	}
	r.backoff = backoff{first: time.Millisecond, most: 20 * time.Millisecond}
	b := &batcher{maxPoints: o.BatchPoints, maxBytes: int(o.BatchBytes), put: func(record []byte, points int) {
		r.mu.Lock()
		s := r.spool
		r.mu.Unlock()
		s.Append(record, points)
	}}
	r.add = func(first, count int) {
		b.add(points(first, count))
		b.flush()
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
		scopes.Close()
	})
	t.Cleanup(r.stop)
	await.That(t, "the spool is open", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.spool != nil
	})
	return r
}

// points are numbered points.
func points(first, count int) (all []point.Point) {
	for i := range count {
		n := int64(first + i)
		all = append(all, point.Point{
			Measurement: "m", Tags: []point.Tag{{Key: "host", Value: "h"}}, Fields: point.Int(nil, "n", n), At: instant.Time(1_700_000_000_000_000_000 + n),
		})
	}
	return all
}

// requests is the number of requests by result.
func (r *rig) requests(result string) float64 {
	return r.value("oneway_output_requests_total", `result="`+result+`"`)
}

// value is a value of the metrics; 0: absent.
func (r *rig) value(name string, label string) (v float64) {
	r.t.Helper()
	families, err := r.sink.Gather()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.Metric {
			var labels strings.Builder
			for _, l := range m.Label {
				fmt.Fprintf(&labels, "%s=%q,", l.GetName(), l.GetValue())
			}
			if f.GetName() == name && strings.Contains(labels.String(), label) {
				v += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return v
}

// arrive waits until the store has accepted so many points, which must be numbered from 0 on in order.
func (r *rig) arrive(s *store, count int) {
	r.t.Helper()
	await.That(r.t, fmt.Sprintf("%d points arrive", count), func() bool { lines, _ := s.received(); return len(lines) >= count }, &r.log)
	if got := s.values(); !slices.Equal(got, sequence(0, count)) {
		r.t.Fatalf("accepted %d points, want %d in order: %.200s", len(got), count, fmt.Sprint(got))
	}
	await.That(r.t, "nothing waits", func() bool { return r.Status().Waiting == 0 })
}

func spoolFiles(t *testing.T, dir string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "outputs", "test", "*.spool"))
	if err != nil {
		t.Fatal(err)
	}
	return all
}
