package tcptraffic

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"oneway.example/exporter/core/bound"
	"oneway.example/exporter/core/errtext"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/net/tcpsocket"
	"oneway.example/exporter/probe/endclock"
)

// Result is a transfer that has ended, with one entry for each flow of the plan.
type Result struct {
	Plan Plan
	// Begin is when the local end began: the zero of its times.
	Begin time.Time
	// Connect is the time of each handshake at the client.
	Connect []time.Duration
	// Completion is the time from the beginning of each handshake until all payload had arrived, by the client's clock: in
	// reverse direction until it had read the last byte, in forward direction until it had received the end of the
	// stream with which the receiver replies when it has read all, half a round trip later. Zero: the flow ended early.
	Completion       []time.Duration
	Sender, Receiver []FlowEnd
	// Local and Remote are the clocks of this host and of the load server; SharedClock: both ends read one clock. Ends
	// are the errors of their timestamps.
	Local, Remote endclock.Span
	SharedClock   bool
	Ends          bound.Ends
	// Cut is why the transfer ended before its plan; empty: it did not.
	Cut string
}

// Bound returns the error bound of both clocks during the transfer, without timestamp errors.
func (r *Result) Bound() sample.Bound { return endclock.Bound(r.Local, r.Remote, r.SharedClock) }

// Transfer performs a transfer. The token's rate limits the pacing of its flows; those without a DSCP get that of
// the options. A transfer that ended early has no error, but Result.Cut. With an error, Result has what is known, if any
// flow has begun.
func (s *Session) Transfer(ctx context.Context, p Plan) (*Result, error) {
	p.Flows = s.limited(p.Flows)
	if err := p.Check(); err != nil {
		return nil, err
	}
	if p.Direction == sample.Forward {
		for _, f := range p.Flows {
			if err := tcpsocket.CheckCongestionControl(f.CongestionControl); err != nil {
				return nil, &loadtest.Failure{Reason: runreason.Configuration, Err: fmt.Errorf("%s transfer: this host: %w", p.Direction, err)}
			}
		}
	}
	x := s.register(&p)
	res, err := x.perform(ctx)
	if err != nil {
		x.cancel()
		refusal, refused := errors.AsType[*loadcontrol.Refusal](err)
		err = fmt.Errorf("%s transfer: %w", p.Direction, err)
		if refused && refusal.Reason == loadcontrol.ShuttingDown {
			err = &loadtest.Failure{Reason: runreason.Lost, Err: err}
		}
	}
	if pause := loadtest.Pause(ctx); err != nil && pause != nil {
		err = pause
		if res != nil {
			res.Cut = errtext.Words(err)
		}
	}
	s.ended()
	s.record(res)
	return res, err
}

// limited returns the flows with the token's rate and the options' DSCP.
func (s *Session) limited(flows []Flow) []Flow {
	flows = slices.Clone(flows)
	share := int64(s.limits.BytesPerSecond) / int64(max(1, len(flows)))
	for i := range flows {
		f := &flows[i]
		if f.DSCP == 0 {
			f.DSCP = s.dscp
		}
		if share > 0 && (f.PacingRate == 0 || f.PacingRate > share) {
			f.PacingRate = share
		}
	}
	return flows
}

// cancel ends the transfer at the load server, unless it has ended there.
func (x *pending) cancel() {
	x.session.mu.Lock()
	runs := x.session.pending[x.id] != nil
	x.session.mu.Unlock()
	if runs {
		_ = x.session.client.SendMessage(sayCancel, only{x.id}) // the end of the session has the same effect
	}
}

