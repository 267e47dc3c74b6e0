package heavy

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"oneway.example/exporter/bound"
	"oneway.example/exporter/control"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/stream"
)

// Carrier moves streams between the two ends. The real one is a control connection with a
// UDP socket; tests of Kinds hand in a simulated path.
type Carrier interface {
	// Carry carries one stream out. With an error it returns what is known all the same,
	// or nil if nothing was sent. A transfer that was cut has no error, but Carried.Cut.
	// What has not come when nothing has for idle, once all was sent, is lost; zero, or more
	// than what is configured: as configured.
	Carry(ctx context.Context, d sample.Direction, p stream.Plan, idle time.Duration, progress func(Progress)) (*Carried, error)
}

// Steerer is a Carrier that carries plans with feedback too.
type Steerer interface {
	Carrier
	// Feedback tells whether the far end knows such plans.
	Feedback() bool
	// Steer is Carry of such a plan; steer chooses the rate in both directions.
	Steer(ctx context.Context, d sample.Direction, p stream.Plan, progress func(Progress), steer stream.Steer) (*Carried, error)
}

// Carried is what a Carrier returns.
type Carried struct {
	// Sent and Received are the two ends' records; nil where they are not known.
	Sent     *stream.Sent
	Received *stream.Received
	// PayloadBytes were sent, in UDP payload, as far as is known.
	PayloadBytes int64
	Packets      int
	Near, Far    Clocks
	Cut          string
}

// SessionOptions say what a Session adds to what its Carrier moves.
type SessionOptions struct {
	// IPv6: packets have 48 octets of headers, not 28.
	IPv6 bool
	// Shared: both ends read one clock (package hostid).
	Shared bool
	// Near is what is known of this host's stamps on the path.
	Near bound.Host
	// DSCP and NoChecksum are for plans.
	DSCP       uint8
	NoChecksum bool
	// Limits of the token; Remote is the responder's UDP address.
	Limits control.Limits
	Remote netip.AddrPort
}

// Session is what a Kind uses to run its streams.
type Session struct {
	carrier Carrier
	opts    SessionOptions

	mu       sync.Mutex
	moved    [2]int64 // IP octets sent, by direction
	packets  [2]totals
	done     time.Duration // planned time of transfers that are over
	recorder recorder
	progress func(Progress)
}

// Overhead is the octets of IP and UDP headers of a packet: 28 for IPv4, 48 for IPv6.
func (s *Session) Overhead() int { return overhead(s.opts.IPv6) }

func overhead(ipv6 bool) int {
	if ipv6 {
		return 48
	}
	return 28
}

// Limits are the token's.
func (s *Session) Limits() control.Limits { return s.opts.Limits }

// Remote is the responder's UDP address.
func (s *Session) Remote() netip.AddrPort { return s.opts.Remote }

// Plan is a plan of these segments with the options' code point and checksum.
func (s *Session) Plan(segments ...stream.Segment) stream.Plan {
	return stream.Plan{Segments: segments, DSCP: s.opts.DSCP, NoChecksum: s.opts.NoChecksum && !s.opts.IPv6}
}

// Paced is a segment of IP packets of a size that leave evenly at a rate for a time. At
// rates above one packet each 100 us, several leave together.
func (s *Session) Paced(ipBytes int, r Rate, d time.Duration) stream.Segment {
	return paced(ipBytes, s.Overhead(), r, d)
}

func paced(ipBytes, overhead int, r Rate, d time.Duration) stream.Segment {
	interval := max(1, time.Duration(float64(ipBytes)/float64(r)*float64(time.Second)+0.5))
	return stream.Segment{
		PayloadBytes: max(stream.HeaderBytes, ipBytes-overhead), Interval: interval, Burst: 1,
		Bursts: max(1, int(d/interval)),
	}
}

// totals are what the metrics about all runs add up, by direction.
type totals struct {
	damaged        [5]int
	checksumErrors uint64
	withheld       int
	refused        int // by the sending host
}

// NewSession makes a session over a carrier.
func NewSession(c Carrier, o SessionOptions) *Session {
	return &Session{carrier: c, opts: o, recorder: recorder{most: MaxRows}}
}

// Transfer carries one stream out, in either direction, and joins what both ends saw of
// it. It may be called from two goroutines at once, for both directions together. progress
// may be nil. An error is final: the session is over, or ctx is.
func (s *Session) Transfer(ctx context.Context, d sample.Direction, p stream.Plan, progress func(Progress)) (*Transfer, error) {
	return s.TransferWithin(ctx, d, p, 0, progress)
}

