package responder

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"oneway.example/exporter/control"
	"oneway.example/exporter/instant"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/sched"
	"oneway.example/exporter/stream"
	"oneway.example/exporter/wait"
)

// transfer is one stream under way.
type transfer struct {
	id        uint16
	direction sample.Direction
	until     time.Time // when it is over at the latest, as planned
	cancel    context.CancelCauseFunc
	reception *stream.Reception // of a forward one
	told      atomic.Bool       // how many packets were sent
}

// Times of a transfer.
const (
	// slack is what a transfer may take longer than planned.
	slack = 30 * time.Second
	// reportTime and reportRate are how long the records of a transfer may take to be told.
	reportTime = time.Minute
	reportRate = 4 << 10 // octets a second
	lookEvery  = 250 * time.Millisecond
)

// Causes of a transfer's early end.
var (
	errCancelled = errors.New("cancelled by the client")
	errTooLong   = errors.New("it took longer than planned")
)

// transfer starts a stream that is within all limits.
func (s *session) transfer(ctx context.Context, t *control.Transfer) *control.Refusal {
	if refusal := s.permit(t); refusal != nil {
		return refusal
	}
	s.used[t.ID] = true
	s.announced -= t.Plan.Bytes()
	length := t.Plan.Duration()
	if _, unpaced := t.Plan.PeakRate(); unpaced {
		length = stream.MaxDuration
		if most := s.token.Limits.Duration; most > 0 {
			length = most
		}
	}
	x := &transfer{id: t.ID, direction: t.Direction, until: time.Now().Add(length + t.Idle)}
	if t.Direction == sample.Forward {
		var err error
		if x.reception, err = s.stream.Expect(t.ID, t.Plan); err != nil {
			return refused(t.ID, control.BadRequest, err.Error())
		}
	}
	within := length + slack
	if t.Direction == sample.Forward {
		within += t.Idle
	}
	running, cancel := context.WithCancelCause(ctx)
	x.cancel = cancel
	late := time.AfterFunc(within, func() { cancel(errTooLong) })
	s.mu.Lock()
	s.active[t.Direction] = x
	s.idle.Stop()
	s.mu.Unlock()
	s.tasks.Go(func() {
		defer late.Stop()
		defer cancel(nil)
		s.carry(ctx, running, x, t)
	})
	return nil
}

// permit says why a transfer must not be; nil: it may.
func (s *session) permit(t *control.Transfer) *control.Refusal {
	switch {
	case t.ID == 0 || s.used[t.ID]:
		return badRequest("%d is no number of a new transfer", t.ID)
	case !s.opened:
		return refused(t.ID, control.BadRequest, "the session is not open")
	case s.to.Load() == nil:
		return refused(t.ID, control.Unproved, "no address has been proved: say hello to the test port, and show the cookie that comes")
	case t.Direction == sample.Reverse && s.unheard(sched.Now()) > proofLasts:
		return refused(t.ID, control.Unproved, fmt.Sprintf("%v was proved more than %v ago and is silent since: say hello to the test port again, and show the cookie that comes", *s.to.Load(), proofLasts))
	}
	if err := t.Check(); err != nil {
		return refused(t.ID, control.BadRequest, err.Error())
	}
	token, ok := s.r.tokens.named(s.token.Name)
	if !ok || token.Hash != s.token.Hash || token.Certificate != s.token.Certificate {
		return &control.Refusal{Reason: control.Unauthorised, Detail: "the token has been revoked"}
	}
	s.token.Limits = token.Limits
	limits := token.Limits
	if d := t.Plan.Duration(); limits.Duration > 0 && d > limits.Duration {
		return refused(t.ID, control.TimeLimit, fmt.Sprintf("the transfer takes %v, the token allows %v", d, limits.Duration))
	}
	if n := t.Plan.Bytes(); n > s.announced {
		return refused(t.ID, control.BadRequest, fmt.Sprintf("the transfer moves %d octets, and of those announced for the session %d are left", n, s.announced))
	}
	if s.running(t.Direction) {
		return refused(t.ID, control.BadRequest, "a transfer of this direction runs already")
	}
	again, err := s.r.rates.spend(token.Name+" "+t.Direction.String(), t.Plan, limits.BytesPerSecond, time.Now())
	if err != nil {
		refusal := refused(t.ID, control.RateLimit, err.Error())
		refusal.RetryAfter = again
		return refusal
	}
	return nil
}

func refused(id uint16, reason control.Reason, detail string) *control.Refusal {
	return &control.Refusal{ID: id, Reason: reason, Detail: detail}
}

