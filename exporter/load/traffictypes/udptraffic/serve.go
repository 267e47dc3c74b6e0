package udptraffic

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"oneway.example/exporter/core/errtext"
	"oneway.example/exporter/core/ipheader"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/stream"
	"oneway.example/exporter/load/traffic"
	"oneway.example/exporter/net/sched"
	"oneway.example/exporter/probe/endclock"
)

// serving is the traffic of one session at the load server. One goroutine handles the client's
// messages; each transfer has its own.
type serving struct {
	remote *remote
	host   traffic.Host
	id     uint64
	stream *stream.Session
	ctx    context.Context // ends with the session
	end    context.CancelFunc
	tasks  sync.WaitGroup
	used   map[uint16]bool // IDs; only the goroutine of Handle uses it

	to atomic.Pointer[netip.AddrPort] // the proved address; nil: none
	// hello is the time of the last hello from there, or of the proof, by sched.Now; refused counts the
	// ICMP port-unreachable errors since then.
	hello        atomic.Int64
	refused      atomic.Int64
	consentEnded atomic.Int64 // time of the last ICMP error that ended consent, by sched.Now; zero: none
	sending      atomic.Bool  // a stream that replaces the hello packets

	other atomic.Pointer[otherSource] // the last hello from another address than the proved one; nil: there was none

	mu     sync.Mutex
	active [2]*transfer
	// drained is when the client no longer waits for packets of the last reverse stream, and calls busy; nil: there was none.
	drained   *time.Timer
	drainedAt time.Time
}

// otherSource is where a packet of the session came from, and when, by sched.Now.
type otherSource struct {
	from netip.AddrPort
	at   time.Duration
}

// transfer is one stream in progress.
type transfer struct {
	*Start
	until     time.Time // latest planned end
	ctx       context.Context
	cancel    context.CancelCauseFunc
	reception *stream.Reception // of a forward one
	sentKnown atomic.Bool       // Sent was received
}

// Times of a transfer.
const (
	// slack is added to the planned time of a transfer.
	slack = 30 * time.Second
	// reported is the time for the number of packets that the client has sent: TCP takes up to twice as long as an outage.
	reported = 2*Outage + 2*time.Second
	// reportRate is the least rate at which a client must read records.
	reportRate = 4 << 10 // bytes a second
)

// Causes of a transfer's early end.
var (
	errCanceled = errors.New("canceled by the client")
	errTooLong  = errors.New("the transfer took longer than planned")
)

// Handle implements traffic.Session.
func (s *serving) Handle(m *loadcontrol.TrafficMessage) (refusal *loadcontrol.Refusal) {
	switch m.Name {
	case msgProve:
		return handle(m, s.prove)
	case msgStart:
		return handle(m, s.start)
	case msgSent:
		return handle(m, s.allSent)
	case msgCancel:
		return handle(m, s.cancel)
	}
	return loadcontrol.Reject("unexpected message %.40q", m.Name)
}

// handle decodes a message and calls do.
func handle[B any](m *loadcontrol.TrafficMessage, do func(*B) *loadcontrol.Refusal) *loadcontrol.Refusal {
	body := new(B)
	if err := m.Into(body); err != nil {
		return loadcontrol.RejectError(err)
	}
	return do(body)
}

// prove sets the address of the client from the cookie that was sent there.
func (s *serving) prove(p *Prove) *loadcontrol.Refusal {
	if s.running(sample.Forward) || s.running(sample.Reverse) {
		return loadcontrol.Reject("the address cannot change while a transfer runs")
	}
	to, ok := s.stream.Prove(p.Cookie)
	if !ok {
		return &loadcontrol.Refusal{Reason: loadcontrol.Unproved, Detail: "the cookie is not one of this session, is older than " + unit.Duration(stream.CookieLasts) + ", or was returned before"}
	}
	if !s.remote.env.Allowed(to.Addr()) {
		return &loadcontrol.Refusal{Reason: loadcontrol.Unproved, Detail: fmt.Sprintf("the source %v is not allowed", to.Addr())}
	}
	s.recordReceived()
	s.to.Store(&to)
	s.host.SetBusy(time.Time{})
	_ = s.stream.KeepAlive(to)                                           // the client knows from now on that this end sends hello packets
	_ = s.host.SendMessage(msgProved, Proved{Address: to.String()}, nil) // an error ends the session, which reports it
	return nil
}

