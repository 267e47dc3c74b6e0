package collect

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/output"
	"oneway.example/exporter/output/point"
)

// bench is a running collector.
type bench struct {
	recorder record.Recorder
	sink     metrictest.Sink
	env      output.Env
	options  Options
	logged   bytes.Buffer

	mu      sync.Mutex
	lines   []string
	batches []int         // points of each
	blocked chan struct{} // not nil: emit waits for it
	stop    func()
}

func newBench(o Options) *bench {
	b := &bench{options: o}
	b.env = output.Env{
		Name: "store", Groups: metric.Groups(), Log: slog.New(slog.NewTextHandler(&b.logged, nil)), Sink: &b.sink, Recorder: &b.recorder,
		Series: func(at instant.Time, emit func(*point.Point)) error {
			emit(&point.Point{Measurement: "oneway_probe", Tags: []point.Tag{{Key: "path", Value: "a"}, {Key: "probe", Value: "stamp"}}, Fields: point.Int(nil, "x", 1), At: at})
			return nil
		},
	}
	return b
}

// start runs the collector until stop.
func (b *bench) start(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- Run(ctx, b.env, b.options, b.emit) }()
	b.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("it ended with %v", err)
		}
	}
	synctest.Wait()
}

func (b *bench) emit(all []point.Point) {
	if b.blocked != nil {
		<-b.blocked
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var e point.Encoder
	b.batches = append(b.batches, len(all))
	for i := range all {
		line, err := e.Append(nil, &all[i])
		if err != nil {
			panic(err)
		}
		b.lines = append(b.lines, string(line[:len(line)-1]))
	}
}

func (b *bench) taken() (lines []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	lines, b.lines = b.lines, nil
	return lines
}

func (b *bench) listening() bool {
	r := &b.recorder
	return r.Packets().HasListeners() || r.Rows().HasListeners() || r.Tables().HasListeners() || r.Results().HasListeners()
}

func TestSeriesAreAtMultiplesOfTheInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(3*time.Second + 123*time.Millisecond) // simulated time: the collector begins between two multiples
		b := newBench(Options{Interval: 10 * time.Second, Tags: []point.Tag{{Key: "site", Value: "x y"}, {Key: "host", Value: "h"}}})
		b.start(t)
		time.Sleep(30 * time.Second) // simulated time: three multiples
		b.stop()
		var want []string
		for i := range 3 {
			at := time.Date(2000, 1, 1, 0, 0, 10*(i+1), 0, time.UTC) // synctest begins in 2000
			want = append(want, fmt.Sprintf(`oneway_probe,host=h,path=a,probe=stamp,site=x\ y x=1i %d`, at.UnixNano()))
		}
		if got := b.taken(); !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

// TestLabelsOfPathsAreTagsOfSeriesAndRawSamples: they may change while the collector runs.
func TestLabelsOfPathsAreTagsOfSeriesAndRawSamples(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var labels point.PathLabels
		labels.Set(map[string]map[string]string{"a": {"site": "Paris, 2"}})
		b := newBench(Options{Interval: 10 * time.Second, Tags: []point.Tag{{Key: "host", Value: "h"}}})
		b.env.Labels = &labels
		b.start(t)
		for _, want := range []string{`site=Paris\,\ 2`, "site=berlin"} {
			b.record()
			time.Sleep(12 * time.Second) // simulated time (synctest): past the next multiple of the interval of 10 s
			seen := map[string]bool{}
			for _, line := range b.taken() {
				measurement, _, _ := strings.Cut(line, ",")
				seen[measurement] = true
				if strings.Contains(line, ",path=a,") != strings.Contains(line, ","+want) {
					t.Errorf("want %s in points of path a, and in no other: %s", want, line)
				}
			}
			if !seen["oneway_probe"] || !seen["oneway_run_packet"] || !seen["oneway_incident_packet"] || !seen["oneway_run_test"] {
				t.Errorf("points of %v", seen)
			}
			labels.Set(map[string]map[string]string{"a": {"site": "berlin"}})
		}
		b.stop()
	})
}

