package tcpsweep

import (
	"math"
	"slices"
	"testing"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/estimate/tcpstate"
	"oneway.example/exporter/net/tcpsocket"
	"oneway.example/exporter/probe/report"
	"oneway.example/exporter/probes/tcp"
)

// measured is a cell of buffers in KiB, which the kernel limits to most, with a throughput for each repetition.
func measured(send, receive, most int, rates ...float64) MeasuredCell {
	var all []Repetition
	buffer := func(kib int) tcpsocket.Buffer {
		return tcpsocket.Buffer{Asked: kib << 10, Effective: 2 * min(kib, most) << 10, Clipped: kib > most}
	}
	for _, r := range rates {
		all = append(all, Repetition{
			Throughput: new(r), RTT: &[3]float64{0.1, 0.2, r / 1e3}, RTTMin: new(0.1), Retransmitted: new(r / 1e6),
			Limited: tcpstate.Limits{tcpstate.LimitNetwork: r / 1e3, tcpstate.LimitReceiver: 1 - r/1e3},
			Models:  &tcp.Models{Throughput: map[string]float64{"mathis": 2 * r}}, used: "cubic", send: buffer(send), receive: buffer(receive),
		})
	}
	return summarize(Cell{sample.Reverse, int64(send) << 10, int64(receive) << 10, ""}, all)
}

func TestCellHasQuartilesOfItsCompleteMeasurements(t *testing.T) {
	m := measured(64, 64, 1024, 400, 300, 200, 100)
	m.Repetitions = append(m.Repetitions, Repetition{Partial: "idle", Throughput: new(1.0)})
	m = summarize(m.Cell, m.Repetitions)
	if *m.Throughput != [3]float64{100, 250, 300} || *m.RTT != [3]float64{0.1, 0.2, 0.25} || *m.Retransmitted != 250e-6 || *m.RTTMin != 0.1 {
		t.Errorf("%v, %v, %v, %v", *m.Throughput, *m.RTT, *m.Retransmitted, *m.RTTMin)
	}
	if math.Abs(m.Limited[tcpstate.LimitNetwork]-0.25) > 1e-9 || m.Limit != tcpstate.LimitReceiver || *m.Model("mathis") != 500 || m.Model("padhye") != nil {
		t.Errorf("%v, %q, %v", m.Limited, m.Limit, *m.Model("mathis"))
	}
	if m := summarize(m.Cell, m.Repetitions[4:]); m.Throughput != nil || m.RTT != nil || m.Retransmitted != nil || m.Limited != nil || len(m.Repetitions) != 1 {
		t.Errorf("without a complete measurement: %+v", m)
	}
}

func TestCellWithoutACompleteMeasurementHasItsConfiguredBuffers(t *testing.T) {
	c := Cell{Direction: sample.Forward, SendBuffer: 64 << 10, CongestionControl: "cubic"}
	r := Result{Cells: []MeasuredCell{summarize(c, []Repetition{{Partial: "idle"}})}}
	if row := r.Tables()[0].Rows[0]; !slices.Equal(row[:4], []string{"forward", "cubic", "64 KiB", "auto"}) {
		t.Errorf("%q", row[:4])
	}
}

