// Package tcpsweep is the probe that measures TCP with each size of its buffers and each congestion control: throughput,
// round-trip time, retransmissions, what limited the sender, and the smallest buffer that is enough (Woo 2010 section 6.3,
// figures 6.5 to 6.7; Halepovic 2008 figures 4 to 7).
//
// A cell is a send buffer, a receive buffer and a congestion control in one direction. Cells are measured one after the
// other, each repetition in its own random order, so that a path that changes with time affects none in particular; the
// seed is in the report. A cell that an end refuses is left out, and the measurements end when the token's or the link's
// data does not suffice for one more; both are reported. A measurement that ends early, as in an outage, counts in
// no result.
package tcpsweep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"oneway.example/exporter/core/errtext"
	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/estimate/tcpstate"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/loadsession"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/traffictypes/tcptraffic"
	"oneway.example/exporter/net/tcpsocket"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/report"
	"oneway.example/exporter/probes/tcp"
)

// Kind is the load test "tcp_sweep". Make it with NewKind.
type Kind struct {
	opts       Options
	directions int
}

// NewKind checks the options.
func NewKind(shared loadsession.Options, own Options) (*Kind, error) {
	if err := own.check(); err != nil {
		return nil, err
	}
	return &Kind{own, len(shared.Directions)}, nil
}

// NewType makes the type for the registry.
func NewType() loadsession.Type[Options] {
	t := loadsession.NewType("tcp_sweep", DefaultOptions, NewKind)
	t.Doc = "TCP with each size of its buffers, and the smallest that is enough. Measurements end when the token's day or the rest of the quota does not suffice for one more, with a note in the report."
	t.Unused = loadsession.PacketKeys()
	t.Help, t.Results, t.Families = help, Result{}, families()
	return t
}

// Kind is "tcp_sweep".
func (*Kind) Kind() string { return "tcp_sweep" }

// Traffic is TCP transfers.
func (*Kind) Traffic() loadsession.Traffic[*tcptraffic.Session] { return tcptraffic.Local{} }

// measurements is their number in a run.
func (k *Kind) measurements() int {
	return k.directions * k.opts.Repetitions * len(k.opts.cells(sample.Forward))
}

// Bytes is the limit of all measurements, or what the link's quota has left: a small quota ends the measurements early.
func (k *Kind) Bytes(left int64) int64 {
	all, one := int64(k.measurements())*int64(k.opts.MaxBytes), int64(k.opts.MaxBytes)
	return max(one, min(all, left))
}

// Fit limits a run to what the token has left of its day.
func (*Kind) Fit(l loadcontrol.Limits, _ int) int64 { return l.LeftOfDay() }

// Duration is the time of all measurements.
func (k *Kind) Duration() time.Duration {
	return time.Duration(k.measurements()) * k.opts.CellDuration
}

// maxFailures is how many measurements in a row may end early before the run does: the path is down.
const maxFailures = 3

// Perform measures each cell as often as configured.
func (k *Kind) Perform(ctx context.Context, s *tcptraffic.Session, r *loadtest.Run) error {
	var all []Cell
	for _, d := range r.Directions {
		all = append(all, k.opts.cells(d)...)
	}
	res := &Result{Seed: loadtest.Seed(k.opts.Seed), CellDuration: report.Seconds(k.opts.CellDuration), Omit: report.Seconds(k.opts.Omit)}
	r.Body = res
	done, omitted := map[Cell][]Repetition{}, map[Cell]error{}
	defer func() { k.conclude(res, r, all, done, omitted) }()
	var failed error // of the last measurement that failed
	complete, failures := 0, 0
	turns := loadtest.Turns(len(all), k.opts.Repetitions, res.Seed)
	for i, turn := range turns {
		c := all[turn]
		if omitted[c] != nil {
			continue
		}
		if left := s.Left(); left < int64(k.opts.MaxBytes) {
			why := &loadtest.Failure{Reason: runreason.DayLimit, Err: fmt.Errorf("the token (per-day) or the link's quota (quota_bytes) has %s left, less than max_bytes", unit.Bytes.Format(float64(left)))}
			for _, c := range all {
				if len(done[c]) < k.opts.Repetitions {
					omitted[c] = cmp.Or(omitted[c], error(why))
				}
			}
			break
		}
		r.Phase(fmt.Sprintf("%d of %d, %v", i+1, len(turns), c))
		m, err := k.measure(ctx, s, r, c)
		if why := refused(err); why != nil {
			omitted[c] = why
			continue
		}
		done[c] = append(done[c], m)
		if err == nil {
			complete, failures = complete+1, 0
			continue
		}
		failed = fmt.Errorf("tcpsweep: %v: %w", c, err)
		f, ok := errors.AsType[*loadtest.Failure](err)
		if ok && f.Reason == runreason.NoResult { // another cell may be slower
			continue
		}
		failures++
		if !ok || ctx.Err() != nil || f.Reason == runreason.Lost || failures == maxFailures {
			return failed
		}
	}
	switch {
	case complete > 0:
		return nil
	case failed != nil:
		return failed
	}
	return fmt.Errorf("tcpsweep: no cell can be measured: %w", omitted[all[0]])
}