// newKind is a kind of table that nothing of an output knows.
var newKind = &record.Schema{Name: "oneway_new", TimeOnly: true, Columns: []record.Column{{Name: "at_ns"}, {Name: "cell"}}}

// record records one sample of each kind.
func (b *bench) record() {
	r := &b.recorder
	r.Rows().Record(&record.Rows{Path: "a", Run: "1", Rows: make([]record.Row, 2), Begin: 1e18})
	r.Tables().Record(&record.Table{Schema: record.TCPTrace, Tags: make([]string, 5), ID: "1", Rows: [][]int64{make([]int64, 16), make([]int64, 16)}, Begin: 1e18})
	r.Tables().Record(&record.Table{Schema: record.Track, Begin: 1e18, Rows: [][]int64{make([]int64, 4)}})
	r.Tables().Record(&record.Table{Schema: record.IncidentPackets, Tags: []string{"a", ""}, Rows: [][]int64{{record.IncidentSent: 1e18, 9: 0}}})
	r.Tables().Record(&record.Table{Schema: newKind, Begin: 1e18, Rows: [][]int64{{0, 1}}})
	r.Results().Record(&record.Result{Path: "a", Run: "1", Begin: 1e18, Values: []record.Value{{Desc: metric.RunDuration, Values: []float64{1}}}})
}

func TestQueuedTablesAreBoundedByTheirRows(t *testing.T) {
	var r record.Recorder
	var sink metrictest.Sink
	c := newCollector(output.Env{Recorder: &r, Sink: &sink}, Options{}, func([]point.Point) {})
	defer c.close()
	half := make([][]int64, tableRows/2)
	for range 5 {
		r.Tables().Record(&record.Table{Schema: newKind, Rows: half})
	}
	if missed := c.tables.each(func(*record.Table) {}); missed != 3 {
		t.Errorf("%d of 5 tables of half the rows are missed, want 3", missed)
	}
}

func measurements(lines []string) (names []string) {
	for _, l := range lines {
		names = append(names, l[:strings.IndexAny(l, ", ")])
	}
	slices.Sort(names)
	return names
}

var one = []string{
	"oneway_incident_packet", "oneway_new", "oneway_run_packet", "oneway_run_packet", "oneway_run_test", "oneway_tcp_trace", "oneway_tcp_trace", "oneway_track",
}

func TestRawSamplesAreCollectedWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(Options{})
		b.start(t)
		for range 3 {
			b.record()
			time.Sleep(time.Second) // simulated time: the queues are emptied
			synctest.Wait()
			if got := measurements(b.taken()); !slices.Equal(got, one) {
				t.Errorf("%q, want %q", got, one)
			}
		}
		b.stop()
	})
}

func TestQueuedSamplesAreCollectedAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(Options{})
		b.start(t)
		b.record()
		b.stop()
		if got := measurements(b.taken()); !slices.Equal(got, one) {
			t.Errorf("%q, want %q", got, one)
		}
	})
}

// TestCollectorThatEndsLeavesNothing: a reload of an output ends its collector and starts another one.
func TestCollectorThatEndsLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(Options{Interval: time.Second})
		for range 3 {
			if b.listening() || b.sink.Open() != 0 {
				t.Errorf("before the start somebody listens, or %d series are open", b.sink.Open())
			}
			b.start(t)
			if b.recorder.Packets().HasListeners() || !b.recorder.Rows().HasListeners() {
				t.Error("while it runs: light packets are not collected one by one, rows are")
			}
			b.record()
			b.stop()
			if got := measurements(b.taken()); !slices.Equal(got, one) {
				t.Errorf("%q, want %q: a sample is collected once", got, one)
			}
		}
		if b.listening() || b.sink.Open() != 0 {
			t.Errorf("at the end somebody listens, or %d series are open", b.sink.Open())
		}
	})
}

func TestSamplesThatDoNotFitAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(Options{})
		b.blocked = make(chan struct{})
		b.start(t)
		b.record()
		time.Sleep(time.Second) // simulated time: until emit waits
		for range 1000 {
			b.record()
		}
		close(b.blocked)
		time.Sleep(2 * time.Second) // simulated time: the rest is collected
		synctest.Wait()
		missed, _ := b.sink.Value(metric.SamplesDropped, "store")
		queued := rowsQueue + resultsQueue + tablesQueue
		if want := float64(6*1000 - queued); missed < want-6 || missed > want {
			t.Errorf("%v samples missed, want %v, or less by those taken after emit began to wait", missed, want)
		}
		taken := 0
		for _, n := range b.batches {
			taken += n
		}
		if want := 8 + queued + rowsQueue + tablesQueue/4; taken < want || taken > want+8 { // a transfer and a connection have two points
			t.Errorf("%d points, want %d", taken, want)
		}
		b.stop()
	})
}

func TestBatchesAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(Options{FirstRows: time.Hour, MaxRows: 2500})
		b.start(t)
		b.recorder.Rows().Record(&record.Rows{Path: "a", Rows: make([]record.Row, 10_000), Begin: 1e18})
		b.stop()
		if !slices.Equal(b.batches, []int{1000, 1000, 500}) {
			t.Errorf("batches of %v points", b.batches)
		}
		lines := b.taken()
		slices.Sort(lines)
		if n := len(slices.Compact(lines)); n != 2500 {
			t.Errorf("%d different points", n)
		}
	})
}

// TestSeriesAreCopiedBeforeAnEmitThatWaits: the outputs of an agent take turns in reading its series.
func TestSeriesAreCopiedBeforeAnEmitThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(Options{Interval: time.Second, EmitWaits: true})
		b.blocked = make(chan struct{})
		reading := false
		b.env.Series = func(at instant.Time, emit func(*point.Point)) error {
			reading = true
			for i := range int64(2500) {
				emit(&point.Point{Measurement: "oneway_probe", Fields: point.Int(nil, "x", i), At: at})
			}
			reading = false
			return nil
		}
		b.start(t)
		time.Sleep(5 * time.Second) // simulated time: until emit waits
		synctest.Wait()
		if reading {
			t.Error("the series are read while emit waits")
		}
		close(b.blocked)
		b.stop()
		if len(b.batches) < 3 || !slices.Equal(b.batches[:3], []int{1000, 1000, 500}) {
			t.Errorf("batches of %v points", b.batches)
		}
	})
}

func TestAgentWithoutRecorderAndSeriesHasNoPoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(Options{Interval: time.Second})
		b.env.Recorder, b.env.Series = nil, nil
		b.start(t)
		time.Sleep(5 * time.Second) // simulated time: intervals without points
		b.stop()
		if got := b.taken(); len(got) != 0 {
			t.Errorf("%q", got)
		}
	})
}

func TestErrorOfTheSeriesIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(Options{Interval: time.Second})
		b.env.Series = func(instant.Time, func(*point.Point)) error { return context.DeadlineExceeded }
		b.start(t)
		time.Sleep(3*time.Second - time.Millisecond) // simulated time: two intervals end
		b.stop()
		if n := strings.Count(b.logged.String(), "deadline exceeded"); n != 2 {
			t.Errorf("logged %d times, want 2:\n%s", n, &b.logged)
		}
	})
}

