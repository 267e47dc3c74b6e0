package udptraffic

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"oneway.example/exporter/core/bound"
	"oneway.example/exporter/core/errtext"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/ipheader"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/stream"
	"oneway.example/exporter/probe/endclock"
)

// Carrier transfers streams between the two ends. The real one uses a control connection and a UDP
// socket; tests of Kinds simulate a path.
type Carrier interface {
	// Transfer transfers one stream. With an error it also returns what is known, or nil if nothing was
	// sent. A transfer that ended early has no error, but CarrierResult.Cut. idle is the idle timeout after
	// the last packet was sent, at most the configured one; zero: the configured one. adjustRate
	// is nil, or chooses the rate of a plan with feedback, in both directions.
	Transfer(ctx context.Context, d sample.Direction, p stream.Plan, idle time.Duration, progress func(loadtest.Progress), adjustRate stream.Adjuster) (*CarrierResult, error)
}

// CarrierResult is the result of a Carrier.
type CarrierResult struct {
	// Sent and Received are the two ends' records; nil if unknown.
	Sent     *stream.Sent
	Received *stream.Received
	// PayloadBytes is the UDP payload sent, as far as is known.
	PayloadBytes  int64
	Packets       int
	Local, Remote endclock.Span
	Cut           string
}

// SessionOptions configure a Session.
type SessionOptions struct {
	// IPv6: packets have larger headers.
	IPv6 bool
	// SharedClock: both ends read one clock (package hostid).
	SharedClock bool
	// Local has the timestamp errors of this host on the path.
	Local bound.Host
	// DSCP and NoChecksum of plans.
	DSCP       uint8
	NoChecksum bool
	// Limits of the token; Remote is the load server's UDP address.
	Limits loadcontrol.Limits
	Remote netip.AddrPort
	// Memory is the memory limit of this process in bytes (memlimit.Process); zero: none.
	Memory int64
	// Loaded receives the times of load (loadtest.Attempt), Progress how much of the traffic is done; nil: nobody does.
	Loaded   func(d sample.Direction, from, to instant.Time)
	Progress func(loadtest.Progress)
	// Clocks is whether traffic of the run has proven a clock wrong. Without it the transfers do not know of one another.
	Clocks *endclock.Proof
	// Rows receives the rows of each transfer that has ended, labeled Path, Probe and Run; nil: none.
	Rows             *record.Stream[record.Rows]
	Path, Probe, Run string
}

// Session runs the streams of a test.
type Session struct {
	carrier Carrier
	opts    SessionOptions

	mu        sync.Mutex
	sentBytes [2]int64      // IP bytes sent, by direction
	done      time.Duration // planned time of completed transfers
	recorder  recorder

	leave func()   // ends the use of the socket; nil: the remote end is simulated
	live  *carrier // nil: the remote end is simulated
}

// Overhead returns the bytes of IP and UDP headers of a packet.
func (s *Session) Overhead() int { return ipheader.WithIP(s.opts.IPv6, ipheader.UDP) }

// Limits returns those of the token.
func (s *Session) Limits() loadcontrol.Limits { return s.opts.Limits }

// Remote returns the load server's UDP address.
func (s *Session) Remote() netip.AddrPort { return s.opts.Remote }

// LastReceived returns when the last packet of any type arrived from the load server.
func (s *Session) LastReceived() time.Time {
	ago, _ := s.live.session.LastReceived()
	return time.Now().Add(-ago)
}

// HeldBack returns how long the path holds packets back (traffic.QueueDelay), where a message is due since a time.
func (s *Session) HeldBack(now, due time.Time, every time.Duration) time.Duration {
	return s.live.heldBack(now, due, every)
}

// Plan returns a plan of these segments with the options' DSCP and checksum.
func (s *Session) Plan(segments ...stream.Segment) stream.Plan {
	return stream.Plan{Segments: segments, DSCP: s.opts.DSCP, NoChecksum: s.opts.NoChecksum && !s.opts.IPv6}
}

// PacedSegment returns a segment of IP packets of one size that leave evenly at a rate for a time. Above one
// packet per 100 us, several leave together.
func (s *Session) PacedSegment(ipBytes int, r option.Rate, d time.Duration) stream.Segment {
	interval := max(1, time.Duration(float64(ipBytes)/float64(r)*float64(time.Second)+0.5))
	return stream.Segment{
		PayloadBytes: max(stream.HeaderBytes, ipBytes-s.Overhead()), Interval: interval, Burst: 1,
		Bursts: max(1, int(d/interval)),
	}
}

// NewSession makes a session with a carrier.
func NewSession(c Carrier, o SessionOptions) *Session {
	return &Session{carrier: c, opts: o, recorder: recorder{every: 1, most: MaxRows}}
}

