package tcptraffic

import (
	"sync/atomic"
	"time"

	"oneway.example/exporter/core/ctxtime"
	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/traffic"
)

// watch ends the transfers of a session whose load server is silent: it hangs, or the path to this host is interrupted; and of one
// whose control connection is silent during a transfer.
func (s *Session) watch() {
	for last := time.Now(); ctxtime.Sleep(s.open, traffic.WatchInterval); last = time.Now() { // silence has no event to wait for
		now := time.Now()
		e := s.evidence(now)
		what, limit, silent := e.silence(now)
		// After a time in which this host did not run, what has come meanwhile is not read yet.
		if s.greeted.Load() && silent && time.Since(last) < 2*traffic.WatchInterval {
			s.end(&loadtest.Failure{Reason: runreason.Lost, Err: s.client.Silence(s.client.Remote(), what, limit, e.held)})
			return
		}
	}
}

// flowState is what the flows of a session tell about the load server.
type flowState struct {
	// received is when payload was last received, and moved when it was last received or acknowledged, as time.Time.UnixNano; slowest
	// is the longest round trip of a flow at its last sample, in nanoseconds.
	received, moved, slowest atomic.Int64
}

// evidence is what a session has received, and how long that may be missing.
type evidence struct {
	// control is the time of the last message, others the one of the last payload or packet of another part. Acknowledgments do not
	// count: the kernel of a load server that hangs sends them. moved is the time of the last one, or of payload.
	control, others, moved time.Time
	// begun is the beginning of the transfers that run; zero: none runs.
	begun time.Time
	// recovered is the time until which TCP may be silent after an interruption, held the longest round trip of a flow, of the control
	// connection, or of hello packets.
	recovered time.Time
	held      time.Duration
	limit     time.Duration
	onlyTCP   bool // the session has no other part
}

// evidence returns the present one.
func (s *Session) evidence(now time.Time) evidence {
	f := &s.flows
	e := evidence{
		control: s.client.LastReceived(), others: time.Unix(0, f.received.Load()), moved: time.Unix(0, f.moved.Load()),
		held: max(time.Duration(f.slowest.Load()), s.client.RTT()), onlyTCP: s.other == nil,
	}
	if s.other != nil {
		e.others = latest(e.others, s.other.LastReceived())
	}
	e.limit, e.begun = s.outage()
	e.recovered = s.recovery.Observe(now, now.Sub(e.others))
	e.holdBack(now, s.other)
	return e
}

// holdBack completes held during a transfer. Hello packets with a reply are sent where a message is missing.
func (e *evidence) holdBack(now time.Time, by Greeter) {
	if by != nil && !e.begun.IsZero() {
		e.held = max(e.held, by.HeldBack(now, e.due(), 2*aliveInterval))
	}
}

// due returns since when a message is due during a transfer.
func (e *evidence) due() time.Time { return latest(latest(e.control, e.begun), e.recovered) }

// silence reports whether the load server is silent, what of it, and for how long. The control connection alone is silent when nothing
// comes on it during a transfer, though payload or packets of other parts do. It may wait after an interruption of these, and in a queue.
func (e *evidence) silence(now time.Time) (what loadcontrol.Silent, limit time.Duration, silent bool) {
	if now.Sub(latest(e.control, e.others)) > e.limit {
		switch {
		case now.Sub(e.moved) < e.limit/2:
			what = loadcontrol.SilentProcess
		case e.onlyTCP:
			what = loadcontrol.SilentTCP
		}
		return what, e.limit, true
	}
	limit = traffic.ControlTimeout(e.limit, e.held)
	return loadcontrol.SilentControl, limit, !e.begun.IsZero() && now.Sub(e.due()) > limit
}

// outage returns the longest silence of the load server that the session survives, and when the transfers have begun that run; zero:
// none runs.
func (s *Session) outage() (limit time.Duration, begun time.Time) {
	limit = traffic.IdleTimeout
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.pending {
		limit, begun = max(limit, x.plan.Outage), s.since
	}
	return limit, begun
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
