// Package clocktest provides what the tests of the monitors share: a clock with steps, a log in memory, and the run of a
// monitor.
package clocktest

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/core/sample"
)

// Clock is the system's clock (in a synctest bubble: the bubble's) with added steps. The host's clock is not changed.
type Clock struct {
	system clock.Reader
	shift  atomic.Int64
}

// NewClock returns a clock that has not been stepped.
func NewClock() *Clock { return &Clock{system: clock.SystemReader()} }

// Read is a clock.Reader.
func (c *Clock) Read() clock.Reading {
	r := c.system()
	r.Wall = r.Wall.Add(time.Duration(c.shift.Load()))
	return r
}

// Step sets the wall clock forward by d, or back.
func (c *Clock) Step(d time.Duration) { c.shift.Add(int64(d)) }

// Log stores the log of a monitor.
type Log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write is io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// Count is the number of occurrences of a message.
func (l *Log) Count(message string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), message)
}

// Take returns the log since the last call.
func (l *Log) Take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.b.Reset()
	return l.b.String()
}

// Start runs a monitor until stop is called, which checks that it ends without an error and, if sink is not nil, has closed
// all its series.
func Start(t testing.TB, run func(context.Context) error, sink *metrictest.Sink) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	return func() {
		t.Helper()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run = %v", err)
		}
		if sink != nil && sink.Open() != 0 {
			t.Errorf("%d series are left: %v", sink.Open(), sink.Present(""))
		}
	}
}

// Passing is a clock.Monitor with a bound of 1 ms, but another quality from After to Until, both counted from the first query.
type Passing struct {
	After, Until time.Duration
	Bound        sample.Bound

	begin time.Time
	once  sync.Once
}

// Quality implements clock.Monitor.
func (p *Passing) Quality(instant.Time) clock.Quality {
	p.once.Do(func() { p.begin = time.Now() })
	if since := time.Since(p.begin); since > p.After && since < p.Until {
		return clock.Quality{Bound: p.Bound}
	}
	return clock.Quality{Bound: sample.Bound{Error: time.Millisecond, Reason: sample.OK}}
}

// Run implements clock.Monitor.
func (*Passing) Run(context.Context) error { return nil }
