// Package sizesweep is the probe that measures a path at every combination of some packet
// sizes and some packet rates: throughput at the sender and at the receiver, one-way delay,
// delay variation and loss. Sizes and rates are those of the D-ITG report on heterogeneous
// wireless networks (chapter 2, table 1): 64 to 1500 bytes, 100, 1000 and 10000 packets a
// second, for access networks whose limit may be bytes a second or packets a second.
//
// Two figures differ from that report. Without synchronized clocks it measured the round trip as an upper bound of
// the one-way delay (sections 2.1.2 and 2.2.6); here the one-way delay is measured. Its jitter is the standard
// deviation of the delays (section 2.1.3); here it is the mean absolute difference in delay of consecutive packets
// (RFC 5481 section 4.1).
//
// A cell is one size at one rate in one direction. Cells are measured one after the other in random order, so that
// a path that changes with time affects no row or column in particular; the seed is in the report. A cell that the
// remote end's token or the rest of the link's data quota does not allow is left out and reported.
//
// Packets that the sender did not send are the sender's underrun, and those that the receiving host dropped are the
// receiver's drops: neither is loss of the path.
package sizesweep

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/loadsession"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/traffictypes/udptraffic"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/report"
)

// Kind is the load test "size_sweep". Make it with NewKind.
type Kind struct {
	opts       Options
	directions int
	// quota is the rest at the last call of Bytes: Perform keeps to it.
	quota int64
}

var (
	_ loadsession.Kind[*udptraffic.Session] = (*Kind)(nil)
	_ loadsession.Fitter                    = (*Kind)(nil)
)

// NewKind checks the options.
func NewKind(shared loadsession.Options, o Options) (*Kind, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	return &Kind{opts: o, directions: len(shared.Directions), quota: math.MaxInt64}, nil
}

// NewType makes the type for the registry.
func NewType() loadsession.Type[Options] {
	t := loadsession.NewType("size_sweep", DefaultOptions, NewKind)
	t.Help, t.Results, t.Terminal = help, Result{}, terminalOptions
	t.Doc = "Every packet size at every packet rate: throughput of both ends, delay, its variation, loss. Cells beyond the token's limits or the rest of the quota are skipped, with a note in the report."
	return t
}

// Kind is "size_sweep".
func (*Kind) Kind() string { return "size_sweep" }

// Traffic is streams of UDP packets.
func (*Kind) Traffic() loadsession.Traffic[*udptraffic.Session] { return udptraffic.Local{} }

// cells are the configured cells of these directions.
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

// Bytes is the size of the cells that the rest of the link's quota allows: a small quota omits some cells, not the
// run. If none fits, it is the size of the smallest.
func (k *Kind) Bytes(left int64) int64 {
	k.quota = left
	if n := k.moves(space{quota: k.quota}); n > 0 {
		return n
	}
	fits, _ := space{quota: math.MaxInt64}.fit(k.cells(sample.Directions()[:1]), k.opts.CellDuration, k.opts.Repetitions)
	return int64(k.opts.Repetitions) * fits[0].bytes(k.opts.CellDuration)
}

// Fit is the size of the cells that the token allows too: a small rest of its day omits some cells, not the run.
func (k *Kind) Fit(limits loadcontrol.Limits, overhead int) int64 {
	return k.moves(space{limits, k.quota, overhead})
}

// moves is the size, in IP bytes, of the cells that fit.
func (k *Kind) moves(m space) (n int64) {
	fits, _ := m.fit(k.cells(sample.Directions()[:k.directions]), k.opts.CellDuration, k.opts.Repetitions)
	for _, c := range fits {
		n += int64(k.opts.Repetitions) * c.bytes(k.opts.CellDuration)
	}
	return n
}

// Duration is the time of all cells.
func (k *Kind) Duration() time.Duration {
	return time.Duration(k.directions*len(k.opts.PacketBytes)*len(k.opts.PacketRates)*k.opts.Repetitions) * k.opts.CellDuration
}

