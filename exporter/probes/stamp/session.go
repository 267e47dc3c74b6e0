package stamp

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"oneway.example/exporter/bound"
	"oneway.example/exporter/clock"
	"oneway.example/exporter/estimate/feasible"
	"oneway.example/exporter/hostid"
	"oneway.example/exporter/instant"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/sched"
	"oneway.example/exporter/seqwin"
	"oneway.example/exporter/tstamp"
	wire "oneway.example/exporter/wire/stamp"
)

// farKind is what the far end turned out to be.
type farKind uint8

const (
	farUnknown   farKind = iota
	farOurs              // fills in the Receipt: both directions are exact
	farStateful          // numbers its answers: losses can be told apart
	farStateless         // copies our number: they cannot
)

func (k farKind) String() string {
	switch k {
	case farOurs:
		return "oneway"
	case farStateful:
		return "stateful"
	case farStateless:
		return "stateless"
	default:
		return "unknown"
	}
}

// Sizes of arrays indexed by the enumerations of package sample.
const (
	reasonCount = sample.BoundTooLarge + 1
	events      = 4 // T1..T4
)

// session is one stream of test packets to one peer and what is learnt from
// the answers. It owns no socket: the hub sends what Fire writes and brings
// what arrives.
type session struct {
	hub    *hub
	peer   netip.AddrPort
	ssid   uint16
	opts   *Options
	layout layout
	clock  clock.Monitor
	plan   sched.Schedule
	series *series
	limit  uint64        // packets to send; 0: no limit
	full   chan struct{} // closed when the limit is reached

	observe func(sample.Packet, sample.Delay, sample.Delay) // nil: nobody

	mu     sync.Mutex
	key    *wire.Key // signs questions; nil: unauthenticated
	accept []*wire.Key
	blank  [hmacTLVBytes - wire.TLVHeaderBytes]byte // an HMAC not computed yet
	run    uint32
	// hostToken is this kernel's, for the far end to tell whether it has the same.
	hostToken uint32

	flights    flights
	answers    answers
	kind       farKind
	described  farKind // the kind that oneway_path_info shows
	remote     remote
	reverse    seqwin.Window
	reverseOn  bool // the reverse window has been started
	order      order
	fwd, rev   direction
	roundTrips roundTrips
	query      querier
	collect    *collector // only for a report
	offset     *feasible.Estimator
	ends       bound.Ends // what the stamps of both ends may be off by
	far        farClock

	discarded [discardReasons]uint64
	skipped   [skipReasons]uint64
	unsure    [unsureReasons]uint64
	stamps    [events]stampCounts
	restarts  uint64

	now, started, windowFrom, lastAnswer time.Duration // monotonic; lastAnswer 0: never
	lastSuccess                          time.Time
	refused                              discardReason // the last one
	lastRefused                          time.Duration // monotonic; 0: never
	lastConcluded                        instant.Time
	farReason                            sample.Reason
	shared                               bool // delays stand on the one clock of both ends
	peerError                            error
	contradictory                        bool // the path's minimum leaves no offset
	ended                                bool
	steps                                uint64
	era                                  uint64 // of both clocks: no step falls into one
	farStepping                          bool
	farDrops                             drops
	farHost                              bool // the far end has told of its drops
	numbered                             numbered
	last                                 lastWindow
	unsent                               unsent
}

func newSession(h *hub, peer netip.AddrPort, o *Options, c clock.Monitor, out *series) (*session, error) {
	plan, err := planLayout(o.Size, len(o.keys) > 0)
	if err != nil {
		return nil, err
	}
	now := sched.Now()
	s := &session{
		hub: h, peer: peer, opts: o, layout: plan, clock: c, series: out, full: make(chan struct{}),
		run: rand.Uint32(), flights: newFlights(o),
		fwd: direction{dir: sample.Forward, voices: newPlaybacks(o)},
		rev: direction{dir: sample.Reverse, voices: newPlaybacks(o)}, offset: newOffset(o),
		ends: bound.Ends{Near: bound.Host{Ours: true}, Far: bound.Host{Conversion: bound.CardConversion}, Most: o.MaxBound},
		now:  now, started: now, windowFrom: now, steps: c.Quality(instant.Now()).Steps,
	}
	s.hostToken = hostid.Read().Token(s.run)
	s.reserve()
	s.useKeys(o.keys)
	rng := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	s.plan = sched.Periodic(o.Interval, slotOf(now+sched.RandomPhase(o.Interval, rng), o.Interval))
	if o.Schedule == schedulePoisson {
		s.plan = sched.Poisson(o.Interval, rng)
	}
	return s, nil
}

