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
	for _, m := range all() {
		schema[m.Name] = m
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
	NewRaw().Rows(rows, Thin{}, got.add)
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
	NewRaw().Rows(rows, Thin{}, got.add)
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
	r := NewRaw()
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
	NewRaw().Rows(rows, Thin{}, got.add)
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
	r := NewRaw()
	var got kept
	for _, at := range []instant.Time{begin, begin - 3600e9, begin - 3600e9, begin} {
		r.Position(&record.Point{At: at, Speed: math.NaN()}, got.add)
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
		NewRaw().Rows(rows, Thin{First: c.first, Most: c.most}, got.add)
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

func TestSamplesOfAConnection(t *testing.T) {
	var got kept
	r := NewRaw()
	row := record.FlowRow{5e6, 1, 2, 3, 4, 5, 6, 7, 8, 9e6, 10e6, 11e6, 12e6, 13e6, 14, 15}
	for _, sender := range []bool{true, false} {
		r.Flow(&record.Flow{Path: "a", Probe: "tcp", Run: "run-1", Index: 3, Sender: sender, Begin: begin, Rows: []record.FlowRow{row, row}}, got.add)
	}
	got.check(t)
	fields := `at_seconds=0.005,payload_bytes=1i,acked_bytes=2i,sent_bytes=3i,retransmitted_bytes=4i,outstanding_bytes=5i,not_sent_bytes=6i,cwnd_segments=7i,ssthresh_segments=8i,` +
		`rtt_seconds=0.009,rttvar_seconds=0.01,busy_seconds=0.011,receive_window_limited_seconds=0.012,send_buffer_limited_seconds=0.013,send_buffer_bytes=14i,receive_buffer_bytes=15i`
	lines(t, got, []string{
		`oneway_tcp_trace,direction=forward,end=sender,flow=3,path=a,probe=tcp run="run-1",` + fields + ` 1790000000005000000`,
		`oneway_tcp_trace,direction=forward,end=sender,flow=3,path=a,probe=tcp run="run-1",` + fields + ` 1790000000005000001`,
		`oneway_tcp_trace,direction=forward,end=receiver,flow=3,path=a,probe=tcp run="run-1",` + fields + ` 1790000000005000000`,
		`oneway_tcp_trace,direction=forward,end=receiver,flow=3,path=a,probe=tcp run="run-1",` + fields + ` 1790000000005000001`,
	})
}

func ringRow(seq int64, sent instant.Time, outcome record.Outcome) record.RingRow {
	if outcome == record.Lost {
		return record.RingRow{seq, int64(sent), int64(outcome), record.NoTime, record.NoTime, int64(sample.NoStamp), record.NoTime, record.NoTime, int64(sample.NoStamp), record.NoTime}
	}
	return record.RingRow{seq, int64(sent), int64(outcome), 30e6, 1e3, int64(sample.OK), record.NoTime, record.NoTime, int64(sample.BoundTooLarge), 40e6}
}

func TestPacketsOfAReport(t *testing.T) {
	var got kept
	NewRaw().Ring(&record.Ring{Path: "a", Probe: "stamp", Report: "r", Rows: []record.RingRow{
		ringRow(1, begin, record.Lost), ringRow(1, begin, record.Late), ringRow(2, begin+1e9, record.Received),
	}}, got.add)
	got.check(t)
	lines(t, got, []string{
		`oneway_incident_packet,path=a,probe=stamp report="r",seq=1i,outcome="lost",forward_reason="no_timestamp",reverse_reason="no_timestamp" 1790000000000000000`,
		`oneway_incident_packet,path=a,probe=stamp report="r",seq=1i,outcome="late",forward_delay_seconds=0.03,forward_delay_error_bound_seconds=1e-06,forward_reason="ok",reverse_reason="bound_too_large",round_trip_time_seconds=0.04 1790000000000000001`,
		`oneway_incident_packet,path=a,probe=stamp report="r",seq=2i,outcome="received",forward_delay_seconds=0.03,forward_delay_error_bound_seconds=1e-06,forward_reason="ok",reverse_reason="bound_too_large",round_trip_time_seconds=0.04 1790000001000000000`,
	})
}

// TestReportsWithTheSamePacketsHavePointsOfTheirOwn: a report each 10 s for an hour, each of 10 minutes.
func TestReportsWithTheSamePacketsHavePointsOfTheirOwn(t *testing.T) {
	r := NewRaw()
	var got kept
	for report := range 360 {
		ring := &record.Ring{Path: "a", Probe: "stamp", Report: fmt.Sprint(report)}
		for i := range 60 {
			sent := begin + instant.Time(report+i)*10e9
			ring.Rows = append(ring.Rows, ringRow(int64(report+i), sent, record.Lost), ringRow(int64(report+i), sent, record.Late))
		}
		r.Ring(ring, got.add)
	}
	got.check(t)
	for _, p := range got {
		if moved := p.At % 10e9; moved > 1100 {
			t.Fatalf("%v is moved by %d ns", p.At, moved)
		}
	}
	if len(got) != 360*120 {
		t.Errorf("%d points", len(got))
	}
}

func TestTrackHasNoUnknownSpeed(t *testing.T) {
	var got kept
	r := NewRaw()
	r.Position(&record.Point{At: begin, Latitude: 37.5, Longitude: -127.25, Speed: 3.5}, got.add)
	r.Position(&record.Point{At: begin, Latitude: 37.5, Longitude: -127.25, Speed: math.NaN()}, got.add)
	got.check(t)
	lines(t, got, []string{
		`oneway_track latitude_degrees=37.5,longitude_degrees=-127.25,speed_meters_per_second=3.5 1790000000000000000`,
		`oneway_track latitude_degrees=37.5,longitude_degrees=-127.25 1790000000000000001`,
	})
}

func TestValuesOfARun(t *testing.T) {
	var got kept
	NewRaw().Result(&record.Result{Path: "a", Probe: "saturation", Run: "run-1", Begin: begin, Values: []record.Value{
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
		`oneway_run_test,path=a,probe=saturation run="run-1",run_duration_seconds=30 1790000000000000000`,
		`oneway_run_load,direction=forward,path=a,probe=saturation run="run-1",queue_delay_p50_seconds=0.2,saturation_delay_seconds_count=3i,saturation_delay_seconds_sum=100.31 1790000000000000000`,
		`oneway_run_load,direction=reverse,path=a,probe=saturation run="run-1",queue_size_bytes=4096 1790000000000000000`,
		`oneway_run_tcp_short,direction=forward,flow_bytes=1000,path=a,probe=saturation run="run-1",tcp_unfinished_flows_total=2i 1790000000000000000`,
	})
	if n := len(metric.LoadedDelay.Buckets); len(buckets) != n+1 || buckets[0].field("saturation_delay_seconds_bucket") != "1i" || buckets[n].field("saturation_delay_seconds_bucket") != "3i" {
		t.Errorf("buckets %v", buckets)
	}
}

func TestRawPointsDoNotAllocateEach(t *testing.T) {
	r, rows := NewRaw(), packets(10_000, time.Microsecond)
	var e Encoder
	var line []byte
	emit := func(p *Point) { line, _ = e.Append(line[:0], p) }
	if n := testing.AllocsPerRun(10, func() { r.Rows(rows, Thin{}, emit) }); n > 10 {
		t.Errorf("%v allocations for 10,000 points", n)
	}
}

// TestFieldsOfRawSamplesAreComplete: the last points of a complete sample have all columns.
func TestFieldsOfRawSamplesAreComplete(t *testing.T) {
	var got kept
	r := NewRaw()
	r.Rows(packets(1, 0), Thin{}, got.add)
	r.Flow(&record.Flow{Rows: make([]record.FlowRow, 1)}, got.add)
	r.Delays(&record.Delays{Rows: make([]record.DelayRow, 1)}, got.add)
	full := ringRow(1, begin, record.Received)
	full[record.RingReverse], full[record.RingReverse+1] = 1, 1
	r.Ring(&record.Ring{Rows: []record.RingRow{full}}, got.add)
	r.Position(&record.Point{At: begin}, got.add)
	for i, m := range RawMeasurements() {
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
	r, rows, points := NewRaw(), packets(100_000, time.Microsecond), 0
	b.ReportAllocs()
	for b.Loop() {
		r.Rows(rows, Thin{First: 10 * time.Millisecond, Most: 50_000}, func(*Point) { points++ })
	}
	b.ReportMetric(float64(points)/float64(b.N), "points/op")
}
