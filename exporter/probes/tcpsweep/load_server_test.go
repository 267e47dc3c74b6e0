package tcpsweep

import (
	"context"
	"encoding/json"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/clocks/static"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadsession"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/loadtesttest"
	"oneway.example/exporter/probe"
)

func target() probe.Target {
	return probe.Target{Path: "a-to-b", Probe: "tcp_sweep", Peer: "127.0.0.1"}
}

// run runs the probe with a load server on loopback.
func run(t *testing.T, own Options, sink metric.Sink, limits ...string) (*loadtest.Outcome, *Result, error) {
	t.Helper()
	out, err := loadtesttest.Run(t, NewType(), loadtesttest.RemoteEnd(t.Context(), t, loadtesttest.End{}, limits...), own, sink, nil)
	res, _ := out.Body.(*Result)
	return out, res, err
}

func short() Options {
	o := DefaultOptions()
	o.CellDuration, o.Omit, o.Repetitions, o.Seed, o.MaxBytes = time.Second, 100*time.Millisecond, 1, 7, 1<<40
	o.SendBuffers, o.CongestionControl = []Size{64 << 10, 0}, []string{"reno"}
	return o
}

func TestRunWithARealLoadServerIsPublished(t *testing.T) {
	sink := &metrictest.Keeping{}
	own := short()
	own.CongestionControl = append(own.CongestionControl, "none-such")
	out, res, err := run(t, own, sink)
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Cells) != 4 || len(res.Omitted) != 4 || len(res.Knees) != 2 || len(out.Notes) != 4 {
		t.Fatalf("%d cells, omitted %+v, knees %+v, notes %q", len(res.Cells), res.Omitted, res.Knees, out.Notes)
	}
	if words := out.Summary[len(out.Summary)-1].Value; words != "4 of 8, order by seed 7" {
		t.Errorf("summary %q", words)
	}
	for _, o := range res.Omitted {
		if o.CongestionControl != "none-such" || !strings.Contains(o.Why, "congestion control none-such: the kernel has") {
			t.Errorf("%v: %s", o.Cell, o.Why)
		}
	}
	for _, m := range res.Cells {
		one := m.Repetitions[0]
		if m.Used != "reno" || one.Partial != "" || one.Models == nil || one.Models.Conditions.MSS < 500 || one.Models.Conditions.Window <= 0 || one.Models.Throughput["window"] <= 0 || (m.Send.Asked != 0) != (m.SendBuffer != 0) {
			t.Errorf("%v: %+v", m.Cell, m)
		}
		value := func(family *metric.Desc, more ...string) float64 {
			size := Size(m.SendBuffer).label()
			v, ok := sink.Value(family, append([]string{"a-to-b", "tcp_sweep", m.DirectionName, size, size, "reno"}, more...)...)
			if !ok {
				t.Errorf("%v: %s %v is absent", m.Cell, family.Name, more)
			}
			return v
		}
		for i, rank := range []string{"0.25", "0.5", "0.75"} {
			if got, rtt := value(ThroughputDesc, rank), value(RTTDesc, rank); got != m.Throughput[i] || rtt != m.RTT[i] {
				t.Errorf("%v: quantile %s: throughput %v and RTT %v, want %v and %v", m.Cell, rank, got, rtt, m.Throughput[i], m.RTT[i])
			}
		}
		if v := value(RetransmittedDesc); v != *m.Retransmitted {
			t.Errorf("%v: retransmitted %v, want %v", m.Cell, v, *m.Retransmitted)
		}
		for _, model := range []string{"window", "sawtooth"} {
			if m.Model(model) == nil {
				continue // absent from a cell in which this host stood still
			}
			if v := value(ModelDesc, model); v != *m.Model(model) {
				t.Errorf("%v: model %s %v, want %v", m.Cell, model, v, *m.Model(model))
			}
		}
	}
	for _, d := range sample.Directions() {
		if v, ok := sink.Value(BDPDesc, "a-to-b", "tcp_sweep", d.String(), "reno"); (!ok || v <= 0) && !slices.ContainsFunc(res.Knees, func(k Knee) bool { return k.Direction == d && k.held }) {
			t.Errorf("%v: BDP %v, %v", d, v, ok)
		}
		if v, ok := sink.Value(KneeDesc, "a-to-b", "tcp_sweep", d.String(), "reno"); ok {
			t.Errorf("%v: knee %v of one repetition", d, v)
		}
	}
	if _, err := json.Marshal(out); err != nil {
		t.Error(err)
	}
}

