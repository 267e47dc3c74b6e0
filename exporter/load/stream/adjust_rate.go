package stream

import (
	"context"
	"fmt"
	"math"
	"net/netip"
	"sync"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/net/sched"
	"oneway.example/exporter/net/tstamp"
	"oneway.example/exporter/net/wire/loadfmt"
)

// Status is the state of reception of a stream with feedback.
type Status = loadfmt.Status

// NoVariation is the Status.Variation if it is unknown.
const NoVariation = loadfmt.NoVariation

// MinReport is the least number of bytes received between two reports.
const MinReport = loadfmt.ReportBytes

// Adjuster returns the interval of packets of a stream with feedback from now on, by its state of
// reception. It must not block. One goroutine at a time calls it, and none after Send has
// returned.
type Adjuster func(Status) time.Duration

// RateControl is the rate of a stream with feedback, at its sender. Times are readings of one
// monotonic clock. Its methods are safe for concurrent use. The stream always stays within its plan:
// no two packets are closer than the plan's Interval.
//
// It begins with one packet per Feedback. Without reports or orders it keeps its rate for a time, and
// then halves it repeatedly, down to the initial rate: the deciding end may have ended, or its packets
// may be lost on a path that this stream overloads.
type RateControl struct {
	least       time.Duration // shortest interval: the plan's
	most        time.Duration // longest interval: the initial one
	idleTimeout time.Duration // idle timeout before the rate is halved

	mu         sync.Mutex
	adjustRate Adjuster // nil: orders of the other end count
	pace       time.Duration
	lastReport monotonic
	serial     uint32
}

// reportTimeout is the idle timeout after which a sender halves its rate, and missedReports the least
// number of report intervals in it.
const (
	reportTimeout = time.Second
	missedReports = 4
)

// NewRateControl is that of a plan that begins now; nil: the orders of the other end count.
func NewRateControl(p Plan, adjustRate Adjuster, now monotonic) *RateControl {
	s := &RateControl{
		least: p.Segments[0].Interval, idleTimeout: max(reportTimeout, missedReports*p.Feedback),
		adjustRate: adjustRate, lastReport: now,
	}
	s.most = max(s.least, p.Feedback)
	s.pace = s.most
	return s
}

// Interval returns the time from the present packet to the next.
func (s *RateControl) Interval(now monotonic) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now-s.lastReport > s.idleTimeout {
		s.lastReport = now
		s.pace = min(2*s.pace, s.most)
	}
	return s.pace
}

// HandleReport handles a report; false: it is old or unexpected.
func (s *RateControl) HandleReport(st loadfmt.Status, now monotonic) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.adjustRate == nil || st.Serial <= s.serial {
		return false
	}
	s.serial = st.Serial
	s.set(s.adjustRate(st), now)
	return true
}

// ordered handles an order; false: it is old or unexpected.
func (s *RateControl) ordered(p loadfmt.Pace, now monotonic) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.adjustRate != nil || p.Serial <= s.serial {
		return false
	}
	s.serial = p.Serial
	s.set(time.Duration(p.Interval), now)
	return true
}

func (s *RateControl) set(pace time.Duration, now monotonic) {
	s.pace, s.lastReport = min(max(pace, s.least), s.most), now
}

// end stops calls of the Adjuster.
func (s *RateControl) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.adjustRate, s.serial = nil, math.MaxUint32
}

// adjusted passes a report or an order to its stream, if its source is the destination of that
// stream.
func (s *Session) adjusted(in *tstamp.In, h loadfmt.Header, now monotonic) Ignored {
	e := s.endpoint
	var to *RateControl
	from := unmapped(in.Peer)
	e.mu.RLock()
	for _, x := range e.sending {
		if x.session == s && x.header.Transfer == h.Transfer && unmapped(x.to) == from {
			to = x.adjustRate
		}
	}
	e.mu.RUnlock()
	if to == nil {
		return UnknownTransfer
	}
	st, report := loadfmt.ParseStatus(in.Payload, h)
	pace, order := loadfmt.ParsePace(in.Payload, h)
	if report && to.HandleReport(st, now) || order && to.ordered(pace, now) {
		return taken
	}
	return BadFeedback
}

