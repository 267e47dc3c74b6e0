package loadserver

import (
	"context"
	"maps"
	"net/netip"
	"sync"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/net/listen"
)

// Status has the state of a load server and its counters since the start.
type Status struct {
	// Addrs are the listening addresses; empty: it does not run.
	Addrs []netip.AddrPort
	// NotListening are the addresses of Options.Listen without sockets, which are tried again.
	NotListening []listen.Failed
	// Pin is the hash of its key.
	Pin string
	// Connections and Sessions are open now.
	Connections, Sessions int
	// Opened counts sessions, Started transfers, and Refused refusals of both by
	// reason.
	Opened, Started uint64
	Refused         map[loadcontrol.Reason]uint64
	// Ended counts ended sessions by reason: see runreason.Ends.
	Ended map[string]uint64
	// Received and Sent are bytes of UDP payload.
	Received, Sent int64
	// Discarded counts packets at the test port without a session or transfer, by reason; none
	// had a reply.
	Discarded map[string]uint64
}

// Status is safe for concurrent use.
func (r *LoadServer) Status() Status {
	s := r.counts.status()
	s.Addrs, s.NotListening, s.Connections, s.Discarded = r.Addrs(), r.listened.Failed(), r.gate.connections(), r.discarded()
	if len(s.Addrs) > 0 {
		s.Pin = r.Pin()
	}
	return s
}

// counts are the counters; publish exports them.
type counts struct {
	mu    sync.Mutex
	bytes map[[2]string]int64 // by token and direction
	total Status
}

const (
	// publishEvery is the interval of updates of the metrics.
	publishEvery = time.Second
)

func newCounts() counts {
	return counts{
		bytes: map[[2]string]int64{}, total: Status{Refused: map[loadcontrol.Reason]uint64{}, Ended: map[string]uint64{}},
	}
}

// note changes the counters.
func (c *counts) note(change func(*Status)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.total)
}

// request counts a refusal.
func (c *counts) request(reason loadcontrol.Reason) { c.note(func(s *Status) { s.Refused[reason]++ }) }

func (c *counts) status() (s Status) {
	c.note(func(total *Status) {
		s = *total
		s.Refused, s.Ended = maps.Clone(total.Refused), maps.Clone(total.Ended)
	})
	return s
}

// publish updates the metrics until ctx ends.
func (r *LoadServer) publish(ctx context.Context, series *metric.Scope) {
	again, saving := time.NewTicker(publishEvery), time.NewTicker(metric.QuotaSaveInterval)
	defer again.Stop()
	defer saving.Stop()
	for {
		r.export(series)
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		case <-saving.C:
			r.usage.Keep()
			r.identity.keep()
		}
	}
}

// export exports all counters.
func (r *LoadServer) export(series *metric.Scope) {
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
		for _, reason := range metric.LoadServerEnded.Values.Names(metric.ReasonL) {
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
			if r.usage.Saved() != nil {
				saved = 0
			}
			series.Set(metric.QuotaSaved, saved, "tokens")
		}
	})
}

// discarded sums the discarded packets of all types of traffic.
func (r *LoadServer) discarded() map[string]uint64 {
	sum := map[string]uint64{}
	for _, f := range r.remote {
		for reason, n := range f.Discarded() {
			sum[reason] += n
		}
	}
	return sum
}