// The token's day has room for some measurements: those are kept.
func TestMeasurementsEndWithTheTokensDay(t *testing.T) {
	own := short()
	own.MaxBytes, own.Repetitions = 1_000_000, 3
	_, res, err := run(t, own, metric.Discard{}, "per-day=5MB", "rate=10Mbit") // 0.8 s for each
	if err != nil {
		t.Fatal(err)
	}
	measured := 0
	for _, m := range res.Cells {
		measured += len(m.Repetitions)
	}
	for _, o := range res.Omitted {
		if o.Measured == own.Repetitions {
			t.Errorf("%v is complete", o.Cell)
		}
	}
	if measured == 0 || measured > 5 || len(res.Omitted) == 0 || !strings.Contains(res.Omitted[0].Why, "less than max_bytes") {
		t.Errorf("%d measurements, omitted %+v", measured, res.Omitted)
	}
}

// A path that is faster than max_bytes allows for leaves each cell without a value: the run says so, once for each cell.
func TestSweepThatIsTooShortForAValueHasMeasuredNothing(t *testing.T) {
	own := short()
	own.MaxBytes, own.Omit, own.Repetitions = 100_000, 500*time.Millisecond, 2
	out, res, err := run(t, own, metric.Discard{})
	notes := loadtesttest.Directed(out.Notes)
	const want = " kB of 100 kB, the limit (max_bytes), was sent"
	if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "a throughput needs 500 ms: raise max_bytes") {
		t.Errorf("the error is %v", err)
	}
	if out.Result != loadtest.Incomplete || out.Reason != runreason.NoResult || len(res.Cells) != 4 || len(notes) != 4 {
		t.Errorf("%s, %s, %d cells, notes %q", out.Result, out.Reason, len(res.Cells), out.Notes)
	}
	for _, note := range notes {
		if !strings.Contains(note, "reno: 2 measurements do not count: 9") || !strings.Contains(note, want) {
			t.Errorf("note %q", note)
		}
	}
}

func TestNoCellAllowedIsAnErrorWithItsReason(t *testing.T) {
	own := short()
	own.CellDuration = 2 * time.Second
	out, res, err := run(t, own, metric.Discard{}, "duration=1s")
	if err == nil || out.Reason != runreason.TimeLimit || !strings.Contains(err.Error(), "the token allows 1s") || len(res.Cells) != 0 {
		t.Errorf("%s, %v", out.Reason, err)
	}
	if out, _, err := run(t, own, metric.Discard{}, "per-day=1MB"); err == nil || out.Reason != runreason.DayLimit || !strings.Contains(err.Error(), "has 1 MB left, less than max_bytes") {
		t.Errorf("%s, %v", out.Reason, err)
	}
}

// A run that is canceled keeps its results; what was being measured is marked partial.
func TestCanceledRunKeepsItsResultsSoFar(t *testing.T) {
	own := short()
	own.Repetitions = 2
	shared := loadtesttest.RemoteEnd(t.Context(), t, loadtesttest.End{})
	env := probe.Env{Log: slog.New(slog.DiscardHandler), Sink: metric.Discard{}, Clock: static.New(time.Millisecond, metric.Discard{})}
	k, err := NewKind(shared, own)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	out, err := loadtesttest.RunKind(ctx, env, target(), shared, k, func(p loadtest.Progress) {
		if strings.HasPrefix(p.Phase, "3 of 8") {
			cancel()
		}
	})
	if err == nil || out.Result == loadtest.Completed {
		t.Fatalf("%+v, %v", out, err)
	}
	complete, partial := 0, 0
	for _, m := range out.Body.(*Result).Cells {
		for _, one := range m.Repetitions {
			if one.Partial == "" {
				complete++
			} else {
				partial++
			}
		}
	}
	if complete != 2 || partial != 1 {
		t.Errorf("%d complete and %d partial measurements, want 2 and 1", complete, partial)
	}
}

func TestReservationIsWhatTheQuotaHasLeft(t *testing.T) {
	k, err := NewKind(loadsession.DefaultOptions(), DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	for left, want := range map[int64]int64{5e9: 5e9, 1e6: 200e6, math.MaxInt64: 9.6e9} {
		if got := k.Bytes(left); got != want || k.Duration() != 8*time.Minute {
			t.Errorf("%d left: %d bytes, want %d; %v", left, got, want, k.Duration())
		}
	}
}