// start starts a permitted stream.
func (s *serving) start(t *Start) *loadcontrol.Refusal {
	most, refusal := s.permit(t)
	if refusal != nil {
		if refusal.ID != 0 {
			_ = s.host.SendRefusal(msgRefused, refusal) // an error ends the session, which reports it
			return nil
		}
		return refusal
	}
	s.used[t.ID] = true
	x := &transfer{Start: t}
	within := t.length(most) + slack
	x.until = time.Now().Add(t.length(most) + t.Idle)
	if t.Direction == sample.Forward {
		within += t.Idle
		var err error
		if x.reception, err = s.stream.Expect(t.ID, t.Plan); err != nil {
			s.count(t.Direction, 0, 0)
			_ = s.host.SendRefusal(msgRefused, refused(t.ID, loadcontrol.BadRequest, err.Error()))
			return nil
		}
	}
	x.ctx, x.cancel = context.WithCancelCause(s.ctx)
	late := time.AfterFunc(within, func() { x.cancel(errTooLong) })
	s.set(t.Direction, x)
	s.busy()
	s.tasks.Go(func() {
		defer late.Stop()
		defer x.cancel(nil)
		s.carry(x)
	})
	return nil
}

// greets is for greet: hello packets go to the proved address, and show a client that sends that this end runs. They end with the proof: a
// session of several types of traffic may continue without it.
func (s *serving) greets() (at netip.AddrPort, due bool) {
	if to := s.to.Load(); to != nil && s.expiredFor() <= Outage {
		return *to, !s.sending.Load()
	}
	return netip.AddrPort{}, false
}

// set sets the transfer of a direction; nil: none.
func (s *serving) set(d sample.Direction, x *transfer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active[d] = x
	if x != nil && d == sample.Reverse {
		s.drainedAt = time.Time{} // the client has ended its wait
	}
}

// drain keeps the session busy while the client waits for the last packets of a reverse stream, and sends no message:
// the path may store them for long.
func (s *serving) drain(wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drainedAt = time.Now().Add(wait)
	if s.drained == nil {
		s.drained = time.AfterFunc(wait, s.busy)
	} else {
		s.drained.Reset(wait)
	}
}

// busy reports the planned end of the streams to the load server.
func (s *serving) busy() {
	s.mu.Lock()
	defer s.mu.Unlock()
	var until time.Time
	if s.drainedAt.After(time.Now()) {
		until = s.drainedAt
	}
	for _, one := range s.active {
		if one != nil && one.until.After(until) {
			until = one.until
		}
	}
	s.host.SetBusy(until)
}

// permit refuses a transfer, or returns its longest time; zero: no limit.
func (s *serving) permit(t *Start) (most time.Duration, refusal *loadcontrol.Refusal) {
	if refusal := traffic.CheckID(t.ID, s.used); refusal != nil {
		return 0, refusal
	}
	if s.to.Load() == nil {
		return 0, refused(t.ID, loadcontrol.Unproved, "no address is proved: send a hello to the test port, and the cookie of its reply in prove")
	}
	if err := t.Check(); err != nil {
		return 0, refused(t.ID, loadcontrol.BadRequest, err.Error())
	}
	if err := t.Plan.CheckMemory(stream.LoadServerMemory, s.remote.memory, "the load server"); err != nil {
		return 0, refused(t.ID, loadcontrol.BadRequest, errtext.Words(err))
	}
	limits, refusal := s.host.Limits()
	if refusal != nil {
		return 0, refusal
	}
	if refusal := limits.CheckDuration(t.Plan.Duration()); refusal != nil {
		refusal.ID = t.ID
		return 0, refusal
	}
	if s.running(t.Direction) {
		return 0, refused(t.ID, loadcontrol.BadRequest, "a transfer of this direction is in progress")
	}
	if refusal := s.host.Take(t.Plan.Bytes()); refusal != nil {
		refusal.ID = t.ID
		return 0, refusal
	}
	refusal = s.host.ConsumeRate(t.Direction, t.Plan.Duration(), func(b traffic.Bucket) (float64, error) { return checkRate(t.Plan, b) })
	if refusal != nil {
		_ = s.host.Take(-t.Plan.Bytes()) // a negative number is never refused
		refusal.ID = t.ID
		return 0, refusal
	}
	return limits.Duration, nil
}