// Transfer transfers one stream, in either direction, and joins the records of both ends. Two
// goroutines may call it concurrently, one for each direction. progress may be nil. An error is
// final: the session or ctx has ended. After the end of ctx there may also be a Transfer: of what was sent before.
func (s *Session) Transfer(ctx context.Context, d sample.Direction, p stream.Plan, progress func(loadtest.Progress)) (*Transfer, error) {
	return s.TransferWithin(ctx, d, p, 0, progress)
}

// TransferWithin is Transfer with an idle timeout after the last packet was sent; zero or more than
// Options.DrainTimeout: that. It is for a Kind that has measured the longest delay of packets: see
// Transfer.Lag.
func (s *Session) TransferWithin(ctx context.Context, d sample.Direction, p stream.Plan, idle time.Duration, progress func(loadtest.Progress)) (*Transfer, error) {
	return s.transfer(ctx, d, p, idle, progress, nil)
}

// AdjustRate is Transfer of a plan with feedback (stream.Plan.Feedback), which is the most that is sent:
// adjustRate chooses the interval of packets by the reports of the receiver.
func (s *Session) AdjustRate(ctx context.Context, d sample.Direction, p stream.Plan, adjustRate stream.Adjuster) (*Transfer, error) {
	return s.transfer(ctx, d, p, 0, nil, adjustRate)
}

func (s *Session) transfer(ctx context.Context, d sample.Direction, p stream.Plan, idle time.Duration, progress func(loadtest.Progress), adjustRate stream.Adjuster) (*Transfer, error) {
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("udptraffic: %w", err)
	}
	if err := p.CheckMemory(stream.ClientMemory, s.opts.Memory, "this process"); err != nil {
		return nil, &loadtest.Failure{Reason: runreason.Configuration, Err: fmt.Errorf("udptraffic: %s transfer: %w", d, err)}
	}
	if (adjustRate != nil) != (p.Feedback > 0) {
		return nil, errors.New("udptraffic: a plan with feedback requires an Adjuster, and other plans must not have one")
	}
	begin := time.Now()
	c, err := s.carrier.Transfer(ctx, d, p, idle, s.watch(d, p, progress), adjustRate)
	if pause := loadtest.Pause(ctx); err != nil && pause != nil {
		err = pause
	}
	took := time.Since(begin)
	s.account(d, p, c)
	complete := c != nil && c.Sent != nil && c.Received != nil
	switch {
	case err != nil && (ctx.Err() == nil || !complete):
		return nil, err
	case err != nil:
		c.Cut = errtext.Words(err)
	case !complete:
		return nil, &loadtest.Failure{Reason: runreason.Internal, Err: fmt.Errorf("udptraffic: %s transfer: the records of one end are missing", d)}
	}
	t := &Transfer{
		Direction: d, Plan: p, Sent: c.Sent, Received: c.Received, Local: c.Local, Remote: c.Remote,
		SharedClock: s.opts.SharedClock, Cut: c.Cut, ends: bound.Ends{Local: s.opts.Local, Remote: endclock.RemoteStamps()}, took: took,
	}
	t.Packets, t.Counts = join(p, s.Overhead(), c.Sent, c.Received)
	t.bound = endclock.Bound(t.Local, t.Remote, t.SharedClock)
	if t.disproved() {
		s.opts.Clocks.Find()
		t.bound = sample.Bound{Reason: sample.ClocksApart}
	}
	t.bound = s.opts.Clocks.Judge(t.bound)
	s.record(t)
	if from, to := t.loaded(); s.opts.Loaded != nil && from != 0 {
		s.opts.Loaded(d, from, to)
	}
	return t, context.Cause(ctx)
}

// watch forwards progress to the caller and to the run.
func (s *Session) watch(d sample.Direction, p stream.Plan, progress func(loadtest.Progress)) func(loadtest.Progress) {
	return func(at loadtest.Progress) {
		at.Direction = d
		if progress != nil {
			progress(at)
		}
		if s.opts.Progress != nil {
			s.mu.Lock()
			done := s.done
			s.mu.Unlock()
			at.Elapsed = done + min(at.Elapsed, p.Duration())
			s.opts.Progress(at)
		}
	}
}

// account adds what was sent, also of a transfer that failed.
func (s *Session) account(d sample.Direction, p stream.Plan, c *CarrierResult) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done += p.Duration()
	if c != nil {
		s.sentBytes[d] += c.PayloadBytes + int64(c.Packets)*int64(s.Overhead())
	}
}

// record keeps a transfer for the report and passes the rows of all its packets to the recorder: those of
// the report if they are complete. They must not be changed afterwards.
func (s *Session) record(t *Transfer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	series := t.series(s.recorder.every)
	if s.opts.Rows.HasListeners() {
		rows := series.Rows
		if series.Every > 1 {
			rows = t.rows(1)
		}
		s.opts.Rows.Record(&record.Rows{
			Path: s.opts.Path, Probe: s.opts.Probe, Run: s.opts.Run, Direction: t.Direction, Begin: series.Begin, Every: 1, Bound: t.LargestBound(), Rows: rows,
		})
	}
	s.recorder.add(series)
}

