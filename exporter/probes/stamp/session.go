package stamp

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/core/hostid"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/sched"
	"oneway.example/exporter/net/tstamp"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/probe/target"
	"oneway.example/exporter/probes/stamp/ledger"
)

// session is one stream of test packets to one peer: its schedule, its keys, its account and its estimator. It owns
// no socket: the hub sends what Fire writes and delivers what arrives.
type session struct {
	hub       atomic.Pointer[hub] // it changes only under mu
	serial    uint64              // of the path's sessions, from 1 on
	peer      netip.AddrPort
	ssid      uint16 // guarded by mu
	ended     bool   // guarded by mu
	left      bool   // it moves to no other hub any more; guarded by the Type
	former    uint32 // the previous run, of packets that are outstanding; guarded by mu
	opts      *Options
	layout    layout
	plan      sched.Schedule
	series    *series
	hostToken uint32         // of this kernel; the remote end compares it with its own
	run       uint32         // random; our reflector's replies contain it; guarded by mu
	limit     uint64         // packets to send, those that the host refuses included; 0: no limit
	fired     uint64         // packets so far, those that the host refused included
	lastFired time.Duration  // when the last one was due to be sent, monotonic; guarded by mu
	source    origin         // used by the pacer's thread only
	full      chan struct{}  // closed when the limit is reached
	target    *target.Target // it logs faults and outages; nil: nothing is logged

	mu         sync.Mutex
	keys       []*stampfmt.Key // all are accepted, the first one signs; none: unauthenticated
	account    *ledger.Account
	estimator  *estimator
	window     *window // the last one that has ended; nil: none
	windowFrom time.Duration
	peerError  lastError
	// refusedBytes is the length of the last refused packet.
	refusedBytes int
	repliesFrom  *netip.AddrPort // the other address that the last reply came from; nil if there was none
	// returnsTLVs: a reply had the TLVs of its request.
	returnsTLVs bool
	// inNoFormat: the timestamps of a reply were in no format.
	inNoFormat bool
	unsent     lastError     // of this host
	portSince  time.Duration // when it began its run or to use its present source port, or to ask for another one
	ports      uint8         // source ports since the last packet of the peer, at most maxPorts
	introduced time.Duration // when a query was last sent to introduce a port
	moved      uint8         // ticks with packets of the peer after which its former ports are closed; 0: they are
}

func newSession(h *hub, peer netip.AddrPort, o *Options, c clock.Monitor, out *series) (*session, error) {
	plan, err := planLayout(o.Size, len(o.keys) > 0)
	if err != nil {
		return nil, err
	}
	now := sched.Now()
	s := &session{
		peer: peer, opts: o, layout: plan, series: out,
		windowFrom: now, estimator: newEstimator(o, c, &out.observed),
	}
	var dropped func(lost uint64, ago time.Duration) uint64
	if h != nil {
		s.peer = h.conn.Known(peer)
		s.estimator.card, dropped = h.card, func(lost uint64, ago time.Duration) uint64 { return s.hub.Load().dropped(lost, ago) }
	}
	s.account = ledger.New(o.ledger(plan), now, s.estimator.take, dropped)
	s.begin(now)
	s.former = s.run
	s.useKeys(o.keys)
	rng := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	s.plan = sched.Periodic(o.Interval, slotOf(now+sched.RandomPhase(o.Interval, rng), o.Interval))
	if o.Schedule == schedulePoisson {
		s.plan = sched.Poisson(o.Interval, rng)
	}
	return s, nil
}

// begin begins a run, for which our reflector begins a session.
func (s *session) begin(now time.Duration) {
	s.former, s.run, s.portSince = s.run, rand.Uint32(), now
	s.hostToken = hostid.Read().Token(s.run)
}

// began reports whether a run is the present one or the one before.
func (s *session) began(run uint32) bool { return run == s.run || run == s.former }

// endAfter makes the session stop after count packets (0: never) and close full then.
func (s *session) endAfter(count uint64) { s.limit, s.full = count, make(chan struct{}) }

// phases is the number of different start times of periodic sessions within their interval. If all differed, a
// thousand sessions would wake this host and the reflector a thousand times a second; with 50 they share wake-ups
// and system calls, each is sent at its exact time, and few sessions coincide.
const phases = 50

// slotOf rounds a random start down to the common grid.
func slotOf(start, interval time.Duration) time.Duration {
	return start - start%max(interval/phases, 1)
}

