package matrix

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"oneway.example/exporter/control"
	"oneway.example/exporter/heavy"
	"oneway.example/exporter/metric"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/sample"
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
	_ heavy.Kind   = (*Kind)(nil)
	_ heavy.Fitter = (*Kind)(nil)
)

// NewKind checks the options. env and target say which link's budget is to be kept to.
func NewKind(env probe.Env, target probe.Target, shared heavy.Options, o Options) (*Kind, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	link := shared.Link
	if link == "" {
		link = target.Path
	}
	return &Kind{opts: o, directions: len(shared.Directions), budget: -1, left: func() int64 {
		if env.Links == nil {
			return -1
		}
		// What is reserved is this run's own: whoever reserves holds the link.
		if u := env.Links.Usage(link); u.Limit > 0 {
			return max(0, u.Limit-u.Used)
		}
		return -1
	}}, nil
}

// Kind is control.Matrix.
func (*Kind) Kind() control.Kind { return control.Matrix }

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
	all := k.cells(sample.Directions()[:k.directions])
	fits, _ := room{budget: k.budget}.fit(all, k.opts.CellDuration, k.opts.Repetitions)
	if len(fits) == 0 {
		fits, _ = room{budget: -1}.fit(all, k.opts.CellDuration, k.opts.Repetitions)
		fits = fits[:1]
	}
	return k.move(fits)
}

// move is how many IP octets these cells do.
func (k *Kind) move(cells []Cell) (n int64) {
	for _, c := range cells {
		n += int64(k.opts.Repetitions) * c.bytes(k.opts.CellDuration)
	}
	return n
}

// Fit is what the cells move that the token allows too: one whose day is nearly used
// costs some cells, not the run.
func (k *Kind) Fit(limits control.Limits, overhead int) int64 {
	all := k.cells(sample.Directions()[:k.directions])
	fits, _ := room{limits, k.budget, overhead}.fit(all, k.opts.CellDuration, k.opts.Repetitions)
	return k.move(fits)
}

// Duration is that of all cells.
func (k *Kind) Duration() time.Duration {
	return time.Duration(k.directions*len(k.opts.PacketBytes)*len(k.opts.PacketRates)*k.opts.Repetitions) * k.opts.CellDuration
}

// Perform measures each cell as often as configured, in an order by chance.
func (k *Kind) Perform(ctx context.Context, s *heavy.Session, r *heavy.Run) error {
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
	turns := order(len(fits), k.opts.Repetitions, rand.New(rand.NewPCG(res.Seed, 0)))
	refused := map[Cell]bool{}
	for i, turn := range turns {
		c := fits[turn]
		if refused[c] {
			continue
		}
		r.Phase(fmt.Sprintf("%d of %d, %v", i+1, len(turns), c))
		segment := c.segment(k.opts.CellDuration, s.Overhead())
		t, err := s.Transfer(ctx, c.Direction, s.Plan(segment), nil)
		if refusal := (*control.Refusal)(nil); errors.As(err, &refusal) && refusal.ID != 0 {
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

// packets takes from a transfer what a cell's figures are made of.
func packets(t *heavy.Transfer) []packet {
	all := make([]packet, len(t.Packets))
	for i := range t.Packets {
		p := &t.Packets[i]
		if !p.Sent.Present() {
			continue
		}
		all[i].sent = p.Sent.At
		all[i].delay = t.Delay(i)
		if p.Copies > 0 {
			all[i].arrived = p.Arrived.At
		}
	}
	return all
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
				Value: fmt.Sprintf("%s (%d B x %d/s)", heavy.Rate(*m.Median.Received).Words(), m.PacketBytes, m.PacketRate),
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
		for _, one := range []struct {
			desc  *metric.Desc
			value *float64
		}{
			{metric.MatrixSent, m.Median.Sent},
			{metric.MatrixReceived, m.Median.Received},
			{metric.MatrixSpread, m.Median.Spread},
			{metric.MatrixDelay, m.Median.Delay},
			{metric.MatrixDelayBound, m.Median.Bound},
			{metric.MatrixIPDV, m.Median.IPDV},
			{metric.MatrixLoss, m.Median.Loss},
			{metric.MatrixShortfall, m.Median.Shortfall},
		} {
			if one.value != nil {
				v.Set(one.desc, *one.value, m.Direction.String(), strconv.Itoa(m.PacketBytes), strconv.Itoa(m.PacketRate))
			}
		}
	}
}
