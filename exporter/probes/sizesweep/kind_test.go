package sizesweep

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/stream"
	"oneway.example/exporter/load/traffictypes/udptraffic"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/endclock"
)

func probeTarget() probe.Target { return probe.Target{Path: "a-to-b", Probe: "size_sweep", Peer: "b"} }

// simulatedPath carries streams over a link each way. It implements udp.Carrier.
type simulatedPath struct {
	links  [2]link
	plans  []stream.Plan
	err    error
	refuse func(stream.Plan) *loadcontrol.Refusal
	cut    string
}

// Transfer is udp.Carrier.
func (r *simulatedPath) Transfer(_ context.Context, d sample.Direction, p stream.Plan, _ time.Duration, _ func(loadtest.Progress), _ stream.Adjuster) (*udptraffic.CarrierResult, error) {
	if r.refuse != nil {
		if refusal := r.refuse(p); refusal != nil {
			return nil, refusal
		}
	}
	if r.err != nil {
		return nil, r.err
	}
	r.plans = append(r.plans, p)
	l := r.links[d]
	out := &udptraffic.CarrierResult{Sent: &stream.Sent{Planned: p.Packets()}, Received: &stream.Received{}, Cut: r.cut}
	for i, q := range l.carry(p.Segments[0].PayloadBytes+28, p.Segments[0]) {
		out.Sent.Packets = append(out.Sent.Packets, stream.SentPacket{Due: q.sent, Stamp: sample.Stamp{At: q.sent, Origin: sample.Kernel}})
		if q.arrived != 0 {
			out.Received.Packets = append(out.Received.Packets, stream.ReceivedPacket{
				Seq: uint32(i), Stamp: sample.Stamp{At: q.arrived, Origin: sample.Kernel}, PayloadBytes: uint16(p.Segments[0].PayloadBytes),
			})
		}
	}
	ok := endclock.State{Reason: "ok", Bound: 100 * time.Microsecond}
	out.Local, out.Remote = endclock.Span{Before: ok, After: ok}, endclock.Span{Before: ok, After: ok}
	return out, nil
}

// wibro is the link of the thesis.
func wibro() *simulatedPath {
	return &simulatedPath{links: [2]link{
		{rate: 2.5e6 / 8, queue: 110_000, delay: 30 * time.Millisecond},
		{rate: 10e6 / 8, queue: 1_100_000, delay: 14 * time.Millisecond},
	}}
}

func short() Options {
	o := DefaultOptions()
	o.CellDuration = 2 * time.Second
	o.Seed = 7
	return o
}

func perform(t *testing.T, r *simulatedPath, limits loadcontrol.Limits, o Options) (*Result, *loadtest.Run, error) {
	t.Helper()
	run := &loadtest.Run{Directions: sample.Directions()}
	err := kindOf(t, o).Perform(t.Context(), udptraffic.NewSession(r, udptraffic.SessionOptions{Limits: limits}), run)
	return run.Body.(*Result), run, err
}

func (res *Result) cell(d sample.Direction, bytes, rate int) *MeasuredCell {
	for i := range res.Cells {
		if res.Cells[i].Cell == (Cell{d, bytes, rate}) {
			return &res.Cells[i]
		}
	}
	return nil
}

func TestSizeSweepReportsWhichCellsTheLinkCarries(t *testing.T) {
	res, run, err := perform(t, wibro(), loadcontrol.Limits{}, short())
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Cells) != 36 || len(res.Omitted) != 0 {
		t.Fatalf("%d cells, %d left out, want all 36", len(res.Cells), len(res.Omitted))
	}
	for _, m := range res.Cells {
		capacity := []float64{2.5e6 / 8, 10e6 / 8}[m.Direction]
		offered := float64(m.PacketBytes * m.PacketRate)
		near(t, m.String()+": sent", *m.Median.Sent, offered, 1e-6)
		near(t, m.String()+": received", *m.Median.Received, min(offered, capacity), 0.01)
		if lossless := offered <= capacity; lossless != (*m.Median.Loss == 0) && m.Direction == sample.Forward {
			t.Errorf("%v: loss %v", m.Cell, *m.Median.Loss)
		}
		if *m.Median.Loss > 0.5 != (m.Median.Bound == nil) {
			t.Errorf("%v: loss %v, delay %v: want no delay, since more than half are lost", m.Cell, *m.Median.Loss, m.Median.Delay)
		} else if m.Median.Bound != nil && *m.Median.Bound < 200e-6 {
			t.Errorf("%v: bound %v s is less than that of both clocks", m.Cell, *m.Median.Bound)
		}
	}
	quiet := res.cell(sample.Reverse, 64, 100)
	near(t, "quiet delay", *quiet.Median.Delay, 0.014, 0.01)
	if strings.Contains(strings.Join(run.Notes, "\n"), "seed") {
		t.Errorf("notes %q have the seed, and a run with notes is impaired", run.Notes)
	}
	if len(run.Summary) != 3 || !strings.Contains(run.Summary[1].Text(), "Mb/s") || run.Summary[2].Value != "36 of 36, order by seed 7" {
		t.Errorf("summary %v", run.Summary)
	}
}