// reserve makes room for the answers of the waiting time, twice as many for Poisson's sake.
func (s *session) reserve() { s.reverse.Reserve(2 * int(s.opts.LossTimeout/s.opts.Interval)) }

// phases is how many different starts a periodic session may have within its
// interval. With them all different a thousand sessions would wake this host, and
// the reflector's, a thousand times a second; with so many they share wake-ups
// and system calls, each exactly at its time, and a few sessions hardly ever meet.
const phases = 50

// slotOf rounds a random start down to the common grid.
func slotOf(start, interval time.Duration) time.Duration {
	return start - start%max(interval/phases, 1)
}

// useKeys makes the first key sign and all of them accepted.
func (s *session) useKeys(keys []*wire.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.key, s.accept = nil, nil
	for i, k := range keys {
		if i == 0 {
			s.key = k.Clone()
		}
		s.accept = append(s.accept, k.Clone())
	}
}

// Fire sends one test packet; the pacer calls it when one is due. A slot that
// was slept through is skipped and counted, never sent in a burst that would
// measure itself.
func (s *session) Fire(due, now time.Duration) time.Duration {
	out := s.hub.reserve(s)
	s.series.lateness.Observe((now - due).Seconds())
	s.mu.Lock()
	seq := s.build(out, now)
	reached := s.limit > 0 && s.flights.next >= s.limit
	next, missed := sched.Skip(s.plan, due, now)
	s.skipped[skipLate] += missed
	s.mu.Unlock()
	s.hub.commit(s, seq)
	if reached {
		close(s.full)
		return sched.Stop
	}
	return next
}

// build writes the next test packet into out and notes its flight. The caller
// holds s.mu.
func (s *session) build(out *tstamp.Out, now time.Duration) (seq uint64) {
	seq = s.flights.next
	user := instant.Now()
	quality := s.clock.Quality(user)
	s.roundTrips.lose(s.flights.add(seq, now, user, thenOf(quality)))
	out.Payload = s.writeTest(out.Payload, uint32(seq), user, quality)
	s.address(out)
	out.Cookie = s.cookie(seq)
	return seq
}

func (s *session) address(out *tstamp.Out) {
	out.Peer, out.Source = s.peer, netip.Addr{}
	out.DSCP, out.TTL = uint8(s.opts.DSCP), uint8(s.opts.TTL)
}

// sequenceBits is how many low bits of a number a cookie carries, below the
// SSID; a flight is forgotten long before they wrap.
const sequenceBits = 48

// queryCookie marks a packet whose stamp nobody needs.
const queryCookie = 1<<sequenceBits - 1

func (s *session) cookie(seq uint64) uint64 {
	return uint64(s.ssid)<<sequenceBits | seq%queryCookie
}

// withdraw is called by the hub when a packet was not taken by the kernel: it
// was never sent, and its number is used again.
func (s *session) withdraw(seq uint64, why skipReason, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flights.withdraw(seq)
	s.skipped[why]++
	if err != nil {
		s.peerError, s.unsent.err = fmt.Errorf("this host does not send to it: %w", err), err
	}
}

// transmitted is called by the hub with the kernel's stamp of a sent packet.
func (s *session) transmitted(cookie uint64, stamp sample.Stamp, out *hubSeries) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seq := cookie % (1 << sequenceBits)
	if seq == queryCookie {
		return
	}
	// The number is the newest with these low bits.
	if past := s.flights.next - 1; past >= seq {
		seq = past - (past-seq)%queryCookie
	}
	f := s.flights.get(seq)
	if f == nil || f.t1.Origin > stamp.Origin {
		return
	}
	f.t1 = stamp
	if stamp.Origin == sample.Kernel {
		out.hostTx.Observe(stamp.At.Sub(f.user).Seconds())
	}
}

// failed is called by the hub with an ICMP error of the peer.
func (s *session) failed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.peerError = err
}

// end closes the books: what is still in flight will never be known. The session publishes
// nothing after it, though a hub that listed the session before may tick it once more.
func (s *session) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.answers.flush(math.MaxInt64, s.conclude)
	s.roundTrips.lose(s.flights.expire(math.MaxInt64, 0))
	if s.fwd.known {
		s.fwd.now.sent = s.flights.next
		s.unsure[unsureEnded] += s.fwd.now.inFlight()
		s.fwd.now.lost += s.fwd.now.inFlight()
		s.rev.now.lost += s.rev.now.inFlight()
	}
	s.closeWindow()
	s.far = farClock{}
	s.series.scope.sink.Update(s.publish)
}
