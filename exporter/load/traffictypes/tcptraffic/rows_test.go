package tcptraffic_test

import (
	"context"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oneway.example/exporter/clocks/static"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/loadtesttest"
	"oneway.example/exporter/load/traffictypes/tcptraffic"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/link"
)

// A listener gets the samples of both ends of each connection, once, after each transfer.
func TestSamplesOfATransferAreRecorded(t *testing.T) {
	recorder := &record.Recorder{}
	l := recorder.Tables().Listen(10)
	defer l.Close()
	env := probe.Env{
		Log: slog.New(slog.DiscardHandler), Sink: metric.Discard{}, Clock: static.New(time.Millisecond, metric.Discard{}), Links: link.NewTable(nil), Recorder: recorder,
	}
	begin := time.Now()
	k := kind{most, func(ctx context.Context, s *tcptraffic.Session, r *loadtest.Run) error {
		for _, d := range sample.Directions() {
			p := plan(d, 300*time.Millisecond)
			p.Flows = append(p.Flows, p.Flows[0])
			res, err := s.Transfer(ctx, p)
			if err != nil {
				return err
			}
			got := make([]record.Table, 10)
			n, missed := l.Take(got)
			if n != 4 || missed != 0 {
				t.Errorf("%s: %d ends of connections, %d missed", d, n, missed)
			}
			for i, f := range got[:n] {
				of, end := res.Sender[i/2], "sender"
				if i%2 == 1 {
					of, end = res.Receiver[i/2], "receiver"
				}
				want := record.Table{
					Schema: record.TCPTrace, Tags: []string{d.String(), end, strconv.Itoa(i / 2), "office", "test"}, ID: r.ID,
					Begin: instant.FromTime(res.Begin),
				}
				for _, row := range tcptraffic.Rows(of.Samples) {
					want.Rows = append(want.Rows, row[:])
				}
				if diff := cmp.Diff(want, f, cmp.Comparer(func(a, b *record.Schema) bool { return a == b })); diff != "" || len(f.Rows) < 3 { // a late sample is left out
					t.Errorf("%d rows (-want +got):\n%s", len(f.Rows), diff)
				}
			}
			if res.Begin.Before(begin) || res.Begin.After(time.Now()) {
				t.Errorf("begun at %v", res.Begin)
			}
		}
		return nil
	}}
	target := probe.Target{Path: "office", Probe: "test", Peer: "127.0.0.1"}
	if _, err := loadtesttest.RunKind(t.Context(), env, target, loadtesttest.RemoteEnd(t.Context(), t, loadtesttest.End{}), k, nil); err != nil {
		t.Fatal(err)
	}
}

func TestRowsHaveTheColumnsOfTheRecord(t *testing.T) {
	s := tcptraffic.Sample{
		At: 1, Payload: 2, Acked: 3, Sent: 4, Retransmitted: 5, Outstanding: 6, NotSent: 7, Cwnd: 8, Ssthresh: 9, RTT: 10, RTTVar: 11,
		Busy: 12, RwndLimited: 13, SndbufLimited: 14, SendBuffer: 15, ReceiveBuffer: 16,
	}
	want := tcptraffic.Row{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
	if got := tcptraffic.Rows([]tcptraffic.Sample{s}); got[0] != want || len(record.TCPTrace.Columns) != len(want) {
		t.Errorf("%v for %d columns", got, len(record.TCPTrace.Columns))
	}
}