func TestCellsAreInTheOrderOfTheConfigurationThoughNotMeasuredInIt(t *testing.T) {
	r := wibro()
	o := short()
	o.CellDuration = 100 * time.Millisecond
	res, _, err := perform(t, r, loadcontrol.Limits{}, o)
	if err != nil {
		t.Fatal(err)
	}
	inOrder := true
	for i, m := range res.Cells {
		inOrder = inOrder && r.plans[i].Segments[0].PayloadBytes == m.PacketBytes-28
		if want := o.PacketBytes[i/3%6]; m.PacketBytes != want {
			t.Errorf("cell %d is of %d B, want %d", i, m.PacketBytes, want)
		}
	}
	if inOrder {
		t.Error("the cells were measured in the order of the configuration, want a random order (seed 7)")
	}
}

func TestEveryRepetitionIsInTheReport(t *testing.T) {
	o := short()
	o.PacketRates, o.Repetitions = []int{100}, 4
	res, _, err := perform(t, wibro(), loadcontrol.Limits{}, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range res.Cells {
		if len(m.Repetitions) != 4 || m.Median.Spread == nil {
			t.Errorf("%v: %d repetitions, spread %v", m.Cell, len(m.Repetitions), m.Median.Spread)
		}
	}
	text, err := json.Marshal(res)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"direction":"forward","median":{"sent_bytes_per_second":`, `"packets_per_second":100`, `"seed":7`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the report lacks %s", want)
		}
	}
}

func TestRefusedCellAffectsNoOther(t *testing.T) {
	r := wibro()
	r.refuse = func(p stream.Plan) *loadcontrol.Refusal {
		if p.Segments[0].PayloadBytes == 1472 {
			return &loadcontrol.Refusal{ID: 3, Reason: loadcontrol.RateLimit, Detail: "not so fast"}
		}
		return nil
	}
	o := short()
	o.CellDuration, o.Repetitions = 100*time.Millisecond, 2
	res, run, err := perform(t, r, loadcontrol.Limits{}, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Cells) != 30 || len(res.Omitted) != 6 || !strings.Contains(res.Omitted[0].Why, "not so fast") {
		t.Errorf("%d cells, omitted %v", len(res.Cells), res.Omitted)
	}
	if notes := strings.Join(run.Notes, "\n"); strings.Count(notes, "not so fast") != 6 {
		t.Errorf("notes:\n%s", notes)
	}
}

func TestFailedRunKeepsItsResultsSoFar(t *testing.T) {
	r := wibro()
	failure := errors.New("the session has ended")
	n := 0
	r.refuse = func(stream.Plan) *loadcontrol.Refusal {
		if n++; n == 5 {
			r.err = failure
		}
		return nil
	}
	res, _, err := perform(t, r, loadcontrol.Limits{}, short())
	if !errors.Is(err, failure) || len(res.Cells) != 4 {
		t.Errorf("error %v, %d cells, want 4", err, len(res.Cells))
	}
}

func TestCutTransferIsNoCell(t *testing.T) {
	r := wibro()
	r.cut = "the load server is shutting down"
	res, _, err := perform(t, r, loadcontrol.Limits{}, short())
	if err == nil || !strings.Contains(err.Error(), r.cut) || len(res.Cells) != 0 {
		t.Errorf("error %v, %d cells", err, len(res.Cells))
	}
}

func TestNoCellAllowedIsAnErrorWithItsReason(t *testing.T) {
	_, _, err := perform(t, wibro(), loadcontrol.Limits{Duration: time.Second}, short())
	if f, ok := errors.AsType[*loadtest.Failure](err); !ok || f.Reason != runreason.TimeLimit || !strings.Contains(err.Error(), "the token allows 1s") {
		t.Errorf("error %v", err)
	}
	r := wibro()
	r.refuse = func(stream.Plan) *loadcontrol.Refusal {
		return &loadcontrol.Refusal{ID: 3, Reason: loadcontrol.RateLimit}
	}
	_, _, err = perform(t, r, loadcontrol.Limits{}, short())
	if refusal, ok := errors.AsType[*loadcontrol.Refusal](err); !ok || refusal.Reason != loadcontrol.RateLimit {
		t.Errorf("each cell was refused: error %v", err)
	}
}

func TestClocksThatLeaveNoDelayAreNoted(t *testing.T) {
	for _, wrong := range []bool{false, true} {
		clocks := &endclock.Proof{}
		if wrong {
			clocks.Find()
		}
		o := short()
		o.PacketBytes, o.PacketRates, o.CellDuration = []int{100}, []int{100}, time.Second
		run := &loadtest.Run{Directions: sample.Directions()}
		if err := kindOf(t, o).Perform(t.Context(), udptraffic.NewSession(wibro(), udptraffic.SessionOptions{Clocks: clocks}), run); err != nil {
			t.Fatal(err)
		}
		notes := strings.Join(run.Notes, "\n")
		if strings.Contains(notes, "both directions: the delay of cells is unknown: the timestamps of both ends are impossible") != wrong {
			t.Errorf("%v: notes %q", wrong, notes)
		}
		res := run.Body.(*Result)
		if res.Withhold() == wrong || res.Cells[0].Median.Delay != nil || res.Cells[0].Median.Bound != nil || res.Cells[0].Repetitions[0].Delay != nil || res.Cells[0].Median.IPDV == nil {
			t.Errorf("%v: a clock was proven wrong later: %+v", wrong, res.Cells[0])
		}
	}
}