func refused(id uint16, reason loadcontrol.Reason, detail string) *loadcontrol.Refusal {
	return &loadcontrol.Refusal{ID: id, Reason: reason, Detail: detail}
}

// carry does a transfer and sends its result.
func (s *serving) carry(x *transfer) {
	s.host.CountTransfer()
	f := Finished{ID: x.ID}
	var records []byte
	clock, clockEnd := endclock.Watch(s.remote.env.Clock)
	defer clockEnd()
	err := s.host.SendMessage(msgStarted, Started{ID: x.ID, Clock: clock}, nil)
	switch {
	case err == nil && x.Direction == sample.Forward:
		f.Received = s.receive(x)
		records = f.Received.AppendTo(nil)
	case err == nil:
		f.Sent, err = s.send(x)
		records = f.Sent.AppendTo(nil)
	default: // nothing is transferred, and the token's rate is free for others
		if x.reception != nil {
			x.cancel(err)
			x.reception.Finish(x.ctx, -1, 0) // releases it
		}
		s.count(x.Direction, 0, 0)
	}
	if s.ctx.Err() != nil || f.Received == nil && f.Sent == nil {
		s.set(x.Direction, nil)
		return // the session has ended
	}
	f.Clock = clockEnd().After
	switch {
	case err != nil:
		f.Error = "the stream cannot be sent: " + errtext.Words(err)
	case x.ctx.Err() != nil:
		f.Error = context.Cause(x.ctx).Error()
	case f.Received != nil && !x.sentKnown.Load():
		f.Error = "the number of packets sent did not arrive: the control connection was interrupted"
	}
	// A client that does not read its records must not hold the link.
	late := time.AfterFunc(grace+time.Duration(len(records)/reportRate)*time.Second, func() {
		s.host.End(&loadcontrol.Refusal{Reason: loadcontrol.TimeLimit, Detail: "the client did not read the records"})
	})
	defer late.Stop()
	s.set(x.Direction, nil) // the client may start the next one after finished
	if x.Direction == sample.Reverse {
		s.drain(x.Idle)
	}
	_ = s.host.SendMessage(msgFinished, f, records)
	s.busy()
}

// receive does a forward transfer.
func (s *serving) receive(x *transfer) *stream.Received {
	watching, stop := context.WithCancel(x.ctx)
	defer stop()
	s.tasks.Go(func() {
		x.reception.Follow(watching, func(st stream.Status) {
			if s.expiredFor() <= 0 {
				_ = s.stream.Report(x.ID, *s.to.Load(), st) // the next one may succeed
			}
		})
	})
	got := x.reception.FinishReported(x.ctx, x.Idle, s.remote.reported)
	received := x.reception.Progress() // each packet of the plan once, without duplicates
	s.count(sample.Forward, received.Packets, min(received.Bytes, x.Plan.Bytes()))
	return got
}

// send does a reverse transfer, to the proved address.
func (s *serving) send(x *transfer) (*stream.Sent, error) {
	s.sending.Store(replacesHello(x.Plan))
	defer s.sending.Store(false)
	sent, err := s.stream.Send(x.ctx, x.ID, *s.to.Load(), x.Plan, stream.SendOptions{Consent: &consent{s, sched.Now()}})
	if err != nil {
		s.remote.env.Log.Warn("Stream not sent", "to", s.to.Load().String(), "err", err)
		sent = &stream.Sent{Planned: x.Plan.Packets()}
	}
	packets, bytes := sent.Totals(x.Plan)
	s.count(sample.Reverse, packets, bytes)
	return sent, err
}

func (s *serving) count(d sample.Direction, packets int, bytes int64) {
	s.host.CountBytes(d, bytes, int64(packets)*int64(ipheader.WithIP(s.to.Load().Addr().Is6(), ipheader.UDP)))
}

