package incident

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oneway.example/exporter/agent/eventlog"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/probe/report"
)

// bench is a running supervisor and its environment.
type bench struct {
	*Supervisor
	recorder record.Recorder
	reports  *report.Store
	sink     metrictest.Sink
	tested   atomic.Pointer[map[string]time.Time]
	seq      uint64
}

func newBench(t *testing.T, paths ...Path) *bench {
	t.Helper()
	b := &bench{}
	b.tested.Store(&map[string]time.Time{})
	b.reports = report.Open(report.Options{Dir: t.TempDir()})
	b.Supervisor = New(Options{
		Recorder: &b.recorder, Reports: b.reports, Sink: &b.sink, Tested: func() map[string]time.Time { return *b.tested.Load() },
		Events: eventlog.New(&b.sink, &b.recorder), Log: slog.New(slog.DiscardHandler),
	})
	b.SetPaths(paths)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); b.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	synctest.Wait()
	return b
}

// send sends a packet a second for d with this delay in each direction; 0: lost.
func (b *bench) send(d, delay time.Duration, paths ...string) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		b.seq++
		at := instant.Time(time.Now().UnixNano())
		for _, name := range paths {
			p := replied(b.seq, at, delay+time.Duration(b.seq%7)*us, delay)
			if delay == 0 {
				p = lost(b.seq, at)
			}
			p.Path = name
			b.recorder.Packets().Record(p)
		}
		// Simulated time of synctest: the interval of the packets.
		time.Sleep(time.Second)
		synctest.Wait()
	}
}

// decoded is a report as read from the store.
type decoded struct {
	Header report.Header `json:"header"`
	Body   struct {
		Trigger    string      `json:"trigger"`
		Deviations []Deviation `json:"deviations"`
		Begin      int64       `json:"begin_ns"`
		Columns    []string    `json:"columns"`
		Rows       [][]any     `json:"rows"`
	} `json:"body"`
}

func (b *bench) open(t *testing.T, id string) (d decoded) {
	t.Helper()
	f, err := b.reports.Open(id)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(z).Decode(&d); err != nil {
		t.Fatal(err)
	}
	return d
}

func onePath() Path {
	return Path{Path: "a", Probe: "stamp", Peer: "peer.example.net"}
}

func TestIncidentIsReportedWithTheMinutesBeforeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, onePath())
		b.send(20*time.Minute, 30*ms, "a")
		if n := len(b.reports.List()); n != 0 {
			t.Fatalf("%d reports of a calm path", n)
		}
		b.send(2*time.Minute, 400*ms, "a")
		all := b.reports.List()
		if len(all) != 1 || all[0].Kind != report.Incident || all[0].Path != "a" || all[0].Peer != "peer.example.net" {
			t.Fatalf("reports %+v", all)
		}
		d := b.open(t, all[0].ID)
		if d.Body.Trigger != "delay" || len(d.Body.Deviations) != 3 || *d.Body.Deviations[0].Delay < 0.2 || *d.Body.Deviations[0].BaselineDelay > 0.1 || len(d.Body.Rows) < 590 || len(d.Body.Rows[0]) != len(d.Body.Columns) {
			t.Errorf("trigger %s, %v, %d rows, columns %v", d.Body.Trigger, d.Body.Deviations, len(d.Body.Rows), d.Body.Columns)
		}
		first, last := d.Body.Rows[0], d.Body.Rows[len(d.Body.Rows)-1]
		if first[2] != "received" || first[3].(float64) > 31e6 || last[3].(float64) < 399e6 || last[5] != "ok" || first[1].(float64) != 0 {
			t.Errorf("first row %v, last row %v", first, last)
		}
		if got := all[0].End.Sub(all[0].Begin); got < 9*time.Minute || got > Span {
			t.Errorf("it covers %v", got)
		}
		if v, ok := b.sink.Value(metric.IncidentReports, "a", "stamp", "delay"); !ok || v != 1 {
			t.Errorf("%v reports counted", v)
		}
	})
}