func TestTagsOfAllPointsAreChecked(t *testing.T) {
	for want, tags := range map[string][]point.Tag{
		"":                   {{Key: "host", Value: "h"}, {Key: "site", Value: "s"}},
		"want a key":         {{Key: "", Value: "h"}},
		"and a value":        {{Key: "host"}},
		"another key":        {{Key: "path", Value: "x"}},
		"want another":       {{Key: "delay_p99_seconds", Value: "x"}},
		"want it once":       {{Key: "host", Value: "a"}, {Key: "host", Value: "b"}},
		"want a key without": {{Key: "a\nb", Value: "x"}},
		`tag "b\\" cannot`:   {{Key: "b\\", Value: "x"}},
		"this program,":      {{Key: "time", Value: "x"}},
	} {
		err := CheckTags(output.Env{Groups: metric.Groups()}, tags)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v: %v, want %q", tags, err, want)
		}
		if want != "" {
			if err := Run(t.Context(), output.Env{Groups: metric.Groups()}, Options{Tags: tags}, nil); err == nil {
				t.Errorf("%v: it ran", tags)
			}
		}
	}
}

func TestSeriesOfAClockThatIsSteppedBackReplaceNoOthers(t *testing.T) {
	b := newBench(Options{Interval: 10 * time.Second})
	c := newCollector(b.env, b.options, b.emit)
	defer c.close()
	second := func(n int) time.Time { return time.Unix(int64(n), 0) }
	for _, n := range []int{100, 110, 120, 100, 110, 90, 100, 110, 120, 130, 110} {
		c.series(second(n))
	}
	var got []string
	for _, line := range b.taken() {
		got = append(got, line[strings.LastIndexByte(line, ' ')+1:])
	}
	want := []string{
		"100000000000", "110000000000", "120000000000", "100000000001", "110000000001", "90000000002", "100000000002", "110000000002",
		"120000000002", "130000000000", "110000000003",
	}
	if !slices.Equal(got, want) {
		t.Errorf("times %v, want %v", got, want)
	}
}

// The rows of hours know the interval of the series: with one that leaves out windows of the probe they have no extremes, and a long one
// is no gap, whose packets have no hour.
func TestRowsOfHoursHaveTheIntervalOfTheSeries(t *testing.T) {
	for interval, want := range map[time.Duration]bool{10 * time.Second: true, 10 * time.Minute: false} {
		synctest.Test(t, func(t *testing.T) {
			b, sent := newBench(Options{Interval: interval}), int64(0)
			path := []point.Tag{{Key: "path", Value: "p"}, {Key: "probe", Value: "stamp"}}
			forward := append([]point.Tag{{Key: "direction", Value: "forward"}}, path...)
			b.env.Series = func(at instant.Time, emit func(*point.Point)) error {
				sent += 100
				for _, p := range []point.Point{
					{Measurement: "oneway_packets", Tags: forward, Fields: point.Int(nil, "packets_sent_total", sent)},
					{Measurement: "oneway_delay", Tags: forward, Fields: point.Float(point.Int(nil, "delay_seconds_count", sent), "delay_min_seconds", 0.01)},
					{Measurement: "oneway_agent_calendar", Tags: []point.Tag{{Key: "zone", Value: "UTC"}}, Fields: point.Float(point.Float(nil, "utc_offset_seconds", 0), "holiday", 0)},
				} {
					p.At = at
					emit(&p)
				}
				return nil
			}
			b.start(t)
			time.Sleep(90*time.Minute + time.Second) // simulated time: rows of two hours, the last one emitted
			b.stop()
			rows := slices.DeleteFunc(b.taken(), func(line string) bool { return !strings.HasPrefix(line, "oneway_hour,") })
			newest := map[string]int64{} // packets by the time of the row
			for _, row := range rows {
				words := strings.Fields(row)
				var n int64
				if _, err := fmt.Sscanf(words[1], "packets_sent=%di", &n); err != nil || strings.Contains(row, "delay_min_seconds=") != want {
					t.Errorf("each %v: %s, want extremes: %v", interval, row, want)
				}
				newest[words[2]] = n
			}
			sum := int64(0)
			for _, n := range newest {
				sum += n
			}
			if len(newest) != 2 || sum != sent-100 { // the first reading has counted since an unknown time
				t.Errorf("each %v: %d packets in %d hours, want %d in 2", interval, sum, len(newest), sent-100)
			}
		})
	}
}
