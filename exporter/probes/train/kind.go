// Package train is the probe that measures a path's capacity with packet trains: packets sent back to back, which
// the slowest link spaces by its time for each (WPI EvDO report, sections 3.2.4 and 3.5: 30 trains of 25 packets
// for each of four sizes). It also finds the path's MTU (RFC 8899), and reports which trains are fragmented.
//
// For each direction and size it sends:
//
//	one train, which gives the link's time for it, and whether its queue holds it
//	more trains at a time, ten in all (group), then a pause; again until enough are clean
//	a repetition for each discarded train, up to a limit (repeats)
//
// and, of the largest size that is not fragmented, three long trains, which empty a token bucket that the others do
// not. If the line before the bucket is faster than the sender, no train is clean: the long ones then double in length
// until one has emptied the bucket.
//
// A train is discarded if a packet was lost, reordered or duplicated, or if anything but the slowest link
// determined the distances of its packets (see package estimate/capacity). If too few remain, the result is the
// reason instead of a capacity.
//
// Trains that repeatedly lose their last packets exceed the queue of the slowest link, and are shortened.
package train

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"oneway.example/exporter/core/ctxtime"
	"oneway.example/exporter/core/ipheader"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/estimate/capacity"
	"oneway.example/exporter/load/loadsession"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/traffictypes/udptraffic"
)

// Kind is the load test "train". Make it with NewKind.
type Kind struct {
	opts       Options
	directions int
	// estimate is the expected duration of the current run; zero: no run.
	estimate atomic.Int64
	// planned is the time of its transfers so far, rest the number of trains after those of the current size.
	planned time.Duration
	rest    int
	// timeout is that of the current direction.
	timeout timeout
}

var _ loadsession.Kind[*udptraffic.Session] = (*Kind)(nil)

// NewKind checks the options.
func NewKind(shared loadsession.Options, o Options) (*Kind, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	return &Kind{opts: o, directions: len(shared.Directions)}, nil
}

// NewType makes the type for the registry.
func NewType() loadsession.Type[Options] {
	t := loadsession.NewType("train", DefaultOptions, NewKind)
	t.Help, t.Results, t.Terminal = help, Result{}, terminalOptions
	t.Doc = "Capacity by packet trains (the slowest link spreads packets that left back to back), and the path's MTU."
	return t
}

// Undisturbed marks a test without packets during the load: one between those of a train changes their dispersion, and
// a train loads the link for milliseconds only.
func (*Kind) Undisturbed() {}

// Kind is "train".
func (*Kind) Kind() string { return "train" }

// Traffic is streams of UDP packets.
func (*Kind) Traffic() loadsession.Traffic[*udptraffic.Session] { return udptraffic.Local{} }

// maxProbedSizes is the largest number of sizes that the MTU search probes.
const maxProbedSizes = 20

// Bytes is the size of a run with the largest number of discarded trains.
func (k *Kind) Bytes(int64) (n int64) {
	for _, payload := range k.opts.PayloadBytes {
		n += int64(k.opts.Trains+k.opts.Repeats+1) * int64(k.opts.TrainPackets) * int64(payload+ipheader.MaxUDP)
	}
	n += maxLongTrains * int64(k.opts.LongTrainPackets) * int64(slices.Max(k.opts.PayloadBytes)+ipheader.MaxUDP)
	if k.opts.PathMTU {
		n += maxProbedSizes * probes * int64(k.opts.MaxMTU+controlBytes)
	}
	return n * int64(k.directions)
}

// For Duration before a run has measured the link's rate: the time of a train on a slow link, and the lost trains
// at the beginning of each direction.
const (
	slow    = time.Second
	waiting = 30 * time.Second
)

// Duration is, between runs, the time of a run over a slow link, for the timeout; during a run, its expected time,
// for the progress.
func (k *Kind) Duration() time.Duration {
	if d := time.Duration(k.estimate.Load()); d > 0 {
		return d
	}
	o := &k.opts
	size := time.Duration(o.Trains)*max(slow, o.TrainInterval) + time.Duration((o.Trains-1)/o.Group)*o.GroupPause
	return time.Duration(k.directions) * (waiting + maxLongTrains*2*longest + time.Duration(len(o.PayloadBytes))*size)
}

// longTrains is the number of long trains in a direction.
func (o *Options) longTrains() int {
	if o.LongTrainPackets == 0 {
		return 0
	}
	return longTrains
}