func (s *serving) running(d sample.Direction) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.active[d] != nil
}

// allSent sets the number of packets of a reception; after its end it does nothing.
func (s *serving) allSent(m *Sent) *loadcontrol.Refusal {
	if m.ID == 0 || m.Packets < 0 {
		return loadcontrol.Reject("sent: transfer %d, %d packets: the id must be above 0, the number not negative", m.ID, m.Packets)
	}
	s.mu.Lock()
	x := s.active[sample.Forward]
	s.mu.Unlock()
	if x != nil && x.ID == m.ID {
		x.sentKnown.Store(true)
		x.reception.SetSent(m.Packets)
	}
	return nil
}

// cancel ends a transfer early; after its end it does nothing.
func (s *serving) cancel(m *Cancel) *loadcontrol.Refusal {
	if m.ID == 0 {
		return loadcontrol.Reject("cancel: transfer 0: the id must be above 0")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.active {
		if x != nil && x.ID == m.ID {
			x.cancel(errCanceled)
		}
	}
	return nil
}

// recordReceived records a packet from the proved address.
func (s *serving) recordReceived() {
	s.hello.Store(int64(sched.Now()))
	s.refused.Store(0)
}

// idleTime returns for how long nothing comes from the proved address, or its proof has been invalid; before the proof since the session
// was opened.
func (s *serving) idleTime(now time.Duration) time.Duration {
	return max(s.silentTime(now), s.expiredFor())
}

// expiredFor returns for how long the proof of the client's address has been invalid; not above zero: it is valid, or there was none.
func (s *serving) expiredFor() time.Duration {
	ago, ok := s.stream.LastProof()
	if !ok {
		return 0
	}
	return ago - stream.CookieLasts
}

// silentTime returns an upper bound of the time since the last packet from the proved address, before the proof since the
// session was opened.
func (s *serving) silentTime(now time.Duration) time.Duration {
	ago := now - time.Duration(s.hello.Load())
	if ago <= consentLasts && s.hello.Load() > s.consentEnded.Load() { // otherwise packets of a stream since then may count
		return ago
	}
	to := s.to.Load()
	if from, since, ok := s.stream.LastStreamPacket(); ok && to != nil && from == *to {
		ago = min(ago, since)
	}
	return ago
}

// idleError returns why nothing comes from the proved address.
func (s *serving) idleError() error {
	to, timeout := s.to.Load(), unit.Duration(traffic.IdleTimeout)
	if to == nil {
		return &traffic.IdleError{Detail: "no address was proved within " + timeout + ": does a firewall drop test packets?"}
	}
	if s.silentTime(sched.Now()) < traffic.IdleTimeout {
		return &traffic.IdleError{Detail: fmt.Sprintf("no hello packet from %v has returned a cookie that was sent there in the last %s: does a firewall drop packets to it, or a queue hold them for longer?", *to, unit.Duration(stream.CookieLasts))}
	}
	detail := fmt.Sprintf("no test packet was received from %v for %s", *to, timeout)
	switch from, ok := s.otherSource(*to); {
	case !ok:
		detail += ": does a firewall drop them?"
	case from.Addr() == to.Addr():
		detail += fmt.Sprintf("; they come from port %d: a NAT changed the port", from.Port())
	default:
		detail += fmt.Sprintf("; they come from %v: a NAT changed the address", from)
	}
	return &traffic.IdleError{Detail: detail}
}

// otherSource returns where packets of the session came from during the idle timeout instead of the proved address.
func (s *serving) otherSource(to netip.AddrPort) (from netip.AddrPort, ok bool) {
	if last := s.other.Load(); last != nil && sched.Now()-last.at <= traffic.IdleTimeout {
		return last.from, true
	}
	from, ago, ok := s.stream.LastStreamPacket()
	return from, ok && from != to && ago <= traffic.IdleTimeout
}

// Close implements traffic.Session.
func (s *serving) Close() {
	s.end()
	s.remote.byID.Delete(s.id)
	s.stream.Leave()
	s.tasks.Wait()
	if s.drained != nil { // no task is left that sets it
		s.drained.Stop()
	}
}
