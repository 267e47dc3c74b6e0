// Package matrix is the probe that measures a path at every combination of some packet
// sizes and some packet rates: throughput at the sender and at the receiver, one-way delay,
// delay variation and loss. Sizes and rates are those of the D-ITG report on heterogeneous
// wireless networks (chapter 2, table 1): 64 to 1500 octets, 100, 1000 and 10000 packets a
// second, for access networks whose limit may be octets a second or packets a second.
//
// Two figures are not that report's. It had no clocks to trust and measured the round trip,
// as an upper bound of the one-way delay (sections 2.1.2 and 2.2.6); here the one-way delay is
// measured. Its jitter is the standard deviation of the delays (section 2.1.3); here it is the mean
// absolute difference in delay of packets sent one after the other (RFC 5481 section 4.1).
//
// A cell is one size at one rate in one direction. Cells are measured one after the other in
// an order by chance, so that a path that changes with time spoils no row or column in
// particular; the seed is in the report. A cell that the far end's token or what is left of
// the link's data budget does not allow is left out, and the report says so.
//
// What the sender could not send is the sender's shortfall, and what the receiving host
// dropped for want of buffer is the receiver's: neither is loss of the path.
package matrix

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"oneway.example/exporter/control"
	"oneway.example/exporter/heavy"
	"oneway.example/exporter/metric"
	"oneway.example/exporter/option"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/traffic/udp"
)

// Kind is the heavy test "matrix". Make it with NewKind.
type Kind struct {
	opts       Options
	directions int
	// left is what the link's budget has left; negative: it has none.
	left func() int64
	// budget is left as it was when Bytes was last asked: what Perform keeps to.
	budget int64
}

var (
	_ heavy.Kind = (*Kind)(nil)
	_ udp.Fitter = (*Kind)(nil)
)

// NewKind checks the options. env and target say which link's budget is to be kept to.
func NewKind(env probe.Env, target probe.Target, shared heavy.Options, o Options) (*Kind, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	link := cmp.Or(shared.Link, target.Path)
	return &Kind{opts: o, directions: len(shared.Directions), budget: -1, left: func() int64 {
		if env.Links != nil {
			// What is reserved is this run's own: whoever reserves holds the link.
			if u := env.Links.Usage(link); u.Limit > 0 {
				return max(0, u.Limit-u.Used)
			}
		}
		return -1
	}}, nil
}

// New is the registry's entry.
func New() probe.Type {
	return heavy.Type[Options]{Word: "matrix", Defaults: DefaultOptions, Make: func(env probe.Env, target probe.Target, shared heavy.Options, own Options) (heavy.Kind, error) {
		return NewKind(env, target, shared, own)
	}}
}

// Kind is "matrix".
func (*Kind) Kind() string { return "matrix" }

// Traffic is streams of UDP packets.
func (k *Kind) Traffic() heavy.Traffic { return udp.Near(k) }

// cells are those of the configuration in these directions.
func (k *Kind) cells(directions []sample.Direction) (all []Cell) {
	for _, d := range directions {
		for _, size := range k.opts.PacketBytes {
			for _, rate := range k.opts.PacketRates {
				all = append(all, Cell{d, size, rate})
			}
		}
	}
	return all
}

// Bytes is what the cells move that what is left of the link's budget allows: a budget too
// small for all costs some cells, not the run. Where none fits, it is what the smallest
// needs.
func (k *Kind) Bytes() int64 {
	k.budget = k.left()
	if n := k.moves(room{budget: k.budget}); n > 0 {
		return n
	}
	fits, _ := room{budget: -1}.fit(k.cells(sample.Directions()[:1]), k.opts.CellDuration, k.opts.Repetitions)
	return int64(k.opts.Repetitions) * fits[0].bytes(k.opts.CellDuration)
}

// Fit is what the cells move that the token allows too: one whose day is nearly used
// costs some cells, not the run.
func (k *Kind) Fit(limits control.Limits, overhead int) int64 {
	return k.moves(room{limits, k.budget, overhead})
}

// moves is how many IP octets the cells do that there is room for.
func (k *Kind) moves(m room) (n int64) {
	fits, _ := m.fit(k.cells(sample.Directions()[:k.directions]), k.opts.CellDuration, k.opts.Repetitions)
	for _, c := range fits {
		n += int64(k.opts.Repetitions) * c.bytes(k.opts.CellDuration)
	}
	return n
}

// Duration is that of all cells.
func (k *Kind) Duration() time.Duration {
	return time.Duration(k.directions*len(k.opts.PacketBytes)*len(k.opts.PacketRates)*k.opts.Repetitions) * k.opts.CellDuration
}

