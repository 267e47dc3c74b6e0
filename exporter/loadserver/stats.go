package loadserver

import (
	"context"
	"maps"
	"net/netip"
	"sync"
	"time"

	"oneway.example/exporter/loadcontrol"
	"oneway.example/exporter/metric"
)

// Status is what a load server does now and has done since it started.
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
	Refused         map[loadcontrol.Reason]uint64
	// Ended counts sessions that have ended, by reason: closed, lost, silent, protocol,
	// shutting_down.
	Ended map[string]uint64
	// Received and Sent are bytes of UDP payload.
	Received, Sent int64
	// Discarded counts the packets at the test port that belong to no session or
	// transfer, by the reason; none was answered.
	Discarded map[string]uint64
}

// Status may be called at any time.
func (r *LoadServer) Status() Status {
	s := r.counts.status()
	s.Addrs, s.Connections, s.Discarded = r.Addrs(), r.gate.connections(), r.discarded()
	if len(s.Addrs) > 0 {
		s.Pin = r.Pin()
	}
	return s
}

// counts are kept, and published by publish.
type counts struct {
	mu    sync.Mutex
	bytes map[[2]string]int64 // by token and direction
	total Status
}

const (
	// publishEvery is how fresh what is published is.
	publishEvery = time.Second
	// saveEvery is how often it is tried again to save the ledger.
	saveEvery = 10 * time.Second
)

func newCounts() counts {
	return counts{
		bytes: map[[2]string]int64{}, total: Status{Refused: map[loadcontrol.Reason]uint64{}, Ended: map[string]uint64{}},
	}
}

// note changes what is counted.
func (c *counts) note(change func(*Status)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.total)
}

// request counts what was refused.
func (c *counts) request(reason loadcontrol.Reason) { c.note(func(s *Status) { s.Refused[reason]++ }) }

func (c *counts) status() (s Status) {
	c.note(func(total *Status) {
		s = *total
		s.Refused, s.Ended = maps.Clone(total.Refused), maps.Clone(total.Ended)
	})
	return s
}

// ends are the reasons of a session's end.
func ends() []string { return []string{"closed", "lost", "silent", "protocol", "shutting_down"} }

// publish keeps the series fresh until ctx ends, and after.
func (r *LoadServer) publish(ctx context.Context, series *metric.Scope) {
	again, saving := time.NewTicker(publishEvery), time.NewTicker(saveEvery)
	defer again.Stop()
	defer saving.Stop()
	for {
		r.tell(series)
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

// tell publishes all that is counted.
func (r *LoadServer) tell(series *metric.Scope) {
	s := r.Status()
	r.counts.mu.Lock()
	bytes := maps.Clone(r.counts.bytes)
	r.counts.mu.Unlock()
	series.Update(func() {
		series.Total(metric.LoadServerRequests, float64(s.Opened), "opened")
		series.Total(metric.LoadServerRequests, float64(s.Started), "started")
		for _, reason := range loadcontrol.Reasons() {
			series.Total(metric.LoadServerRequests, float64(s.Refused[reason]), string(reason))
		}
		for _, reason := range ends() {
			series.Total(metric.LoadServerEnded, float64(s.Ended[reason]), reason)
		}
		for key, n := range bytes {
			series.Total(metric.LoadServerBytes, float64(n), key[0], key[1])
		}
		for reason, n := range s.Discarded {
			series.Total(metric.LoadServerDiscarded, float64(n), reason)
		}
		series.Set(metric.LoadServerSessions, float64(s.Sessions))
		series.Set(metric.LoadServerConnections, float64(s.Connections))
		if r.options.StateDir != "" {
			saved := 1.0
			if r.ledger.Saved() != nil {
				saved = 0
			}
			series.Set(metric.QuotaSaved, saved, "tokens")
		}
	})
}

// discarded adds up what all traffic has left alone.
func (r *LoadServer) discarded() map[string]uint64 {
	sum := map[string]uint64{}
	for _, f := range r.remote {
		for reason, n := range f.Discarded() {
			sum[reason] += n
		}
	}
	return sum
}
