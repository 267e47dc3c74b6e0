package point

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/influxdata/line-protocol/v2/lineprotocol"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/localday"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/core/sample"
	"oneway.example/tests/testseed"
)

const begin = instant.Time(1_790_000_000e9)

// kept gathers copies of points.
type kept []Point

func (k *kept) add(p *Point) {
	*k = append(*k, Point{Measurement: p.Measurement, Tags: slices.Clone(p.Tags), Fields: slices.Clone(p.Fields), At: p.At})
}

// field is a field of a point as the line has it; empty: it is absent.
func (p *Point) field(key string) string {
	for _, f := range p.Fields {
		if f.Key == key {
			return f.Value.String()
		}
	}
	return ""
}

// check checks points against the schema, by their lines, and that no two of them share tags and time.
func (k kept) check(t *testing.T) {
	t.Helper()
	schema := map[string]Measurement{}
	for _, m := range Measurements(metric.Groups(), TestedTables) {
		schema[m.Name] = m
		run := m.OfRun()
		schema[run.Name] = run
	}
	var e Encoder
	seen := map[string]bool{}
	for i := range k {
		p := &k[i]
		line, err := e.Append(nil, p)
		if err != nil {
			t.Fatal(err)
		}
		back, m := decode(t, line), schema[p.Measurement]
		var keys []string
		for _, tag := range back.Tags {
			keys = append(keys, tag.Key)
		}
		if !slices.Equal(keys, m.Tags) {
			t.Errorf("%s has tags %v, want %v", p.Measurement, keys, m.Tags)
		}
		fields := map[string]bool{}
		for _, f := range back.Fields {
			if !slices.ContainsFunc(m.Columns, func(c Column) bool { return c.Has(f.Key) && c.Kind == f.Value.Kind() }) || fields[f.Key] {
				t.Errorf("%s: field %s is %v", p.Measurement, f.Key, f.Value.Kind())
			}
			fields[f.Key] = true
		}
		key := fmt.Sprint(p.Measurement, p.Tags, p.At)
		if seen[key] {
			t.Errorf("two points of %s", key)
		}
		seen[key] = true
	}
}

func packets(n int, every time.Duration) *record.Rows {
	rows := &record.Rows{Path: "a", Probe: "saturation", Run: "run-1", Direction: sample.Reverse, Begin: begin, Every: 1, Bound: sample.Bound{Error: time.Millisecond, Reason: sample.OK}}
	for i := range n {
		sent := int64(i) * int64(every)
		rows.Rows = append(rows.Rows, record.Row{Seq: uint32(i), Segment: 2, Copies: 1, IPBytes: 1500, Sent: sent, Arrived: sent + 30e6, Damage: 1})
	}
	return rows
}

func TestPacketsOfARun(t *testing.T) {
	rows := packets(4, time.Millisecond)
	rows.Rows[3].Arrived = record.NoTime // arrived without a timestamp
	rows.Rows[1].Copies, rows.Rows[1].Arrived, rows.Rows[1].Damage = 0, record.NoTime, 0
	rows.Rows[2].Sent = record.NoTime // not sent
	var got kept
	NewRaw(metric.Groups()).Rows(rows, Thin{}, got.add)
	got.check(t)
	want := []string{
		`oneway_run_packet,direction=reverse,path=a,probe=saturation run="run-1",seq=0i,sent_seconds=0,segment=2i,ip_bytes=1500i,copies=1i,damage=1i,delay_seconds=0.03,delay_error_bound_seconds=0.001,delay_reason="ok",lost=0i,every=1i 1790000000000000000`,
		`oneway_run_packet,direction=reverse,path=a,probe=saturation run="run-1",seq=1i,sent_seconds=0.001,segment=2i,ip_bytes=1500i,copies=0i,damage=0i,lost=1i,every=1i 1790000000001000000`,
		`oneway_run_packet,direction=reverse,path=a,probe=saturation run="run-1",seq=3i,sent_seconds=0.003,segment=2i,ip_bytes=1500i,copies=1i,damage=1i,lost=0i,every=1i 1790000000003000000`,
	}
	lines(t, got, want)
}

func TestDelayWithoutABoundHasItsReason(t *testing.T) {
	rows := packets(1, time.Millisecond)
	rows.Bound = sample.Bound{Reason: sample.RemoteUnsynchronized}
	var got kept
	NewRaw(metric.Groups()).Rows(rows, Thin{}, got.add)
	if p := got[0]; p.field("delay_error_bound_seconds") != "" || p.field("delay_reason") != `"remote_unsynchronized"` || p.field("delay_seconds") != "0.03" {
		t.Errorf("%v", p.Fields)
	}
}