// Report sends the state of reception to the sender of a stream with feedback. The next report
// replaces a lost one.
func (s *Session) Report(transfer uint16, to netip.AddrPort, st Status) error {
	return s.sendControl(loadfmt.AppendReport(make([]byte, 0, loadfmt.ReportBytes), s.id, transfer, st), to)
}

// Order sends another interval to the sender of a stream with feedback, which stays within its plan in
// any case. serial must increase from order to order.
func (s *Session) Order(transfer uint16, to netip.AddrPort, serial uint32, interval time.Duration) error {
	pace := loadfmt.Pace{Serial: serial, Interval: uint64(max(1, interval))}
	return s.sendControl(loadfmt.AppendOrder(make([]byte, 0, loadfmt.OrderBytes), s.id, transfer, pace), to)
}

func (s *Session) sendControl(packet []byte, to netip.AddrPort) error {
	_, err := s.endpoint.conn.Send([]tstamp.Out{{Payload: packet, Peer: to, Source: s.sourceFor(to), Cookie: noStamp}})
	if err != nil {
		return fmt.Errorf("stream: %w", err)
	}
	return nil
}

// Follow calls report with the state of reception of a stream with feedback, every Plan.Feedback, until ctx
// ends. It does not call it before more bytes were received than a report has, so that a receiver never
// sends more than it receives, and the sender detects an interruption.
func (r *Reception) Follow(ctx context.Context, report func(Status)) {
	if r.tally == nil {
		return
	}
	again := time.NewTicker(r.feedback)
	defer again.Stop()
	var reported uint64
	for {
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		}
		r.session.mu.Lock()
		more := r.tally.status.Bytes >= reported+MinReport
		var st loadfmt.Status
		if more {
			st = r.tally.Status(sched.Now() - r.begun)
			reported = st.Bytes
		}
		r.session.mu.Unlock()
		if more {
			report(st)
		}
	}
}

// StatusCounter calculates the statuses of a stream with feedback. The zero value is
// ready.
type StatusCounter struct {
	status loadfmt.Status
	base   time.Duration // the first delay, by two clocks: the origin of all others
	any    bool
	least  time.Duration
	sum    time.Duration // of n delays since the last Status
	n      int
}

// Add counts a received intact packet. copied: it is a duplicate. micros is its Header.Micros; at is
// its time of arrival by any clock, or zero if unknown.
func (t *StatusCounter) Add(seq uint32, payloadBytes int, copied bool, at instant.Time, micros uint32) {
	if copied {
		t.status.Duplicates++
		return
	}
	if seq < t.status.Expected {
		t.status.Reordered++
	}
	t.status.Expected = max(t.status.Expected, seq+1)
	t.status.Packets++
	t.status.Bytes += uint64(payloadBytes)
	if at == 0 {
		return
	}
	delay := time.Duration(at) - time.Duration(micros)*time.Microsecond
	if !t.any {
		t.any, t.base = true, delay
	}
	delay -= t.base
	t.least = min(t.least, delay)
	t.sum += delay
	t.n++
}

// Status returns the next status, elapsed after the begin.
func (t *StatusCounter) Status(elapsed time.Duration) loadfmt.Status {
	t.status.Serial++
	t.status.Elapsed = uint64(elapsed)
	t.status.Variation = loadfmt.NoVariation
	if t.n > 0 {
		mean := t.sum/time.Duration(t.n) - t.least
		t.status.Variation = uint32(min(mean/time.Microsecond, loadfmt.NoVariation-1))
	}
	t.sum, t.n = 0, 0
	return t.status
}