// perform opens the connections, runs this end, and joins the records of both.
func (x *pending) perform(ctx context.Context) (*Result, error) {
	s, forward := x.session, x.plan.Direction == sample.Forward
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer context.AfterFunc(s.open, func() { end(context.Cause(s.open)) })()
	if err := s.client.SendMessage(sayTransfer, start{x.id, *x.plan}); err != nil {
		return nil, err
	}
	r, err := x.wait(ctx, grace)
	if err != nil {
		return nil, err
	}
	h := newHalf(x.plan, forward)
	res := &Result{Plan: *x.plan, SharedClock: s.sharedClock, Ends: s.ends}
	_, clockEnd := endclock.Watch(s.clock)
	defer clockEnd()
	conns, begun, err := x.open(ctx, r.listening, res)
	if err != nil {
		return nil, err
	}
	waits := forward && !x.plan.Short
	if waits {
		r, err := x.wait(ctx, grace)
		if err != nil {
			for _, c := range conns {
				c.Abort()
			}
			return nil, err
		}
		res.Remote.Before = r.started.Clock
	}
	h.state = &s.flows
	h.tell = x.tell
	begin := instant.Now()
	own := h.run(ctx, conns)
	s.load(x.plan, begin, instant.Now())
	res.Completion = h.completion(begun)
	other, err := x.other(ctx, !waits, &res.Remote)
	if ctx.Err() != nil && other == nil {
		other = x.farewell(&res.Remote)
	}
	res.Local = clockEnd()
	s.account(h, other)
	if other == nil {
		other = make([]FlowEnd, len(own))
	}
	if res.Sender, res.Receiver = own, other; !forward {
		res.Sender, res.Receiver = other, own
	}
	res.Begin, res.Cut = h.begin, cut(res)
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		if err = verify(res); err != nil {
			res.Cut = errtext.Words(err)
		}
	}
	return res, err
}

// load reports the time of sending. What is in the buffers at its end still follows, but no more.
func (s *Session) load(p *Plan, from, to instant.Time) {
	if s.loaded != nil {
		s.loaded(p.Direction, from, min(to, from.Add(p.Duration)))
	}
}

// farewellTime is the timeout of the record of a transfer that the client has canceled.
const farewellTime = 500 * time.Millisecond

// farewell cancels the transfer and returns the load server's record of its part; nil: it did not arrive.
func (x *pending) farewell(clock *endclock.Span) []FlowEnd {
	x.cancel()
	for {
		r, err := x.wait(context.Background(), farewellTime)
		if err != nil {
			return nil
		}
		if r.started != nil {
			clock.Before = r.started.Clock
		}
		if r.finished != nil {
			clock.After = r.finished.Clock
			return r.finished.Flows
		}
	}
}

// other waits for the record of the load server's end, after this end has ended; unstarted: started was not received yet. It
// completes the load server's clock.
func (x *pending) other(ctx context.Context, unstarted bool, clock *endclock.Span) ([]FlowEnd, error) {
	if x.plan.Direction == sample.Forward {
		if err := x.session.client.SendMessage(saySent, only{x.id}); err != nil {
			return nil, err
		}
	}
	if unstarted {
		r, err := x.wait(ctx, grace)
		if err != nil {
			return nil, err
		}
		clock.Before = r.started.Clock
	}
	r, err := x.wait(ctx, x.plan.Idle+slack+grace)
	if err != nil {
		return nil, err
	}
	clock.After = r.finished.Clock
	return r.finished.Flows, nil
}

// completion returns Result.Completion at the client.
func (h *half) completion(begun []time.Time) []time.Duration {
	all := make([]time.Duration, len(h.flows))
	for i, f := range h.flows {
		switch f.end.Ended { //nolint:exhaustive // the others did not complete
		case EndedBytes:
			all[i] = h.begin.Sub(begun[i]) + f.over
		case EndedClosed:
			all[i] = h.begin.Sub(begun[i]) + f.end.Last
		}
	}
	return all
}

// open opens the connections of all flows at once. begun is when each handshake began.
func (x *pending) open(ctx context.Context, to *listening, res *Result) (conns []connection, begun []time.Time, err error) {
	limit := connectTime
	if x.plan.Short {
		limit = min(limit, x.plan.Duration)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, &loadtest.Failure{
		Reason: runreason.Socket, Err: fmt.Errorf("no connection to TCP %d of the load server within %v; is it open there and on the path?", to.Ports[0], limit),
	})
	defer cancel()
	n, forward := len(x.plan.Flows), x.plan.Direction == sample.Forward
	conns, begun = make([]connection, n), make([]time.Time, n)
	errs := make([]error, n)
	res.Connect = make([]time.Duration, n)
	var dialing sync.WaitGroup
	for i, f := range x.plan.Flows {
		dialing.Go(func() {
			at := netip.AddrPortFrom(x.session.Remote().Addr(), to.Ports[i])
			begun[i] = time.Now()
			var c *tcpsocket.Conn
			if c, res.Connect[i], errs[i] = f.at(forward).Dial(ctx, x.session.from, at); errs[i] == nil {
				conns[i] = x.plan.connection(i, c, forward, cookieBytes+1)
				_, errs[i] = conns[i].Write(append(slices.Clone(to.Cookie), byte(i)))
			}
		})
	}
	dialing.Wait()
	i := slices.IndexFunc(errs, func(err error) bool { return err != nil })
	if i < 0 {
		return conns, begun, nil
	}
	for _, c := range conns {
		if c.Conn != nil {
			c.Abort()
		}
	}
	if late, ok := errors.AsType[net.Error](errs[i]); ok && late.Timeout() {
		<-ctx.Done() // the dialer has the same deadline
	}
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	return nil, nil, &loadtest.Failure{Reason: runreason.Socket, Err: fmt.Errorf("connection to TCP %d of the load server: %w; is it open there and on the path?", to.Ports[i], errs[i])}
}

