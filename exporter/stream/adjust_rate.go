package stream

import (
	"context"
	"fmt"
	"math"
	"net/netip"
	"sync"
	"time"

	"oneway.example/exporter/instant"
	"oneway.example/exporter/sched"
	"oneway.example/exporter/tstamp"
	"oneway.example/exporter/wire/load"
)

// Status is what has come of a stream with feedback so far.
type Status = load.Status

// NoVariation is a Status.Variation that is not known.
const NoVariation = load.NoVariation

// MinReport is how many bytes have come between two reports, at the least.
const MinReport = load.ReportBytes

// Adjuster decides how a stream with feedback goes on: it is told what has come of it, and
// returns the time from packet to packet from now on. It must not block. It is called by one
// goroutine at a time, and not after Send has returned.
type Adjuster func(Status) time.Duration

// Adjusting is the rate of a stream with feedback, at its sender. Times are readings of one
// monotonic clock; its methods are safe for concurrent use. However it is steered, the
// stream stays within its plan: no two packets are closer than there.
//
// It begins with one packet each Feedback. Where nothing is heard it keeps its rate for a
// while, and then halves it again and again, until it is back there: who decides may be gone,
// or what it says be lost on a way that this stream overloads.
type Adjusting struct {
	least time.Duration // from packet to packet: the plan's
	most  time.Duration // what it begins with
	bears time.Duration // silence

	mu         sync.Mutex
	adjustRate Adjuster // nil: the other end decides
	pace       time.Duration
	heard      monotonic
	serial     uint32
}

// bearsSilence is for how long a sender keeps its rate in silence, and silentReports how many
// reports are missing then at the least.
const (
	bearsSilence  = time.Second
	silentReports = 4
)

// NewAdjusting is that of a plan that begins now; nil: the other end steers.
func NewAdjusting(p Plan, adjustRate Adjuster, now monotonic) *Adjusting {
	s := &Adjusting{
		least: p.Segments[0].Interval, bears: max(bearsSilence, silentReports*p.Feedback),
		adjustRate: adjustRate, heard: now,
	}
	s.most = max(s.least, p.Feedback)
	s.pace = s.most
	return s
}

// Interval is the time from the packet of now to the next.
func (s *Adjusting) Interval(now monotonic) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now-s.heard > s.bears {
		s.heard = now
		s.pace = min(2*s.pace, s.most)
	}
	return s.pace
}

// Reported hears from the receiver; false: this is not what is waited for.
func (s *Adjusting) Reported(st load.Status, now monotonic) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.adjustRate == nil || st.Serial <= s.serial {
		return false
	}
	s.serial = st.Serial
	s.set(s.adjustRate(st), now)
	return true
}

// ordered hears from who decides at the other end.
func (s *Adjusting) ordered(p load.Pace, now monotonic) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.adjustRate != nil || p.Serial <= s.serial {
		return false
	}
	s.serial = p.Serial
	s.set(time.Duration(p.Interval), now)
	return true
}

func (s *Adjusting) set(pace time.Duration, now monotonic) {
	s.pace, s.heard = min(max(pace, s.least), s.most), now
}

// end has nobody asked any more.
func (s *Adjusting) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.adjustRate, s.serial = nil, math.MaxUint32
}

// adjusted gives a report or an order to the stream that it is for, if it comes from where
// that stream goes.
func (s *Session) adjusted(in *tstamp.In, h load.Header, now monotonic) Ignored {
	e := s.endpoint
	var to *Adjusting
	from := plain(in.Peer)
	e.mu.RLock()
	for _, x := range e.sending {
		if x.session == s && x.header.Transfer == h.Transfer && plain(x.to) == from {
			to = x.adjustRate
		}
	}
	e.mu.RUnlock()
	if to == nil {
		return UnknownTransfer
	}
	st, report := load.ParseStatus(in.Payload, h)
	pace, order := load.ParsePace(in.Payload, h)
	if report && to.Reported(st, now) || order && to.ordered(pace, now) {
		return taken
	}
	return BadFeedback
}

// Report tells the sender of a stream with feedback what has come of it. One that is lost
// costs nothing but time: the next one says more.
func (s *Session) Report(transfer uint16, to netip.AddrPort, st Status) error {
	return s.tell(load.AppendReport(make([]byte, 0, load.ReportBytes), s.id, transfer, st), to)
}

// Order asks the sender of a stream with feedback for another time from packet to packet. It
// keeps to its plan, whatever is asked for. serial grows from order to order.
func (s *Session) Order(transfer uint16, to netip.AddrPort, serial uint32, interval time.Duration) error {
	pace := load.Pace{Serial: serial, Interval: uint64(max(1, interval))}
	return s.tell(load.AppendOrder(make([]byte, 0, load.OrderBytes), s.id, transfer, pace), to)
}

func (s *Session) tell(packet []byte, to netip.AddrPort) error {
	_, err := s.endpoint.conn.Send([]tstamp.Out{{Payload: packet, Peer: to, Source: s.sourceFor(to), Cookie: noStamp}})
	if err != nil {
		return fmt.Errorf("stream: %w", err)
	}
	return nil
}

// Follow tells what has come of a stream with feedback, as often as its plan says, until ctx
// ends. It says nothing while nothing comes, nor before more bytes came than a report has:
// so a receiver never sends more than it is sent, and who sends hears that the way is shut.
func (r *Reception) Follow(ctx context.Context, tell func(Status)) {
	if r.tally == nil {
		return
	}
	again := time.NewTicker(r.feedback)
	defer again.Stop()
	var told uint64
	for {
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		}
		r.session.mu.Lock()
		news := r.tally.status.Bytes >= told+MinReport
		var st load.Status
		if news {
			st = r.tally.Status(sched.Now() - r.begun)
			told = st.Bytes
		}
		r.session.mu.Unlock()
		if news {
			tell(st)
		}
	}
}

// Tally makes the statuses of a stream with feedback from what comes. The zero value is
// ready.
type Tally struct {
	status load.Status
	base   time.Duration // the first delay, by two clocks: what all are counted from
	any    bool
	least  time.Duration
	sum    time.Duration // of n delays since the last Status
	n      int
}

// Add counts an intact packet that came. copied: it had come before. micros is its
// Header.Micros; at is when it came, by any clock, or zero if that is not known.
func (t *Tally) Add(seq uint32, payloadBytes int, copied bool, at instant.Time, micros uint32) {
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

// Status is the next one, elapsed after the beginning.
func (t *Tally) Status(elapsed time.Duration) load.Status {
	t.status.Serial++
	t.status.Elapsed = uint64(elapsed)
	t.status.Variation = load.NoVariation
	if t.n > 0 {
		mean := t.sum/time.Duration(t.n) - t.least
		t.status.Variation = uint32(min(mean/time.Microsecond, load.NoVariation-1))
	}
	t.sum, t.n = 0, 0
	return t.status
}
