package interop

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"oneway.example/exporter/metric"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes/stamp"
)

// TestDaemonTakesNoQueryForALostAnswer runs a path as the agent does: what it
// asks beside its test packets takes numbers of a stateful reflector, too.
func TestDaemonTakesNoQueryForALostAnswer(t *testing.T) {
	requireSuite(t)
	for _, size := range []int{44, 172} {
		f := far{"127.0.0.1", true, false, "NTP", "ntp"}
		peer, o := f.start(t)
		o.Interval, o.Size, o.LossTimeout = 20*time.Millisecond, size, 200*time.Millisecond
		env := newEnv(t)
		counts := &counters{}
		env.Sink = counts
		p, err := stamp.New().NewProber(env, probe.Target{Path: "p", Probe: "stamp", Peer: peer}, o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		err = p.Run(ctx)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		sent, received := counts.value("packets_sent_total", "forward"), counts.value("packets_received_total", "reverse")
		if sent < 100 || received < sent-1 {
			t.Errorf("size %d: %v sent, %v answers received", size, sent, received)
		}
		if lost := counts.value("packets_lost_total", "reverse"); lost != 0 {
			t.Errorf("size %d: %v answers lost on loopback", size, lost)
		}
	}
}

// counters is a sink that keeps the counters, and not the rest.
type counters struct {
	metric.Discard
	mu     sync.Mutex
	values map[string]float64
}

func (c *counters) value(name, label string) (v float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, x := range c.values {
		if strings.Contains(k, name) && strings.Contains(k, label) {
			v += x
		}
	}
	return v
}

// Series of counters are kept, those of other kinds are as Discard's.
func (c *counters) Series(d *metric.Desc, labels ...string) metric.Series {
	if d.Kind != metric.Counter {
		return c.Discard.Series(d, labels...)
	}
	return counter{c.Discard.Series(d, labels...), c, d.Name + " " + strings.Join(labels, " ")}
}

type counter struct {
	metric.Series
	of  *counters
	key string
}

func (c counter) Add(delta float64) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if c.of.values == nil {
		c.of.values = map[string]float64{}
	}
	c.of.values[c.key] += delta
}