// lines compares points with their lines.
func lines(t *testing.T, got kept, want []string) {
	t.Helper()
	var e Encoder
	if len(got) != len(want) {
		t.Errorf("%d points, want %d", len(got), len(want))
	}
	for i := range min(len(got), len(want)) {
		if line, err := e.Append(nil, &got[i]); err != nil || string(line) != want[i]+"\n" {
			t.Errorf("%v\n%swant\n%s", err, line, want[i])
		}
	}
}

func TestPacketsWithOneTimeHavePointsOfTheirOwn(t *testing.T) {
	r := NewRaw(metric.Groups())
	var got kept
	for run := range 3 { // the second and third one begin where the first one does
		rows := packets(100, 0)
		rows.Run = fmt.Sprint("run-", run)
		r.Rows(rows, Thin{}, got.add)
	}
	got.check(t)
	if got[1].At != begin+1 || got[299].At != begin+299 || got[0].At != begin {
		t.Errorf("times %v, %v, %v", got[0].At, got[1].At, got[299].At)
	}
}

func TestPacketsAreInTheOrderOfSendingAtTheirTimes(t *testing.T) {
	rows := packets(100, time.Microsecond)
	rand.New(rand.NewPCG(testseed.Of(t), 0)).Shuffle(100, func(i, j int) { rows.Rows[i], rows.Rows[j] = rows.Rows[j], rows.Rows[i] })
	before := slices.Clone(rows.Rows)
	var got kept
	NewRaw(metric.Groups()).Rows(rows, Thin{}, got.add)
	for i, p := range got {
		if p.At != begin.Add(time.Duration(i)*time.Microsecond) || p.field("seq") != fmt.Sprintf("%di", i) {
			t.Fatalf("point %d is packet %s at %v", i, p.field("seq"), p.At)
		}
	}
	if !slices.Equal(before, rows.Rows) {
		t.Error("the rows, which others share, were changed")
	}
}

func TestPointsOfASteppedClockKeepTheirTimes(t *testing.T) {
	r := NewRaw(metric.Groups())
	var got kept
	for _, at := range []instant.Time{begin, begin - 3600e9, begin - 3600e9, begin} {
		r.Table(position(at, 0, 0, math.NaN()), got.add)
	}
	for i, want := range []instant.Time{begin, begin - 3600e9, begin - 3600e9 + 1, begin} {
		if got[i].At != want {
			t.Errorf("point %d at %v, want %v", i, got[i].At, want)
		}
	}
}

// TestThinnedTransferRepresentsEachPacketOnce: the first second is complete, and the sum of every is the number of packets.
func TestThinnedTransferRepresentsEachPacketOnce(t *testing.T) {
	for _, c := range []struct {
		packets, most int
		first         time.Duration
		complete      int // packets of the complete part
	}{
		{10_000, 0, 0, 10_000},
		{10_000, 10_000, 0, 10_000},
		{10_000, 5_000, time.Second, 1000},
		{10_000, 1_001, time.Second, 1000},
		{10_000, 1_000, time.Second, 0}, // no place for others: all are thinned
		{10_000, 700, time.Second, 0},
		{10_000, 9_999, time.Second, 1000},
		{10_000, 1, 0, 0},
		{10_000, 7, -1, 0},
	} {
		var got kept
		rows := packets(c.packets, time.Millisecond)
		rows.Every = 2
		NewRaw(metric.Groups()).Rows(rows, Thin{First: c.first, Most: c.most}, got.add)
		sum, complete := 0, 0
		for _, p := range got {
			var every int
			_, _ = fmt.Sscanf(p.field("every"), "%d", &every)
			if sum += every; every == rows.Every && complete*rows.Every == sum-every {
				complete++
			}
		}
		if sum != c.packets*rows.Every || c.most > 0 && len(got) > c.most {
			t.Errorf("%+v: %d points of %d packets", c, len(got), sum)
		}
		if complete < c.complete || c.most > 0 && len(got)*3 < c.most {
			t.Errorf("%+v: the first %d packets are complete, of %d points", c, complete, len(got))
		}
	}
}