// useKeys makes the first key sign and all of them accepted.
func (s *session) useKeys(keys []*stampfmt.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = nil
	for _, k := range keys {
		s.keys = append(s.keys, k.Clone())
	}
}

// Fire sends one test packet; the pacer calls it when one is due. Missed slots are skipped and counted, never sent
// in a burst that would queue behind itself.
func (s *session) Fire(due, now time.Duration) time.Duration {
	s.series.observed.lateness.Observe((now - due).Seconds())
	h := s.hub.Load()
	failed := s.source.check(s, h, now)
	out := h.reserve(s)
	s.mu.Lock()
	for h != s.hub.Load() { // it has moved meanwhile
		s.mu.Unlock()
		h = s.hub.Load()
		failed = s.source.check(s, h, now)
		out = h.reserve(s)
		s.mu.Lock()
	}
	seq := uint64(0)
	if failed == nil {
		seq = s.build(out, now)
		s.introduce(h, now)
	} else {
		s.account.Skip(ledger.SkipNoAddress, 1)
		s.refuse(failed)
	}
	s.lastFired = now
	s.fired++ // also if the host refuses to send it: its number is used again
	reached := s.limit > 0 && s.fired >= s.limit
	next, missed := sched.Skip(s.plan, due, now)
	s.account.Skip(ledger.SkipLate, missed)
	s.mu.Unlock()
	if failed == nil {
		h.commit(s, seq)
	}
	if reached {
		close(s.full)
		return sched.Stop
	}
	return next
}

// build writes the next test packet into out and records it as outstanding. The caller holds s.mu.
func (s *session) build(out *tstamp.Out, now time.Duration) (seq uint64) {
	user := instant.Now()
	quality := s.estimator.clock.Quality(user)
	seq = s.account.Send(now, user, ledger.ThenOf(quality))
	out.Payload = s.writeTest(out.Payload, uint32(seq), user, quality)
	s.address(out)
	out.Cookie = s.cookie(seq)
	return seq
}

func (s *session) address(out *tstamp.Out) {
	out.Peer, out.Source = s.peer, netip.Addr{}
	out.DSCP, out.TTL = uint8(s.opts.DSCP), uint8(s.opts.TTL)
}

// sequenceBits is how many low bits of a number a cookie carries, below the SSID; a packet is forgotten long before
// they wrap.
const sequenceBits = 48

// statsQueryCookie marks a packet whose timestamp is not used.
const statsQueryCookie = 1<<sequenceBits - 1

func (s *session) cookie(seq uint64) uint64 {
	return uint64(s.ssid)<<sequenceBits | seq%statsQueryCookie
}

// withdraw is called by the hub when the kernel refused a packet: it was never sent, and its number is reused.
func (s *session) withdraw(seq uint64, why ledger.SkipReason, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.account.Withdraw(seq, why)
	if err != nil {
		s.refuse(err)
	}
}

// refuse takes why this host did not send a packet. The caller holds s.mu.
func (s *session) refuse(err error) {
	now := sched.Now()
	s.unsent = lastError{err, now, calm}
	s.peerError = lastError{fmt.Errorf("this host does not send to it: %w", err), now, calm}
}

// transmitted is called by the hub with the kernel's timestamp of a sent packet.
func (s *session) transmitted(cookie uint64, stamp sample.Stamp, out *hubSeries) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seq := cookie % (1 << sequenceBits)
	if seq == statsQueryCookie {
		return
	}
	// The number is the newest with these low bits.
	if past := s.account.Next() - 1; past >= seq {
		seq = past - (past-seq)%statsQueryCookie
	}
	user, taken := s.account.Transmitted(seq, stamp)
	if !taken {
		return
	}
	s.estimator.left(user, stamp)
	if stamp.Origin == sample.Kernel {
		out.hostTx.Observe(stamp.At.Sub(user).Seconds())
	}
}

// failed is called by the hub with an ICMP error of the peer.
func (s *session) failed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.peerError = lastError{err, sched.Now(), rejectionMemory}
}

// tick does the periodic work: timeouts, windows, publishing. All packets that arrived before heard are processed.
func (s *session) tick(now, heard time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	s.account.Tick(now, heard)
	s.queryStatistics(now)
	if now-s.windowFrom >= s.opts.Window {
		s.window, s.windowFrom = s.estimator.close(s.account.Known()), now
	}
	s.publish()
}