// Perform sends the trains of all sizes, one direction after the other.
func (k *Kind) Perform(ctx context.Context, s *udptraffic.Session, r *loadtest.Run) error {
	res := &Result{}
	r.Body = res
	k.planned, k.rest = 0, k.directions*(len(k.opts.PayloadBytes)*k.opts.Trains+k.opts.longTrains())
	defer k.estimate.Store(0)
	for _, d := range r.Directions {
		one := &Direction{Direction: d, DirectionName: d.String()}
		res.Directions = append(res.Directions, one)
		err := k.direction(ctx, s, r, one)
		r.Summary = append(r.Summary, one.summary()...)
		if err != nil {
			res.note(r)
			return err
		}
	}
	if err := res.verdict(); err != nil { // it has the reasons
		return err
	}
	res.note(r)
	return nil
}

func (k *Kind) direction(ctx context.Context, s *udptraffic.Session, r *loadtest.Run, one *Direction) error {
	k.timeout = timeout{}
	if k.opts.PathMTU {
		r.Phase(one.DirectionName + ": path MTU")
		var err error
		if one.PathMTU, err = pathMTU(ctx, s, one.Direction, k.opts.MaxMTU, &k.timeout); err != nil {
			return err
		}
		if one.PathMTU == 0 {
			r.Note(one.DirectionName + ": the path's MTU was not found: not even the smallest packets passed, or replies stopped")
		}
	}
	space, queue := 0, false // bytes of a train that the path passes, 0: unlimited; and whether a queue is the limit
	for _, payload := range k.opts.PayloadBytes {
		k.rest -= k.opts.Trains
		z, err := k.size(ctx, s, r, one, payload, space, queue)
		one.Sizes = append(one.Sizes, z)
		if z.TrainPackets < k.opts.TrainPackets {
			space, queue = z.TrainPackets*z.WireBytes, z.queue
		}
		if err != nil {
			return err
		}
		if z.TrainPackets < k.opts.TrainPackets {
			cause := "since several in a row lost packets after different numbers, as with random loss"
			if z.queue {
				cause = "the limit of a queue on the path"
			}
			r.Note(fmt.Sprintf("%s: trains of %d B were shortened to %d packets, %s", one.DirectionName, z.PacketBytes, z.TrainPackets, cause))
		}
	}
	if z := one.bucket(); z != nil {
		one.shaped(z.shaper)
	}
	return k.long(ctx, s, r, one)
}

// size sends trains of one size until enough are clean, or too many were discarded. They have at most space bytes,
// if that is not zero; queue is whether a queue is the reason.
func (k *Kind) size(ctx context.Context, s *udptraffic.Session, r *loadtest.Run, d *Direction, payload, space int, queue bool) (*Size, error) {
	z := &Size{PayloadBytes: payload, PacketBytes: payload + s.Overhead()}
	z.WireBytes = onTheWire(z.PacketBytes, d.PathMTU, isIPv6(s))
	if d.PathMTU > 0 {
		z.Fragmented = new(z.PacketBytes > d.PathMTU)
	}
	length := k.opts.TrainPackets
	if space > 0 {
		length = space / z.WireBytes
	}
	c := newTrainPlan(k.opts, length)
	c.queue = queue
	err := k.sendTrains(ctx, s, r, d, c, z)
	z.TrainPackets, z.queue = c.length, c.queue
	z.conclude(c.verdicts, k.opts.MinClean)
	z.shaper = capacity.FindShaper(c.trains, c.evaluate)
	return z, err
}

// sendTrains sends the trains of a plan.
func (k *Kind) sendTrains(ctx context.Context, s *udptraffic.Session, r *loadtest.Run, d *Direction, c *trainPlan, z *Size) (err error) {
	for n, pause := c.next(); n > 0; n, pause = c.next() {
		r.Phase(fmt.Sprintf("%s: trains of %d B, %d of %d clean", d.DirectionName, z.PacketBytes, c.clean, c.opts.Trains))
		rest := time.Duration(0)
		switch {
		case pause:
			rest = k.opts.GroupPause
		case c.long: // until the token's bucket allows the train; only the load server knows its level
			rest = minTime(c.length*z.PayloadBytes, s.Limits().BytesPerSecond)
		}
		if rest > 0 && !ctxtime.Sleep(ctx, rest) {
			err = ctx.Err()
		} else {
			err = k.group(ctx, s, d.Direction, c, z, n)
		}
		if err != nil {
			return fmt.Errorf("train: %s, %d B: %w", d.DirectionName, z.PacketBytes, err)
		}
	}
	return nil
}