func TestOutageIsReportedWithItsLostPackets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, onePath())
		b.send(20*time.Minute, 30*ms, "a")
		b.send(2*time.Minute, 0, "a")
		all := b.reports.List()
		if len(all) != 1 {
			t.Fatalf("reports %+v", all)
		}
		d := b.open(t, all[0].ID)
		last := d.Body.Rows[len(d.Body.Rows)-1]
		if d.Body.Trigger != "loss" || last[2] != "lost" || last[3] != nil || last[5] != "no_timestamp" || last[9] != nil {
			t.Errorf("trigger %s, last row %v", d.Body.Trigger, last)
		}
	})
}

func TestPathMakesOneReportInTenMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, onePath())
		b.send(20*time.Minute, 30*ms, "a")
		for range 3 { // 5 minutes each
			b.send(time.Minute, 400*ms, "a")
			b.send(4*time.Minute, 30*ms, "a")
		}
		if n := len(b.reports.List()); n != 2 {
			t.Errorf("%d reports in 15 minutes, want 2", n)
		}
	})
}

func TestManyPathsTogetherMakeFewReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var paths []Path
		var all []string
		for i := range 100 {
			all = append(all, fmt.Sprintf("path-%d", i))
			paths = append(paths, Path{Path: all[i], Probe: "stamp"})
		}
		b := newBench(t, paths...)
		b.send(15*time.Minute, 30*ms, all...)
		b.send(2*time.Minute, 400*ms, all...)
		if n := len(b.reports.List()); n != allBurst {
			t.Errorf("%d reports, want %d", n, allBurst)
		}
	})
}

func TestLoadTestThatAffectsThePathMakesNoReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, onePath(), Path{Path: "b", Probe: "stamp"})
		b.send(20*time.Minute, 30*ms, "a", "b")
		for range 60 { // the test lasts until the end
			b.tested.Store(&map[string]time.Time{"a": time.Now()})
			b.send(2*time.Second, 400*ms, "a", "b")
		}
		if all := b.reports.List(); len(all) != 1 || all[0].Path != "b" {
			t.Errorf("reports %+v, want one of the path that no test affects", all)
		}
	})
}

// Those who read the tests learn of one only after its end.
func TestTestThatHasEndedDiscardsItsWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, onePath())
		b.send(20*time.Minute, 30*ms, "a")
		b.send(20*time.Second, 400*ms, "a")
		b.tested.Store(&map[string]time.Time{"a": time.Now()})
		b.send(time.Minute, 30*ms, "a")
		if all := b.reports.List(); len(all) != 0 {
			t.Errorf("reports %+v of a test of 20 s", all)
		}
	})
}

func TestIncidentIsKeptOnRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, onePath())
		if _, err := b.Store("a", "stamp"); !errors.Is(err, ErrNoPackets) {
			t.Errorf("before the first packet: %v", err)
		}
		b.send(time.Minute, 30*ms, "a")
		h, err := b.Store("a", "stamp")
		if err != nil {
			t.Fatal(err)
		}
		if d := b.open(t, h.ID); d.Body.Trigger != "request" || len(d.Body.Rows) != 60 || d.Header.Reason != "request" {
			t.Errorf("%s with %d rows", d.Body.Trigger, len(d.Body.Rows))
		}
		if _, err := b.Store("a", ""); err != nil {
			t.Errorf("the only probe without its name: %v", err)
		}
		for _, wrong := range []name{{"b", "stamp"}, {"", "stamp"}, {"a", "other"}} {
			if _, err := b.Store(wrong.path, wrong.probe); !errors.Is(err, ErrUnknown) {
				t.Errorf("%q: %v", wrong, err)
			}
		}
		for err == nil {
			_, err = b.Store("a", "stamp")
		}
		if n := len(b.reports.List()); !errors.Is(err, ErrTooMany) || n != requestBurst {
			t.Errorf("%v after %d reports", err, n)
		}
	})
}

func TestStateOfARemovedPathIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, onePath(), Path{Path: "b", Probe: "stamp"})
		b.send(time.Minute, 30*ms, "a", "b")
		if _, err := b.Store("a", "stamp"); err != nil {
			t.Fatal(err)
		}
		b.SetPaths([]Path{{Path: "b", Probe: "stamp"}})
		if _, err := b.Store("a", "stamp"); !errors.Is(err, ErrUnknown) {
			t.Errorf("gone path: %v", err)
		}
		if all := b.sink.All(metric.IncidentReports); len(all) != 0 {
			t.Errorf("series of a path that is gone: %v", all)
		}
		if h, err := b.Store("b", "stamp"); err != nil || h.Summary[0].Text() != "60" {
			t.Errorf("path that stays: %v, %v", h, err)
		}
	})
}

// TestAThousandBusyPathsKeepWithinTheLimit also checks ten thousand: each has less.
func TestAThousandBusyPathsKeepWithinTheLimit(t *testing.T) {
	for _, n := range []int{1000, 3000} {
		k := New(Options{Recorder: &record.Recorder{}})
		k.space = allPaths
		var paths []Path
		for i := range n {
			paths = append(paths, Path{Path: fmt.Sprint(i), Probe: "stamp"})
		}
		k.SetPaths(paths[:n/2])
		fill := func(paths []Path) {
			batch := make([]record.Packet, 6000)
			for _, p := range paths {
				for i := range batch {
					batch[i] = *replied(uint64(i), instant.Time(int64(i)*int64(20*ms)), 30*ms+time.Duration(i*7919%4000)*us, ms)
					batch[i].Path = p.Path
				}
				k.take(batch, time.Time{})
			}
		}
		fill(paths[:20])
		k.SetPaths(paths)
		fill(paths[:20])
		most := 0
		for _, p := range k.paths {
			most = max(most, p.ring.size())
		}
		if most == 0 || most*n > allPaths {
			t.Errorf("%d paths: %d bytes each are %d MiB in all", n, most, most*n>>20)
		}
	}
}

func BenchmarkTake(b *testing.B) {
	k := New(Options{Recorder: &record.Recorder{}})
	k.SetPaths([]Path{{Path: "a", Probe: "stamp"}})
	s := newStream(1, 1)
	s.interval = 20 * ms
	batch := make([]record.Packet, 1)
	b.ReportAllocs()
	for b.Loop() {
		p, now := s.next()
		batch[0] = *p
		k.take(batch, now)
	}
}

func TestIncidentWithoutADirectoryIsRefused(t *testing.T) {
	reports := report.Open(report.Options{})
	k := New(Options{Recorder: &record.Recorder{}, Reports: reports})
	if _, err := k.Store("a", "stamp"); !errors.Is(err, ErrNoDirectory) {
		t.Errorf("%v", err)
	}
}

func TestPacketsOfAReportAreRecordedInTheOrderOfSending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, onePath())
		listener := b.recorder.Tables().Listen(2)
		defer listener.Close()
		b.send(time.Minute, 30*ms, "a")
		early := lost(1, instant.Time(time.Now().Add(-30*time.Second).UnixNano())) // recorded after its loss timeout
		b.recorder.Packets().Record(early)
		b.send(time.Second, 30*ms, "a")
		h, err := b.Store("a", "stamp")
		if err != nil {
			t.Fatal(err)
		}
		var got [2]record.Table
		if n, _ := listener.Take(got[:]); n != 1 || got[0].Schema != record.IncidentPackets || got[0].ID != h.ID || !slices.Equal(got[0].Tags, []string{"a", "stamp"}) || len(got[0].Rows) != 62 {
			t.Fatalf("%d tables, %+v; want that of report %s with 62 packets", n, got[0], h.ID)
		}
		if !slices.IsSortedFunc(got[0].Rows, func(a, b []int64) int { return bySent(row(a), row(b)) }) || got[0].Rows[61][record.IncidentOutcome] != int64(record.Received) {
			t.Errorf("rows %v", got[0].Rows)
		}
	})
}