// Perform measures each cell as often as configured, in an order by chance.
func (k *Kind) Perform(ctx context.Context, s *udp.Session, r *heavy.Run) error {
	all := k.cells(r.Directions)
	res := &Result{Seed: k.opts.seed(), CellDuration: k.opts.CellDuration}
	r.Body = res
	fits, out := room{s.Limits(), k.budget, s.Overhead()}.fit(all, k.opts.CellDuration, k.opts.Repetitions)
	res.Omitted = out
	done := map[Cell][]Once{}
	defer func() { k.conclude(res, r, all, done) }()
	if len(fits) == 0 {
		return fmt.Errorf("matrix: no cell can be measured: %s", out[0].Why)
	}
	turns := sequence(len(fits), k.opts.Repetitions, rand.New(rand.NewPCG(res.Seed, 0)))
	refused := map[Cell]bool{}
	for i, turn := range turns {
		c := fits[turn]
		if refused[c] {
			continue
		}
		r.Phase(fmt.Sprintf("%d of %d, %v", i+1, len(turns), c))
		segment := c.segment(k.opts.CellDuration, s.Overhead())
		t, err := s.Transfer(ctx, c.Direction, s.Plan(segment), nil)
		if refusal, ok := errors.AsType[*control.Refusal](err); ok && refusal.ID != 0 {
			refused[c] = true
			res.Omitted = append(res.Omitted, Omission{c, c.Direction.String(), refusal.Error()})
			continue
		}
		if err != nil {
			return fmt.Errorf("matrix: %v: %w", c, err)
		}
		if t.Cut != "" {
			return fmt.Errorf("matrix: %v: cut short: %s", c, t.Cut)
		}
		m := evaluate(packets(t), c.PacketBytes, segment, uint64(t.HostDropped()))
		*m.Shortfall -= float64(t.Counts.Withheld) / float64(m.PlannedPackets) // those it might not have sent
		done[c] = append(done[c], m)
	}
	return nil
}

// conclude puts the cells in the order of the configuration, and says in a few lines what
// was found.
func (k *Kind) conclude(res *Result, r *heavy.Run, all []Cell, done map[Cell][]Once) {
	best := map[sample.Direction]Measured{}
	for _, c := range all {
		if len(done[c]) == 0 {
			continue
		}
		m := Measured{c, c.Direction.String(), summarise(done[c]), done[c]}
		res.Cells = append(res.Cells, m)
		b, any := best[c.Direction]
		if m.Median.Received != nil && (!any || *m.Median.Received > *b.Median.Received) {
			best[c.Direction] = m
		}
	}
	for _, d := range r.Directions {
		if m, any := best[d]; any {
			r.Summary = append(r.Summary, probe.Result{
				Quantity: "highest rate", Direction: d.String(),
				Value: fmt.Sprintf("%s (%d B x %d/s)", option.Rate(*m.Median.Received).Words(), m.PacketBytes, m.PacketRate),
			})
		}
	}
	r.Summary = append(r.Summary, probe.Result{Quantity: "cells", Value: fmt.Sprintf("%d of %d", len(res.Cells), len(all))})
	r.Note(fmt.Sprintf("order of the cells by seed %d", res.Seed))
	for _, o := range res.Omitted {
		r.Note(fmt.Sprintf("left out %v: %s", o.Cell, o.Why))
	}
	for _, m := range res.Cells {
		if m.Median.Shortfall != nil && *m.Median.Shortfall > shortfallNoted {
			r.Note(fmt.Sprintf("%v: the sender fell short of the rate by %.2g %%", m.Cell, 100**m.Median.Shortfall))
		}
	}
}

// shortfallNoted is the share of packets that a sender may owe without a word about it.
const shortfallNoted = 0.01

// Publish sets the figures of the cells that were measured.
func (k *Kind) Publish(v *heavy.Values, r *heavy.Run) {
	res, ok := r.Body.(*Result)
	if !ok {
		return
	}
	for _, m := range res.Cells {
		for desc, value := range map[*metric.Desc]*float64{
			metric.MatrixSent: m.Median.Sent, metric.MatrixReceived: m.Median.Received, metric.MatrixSpread: m.Median.Spread,
			metric.MatrixDelay: m.Median.Delay, metric.MatrixDelayBound: m.Median.Bound, metric.MatrixIPDV: m.Median.IPDV,
			metric.MatrixLoss: m.Median.Loss, metric.MatrixShortfall: m.Median.Shortfall,
		} {
			if value != nil {
				v.Set(desc, *value, m.Direction.String(), strconv.Itoa(m.PacketBytes), strconv.Itoa(m.PacketRate))
			}
		}
	}
}