// The number of long trains required, and the most that are sent: with both kinds of result, all of one kind and
// one less of the other.
const (
	longTrains    = 3
	maxLongTrains = 2*longTrains - 1
	// longest is the most time of the link for one train, which delays other traffic.
	longest = 2 * time.Second
	// longFactor is the least ratio of the packets of a long train to the packets of another one.
	longFactor = 2
)

// long sends the long trains that detect a token bucket, of the size that represents the direction, and concludes.
func (k *Kind) long(ctx context.Context, s *udptraffic.Session, r *loadtest.Run, d *Direction) error {
	k.rest -= k.opts.longTrains()
	z := d.best()
	if z == nil {
		return k.doubled(ctx, s, r, d)
	}
	o := k.opts
	o.Trains, o.Repeats = longTrains, longTrains-1
	o.TrainPackets = min(k.allowed(s, z), int(longest.Seconds()**z.Median/float64(z.WireBytes)))
	c := newTrainPlan(o, o.TrainPackets)
	c.long = true
	var err error
	if z.longer(o.TrainPackets) && d.bucket() == nil {
		err = k.sendTrains(ctx, s, r, d, c, z)
	}
	d.shaped(capacity.FindShaper(c.trains, c.evaluate))
	if d.conclude(z, c.verdicts); d.Refusal != "" {
		if d.Shaper == nil { // a queue may hold no long train, and the bucket may be full before some of the others
			d.shaped(z.shaper)
		}
	}
	return err
}

// allowed is the length of long trains: as configured, or what the token's rate allows at once.
func (k *Kind) allowed(s *udptraffic.Session, z *Size) int {
	return int(min(float64(k.opts.LongTrainPackets), s.Limits().BurstBytes()/float64(z.PayloadBytes)))
}

// longer reports whether trains of so many packets are long, and no queue of the path has limited the others.
func (z *Size) longer(packets int) bool { return packets >= longFactor*z.TrainPackets && !z.queue }

// doubled sends long trains in a direction that has slowed no train, so that its rate is not known.
func (k *Kind) doubled(ctx context.Context, s *udptraffic.Session, r *loadtest.Run, d *Direction) error {
	z := d.unslowed()
	if z == nil || !z.longer(k.allowed(s, z)) {
		return nil
	}
	o := k.opts
	o.TrainPackets = k.allowed(s, z)
	c := newTrainPlan(o, longFactor*z.TrainPackets)
	c.long, c.doubles = true, true
	err := k.sendTrains(ctx, s, r, d, c, z)
	// Of the last length, and the one before: earlier ones that looked like a bucket were not confirmed.
	d.shaped(capacity.FindShaper(c.trains[max(0, len(c.trains)-c.lasting-1):], c.evaluate))
	passed := 0 // packets up to the first loss
	for _, t := range c.trains {
		passed = max(passed, len(t.Packets))
	}
	if d.conclude(z, c.verdicts); d.Shaper == nil && err == nil {
		r.Note(fmt.Sprintf("%s: trains of up to %d packets have emptied no token bucket", d.DirectionName, passed))
	}
	return err
}

// group sends n trains and judges them.
func (k *Kind) group(ctx context.Context, s *udptraffic.Session, d sample.Direction, c *trainPlan, z *Size, n int) error {
	limits := s.Limits()
	interval := c.interval(z.PayloadBytes, limits.BytesPerSecond)
	if limits.Duration > 0 {
		n = max(1, min(n, int(limits.Duration/(interval+startJitter))))
	}
	plan := s.Plan(segments(z.PayloadBytes, n, c.length, interval)...)
	// If the path's MTU is unknown, large packets may be fragmented rather than lost.
	plan.Fragment = z.Fragmented == nil && z.PacketBytes > base6 || z.Fragmented != nil && *z.Fragmented
	length := c.length
	// The expected duration: past transfers, this plan, and the remaining trains.
	trains := max(0, c.opts.Trains-c.clean-n) + k.rest
	k.estimate.Store(int64(k.planned + plan.Duration() + time.Duration(trains)*(interval+startJitter/2)))
	t, err := s.TransferWithin(ctx, d, plan, k.timeout.idle(minIdleTrains), nil)
	if err != nil {
		return err
	}
	k.timeout.add(t)
	k.planned += plan.Duration()
	o := capacity.Options{StampError: t.SpacingError(), Drift: t.Drift()}
	c.evaluate = capacity.Options{StampError: max(c.evaluate.StampError, o.StampError), Drift: max(c.evaluate.Drift, o.Drift)}
	for _, one := range trainsOf(t, length, z.WireBytes) {
		if c.long {
			one = untilLoss(one)
		}
		c.observe(one, capacity.Evaluate(one, o))
	}
	return t.CutShort()
}