// TransferWithin is Transfer, and waits no longer than idle for what may be lost, from when
// all was sent and nothing came any more; zero: Options.DrainTimeout, which it never is
// longer than. It is for a Kind that knows how long packets take at the most: see
// Transfer.Lag. The far end may be silent for only so much longer meanwhile, too, until the
// session is given up.
func (s *Session) TransferWithin(ctx context.Context, d sample.Direction, p stream.Plan, idle time.Duration, progress func(Progress)) (*Transfer, error) {
	return s.transfer(ctx, d, p, func() (*Carried, error) {
		return s.carrier.Carry(ctx, d, p, idle, s.watch(d, p, progress))
	})
}

// Feedback tells whether Steer is possible: an older far end knows no plans with feedback.
func (s *Session) Feedback() bool {
	c, ok := s.carrier.(Steerer)
	return ok && c.Feedback()
}

// Steer is Transfer of a plan with feedback (stream.Plan.Feedback), which is the most that is
// sent: by what has come, steer chooses the time from packet to packet while it runs. It may
// be called only where Feedback is true.
func (s *Session) Steer(ctx context.Context, d sample.Direction, p stream.Plan, steer stream.Steer) (*Transfer, error) {
	c, ok := s.carrier.(Steerer)
	if !ok || p.Feedback <= 0 {
		return nil, errors.New("heavy: a plan with feedback, and a far end that knows it, are wanted")
	}
	return s.transfer(ctx, d, p, func() (*Carried, error) {
		return c.Steer(ctx, d, p, s.watch(d, p, nil), steer)
	})
}

func (s *Session) transfer(ctx context.Context, d sample.Direction, p stream.Plan, carry func() (*Carried, error)) (*Transfer, error) {
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("heavy: %w", err)
	}
	begin := time.Now()
	c, err := carry()
	took := time.Since(begin)
	s.account(d, p, c)
	if err != nil {
		return nil, err
	}
	if c == nil || c.Sent == nil || c.Received == nil {
		return nil, &Failure{Reason: ReasonInternal, Err: fmt.Errorf("heavy: %s transfer: the records of one end are missing", d)}
	}
	t := &Transfer{
		Direction: d, Plan: p, Sent: c.Sent, Received: c.Received, Near: c.Near, Far: c.Far,
		Shared: s.opts.Shared, Cut: c.Cut, ends: bound.Ends{Near: s.opts.Near, Far: farStamps()}, took: took,
	}
	t.Packets, t.Counts = join(p, s.Overhead(), c.Sent, c.Received)
	t.judgeClocks()
	s.record(t)
	return t, ctx.Err()
}

// farStamps is what is known of a responder's: what its interface holds back is in the
// bound that it tells of its clock.
func farStamps() bound.Host { return bound.Host{Conversion: bound.CardConversion, Ours: true} }

// watch passes progress on, to the caller and to the run.
func (s *Session) watch(d sample.Direction, p stream.Plan, progress func(Progress)) func(Progress) {
	return func(at Progress) {
		at.Direction = d
		if progress != nil {
			progress(at)
		}
		s.mu.Lock()
		to, done := s.progress, s.done
		s.mu.Unlock()
		if to != nil {
			at.Elapsed = done + min(at.Elapsed, p.Duration())
			to(at)
		}
	}
}

// account adds up what was sent, whatever became of the transfer.
func (s *Session) account(d sample.Direction, p stream.Plan, c *Carried) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done += p.Duration()
	if c != nil {
		s.moved[d] += c.PayloadBytes + int64(c.Packets)*int64(s.Overhead())
	}
}

func (s *Session) record(t *Transfer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recorder.add(t)
	all := &s.packets[t.Direction]
	for kind, n := range t.Counts.Damaged {
		all.damaged[kind] += n
	}
	all.checksumErrors += t.Received.ChecksumErrors
	all.withheld += t.Counts.Withheld
	all.refused += t.Counts.Refused
}

// report has progress told to f.
func (s *Session) report(f func(Progress)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.progress = f
}

// close puts into the outcome what the session has seen.
func (s *Session) close(o *Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o.ForwardBytes, o.ReverseBytes = s.moved[sample.Forward], s.moved[sample.Reverse]
	o.Transfers = s.recorder.series
	for d, all := range s.packets {
		if all.refused > 0 {
			o.Note(fmt.Sprintf("%s: %d packets were not sent, as the sending host refused them: its firewall, its routes, or a full queue of its own", sample.Direction(d), all.refused))
		}
		if all.withheld > 0 {
			o.Note(fmt.Sprintf("%s: %d packets were not sent, as the responder heard nothing of this end or its host refused them: the way there stood still", sample.Direction(d), all.withheld))
		}
	}
}