func TestValuesOfARun(t *testing.T) {
	var got kept
	NewRaw(metric.Groups()).Result(&record.Result{Path: "a", Probe: "saturation", Run: "run-1", Begin: begin, LocalHour: 7, DayType: localday.Weekend, Values: []record.Value{
		{Desc: metric.LoadedDelay, Labels: []string{"forward"}, Values: []float64{0.01, 0.3, 100}},
		{Desc: metric.QueueDelay, Labels: []string{"forward", "0.5"}, Values: []float64{0.2}},
		{Desc: metric.QueueDelay, Labels: []string{"forward", "0.95"}, Values: []float64{math.NaN()}},
		{Desc: metric.QueueSize, Labels: []string{"reverse"}, Values: []float64{4096}},
		{Desc: metric.RunDuration, Values: []float64{30}},
		{Desc: metric.TCPUnfinished, Labels: []string{"forward", "1000"}, Values: []float64{2}},
	}}, got.add)
	got.check(t)
	var buckets, others kept
	for _, p := range got {
		if p.Measurement == "oneway_run_saturation_delay_seconds_bucket" {
			buckets = append(buckets, p)
		} else {
			others = append(others, p)
		}
	}
	lines(t, others, []string{
		`oneway_run_test,day_type=weekend,local_hour=7,path=a,probe=saturation run="run-1",run_duration_seconds=30 1790000000000000000`,
		`oneway_run_load,day_type=weekend,direction=forward,local_hour=7,path=a,probe=saturation run="run-1",queue_delay_p50_seconds=0.2,saturation_delay_seconds_count=3i,saturation_delay_seconds_sum=100.31 1790000000000000000`,
		`oneway_run_load,day_type=weekend,direction=reverse,local_hour=7,path=a,probe=saturation run="run-1",queue_size_bytes=4096 1790000000000000000`,
		`oneway_run_tcp_short,day_type=weekend,direction=forward,flow_bytes=1000,local_hour=7,path=a,probe=saturation run="run-1",tcp_unfinished_flows_total=2i 1790000000000000000`,
	})
	if n := len(metric.LoadedDelay.Buckets); len(buckets) != n+1 || buckets[0].field("saturation_delay_seconds_bucket") != "1i" || buckets[n].field("saturation_delay_seconds_bucket") != "3i" {
		t.Errorf("buckets %v", buckets)
	}
}

func TestRawPointsDoNotAllocateEach(t *testing.T) {
	r, rows := NewRaw(metric.Groups()), packets(10_000, time.Microsecond)
	var e Encoder
	var line []byte
	emit := func(p *Point) { line, _ = e.Append(line[:0], p) }
	if n := testing.AllocsPerRun(10, func() { r.Rows(rows, Thin{}, emit) }); n > 10 {
		t.Errorf("%v allocations for 10,000 points", n)
	}
}

// TestedTables are the schemas of the program, in tests of this package, which cannot import the types.
var TestedTables = []*record.Schema{record.IncidentPackets, record.Events, record.Track, record.TCPTrace, record.TCPBytes}

// TestFieldsOfRawSamplesAreComplete: the last points of a complete sample have all columns.
func TestFieldsOfRawSamplesAreComplete(t *testing.T) {
	var got kept
	r := NewRaw(metric.Groups())
	r.Rows(packets(1, 0), Thin{}, got.add)
	for _, s := range TestedTables {
		r.Table(&record.Table{Schema: s, Tags: make([]string, len(s.Tags)), Begin: begin, Rows: [][]int64{make([]int64, len(s.Columns))}}, got.add)
	}
	for i, m := range RawMeasurements(TestedTables) {
		p := &got[i]
		if p.Measurement != m.Name || len(p.Fields) != len(m.Columns) {
			t.Errorf("%s has %d fields, %s has %d columns", p.Measurement, len(p.Fields), m.Name, len(m.Columns))
		}
		for _, c := range m.Columns {
			if value := p.field(c.Key); value == "" || c.Help == "" || c.Kind == lineprotocol.Unknown {
				t.Errorf("%s: field %s is %q: %s", m.Name, c.Key, value, c.Help)
			}
		}
	}
}

func BenchmarkPackets(b *testing.B) {
	r, rows, points := NewRaw(metric.Groups()), packets(100_000, time.Microsecond), 0
	b.ReportAllocs()
	for b.Loop() {
		r.Rows(rows, Thin{First: 10 * time.Millisecond, Most: 50_000}, func(*Point) { points++ })
	}
	b.ReportMetric(float64(points)/float64(b.N), "points/op")
}
