package reflector

import (
	"context"
	"net/netip"
	"runtime/debug"
	"syscall"
	"time"

	"oneway.example/exporter/metric"
)

// Stats is what a reflector has done since it started.
type Stats struct {
	// Running is how long it has been running; 0 before it started.
	Running time.Duration
	// Results counts packets by what became of them, indexed by Result.
	Results [results]uint64
	// Sessions is how many sessions are remembered now, Proven how many of them
	// have shown that they receive our answers.
	Sessions, Proven int
	// SocketDrops counts questions that the kernel dropped for want of buffer.
	SocketDrops uint64
	// SendErrors counts the answers that the kernel did not take, by its
	// reason; their sum is Results[SendFailed].
	SendErrors map[syscall.Errno]uint64
	// Addrs are the addresses listened on.
	Addrs []netip.AddrPort
}

// Packets is how many packets reached the reflector.
func (s *Stats) Packets() (n uint64) {
	for _, c := range s.Results {
		n += c
	}
	return n
}

// Answered is how many of them were answered.
func (s *Stats) Answered() (n uint64) {
	for r, c := range s.Results {
		if Result(r).Answered() {
			n += c
		}
	}
	return n
}

// Stats may be called at any time, after Run too.
func (r *Reflector) Stats() Stats {
	s := Stats{Addrs: r.Addrs(), SendErrors: map[syscall.Errno]uint64{}}
	select {
	case <-r.started:
		s.Running = time.Since(r.begin)
	default:
	}
	for _, h := range r.shards {
		h.mu.Lock()
		for i, n := range h.counts {
			s.Results[i] += n
		}
		for errno, n := range h.sendErrors {
			s.SendErrors[errno] += n
		}
		s.Sessions += h.table.len()
		s.Proven += h.table.rings[proven].n
		h.mu.Unlock()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s.SocketDrops = r.dropped
	for _, c := range r.conns {
		if c == nil {
			continue
		}
		s.SocketDrops += c.Stats().Dropped
	}
	return s
}

// publisher turns the counts into metrics, by their differences.
type publisher struct {
	sink     metric.Sink
	packets  [results]metric.Series
	sessions metric.Series
	drops    metric.Series
	errors   map[syscall.Errno]metric.Series
	last     Stats
}

// socketLabel is the reflector's value of the label `socket`.
const socketLabel = "reflector"

func newPublisher(sink metric.Sink) *publisher {
	p := &publisher{
		sink: sink, errors: map[syscall.Errno]metric.Series{},
		sessions: sink.Series(metric.ReflectorSessions),
		drops:    sink.Series(metric.SocketDrops, socketLabel),
	}
	for _, r := range Results() {
		p.packets[r] = sink.Series(metric.ReflectorPackets, r.String())
	}
	return p
}

func (p *publisher) publish(s Stats) {
	for r, n := range s.Results {
		p.packets[r].Add(float64(n - p.last.Results[r]))
	}
	p.sessions.Set(float64(s.Sessions))
	p.drops.Add(float64(s.SocketDrops - p.last.SocketDrops))
	for errno, n := range s.SendErrors {
		p.errors[errno].Add(float64(n - p.last.SendErrors[errno]))
	}
	p.last = s
}

// meet opens series for errors that have not happened before. A sink may not
// open series within an Update.
func (p *publisher) meet(s Stats) {
	for errno := range s.SendErrors {
		if p.errors[errno] == nil {
			p.errors[errno] = p.sink.Series(metric.SendErrors, socketLabel, errno.Error())
		}
	}
}

func (p *publisher) close() {
	for _, s := range p.packets {
		s.Close()
	}
	for _, s := range p.errors {
		s.Close()
	}
	p.sessions.Close()
	p.drops.Close()
}

// tidy forgets the sessions that are silent, with pauses for packets, and reports whether memory
// was given back to the runtime.
func (s *shard) tidy(now time.Duration) (shrunk bool) {
	for more := true; more; {
		s.mu.Lock()
		if more = s.table.expire(now, s.expiry); !more {
			shrunk = s.table.shrink()
		}
		s.mu.Unlock()
	}
	return shrunk
}

// publish keeps the metrics fresh until ctx ends. It also forgets silent
// sessions: with no packet to answer nobody else would.
func (r *Reflector) publish(ctx context.Context, since func() time.Duration) {
	p := newPublisher(r.env.Sink)
	defer p.close()
	var refused unsent
	tick := time.NewTicker(publishInterval)
	defer tick.Stop()
	for {
		shrunk := false
		for _, h := range r.shards {
			shrunk = h.tidy(since()) || shrunk
		}
		if shrunk {
			debug.FreeOSMemory() // else the collector would run in some minutes, and not return all
		}
		now := r.Stats()
		p.meet(now)
		r.env.Sink.Update(func() { p.publish(now) })
		refused.look(&now, since(), r.env.Log)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