// Perform measures each cell as often as configured, in random order.
func (k *Kind) Perform(ctx context.Context, s *udptraffic.Session, r *loadtest.Run) error {
	all := k.cells(r.Directions)
	res := &Result{Seed: loadtest.Seed(k.opts.Seed), CellDuration: report.Seconds(k.opts.CellDuration)}
	r.Body = res
	fits, out := space{s.Limits(), k.quota, s.Overhead()}.fit(all, k.opts.CellDuration, k.opts.Repetitions)
	res.Omitted = out
	done := map[Cell][]Repetition{}
	defer func() { k.conclude(res, r, all, done) }()
	if len(fits) == 0 {
		return &loadtest.Failure{Reason: out[0].reason, Err: fmt.Errorf("sizesweep: no cell can be measured: %s", out[0].Why)}
	}
	turns := loadtest.Turns(len(fits), k.opts.Repetitions, res.Seed)
	refused := map[Cell]bool{}
	var failed error // of the last cell that was refused
	for i, turn := range turns {
		c := fits[turn]
		if refused[c] {
			continue
		}
		r.Phase(fmt.Sprintf("%d of %d, %v", i+1, len(turns), c))
		segment := c.segment(k.opts.CellDuration, s.Overhead())
		t, err := s.Transfer(ctx, c.Direction, s.Plan(segment), nil)
		if refusal, ok := errors.AsType[*loadcontrol.Refusal](err); ok && refusal.ID != 0 {
			refused[c], failed = true, fmt.Errorf("sizesweep: no cell can be measured: %w", refusal)
			res.Omitted = append(res.Omitted, Omission{Cell: c, DirectionName: c.Direction.String(), Why: refusal.Error()})
			continue
		}
		if err != nil {
			return fmt.Errorf("sizesweep: %v: %w", c, err)
		}
		if large := t.Oversized("packet_bytes", 0); large != nil {
			refused[c], failed = true, large
			res.Omitted = append(res.Omitted, Omission{Cell: c, DirectionName: c.Direction.String(), Why: large.Error()})
			continue
		}
		if err := t.CutShort(); err != nil {
			return fmt.Errorf("sizesweep: %v: %w", c, err)
		}
		m := evaluate(packets(t), c.PacketBytes, segment, uint64(t.HostDropped()))
		*m.Underrun -= float64(t.Counts.Withheld) / float64(m.PlannedPackets) // withheld packets are no underrun of the sender
		if why := t.Bound().Reason; why != sample.OK && why != sample.NoClock {
			m.noDelay = why
		}
		done[c] = append(done[c], m)
	}
	if len(done) == 0 {
		return failed
	}
	return nil
}

// conclude sorts the cells as configured, and summarizes the result in a few lines.
func (k *Kind) conclude(res *Result, r *loadtest.Run, all []Cell, done map[Cell][]Repetition) {
	best := map[sample.Direction]MeasuredCell{}
	for _, c := range all {
		if len(done[c]) == 0 {
			continue
		}
		m := MeasuredCell{c, c.Direction.String(), summarize(done[c]), done[c]}
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
				Numbers: []report.Number{{Value: m.Median.Received, Unit: unit.BytesPerSecond, Text: fmt.Sprintf("(%d B x %d/s)", m.PacketBytes, m.PacketRate)}},
			})
		}
	}
	r.Summary = append(r.Summary, loadtest.CellsLine(len(res.Cells), len(all), res.Seed))
	for _, d := range r.Directions {
		if why := noDelay(res.Cells, d); why != sample.Unknown {
			r.Note(fmt.Sprintf("%v: the delay of cells is unknown: %s", d, sample.InWords(why.String())))
		}
	}
	for _, o := range res.Omitted {
		r.Note(fmt.Sprintf("omitted %v: %s", o.Cell, o.Why))
	}
	for _, m := range res.Cells {
		if m.Median.Underrun != nil && *m.Median.Underrun > underrunNoted {
			r.Note(fmt.Sprintf("%v: the sender did not send %s of the packets", m.Cell, unit.Ratio.Format(*m.Median.Underrun)))
		}
	}
}

// noDelay is why the clocks left no delay in a cell of the direction, the last one of several; sample.Unknown: they did not.
func noDelay(cells []MeasuredCell, d sample.Direction) (why sample.Reason) {
	for _, c := range cells {
		for _, one := range c.Repetitions {
			if c.Direction == d && one.noDelay != sample.Unknown {
				why = one.noDelay
			}
		}
	}
	return why
}

// underrunNoted is the least sender underrun with a note.
const underrunNoted = 0.01

// Publish sets the values of the measured cells.
func (k *Kind) Publish(v *loadtest.Values, r *loadtest.Run) {
	res, ok := r.Body.(*Result)
	if !ok {
		return
	}
	for _, m := range res.Cells {
		for desc, value := range map[*metric.Desc]*float64{
			metric.SizeSweepSent: m.Median.Sent, metric.SizeSweepReceived: m.Median.Received, metric.SizeSweepSpread: m.Median.Spread,
			metric.SizeSweepDelay: m.Median.Delay, metric.SizeSweepDelayBound: m.Median.Bound, metric.SizeSweepIPDV: m.Median.IPDV,
			metric.SizeSweepLoss: m.Median.Loss, metric.SizeSweepUnderrun: m.Median.Underrun,
		} {
			v.SetKnown(desc, value, m.Direction.String(), strconv.Itoa(m.PacketBytes), strconv.Itoa(m.PacketRate))
		}
	}
}
