package udptraffic_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/loadtesttest"
	"oneway.example/exporter/load/stream"
	"oneway.example/exporter/load/traffictypes/udptraffic"
)

func transferOf(t *testing.T, s *udptraffic.Session, n int) *udptraffic.Transfer {
	t.Helper()
	done, err := s.Transfer(t.Context(), sample.Forward, s.Plan(stream.Segment{
		PayloadBytes: 100, Interval: time.Millisecond, Burst: 1, Bursts: n,
	}), nil)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func TestReportKeepsAllRowsWhileTheyFit(t *testing.T) {
	s := udptraffic.NewSession(&loadtesttest.Link{}, udptraffic.SessionOptions{})
	s.SetMaxRows(1000)
	transferOf(t, s, 600)
	transferOf(t, s, 400)
	for i, want := range []int{600, 400} {
		if got := s.Series()[i]; len(got.Rows) != want || got.Every != 1 {
			t.Errorf("transfer %d: %d rows, every %d", i, len(got.Rows), got.Every)
		}
	}
}

func TestLongReportHasEveryNthRow(t *testing.T) {
	s := udptraffic.NewSession(&loadtesttest.Link{}, udptraffic.SessionOptions{})
	s.SetMaxRows(1000)
	for range 5 {
		transferOf(t, s, 900)
	}
	rows := 0
	for i, one := range s.Series() {
		rows += len(one.Rows)
		for j, r := range one.Rows {
			if int(r.Seq) != j*one.Every {
				t.Fatalf("transfer %d: row %d is packet %d, and one of %d is kept", i, j, r.Seq, one.Every)
			}
		}
		if one.Counts.Arrived != 900 {
			t.Errorf("the counts are of all packets: %+v", one.Counts)
		}
	}
	if rows > 1000 || rows < 400 {
		t.Errorf("%d rows, want at most 1000 and no fewer than needed", rows)
	}
}

func TestRunWithoutATransferReportsNone(t *testing.T) {
	o := loadtest.Outcome{Run: &loadtest.Run{}}
	udptraffic.NewSession(&loadtesttest.Link{}, udptraffic.SessionOptions{}).Account(&o, metric.NewScope(metric.Discard{}))
	text, err := json.Marshal(o)
	if err != nil || strings.Contains(string(text), "transfers") {
		t.Errorf("%s, %v", text, err)
	}
}

// One row per transfer is kept, however many there are, so that thinning ends.
func TestReportOfMoreTransfersThanRowsEnds(t *testing.T) {
	s := udptraffic.NewSession(&loadtesttest.Link{}, udptraffic.SessionOptions{})
	s.SetMaxRows(3)
	for range 10 {
		transferOf(t, s, 7)
	}
	if n := len(s.Series()); n != 10 {
		t.Errorf("%d transfers", n)
	}
}

func TestRowsAreArraysInTheOrderOfTheirColumns(t *testing.T) {
	link := &loadtesttest.Link{Delay: 5 * time.Millisecond, Each: func(_ sample.Direction, c *udptraffic.CarrierResult) error {
		c.Received.Packets = c.Received.Packets[:1]
		return nil
	}}
	s := udptraffic.NewSession(link, udptraffic.SessionOptions{})
	transferOf(t, s, 2)
	text, err := json.Marshal(s.Series()[0].Rows)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`[[0,0,128,0,5000000,1,0],[1,0,128,1000000,null,0,0]]`, string(text)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"seq", "segment", "ip_bytes", "sent_ns", "arrived_ns", "copies", "corruption"}, s.Series()[0].Columns); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDamageIsReportedByItsName(t *testing.T) {
	text, err := json.Marshal(udptraffic.Counts{Planned: 9, Damaged: udptraffic.Damaged{0, 2, 0, 0, 1}})
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Damaged map[string]int `json:"corrupted_packets"`
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{"truncated": 2, "bad_header": 1}, got.Damaged); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTransferBeyondTheMemoryLimitOfThisProcessIsNotBegun(t *testing.T) {
	const packets = 1000
	link := &loadtesttest.Link{}
	s := udptraffic.NewSession(link, udptraffic.SessionOptions{Memory: 4 * stream.ClientMemory * packets})
	transferOf(t, s, packets)
	_, err := s.Transfer(t.Context(), sample.Forward, s.Plan(stream.Segment{PayloadBytes: 100, Interval: time.Millisecond, Burst: 1, Bursts: packets + 1}), nil)
	failure, ok := errors.AsType[*loadtest.Failure](err)
	if !ok || failure.Reason != runreason.Configuration || !strings.Contains(err.Error(), "1001 packets; the memory limit of this process, ") {
		t.Errorf("error: %v", err)
	}
}
