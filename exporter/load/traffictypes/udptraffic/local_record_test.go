package udptraffic_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oneway.example/exporter/core/record"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/loadtesttest"
	"oneway.example/exporter/load/traffictypes/udptraffic"
)

// recorded returns what a listener has received.
func recorded(t *testing.T, l *record.Listener[record.Rows]) []record.Rows {
	t.Helper()
	all := make([]record.Rows, 100)
	n, missed := l.Take(all)
	if missed != 0 {
		t.Errorf("%d transfers were missed", missed)
	}
	return all[:n]
}

func TestRecordedRowsEqualThoseOfTheReport(t *testing.T) {
	e := env(staticClock())
	e.Recorder = &record.Recorder{}
	l := e.Recorder.Rows().Listen(10)
	var got []record.Rows
	o, err := once(t.Context(), e, target, remoteEnd(t.Context(), t), scriptKind{func(ctx context.Context, s *udptraffic.Session, _ *loadtest.Run) error {
		for i, d := range sample.Directions() {
			if _, err := s.Transfer(ctx, d, thousand(s), nil); err != nil {
				return err
			}
			if got = append(got, recorded(t, l)...); len(got) != i+1 {
				t.Errorf("after %d transfers %d were recorded", i+1, len(got))
			}
		}
		return nil
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var want []record.Rows
	for i, kept := range o.Transfers.([]*udptraffic.Series) {
		if len(kept.Rows) != 1000 || kept.Every != 1 || o.ID == "" {
			t.Errorf("run %q, transfer %d: %d rows, every %d", o.ID, i, len(kept.Rows), kept.Every)
		}
		if b := got[i].Bound; b.Reason != sample.OK || b.Error < 2*time.Millisecond {
			t.Errorf("bound %v (%v), want more than that of both clocks", b.Error, b.Reason)
		}
		want = append(want, record.Rows{
			Path: "office", Probe: "saturation", Run: o.ID, Direction: sample.Directions()[i], Begin: kept.Sent.Begin, Every: 1, Bound: got[i].Bound, Rows: kept.Rows,
		})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Above MaxRows the report has fewer rows, also of earlier transfers.
func TestRecordedRowsAreOfAllPacketsAndDoNotChangeLater(t *testing.T) {
	var r record.Recorder
	l := r.Rows().Listen(10)
	s := udptraffic.NewSession(&loadtesttest.Link{}, udptraffic.SessionOptions{Rows: r.Rows()})
	s.SetMaxRows(1000)
	var rows, then [][]record.Row
	for i := range 5 {
		transferOf(t, s, 900)
		got := recorded(t, l)
		if len(got) != 1 || got[0].Every != 1 || len(got[0].Rows) != 900 {
			t.Fatalf("transfer %d: recorded %d, want one of 900 rows", i, len(got))
		}
		rows, then = append(rows, got[0].Rows), append(then, slices.Clone(got[0].Rows))
		for j, row := range got[0].Rows {
			if int(row.Seq) != j {
				t.Fatalf("transfer %d: row %d is packet %d", i, j, row.Seq)
			}
		}
	}
	if every := s.Series()[0].Every; every < 4 {
		t.Errorf("the report has every %d rows: it was not thinned, so the test covers nothing", every)
	}
	if diff := cmp.Diff(then, rows); diff != "" {
		t.Errorf("(-then +now):\n%s", diff)
	}
}