// measure measures a cell once. With an error the values are those of the time before it.
func (k *Kind) measure(ctx context.Context, s *tcptraffic.Session, r *loadtest.Run, c Cell) (m Repetition, err error) {
	t, err := s.Transfer(ctx, k.opts.plan(c))
	if t != nil {
		m = k.evaluate(t, s.Remote().Addr().Is6())
		if m.Throughput != nil {
			loadsession.NoteTokenRate(r, s.Limits(), *m.Throughput)
		}
	}
	if err == nil {
		err = cmp.Or(tcp.Failed(t), tcp.Unmeasured(t, false)) // a plan has all of max_bytes
	}
	if err != nil {
		m.Partial = errtext.Words(err)
	}
	return m, err
}

// refused returns why an end does not measure a cell; nil: it does, or the error has another cause.
func refused(err error) error {
	if refusal, ok := errors.AsType[*loadcontrol.Refusal](err); ok && refusal.ID != 0 {
		return refusal
	}
	if missing, ok := errors.AsType[*tcpsocket.CongestionControlError](err); ok {
		return &loadtest.Failure{Reason: runreason.Configuration, Err: missing}
	}
	return nil
}

// conclude sorts the cells as configured, and summarizes the result in a few lines.
func (k *Kind) conclude(res *Result, r *loadtest.Run, all []Cell, done map[Cell][]Repetition, omitted map[Cell]error) {
	complete := 0
	for _, c := range all {
		if len(done[c]) > 0 {
			m := summarize(c, done[c])
			res.Cells = append(res.Cells, m)
			if m.Throughput != nil {
				complete++
			}
		}
		if why := omitted[c]; why != nil {
			res.Omitted = append(res.Omitted, Omission{c, c.Direction.String(), len(done[c]), why.Error()})
		}
	}
	res.Knees = knees(res.Cells)
	for _, knee := range res.Knees {
		line := func(quantity string, numbers ...report.Number) {
			r.Summary = append(r.Summary, probe.Result{Quantity: quantity + ", " + knee.CongestionControl, Direction: knee.Direction.String(), Numbers: numbers})
		}
		line("best throughput", report.Number{Value: &knee.Best, Unit: unit.BytesPerSecond})
		line("sufficient buffer", knee.numbers()...)
		if knee.BDP != nil {
			line("bandwidth x delay", report.Number{Value: knee.BDP, Unit: unit.BufferBytes})
		}
		if knee.held {
			r.Note(fmt.Sprintf("%s, %s: the largest buffers limited the sender most of the time: larger ones may reach more, and bandwidth x delay is not known", knee.DirectionName, knee.CongestionControl))
		}
	}
	r.Summary = append(r.Summary, loadtest.CellsLine(complete, len(all), res.Seed))
	for _, o := range res.Omitted {
		r.Note(fmt.Sprintf("%v: %d of %d measurements: %s", o.Cell, o.Measured, k.opts.Repetitions, o.Why))
	}
	for _, m := range res.Cells {
		var early []string
		for _, one := range m.Repetitions {
			if one.Partial != "" {
				early = append(early, one.Partial)
			}
		}
		if n := len(early); n > 0 {
			r.Note(fmt.Sprintf("%v: %s not count: %s", m.Cell, unit.Counted(n, "measurement does", "measurements do"), early[0]))
		}
	}
}

// Publish sets the values of the measured cells.
func (*Kind) Publish(v *loadtest.Values, r *loadtest.Run) {
	res, ok := r.Body.(*Result)
	if !ok {
		return
	}
	for _, m := range res.Cells {
		labels := []string{m.Direction.String(), Size(m.SendBuffer).label(), Size(m.ReceiveBuffer).label(), m.name()}
		with := func(label string) []string { return append(slices.Clone(labels), label) }
		for i, rank := range []string{"0.25", "0.5", "0.75"} {
			if m.Throughput != nil {
				v.Set(ThroughputDesc, m.Throughput[i], with(rank)...)
			}
			if m.RTT != nil {
				v.Set(RTTDesc, m.RTT[i], with(rank)...)
			}
		}
		v.SetKnown(RetransmittedDesc, m.Retransmitted, labels...)
		for _, model := range tcpstate.Models() {
			v.SetKnown(ModelDesc, m.Model(model.Name), with(model.Name)...)
		}
	}
	for _, knee := range res.Knees {
		labels := []string{knee.Direction.String(), knee.CongestionControl}
		if knee.Buffer != nil && !knee.Overlap {
			v.Set(KneeDesc, float64(*knee.Buffer), labels...)
		}
		v.SetKnown(BDPDesc, knee.BDP, labels...)
	}
}

var _ loadsession.Kind[*tcptraffic.Session] = (*Kind)(nil)