// publish updates the series. The caller holds s.mu.
func (s *session) publish() {
	var v *snapshot
	h := s.hub.Load()
	if h != nil { // thousands of sessions share a few snapshots
		v, _ = h.snapshots.Get().(*snapshot)
	}
	if v == nil {
		v = new(snapshot)
	}
	*v = s.snapshot()
	s.series.publish(v)
	*v = snapshot{}
	if h != nil {
		h.snapshots.Put(v)
	}
}

// end publishes the final state; packets still outstanding stay so. The session publishes nothing after it, though
// a hub that listed the session earlier may tick it once more.
func (s *session) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.account.End()
	s.window = s.estimator.close(s.account.Known())
	s.estimator.remote = remoteClock{}
	s.publish()
}

// queryStatistics sends a statistics query if one is due; a session without a hub sends none. The caller holds s.mu.
func (s *session) queryStatistics(now time.Duration) {
	if h := s.hub.Load(); h != nil && s.account.QueryDue(now) {
		s.query(h, now)
	}
}

// introduceInterval is the least time between two queries that introduce a port.
const introduceInterval = 20 * time.Millisecond

// introduce sends a statistics query before a test packet without a Receipt leaves from another port than those before: our reflector finds the
// session by it, and takes a test packet from there for another sender's. It repeats it until a packet of the peer has arrived. The caller holds
// s.mu.
func (s *session) introduce(h *hub, now time.Duration) {
	if s.moved > 0 && !s.layout.receipt && s.account.Kind == ledger.RemoteOurs && now-s.introduced >= introduceInterval {
		s.introduced = now
		s.query(h, now)
	}
}

// query sends a statistics query. The caller holds s.mu.
func (s *session) query(h *hub, now time.Duration) {
	out := tstamp.Out{Payload: s.writeStatsQuery(), Cookie: uint64(s.ssid)<<sequenceBits | statsQueryCookie}
	s.address(&out)
	if err := h.sendNow(out); err != nil {
		s.peerError = lastError{err, now, calm}
	}
}

const unsendable target.Fault = "this host cannot send its packets"

// report reports whether this host refuses packets, and whether the peer replies. It holds no lock: sending must not wait
// for logging. It returns whether the session asks for another source port, which it does after an age of its port without a
// packet of the peer.
func (s *session) report(now, age time.Duration) (asks bool) {
	if s.target == nil {
		return false
	}
	s.mu.Lock()
	err := s.unsent.present(s.lastFired, s.opts.Interval)
	up, decided := s.account.Up()
	silent := s.account.Silent()
	decided = decided && !s.ended
	if asks = !s.ended && err == nil && s.opts.LocalPort == 0 && s.unheardFor(age, now); asks {
		s.portSince, s.ports = now, min(s.ports+1, maxPorts)
	}
	s.mu.Unlock()
	s.target.LogFault(unsendable, err)
	if decided {
		s.target.LogReplies(up, now, silent, s.silence)
	}
	return asks
}

// portAge is after how long without a packet of the peer a session asks for another source port: a NAT or a firewall on the way
// may have a wrong entry for the present one, which the session's own packets keep. Most forget an entry within three minutes
// without packets (RFC 4787 section 4.3, RFC 5382). The time doubles with each port, up to mostPortAge, because each one takes an entry
// of its own there, and a session of a reflector that receives but is not heard.
const (
	portAge     = 10 * time.Second
	mostPortAge = 9 * portAge
)

// maxPorts is more than the doublings from portAge to mostPortAge.
const maxPorts = 8

// unheardFor reports whether the port has the age at which another one is taken, and packets have left from it without a packet of the
// peer for at least two intervals: the third packet then leaves from the next port. The caller holds s.mu.
func (s *session) unheardFor(age, now time.Duration) bool {
	if s.account.Unheard() < now-s.portSince {
		s.ports = 0
	}
	age = min(age<<s.ports, age*(mostPortAge/portAge))
	return min(s.account.Unheard(), now-s.portSince) > max(age, 2*s.opts.Interval)+s.opts.LossTimeout
}

// replies reports whether the peer replies.
func (s *session) replies() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	up, _ := s.account.Up()
	return up
}

// replaced reports whether the replies are of another reflector than before: none is valid lately, and those that
// repeat a test packet are not as the former reflector's; or one of several reflectors is the only one now.
func (s *session) replaced() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	up, decided := s.account.Up()
	refused := s.account.Refusal()
	return decided && !up && refused.Known && refused.Value == ledger.DiscardCorrupted || s.account.Sole(sched.Now())
}

// silence is why the peer does not reply.
func (s *session) silence() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.snapshot()
	return v.silence()
}