func TestKneeIsOfTheSmallerBufferInEffect(t *testing.T) {
	enough := []float64{1000, 1001, 999}
	for _, c := range []struct {
		what                string
		cells               []MeasuredCell
		buffer, above, most int64 // KiB
		undecided           bool
	}{
		{"clear", []MeasuredCell{measured(64, 64, 1024, 500, 501, 499), measured(128, 128, 1024, enough...), measured(256, 256, 1024, enough...)}, 128, 64, 128, false},
		{"unequal buffers", []MeasuredCell{measured(64, 512, 1024, 500, 501, 499), measured(512, 64, 1024, 502, 501, 499), measured(512, 256, 1024, enough...)}, 256, 64, 256, false},
		{"limited by the kernel", []MeasuredCell{measured(64, 64, 208, 500, 501, 499), measured(512, 512, 208, enough...), measured(1024, 1024, 208, enough...)}, 208, 64, 208, false},
		{"smallest", []MeasuredCell{measured(64, 64, 1024, enough...), measured(128, 128, 1024, enough...)}, 64, 0, 64, false},
		{"repetitions overlap", []MeasuredCell{measured(64, 64, 1024, 940, 990, 900), measured(128, 128, 1024, 990, 900, 960), measured(256, 256, 1024, enough...)}, 128, 0, 256, true},
		{"too few", []MeasuredCell{measured(64, 64, 1024, 500, 500), measured(128, 128, 1024, enough...)}, 128, 0, 0, true},
		{"only auto-tuning", []MeasuredCell{measured(64, 64, 1024, 500, 501, 499), measured(0, 0, 1024, enough...)}, 0, 64, 0, false},
		{"one end auto-tuned", []MeasuredCell{measured(64, 0, 1024, 500, 501, 499), measured(0, 256, 1024, enough...)}, 256, 64, 256, false},
	} {
		all := knees(c.cells)
		if len(all) != 1 {
			t.Errorf("%s: %d knees", c.what, len(all))
			continue
		}
		kib := func(v *int64) int64 {
			if v == nil {
				return 0
			}
			return *v >> 10
		}
		k := all[0]
		if kib(k.Buffer) != c.buffer || kib(k.Above) != c.above || kib(k.AtMost) != c.most || k.Overlap != c.undecided || k.CongestionControl != "cubic" || *k.BDP != 100 {
			t.Errorf("%s: %s; %+v", c.what, report.Line{Numbers: k.numbers()}.Text(), k)
		}
	}
	if got := knees([]MeasuredCell{measured(64, 64, 1024, enough...)}); len(got) != 0 {
		t.Errorf("one size: %+v", got)
	}
	partial := measured(64, 64, 1024, 500, 501, 499, 498)
	partial.Repetitions[3].Partial = "idle"
	if got := knees([]MeasuredCell{partial, measured(128, 128, 1024, enough...)}); len(got) != 1 || !got[0].Overlap || got[0].Above != nil || got[0].AtMost != nil {
		t.Errorf("a measurement ended early: %+v", got)
	}
}

func TestWindowsBelowTheBandwidthDelayProductDoNotTellIt(t *testing.T) {
	window := func(kib int, rate float64, limited tcpstate.Limits) MeasuredCell {
		m := measured(kib, kib, 1024, rate, rate*1.001, rate*0.999)
		m.Limited = limited
		return m
	}
	window17 := tcpstate.Limits{tcpstate.LimitReceiver: 0.5, tcpstate.LimitSendBuffer: 0.3, tcpstate.LimitNetwork: 0.2}
	window32 := tcpstate.Limits{tcpstate.LimitReceiver: 0.4, tcpstate.LimitSendBuffer: 0.3, tcpstate.LimitNetwork: 0.3}
	small, large := window(17, 185, window17), window(32, 350, window32) // of 1000 at RTT 0.1 s
	for _, c := range []struct {
		what  string
		cells []MeasuredCell
		held  bool
	}{
		{"all limited by buffers", []MeasuredCell{small, large}, true},
		{"auto-tuning is limited, too", []MeasuredCell{small, window(0, 350, window32)}, true},
		{"the largest fills the path", []MeasuredCell{small, window(128, 1000, tcpstate.Limits{tcpstate.LimitReceiver: 0.3, tcpstate.LimitNetwork: 0.7})}, false},
		{"a larger one brings nothing", []MeasuredCell{small, window(256, 1000, window32), window(512, 1000, window32)}, false},
		{"not known", []MeasuredCell{small, window(128, 1000, nil)}, false},
	} {
		all := knees(c.cells)
		if len(all) != 1 || all[0].held != c.held || (all[0].BDP == nil) != c.held {
			t.Errorf("%s: %+v", c.what, all)
		}
	}
}

func TestKneesAreSeparateByDirectionAndCongestionControl(t *testing.T) {
	var cells []MeasuredCell
	for _, d := range sample.Directions() {
		for _, name := range []string{"reno", "bbr"} {
			for _, kib := range []int{64, 128} {
				m := measured(kib, kib, 1024, 1000, 1000, 1000)
				m.Direction, m.Used = d, name
				cells = append(cells, m)
			}
		}
	}
	var got []string
	for _, k := range knees(cells) {
		got = append(got, k.DirectionName+" "+k.CongestionControl)
	}
	if want := []string{"forward reno", "forward bbr", "reverse reno", "reverse bbr"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestWordsOfAKnee(t *testing.T) {
	for want, k := range map[string]Knee{
		"128 KiB":                          {Buffer: new(int64(128 << 10))},
		"auto":                             {},
		"cannot tell, > 64 KiB, ≤ 256 KiB": {Buffer: new(int64(128 << 10)), Above: new(int64(64 << 10)), AtMost: new(int64(256 << 10)), Overlap: true},
		"cannot tell, ≤ 17.5 KiB":          {Buffer: new(int64(17920)), AtMost: new(int64(17920)), Overlap: true},
		"cannot tell":                      {Buffer: new(int64(17920)), Overlap: true},
	} {
		if got := (report.Line{Numbers: k.numbers()}).Text(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