// Close releases the socket; the control connection is closed already.
func (s *Session) Close() {
	if s.leave != nil {
		s.leave()
	}
}

// Account adds the results of the session to the outcome and to the counters.
func (s *Session) Account(o *loadtest.Outcome, counters *metric.Scope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o.ForwardBytes += s.sentBytes[sample.Forward]
	o.ReverseBytes += s.sentBytes[sample.Reverse]
	if all := s.recorder.series; len(all) > 0 {
		o.Transfers = all
	}
	if s.opts.NoChecksum && s.opts.IPv6 {
		o.Note("checksum: false is for IPv4, and the load server was reached over IPv6: packets have a checksum")
	}
	for _, d := range o.Directions {
		var all Counts
		var checksumErrors uint64
		for _, t := range s.recorder.series {
			if t.Transfer.Direction != d {
				continue
			}
			checksumErrors += t.Received.ChecksumErrors
			for kind, n := range t.Counts.Damaged {
				all.Damaged[kind] += n
			}
			all.Refused += max(0, t.Counts.Refused-t.Sent.TooLarge) // packets above the MTU are a result, not a fault
			all.Withheld += t.Counts.Withheld
		}
		counters.Series(metric.KernelChecksumErrors, d.String()).Add(float64(checksumErrors))
		for kind, n := range all.Damaged {
			if n > 0 {
				counters.Series(metric.RunPacketsCorrupted, d.String(), stream.Damage(kind).String()).Add(float64(n))
			}
		}
		if all.Refused > 0 {
			o.Note(fmt.Sprintf("%s: %s not sent, as the sending host's kernel refused to send: %s", d, unit.Counted(all.Refused, "packet was", "packets were"), errtext.Refused))
		}
		if all.Withheld > 0 {
			o.Note(fmt.Sprintf("%s: %s not sent, as the load server received nothing from this end, or none of its cookies back, or its kernel could not send: the path to it was interrupted", d, unit.Counted(all.Withheld, "packet was", "packets were")))
		}
	}
}

// MaxRows is the most rows of packets in a run's report, all transfers together. Above it, every second
// row of all transfers is dropped, repeatedly until they fit; Series.Every has the number of packets
// per row.
const MaxRows = 100_000

// Series is a transfer in the report: Rows replace the packets of Transfer, Sent and Received.
type Series struct {
	Direction string `json:"direction"` // name of Transfer.Direction
	Transfer
	// Begin is the origin of the times of the rows.
	Begin instant.Time `json:"begin_ns"`
	// Every is the number of packets per row; 1: all packets have one.
	Every   int          `json:"every"`
	Columns []string     `json:"columns"`
	Rows    []record.Row `json:"rows"`
}

// series converts the transfer for the report.
func (t *Transfer) series(every int) *Series {
	s := &Series{
		Direction: t.Direction.String(), Transfer: *t,
		Begin: t.Sent.Begin, Every: every, Columns: record.RowColumns(), Rows: t.rows(every),
	}
	sent, received := *t.Sent, *t.Received
	s.Packets, sent.Packets, received.Packets = nil, nil, nil
	s.Sent, s.Received = &sent, &received
	return s
}

// rows has one row for each packet whose number is a multiple of every.
func (t *Transfer) rows(every int) []record.Row {
	after := func(x sample.Stamp) int64 {
		if !x.Present() {
			return record.NoTime
		}
		return int64(x.At.Sub(t.Sent.Begin))
	}
	rows := make([]record.Row, 0, len(t.Packets)/every+1)
	for i := 0; i < len(t.Packets); i += every {
		p := &t.Packets[i]
		rows = append(rows, record.Row{
			Seq: p.Seq, Segment: p.Segment, Copies: p.Copies, IPBytes: p.IPBytes,
			Sent: after(p.Sent), Arrived: after(p.Arrived), Damage: uint8(p.Damage),
		})
	}
	return rows
}

// recorder keeps the series of a run within MaxRows.
type recorder struct {
	series []*Series
	every  int
	rows   int
	most   int
}

// add adds the series of a transfer.
func (r *recorder) add(s *Series) {
	r.series = append(r.series, s)
	r.rows += len(s.Rows)
	for r.rows > r.most && r.rows > len(r.series) {
		r.halve()
	}
}

// halve drops every second row of all series. It makes new slices, as readers may use the old ones (Session.record).
func (r *recorder) halve() {
	r.every, r.rows = 2*r.every, 0
	for _, s := range r.series {
		kept := make([]record.Row, 0, (len(s.Rows)+1)/2)
		for i := 0; i < len(s.Rows); i += 2 {
			kept = append(kept, s.Rows[i])
		}
		s.Rows, s.Every = kept, 2*s.Every
		r.rows += len(kept)
	}
}
