package stamp

import (
	"net/netip"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/pathstate"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/estimate/loss"
	"oneway.example/exporter/probes/stamp/ledger"
)

// Replay is the estimator and the series of a path without sockets: its caller has the packets, of a simulation or of a record, and
// tells when a window ends. Time is the packets' own: a year takes minutes. Its reflector is one of this program, which counts each
// packet, so that the direction of each loss is known. It is not safe for concurrent use. Make one with NewReplay.
type Replay struct {
	opts      *Options
	estimator *estimator
	series    *series
	peer      netip.AddrPort
	tallies   ledger.Tallies
	counts    [2]packetCounts
	reply     ledger.PendingReply
	silent    int // packets without a reply since the last one
	window    *window
}

// packetCounts are the packets of one direction.
type packetCounts struct {
	sent, received, lost uint64
	told                 uint64 // received ones that the estimator knows of
	run                  uint64 // lost ones in a row
}

// NewReplay makes a Replay that publishes in a scope with the labels path and probe, in its profile. peer is a label of oneway_path_info.
// c is the clock of this host; remote bounds are in the packets. An option has the meaning that it has for a probe, except that a window
// may last longer than 10 min.
func NewReplay(o Options, peer netip.AddrPort, c clock.Monitor, scope *metric.Scope) (*Replay, error) {
	window := o.Window
	o.Window = 0
	if err := o.check(); err != nil {
		return nil, err
	}
	if window > 0 {
		o.Window = window
	}
	o.slim = scope.Profile() == metric.Slim
	r := &Replay{opts: &o, series: seriesOf(scope), peer: peer, tallies: ledger.Tallies{Kind: ledger.RemoteOurs}}
	r.estimator = newEstimator(r.opts, c, &r.series.observed)
	r.estimator.take(ledger.Verdict{Kind: ledger.RemoteIdentified})
	return r, nil
}

// Pace changes the time between packets and the length of the windows from the next ones on.
func (r *Replay) Pace(interval, window time.Duration) {
	r.opts.Interval, r.opts.Window = interval, window
}

// Answered adds a test packet with a reply in time. It takes the four timestamps and the remote bound of p, in the order of sending; its
// numbers follow from the order.
func (r *Replay) Answered(p *sample.Packet) {
	forward, reverse := &r.counts[sample.Forward], &r.counts[sample.Reverse]
	r.reply = ledger.PendingReply{Packet: *p, Clock: ledger.ThenOf(r.estimator.clock.Quality(p.T4.At)), Era: r.estimator.era}
	r.reply.Packet.Seq, r.reply.Packet.ReverseSeq = forward.sent, reverse.sent
	r.arrived(sample.Forward)
	r.arrived(sample.Reverse)
	r.tallies.RoundTripsReceived++
	r.tallies.LastSuccess, r.silent = p.T4.At, 0
	r.estimator.take(ledger.Verdict{Kind: ledger.PacketAnswered, Packet: &r.reply})
	r.estimator.replied++
}

// Lost adds a test packet that was lost in a direction, or whose reply was.
func (r *Replay) Lost(in sample.Direction) {
	if in == sample.Reverse {
		r.arrived(sample.Forward)
	}
	c := &r.counts[in]
	r.tell(in)
	c.sent++
	c.lost++
	c.run++
	delta := loss.Delta{Decided: 1, Lost: 1}
	if c.run == 1 {
		delta.Bursts = 1
	} else {
		delta.Continued = true
	}
	r.estimator.take(ledger.Verdict{Kind: ledger.PacketsDecided, Direction: in, Losses: delta})
	r.tallies.RoundTripsLost++
	r.silent++
	r.estimator.take(ledger.Verdict{Kind: ledger.RoundTripsDecided, Losses: loss.Delta{Lost: 1}})
}

// arrived counts a packet of one direction.
func (r *Replay) arrived(dir sample.Direction) {
	c := &r.counts[dir]
	c.sent++
	c.received++
	if c.run > 0 {
		r.estimator.take(ledger.Verdict{Kind: ledger.BurstEnded, Direction: dir, Losses: loss.Delta{Lost: c.run}})
		c.run = 0
	}
}

// tell passes the number of received packets to the estimator, many at once.
func (r *Replay) tell(dir sample.Direction) {
	c := &r.counts[dir]
	if n := c.received - c.told; n > 0 {
		c.told = c.received
		r.estimator.take(ledger.Verdict{Kind: ledger.PacketsDecided, Direction: dir, Losses: loss.Delta{Decided: n, Received: n}})
	}
}

// EndWindow ends the window. The next Publish publishes it.
func (r *Replay) EndWindow() {
	for _, dir := range sample.Directions() {
		r.tell(dir)
	}
	r.window = r.estimator.close(r.known())
}

func (r *Replay) known() ledger.Known { return ledger.Known{Directions: [2]bool{true, true}} }

// Facts are what decides the state of the path, as of a probe.
func (r *Replay) Facts() pathstate.Facts {
	f := pathstate.Facts{
		Interval: r.opts.Interval, MaxLoss: r.opts.MaxLoss, Session: 1, Measured: r.window != nil, Decided: true, Replies: r.replies(), Silence: pathstate.NoReply,
		Answered: uint32(r.tallies.RoundTripsReceived), Unanswered: uint32(r.tallies.RoundTripsLost),
	}
	for _, dir := range sample.Directions() {
		w, c := &f.Ways[dir], &r.counts[dir]
		w.LossKnown, w.Received, w.Lost = true, uint32(c.received), uint32(c.lost)
		r.estimator.ways[dir].limited.way(w)
	}
	return f
}

// replies reports whether replies arrive.
func (r *Replay) replies() bool {
	return r.silent < ledger.UpIntervals && r.tallies.RoundTripsReceived > 0
}

// Publish updates the series: the counters of now, and the values of the last window that has ended.
func (r *Replay) Publish() {
	e := r.estimator
	v := snapshot{
		opts: r.opts, peer: r.peer, Tallies: r.tallies, clockState: e.clockState, stamps: copied(e.stamps), window: r.window,
		up: r.replies(), decided: true,
	}
	v.stampError, v.calibrated = e.ends.Local.Receive()
	v.remote = remoteClock{known: true, synchronized: r.reply.Packet.Remote.Reason == sample.OK, bound: r.reply.Packet.Remote.Error}
	invalid := copied(e.invalid)
	v.noRoundTrip = invalid.roundTrips
	for _, dir := range sample.Directions() {
		w, c := &e.ways[dir], &r.counts[dir]
		known := ledger.OptionalOf[uint64]
		v.directions[dir] = directionSnapshot{
			DirectionCounts: ledger.DirectionCounts{
				Sent: known(c.sent, true), Received: known(c.received, true), Lost: known(c.lost, true), Dropped: known(0, true), Outstanding: known(0, true),
				Duplicated: known(0, true), Reordered: known(0, true), Late: known(0, true), Corrupted: known(0, true),
			},
			jitter: w.jitter(), negative: w.negative, lowConfidence: w.lowConfidence, txUncertain: w.txUncertain, invalid: invalid.delays[dir],
		}
	}
	r.series.publish(&v)
}