// carry carries a transfer out and tells what came of it. alive ends with the session,
// running with the transfer.
func (s *session) carry(alive, running context.Context, x *transfer, t *control.Transfer) {
	started := &control.Started{ID: t.ID, Clock: s.clock()}
	s.r.counts.started()
	var f control.Finished
	var records []byte
	err := s.conn.Write(control.Message{Started: started})
	if err == nil {
		if x.direction == sample.Forward {
			f.Received, records = s.receive(running, x, t)
		} else {
			f.Sent, records, err = s.send(running, t, x.cancel)
		}
	} else if x.reception != nil {
		x.cancel(errGone)
		x.reception.Finish(running, -1, 0) // frees it
	}
	s.over(x)
	if alive.Err() != nil || f.Received == nil && f.Sent == nil {
		return // nobody is there to be told
	}
	f.ID, f.Clock = t.ID, s.clock()
	switch {
	case err != nil:
		f.Error = "the stream cannot be sent: " + err.Error()
	case running.Err() != nil:
		f.Error = context.Cause(running).Error()
	case f.Received != nil && !x.told.Load():
		f.Error = "nothing came any more, and it was not told how much was sent"
	}
	// A client that does not take its records must not hold the link for ever.
	within := reportTime + time.Duration(len(records)/reportRate)*time.Second
	late := time.AfterFunc(within, func() { s.stop(&control.Refusal{Reason: control.TimeLimit, Detail: "the records were not taken"}) })
	defer late.Stop()
	_ = s.conn.WriteFinished(f, records) // an error ends the connection, which Read tells
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active == [2]*transfer{} { // the client may have begun the next one
		s.idle.Reset(s.r.options.idle)
	}
}

// receive is the forward direction.
func (s *session) receive(ctx context.Context, x *transfer, t *control.Transfer) (*stream.Received, []byte) {
	looking, stop := context.WithCancel(ctx)
	s.tasks.Go(func() { s.attend(looking, x.reception) })
	if t.Plan.Feedback > 0 {
		s.tasks.Go(func() {
			x.reception.Follow(looking, func(st stream.Status) {
				_ = s.stream.Report(t.ID, *s.to.Load(), st) // the next one may pass
			})
		})
	}
	got := x.reception.Finish(ctx, -1, t.Idle)
	stop()
	came := x.reception.Progress() // each packet of the plan once, whatever else was sent
	s.count(sample.Forward, came.Packets, min(came.Bytes, t.Plan.Bytes()))
	return got, got.AppendTo(nil)
}

// send is the reverse direction: to the address that has proved that it receives.
func (s *session) send(ctx context.Context, t *control.Transfer, cut context.CancelCauseFunc) (*stream.Sent, []byte, error) {
	looking, stop := context.WithCancel(ctx)
	defer stop()
	c := s.consent(t)
	s.tasks.Go(func() { s.look(looking, c, cut) })
	sent, err := s.stream.SendWhile(ctx, t.ID, *s.to.Load(), t.Plan, c)
	if err != nil {
		s.r.env.Log.Warn("Stream not sent", "token", s.token.Name, "run", s.run, "err", err)
		sent = &stream.Sent{Planned: t.Plan.Packets()}
	}
	packets, bytes := left(t.Plan, sent.Packets)
	s.count(sample.Reverse, packets, bytes)
	return sent, sent.AppendTo(nil), err
}

// attend takes test packets for signs of the client's life.
func (s *session) attend(ctx context.Context, r *stream.Reception) {
	for seen := 0; wait.For(ctx, lookEvery); {
		if n := r.Progress().Packets; n > seen {
			seen = n
			s.conn.Heard()
		}
	}
}

// left is how many packets of a plan left, and their payload.
func left(p stream.Plan, sent []stream.SentPacket) (packets int, bytes int64) {
	for _, segment := range p.Segments {
		n := min(segment.Packets(), len(sent))
		for i := range sent[:n] {
			if sent[i].Stamp.Present() {
				packets++
				bytes += int64(segment.PayloadBytes)
			}
		}
		sent = sent[n:]
	}
	return packets, bytes
}

// Headers of a packet: UDP and IPv4, or IPv6.
const (
	headerBytes4 = 28
	headerBytes6 = 48
)

func (s *session) count(d sample.Direction, packets int, bytes int64) {
	header := int64(headerBytes4)
	if s.to.Load().Addr().Is6() {
		header = headerBytes6
	}
	s.headers.Add(int64(packets) * header)
	s.moved[d].Add(bytes)
	s.r.counts.bytes(s.token.Name, d, bytes)
}

// clock is what this host's clock is worth now.
func (s *session) clock() control.Clock {
	at := instant.Now()
	q := s.r.env.Clock.Quality(at)
	return control.Clock{At: at, Bound: q.Bound.Error, Reason: q.Bound.Reason.String(), Steps: q.Steps}
}

// over forgets a transfer.
func (s *session) over(x *transfer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active[x.direction] == x {
		s.active[x.direction] = nil
	}
}

func (s *session) running(d sample.Direction) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.active[d] != nil
}

func (s *session) transferring() bool { return s.running(sample.Forward) || s.running(sample.Reverse) }

// busyFor is how long the session's transfers will still take, and whether it is open.
func (s *session) busyFor() (left time.Duration, opened bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.active {
		if x != nil {
			left = max(left, time.Until(x.until))
		}
	}
	return left, s.ready
}

// allSent tells a reception how much to wait for; of one that is over it is nothing.
func (s *session) allSent(m *control.Sent) {
	s.mu.Lock()
	x := s.active[sample.Forward]
	s.mu.Unlock()
	if x != nil && x.id == m.ID {
		x.told.Store(true)
		x.reception.SetSent(m.Packets)
	}
}

// cancel ends a transfer early; of one that is over it is nothing.
func (s *session) cancel(id uint16) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.active {
		if x != nil && x.id == id {
			x.cancel(errCancelled)
		}
	}
}
