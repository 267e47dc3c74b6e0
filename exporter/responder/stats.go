package responder

import (
	"context"
	"maps"
	"net/netip"
	"sync"
	"time"

	"oneway.example/exporter/control"
	"oneway.example/exporter/metric"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/stream"
)

// Status is what a responder does now and has done since it started.
type Status struct {
	// Addrs are the addresses listened on; none: it does not run.
	Addrs []netip.AddrPort
	// Pin is the hash of its key.
	Pin string
	// Connections are open now, Sessions of them hold a session.
	Connections, Sessions int
	// Opened counts sessions, Started transfers, and Refused what was refused of either,
	// by reason.
	Opened, Started uint64
	Refused         map[control.Reason]uint64
	// Ended counts sessions that have ended, by reason: closed, lost, silent, protocol,
	// shutting_down.
	Ended map[string]uint64
	// Received and Sent are octets of UDP payload.
	Received, Sent int64
	// Discarded counts the packets at the test port that belong to no session or
	// transfer, by the reason; none was answered.
	Discarded [stream.Reasons]uint64
}

// Status may be called at any time.
func (r *Responder) Status() Status {
	s := r.counts.status()
	s.Addrs, s.Connections, s.Discarded = r.Addrs(), r.gate.connections(), r.discarded()
	if len(s.Addrs) > 0 {
		s.Pin = r.Pin()
	}
	return s
}

// counts are kept and published; the zero value keeps only.
type counts struct {
	mu       sync.Mutex
	sink     metric.Sink
	results  map[string]metric.Series
	reasons  map[string]metric.Series
	octets   map[string]metric.Series // token and direction
	ignored  [stream.Reasons]metric.Series
	told     [stream.Reasons]uint64 // of ignored, so far
	now      [2]metric.Series       // sessions, connections
	saved    metric.Series          // nil: nothing is to be saved
	sessions int
	total    Status
}

const (
	// publishEvery is how fresh gauges and counts of packets are.
	publishEvery = time.Second
	// saveEvery is how often it is tried again to save the ledger.
	saveEvery = 10 * time.Second
)

// open begins to publish; closeAll ends it.
func (c *counts) open(sink metric.Sink, saves bool) (closeAll func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sink = sink
	c.results, c.reasons, c.octets = map[string]metric.Series{}, map[string]metric.Series{}, map[string]metric.Series{}
	for _, word := range []string{"opened", "started"} {
		c.results[word] = sink.Series(metric.ResponderRequests, word)
	}
	for _, reason := range control.Reasons() {
		c.results[string(reason)] = sink.Series(metric.ResponderRequests, string(reason))
	}
	for _, reason := range []string{"closed", "lost", "silent", "protocol", "shutting_down"} {
		c.reasons[reason] = sink.Series(metric.ResponderEnded, reason)
	}
	for i := range c.ignored {
		c.ignored[i] = sink.Series(metric.ResponderDiscarded, stream.Ignored(i).String())
	}
	c.now = [2]metric.Series{sink.Series(metric.ResponderSessions), sink.Series(metric.ResponderConnections)}
	c.now[0].Set(0)
	c.now[1].Set(0)
	if saves {
		c.saved = sink.Series(metric.BudgetSaved, "tokens")
	}
	return c.close
}

func (c *counts) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, all := range []map[string]metric.Series{c.results, c.reasons, c.octets} {
		for _, s := range all {
			s.Close()
		}
	}
	for _, s := range c.ignored {
		s.Close()
	}
	for _, s := range c.now {
		s.Close()
	}
	if c.saved != nil {
		c.saved.Close()
	}
	c.sink, c.results, c.reasons, c.octets, c.saved = nil, nil, nil, nil, nil
}

func (c *counts) add(series map[string]metric.Series, word string) {
	if s := series[word]; s != nil {
		s.Add(1)
	}
}

// request counts what was refused.
func (c *counts) request(reason control.Reason) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.total.Refused == nil {
		c.total.Refused = map[control.Reason]uint64{}
	}
	c.total.Refused[reason]++
	c.add(c.results, string(reason))
}

func (c *counts) opened() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total.Opened++
	c.sessions++
	c.add(c.results, "opened")
}

func (c *counts) started() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total.Started++
	c.add(c.results, "started")
}

func (c *counts) ended(reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.total.Ended == nil {
		c.total.Ended = map[string]uint64{}
	}
	c.total.Ended[reason]++
	c.sessions--
	c.add(c.reasons, reason)
}

func (c *counts) bytes(token string, d sample.Direction, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d == sample.Forward {
		c.total.Received += n
	} else {
		c.total.Sent += n
	}
	if c.sink == nil {
		return
	}
	key := token + "\x00" + d.String()
	if c.octets[key] == nil {
		c.octets[key] = c.sink.Series(metric.ResponderBytes, token, d.String())
	}
	c.octets[key].Add(float64(n))
}

func (c *counts) status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.total
	s.Sessions = c.sessions
	s.Refused, s.Ended = maps.Clone(c.total.Refused), maps.Clone(c.total.Ended)
	return s
}

// publish keeps the gauges and the counts of packets fresh.
func (r *Responder) publish(ctx context.Context) {
	again, saving := time.NewTicker(publishEvery), time.NewTicker(saveEvery)
	defer again.Stop()
	defer saving.Stop()
	for {
		r.counts.tell(r.discarded(), r.gate.connections(), r.ledger.Saved())
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		case <-saving.C:
			if r.ledger.Saved() != nil {
				_ = r.ledger.Save() // Saved tells
			}
		}
	}
}

// discarded adds up what all test ports have left alone; after Run it is nothing.
func (r *Responder) discarded() (sum [stream.Reasons]uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.points {
		for i, n := range p.endpoint.Stats().Ignored {
			sum[i] += n
		}
	}
	return sum
}

// tell publishes what others count.
func (c *counts) tell(ignored [stream.Reasons]uint64, connections int, unsaved error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sink == nil {
		return
	}
	c.sink.Update(func() {
		for i, n := range ignored {
			if n > c.told[i] { // while Run ends, the ports may be gone already
				c.ignored[i].Add(float64(n - c.told[i]))
				c.told[i] = n
			}
		}
		c.now[0].Set(float64(c.sessions))
		c.now[1].Set(float64(connections))
		if c.saved != nil {
			c.saved.Set(1)
			if unsaved != nil {
				c.saved.Set(0)
			}
		}
	})
}
