package tcpsweep

import (
	"testing"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/probe/report"
)

func TestDrawingsStandAtTheSmallerBufferAndShowAutoTuningAsALevel(t *testing.T) {
	bdp := 50_000.
	r := &Result{
		Cells: []MeasuredCell{measured(128, 128, 1024, 9e5), measured(64, 64, 1024, 5e5), measured(0, 0, 1024, 1e6)},
		Knees: []Knee{{Direction: sample.Reverse, CongestionControl: "cubic", Best: 1e6, BDP: &bdp}},
	}
	for i := range r.Cells {
		r.Cells[i].Used = "cubic"
	}
	all := r.Drawings()
	if len(all) != 2 || all[0].Direction+": "+all[0].Title != "reverse: throughput by buffer" || !all[0].X.Log {
		t.Fatalf("%+v", all)
	}
	s := all[0].Series
	if len(s) != 3 || s[0].Name != "cubic" || s[0].Form != report.AsPoints || s[0].X[0] != 65536 || s[0].Y[0] != 5e5 || s[0].X[1] != 131072 {
		t.Fatalf("%+v", s)
	}
	if s[1].Name != "cubic, auto-tuning" || s[1].X[0] != 65536 || s[1].X[1] != 131072 || s[1].Y[0] != 1e6 || s[1].Y[1] != 1e6 {
		t.Errorf("%+v", s[1])
	}
	if s[2].Name != "BDP of cubic (48.83 KiB)" || s[2].X[0] != bdp || s[2].Y[1] != 1e6 {
		t.Errorf("%+v", s[2])
	}
	// Two cells with the same smaller buffer are not joined by a line.
	r.Cells = append(r.Cells, measured(64, 256, 1024, 6e5))
	r.Cells[3].Used = "cubic"
	if all := r.Drawings(); all[0].Series[0].Form != report.AsMarks {
		t.Errorf("%+v", all[0].Series[0])
	}
	if all := (&Result{Cells: r.Cells[2:3]}).Drawings(); len(all) != 2 || len(all[0].Series) != 1 {
		t.Errorf("auto-tuning only: %+v", all)
	}
}
