package train

import (
	"context"
	"errors"
	"fmt"
	"time"

	"oneway.example/exporter/control"
	"oneway.example/exporter/estimate/capacity"
	"oneway.example/exporter/heavy"
	"oneway.example/exporter/sample"
)

// Kind is the heavy test "train". Make it with NewKind.
type Kind struct {
	opts       Options
	directions int
}

var _ heavy.Kind = (*Kind)(nil)

// NewKind checks the options.
func NewKind(shared heavy.Options, o Options) (*Kind, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	return &Kind{opts: o, directions: len(shared.Directions)}, nil
}

// Kind is control.Train.
func (*Kind) Kind() control.Kind { return control.Train }

// maxAsked is how many sizes the search for the path's MTU asks for at the most.
const maxAsked = 20

// Bytes is what a run moves if as many trains are discarded as may be.
func (k *Kind) Bytes() (n int64) {
	for _, payload := range k.opts.PayloadBytes {
		n += int64(k.opts.Trains+k.opts.Repeats+1) * int64(k.opts.TrainPackets) * int64(payload+48)
	}
	if k.opts.PathMTU {
		n += maxAsked * probes * int64(k.opts.MaxMTU+witnessBytes)
	}
	return n * int64(k.directions)
}

// Duration is that of a run that discards no train.
func (k *Kind) Duration() time.Duration {
	pauses := (k.opts.Trains - 1) / k.opts.Group
	size := time.Duration(k.opts.Trains)*k.opts.TrainInterval + time.Duration(pauses)*k.opts.GroupPause
	d := time.Duration(len(k.opts.PayloadBytes)) * size
	if k.opts.PathMTU {
		d += time.Second
	}
	return d * time.Duration(k.directions)
}

// Perform sends the trains of all sizes, one direction after the other.
func (k *Kind) Perform(ctx context.Context, s *heavy.Session, r *heavy.Run) error {
	res := &Result{}
	r.Body = res
	for _, d := range r.Directions {
		one := &Direction{Direction: d, Way: d.String()}
		res.Directions = append(res.Directions, one)
		err := k.direction(ctx, s, r, one)
		r.Summary = append(r.Summary, one.summary()...)
		if err != nil {
			return err
		}
	}
	return nil
}

func (k *Kind) direction(ctx context.Context, s *heavy.Session, r *heavy.Run, one *Direction) error {
	if k.opts.PathMTU {
		r.Phase(one.Way + ": path MTU")
		var err error
		if one.PathMTU, err = pathMTU(ctx, s, one.Direction, k.opts.MaxMTU); err != nil {
			return err
		}
		if one.PathMTU == 0 {
			r.Note(one.Way + ": the path's MTU was not found: not even the smallest packets came through, or answers stopped")
		}
	}
	for _, payload := range k.opts.PayloadBytes {
		z, err := k.size(ctx, s, r, one, payload)
		one.Sizes = append(one.Sizes, z)
		if err != nil {
			return err
		}
		if z.Refusal != "" {
			r.Note(fmt.Sprintf("%s: no capacity by trains of %d B: %s", one.Way, z.PacketBytes, z.Refusal))
		}
		if z.TrainPackets < k.opts.TrainPackets {
			r.Note(fmt.Sprintf("%s: trains of %d B were made %d packets long: a queue on the path holds no more", one.Way, z.PacketBytes, z.TrainPackets))
		}
	}
	return nil
}

// size sends trains of one size until enough are clean, or too many were discarded.
func (k *Kind) size(ctx context.Context, s *heavy.Session, r *heavy.Run, d *Direction, payload int) (*Size, error) {
	z := &Size{PayloadBytes: payload, PacketBytes: payload + s.Overhead()}
	z.WireBytes = onTheWire(z.PacketBytes, d.PathMTU, isIPv6(s))
	if d.PathMTU > 0 {
		fragmented := z.PacketBytes > d.PathMTU
		z.Fragmented = &fragmented
	}
	c := newCampaign(k.opts)
	var err error
	for err == nil {
		n, pause := c.next()
		if n == 0 {
			break
		}
		r.Phase(fmt.Sprintf("%s: trains of %d B, %d of %d clean", d.Way, z.PacketBytes, c.clean(), k.opts.Trains))
		if pause {
			if err = sleep(ctx, k.opts.GroupPause); err != nil {
				break
			}
		}
		err = k.group(ctx, s, d.Direction, c, z, n)
	}
	z.TrainPackets = c.length
	z.conclude(c.verdicts, k.opts.MinClean)
	if err != nil {
		return z, fmt.Errorf("train: %s, %d B: %w", d.Way, z.PacketBytes, err)
	}
	return z, nil
}

// group sends n trains and judges them.
func (k *Kind) group(ctx context.Context, s *heavy.Session, d sample.Direction, c *campaign, z *Size, n int) error {
	limits := s.Limits()
	interval := c.interval(z.PayloadBytes, limits.BytesPerSecond)
	if limits.Duration > 0 {
		n = max(1, min(n, int(limits.Duration/interval)))
	}
	plan := s.Plan(segment(z.PayloadBytes, n, c.length, interval))
	// Of a path whose MTU is not known, large packets may be fragmented rather than lost.
	plan.Fragment = z.Fragmented == nil && z.PacketBytes > base6 || z.Fragmented != nil && *z.Fragmented
	length := c.length
	t, err := s.Transfer(ctx, d, plan, nil)
	if err != nil {
		return err
	}
	for _, one := range trainsOf(t, length, z.WireBytes) {
		c.observe(one, capacity.Judge(one, capacity.Options{}))
	}
	if t.Cut != "" {
		return errors.New("cut short: " + t.Cut)
	}
	return nil
}

// Publish sets the values of both directions.
func (*Kind) Publish(v *heavy.Values, r *heavy.Run) {
	res, ok := r.Body.(*Result)
	if !ok {
		return
	}
	for _, d := range res.Directions {
		d.publish(v)
	}
}

// sleep waits, or less if the context ends: then its error.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