// tell forwards progress to the run.
func (x *pending) tell(payload int64, elapsed time.Duration) {
	x.session.mu.Lock()
	to, done := x.session.progress, x.session.done
	x.session.mu.Unlock()
	if to != nil {
		to(loadtest.Progress{Direction: x.plan.Direction, Bytes: payload, Elapsed: done + x.after + min(elapsed, x.plan.Duration)})
	}
}

// ended counts a transfer that has ended. The planned time of transfers that overlap is that until the end of the last.
func (s *Session) ended() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running--; s.running == 0 {
		s.done += s.planned
	}
}

// account adds the IP bytes of an ended transfer. Those that the load server sent are at least those that
// arrived here; it may report more, which were lost on the path.
func (s *Session) account(h *half, other []FlowEnd) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, f := range h.flows {
		out, in := f.ipBytes()
		if i < len(other) {
			in = max(in, min(other[i].Final.SentIPBytes(f.conn.IPv6()), h.plan.Most))
		}
		s.moved[sample.Forward] += out
		s.moved[sample.Reverse] += in
	}
}

// NothingArrived reports whether no payload of a transfer arrived, though its connections were open and payload was sent again:
// no segment of its size passes the path.
func (r *Result) NothingArrived() bool {
	again := false
	for i := range r.Sender {
		sent, received := &r.Sender[i], &r.Receiver[i]
		if !sent.Known() || !received.Known() {
			return false
		}
		stalled := sent.Ended == EndedTime || sent.Ended == EndedIdle || sent.Ended == EndedReset && received.Ended == EndedIdle
		if received.Payload > 0 || !stalled {
			return false
		}
		again = again || sent.Final.Retransmitted > 0
	}
	return again
}

// cut returns why a transfer ended before its plan.
func cut(r *Result) string {
	if r.NothingArrived() {
		return fmt.Sprintf("no payload arrived, in segments of up to %d bytes; the path's MTU may be smaller than their packets, or a firewall drops them", r.Sender[0].Final.MSS)
	}
	for i := range r.Sender {
		sent, received := &r.Sender[i], &r.Receiver[i]
		complete := sent.Ended == EndedTime && r.Plan.byTime() && (received.Ended == EndedReset || received.Ended == EndedClosed || received.Ended == EndedIdle && received.Last > 0)
		complete = complete || sent.Ended == EndedBytes && received.Ended == EndedClosed
		switch {
		case complete:
		case sent.Ended == EndedTime && !r.Plan.byTime():
			return fmt.Sprintf("flow %d had sent %d bytes after %v", i+1, sent.Payload, r.Plan.sending())
		default:
			return fmt.Sprintf("flow %d: sender: %s, receiver: %s", i+1, sent.Ended, received.Ended)
		}
	}
	return ""
}

// verify returns an error if the records of both ends contradict each other.
func verify(r *Result) error {
	for i := range r.Sender {
		sent, received := &r.Sender[i], &r.Receiver[i]
		if received.Payload > sent.Payload {
			return fmt.Errorf("%w: flow %d received %d bytes of the %d that were sent", loadcontrol.ErrProtocol, i, received.Payload, sent.Payload)
		}
		if sent.Ended == EndedBytes && received.Ended == EndedClosed && received.Payload != sent.Payload {
			return fmt.Errorf("%w: flow %d received %d of %d bytes, and all were acknowledged", loadcontrol.ErrProtocol, i, received.Payload, sent.Payload)
		}
	}
	return nil
}
