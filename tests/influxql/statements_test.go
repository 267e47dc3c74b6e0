package influxql

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/families"
	"oneway.example/exporter/output/point"
	"oneway.example/exporter/probes/tcpsweep"
	"oneway.example/tests/expr"
)

// begin is the begin of the run and of the report.
const begin = instant.Time(1_800_000_000e9)

// Numbers of samples.
const (
	packets   = 200
	idle      = 20 // single packets before the load
	flowRows  = 40
	incidents = 120
	positions = 60
)

// wanted are the values of the variables; other runs, paths and times are in the store, too, and must not be returned.
func wanted() map[string]string {
	return map[string]string{
		"path": "office", "probe": "test", "direction": "forward", "run": "run-1", "report": "report-1",
		"load_forward": "20", "begin_forward": "0.2", "load_reverse": "20", "begin_reverse": "0.2",
	}
}

// lostAt and delayAt are the packets of every transfer and every report.
func lostAt(i int) bool { return i%10 == 7 }

func delayAt(d sample.Direction, i int) int64 { return 14e6 + int64(d)*16e6 + int64(i)*1e6 }

// fill writes the points of a run and of a report.
func fill(raw *point.Raw, path, run, report string, at instant.Time, emit func(*point.Point)) {
	for _, d := range []sample.Direction{sample.Forward, sample.Reverse} {
		rows := record.Rows{Path: path, Probe: "test", Run: run, Direction: d, Begin: at.Add(time.Second), Every: 1}
		for i := range packets {
			r := record.Row{Seq: uint32(i), Segment: uint16(min(i, idle)), IPBytes: 1410, Copies: 1, Sent: int64(i) * 10e6, Arrived: int64(i)*10e6 + delayAt(d, i)}
			if lostAt(i) {
				r.Copies, r.Arrived = 0, record.NoTime
			}
			rows.Rows = append(rows.Rows, r)
		}
		raw.Rows(&rows, point.Thin{}, emit)
		bytes := record.Table{Schema: record.TCPBytes, Tags: []string{d.String(), path, "test"}, ID: run, Begin: at.Add(time.Second)}
		for i := range packets {
			row := []int64{0, int64(i+1) << 12, int64(i) * 10e6, delayAt(d, i), 1e5, 0}
			if lostAt(i) {
				row[record.ByteAgain] = 1
			}
			bytes.Rows = append(bytes.Rows, row)
		}
		raw.Table(&bytes, emit)
		for index := range 2 {
			for _, end := range []string{record.SenderEnd, record.ReceiverEnd} {
				flow := record.Table{Schema: record.TCPTrace, Tags: []string{d.String(), end, strconv.Itoa(index), path, "test"}, ID: run, Begin: at.Add(time.Second)}
				for i := range flowRows {
					n := int64(i * (index + 1))
					ssthresh := int64(math.MaxInt32)
					if i > 20 {
						ssthresh = 44
					}
					at := int64(i) * 100e6
					row := append([]int64{at, n * 1000}, make([]int64, 14)...) // what the receiver has read; the rest is that of its own sending
					if end == record.SenderEnd {
						row = []int64{at, n * 1200, n * 900, n * 1100, n * 10, 5000, 2000, 10 + n, ssthresh, 40e6 + n*1e6, 2e6, at, n * 1e6, n * 2e6, 1 << 17, 1 << 17}
					}
					flow.Rows = append(flow.Rows, row)
				}
				raw.Table(&flow, emit)
			}
		}
	}
	ring := record.Table{Schema: record.IncidentPackets, Tags: []string{path, "test"}, ID: report}
	for i := range incidents {
		sent := int64(at) + int64(i)*100e6
		row := []int64{int64(i), sent, int64(record.Received), delayAt(sample.Forward, i), 1e5, 0, delayAt(sample.Reverse, i), 1e5, 0, delayAt(sample.Forward, i) + delayAt(sample.Reverse, i)}
		if lostAt(i) {
			row = []int64{int64(i), sent, int64(record.Lost), record.NoTime, record.NoTime, 0, record.NoTime, record.NoTime, 0, record.NoTime}
		}
		ring.Rows = append(ring.Rows, row)
	}
	raw.Table(&ring, emit)
	raw.Result(results(path, run, at), emit)
}

// results are values of every kind of sweep, in one run.
func results(path, run string, at instant.Time) *record.Result {
	r := &record.Result{Path: path, Probe: "test", Run: run, Begin: at}
	add := func(d *metric.Desc, v float64, labels ...string) {
		r.Values = append(r.Values, record.Value{Desc: d, Labels: labels, Values: []float64{v}})
	}
	for i, direction := range []string{"forward", "reverse"} {
		for q, rank := range []string{"0.05", "0.5", "0.95", "0.99"} {
			for k, d := range []*metric.Desc{metric.TCPDelayQuantile, metric.TCPHostQueue, metric.TCPRecovery, metric.TCPDelayQuantileBound} {
				add(d, float64(100*k+10*i+q), direction, rank)
			}
		}
		for k, d := range []*metric.Desc{metric.TCPDelayErrorBound, metric.TCPAckCompressed, metric.TCPSplit, metric.TCPSplitLead} {
			add(d, float64(1000+10*i+k), direction)
		}
		for k := 1; k <= 3; k++ {
			v, size := float64(1000*k+i), strconv.Itoa(400*k)
			add(metric.SweepThroughput, v, direction, size)
			add(metric.SweepLoss, 0.1*float64(k), direction, size)
			cell := []string{direction, size, "50"}
			for _, d := range []*metric.Desc{metric.SizeSweepSent, metric.SizeSweepReceived, metric.SizeSweepLoss, metric.SizeSweepDelay, metric.SizeSweepDelayBound, metric.SizeSweepIPDV} {
				add(d, v, cell...)
			}
			for q, rank := range []string{"0.05", "0.5", "0.95"} {
				add(metric.Capacity, v+float64(q), direction, size, rank)
			}
			add(metric.CapacityBound, 10, direction, size)
			add(metric.TrainDispersion, v/1e6, direction, size)
			buffers := []string{direction, size, size, "cubic"}
			for q, rank := range []string{"0.25", "0.5", "0.75"} {
				add(tcpsweep.ThroughputDesc, v+float64(q), append(buffers, rank)...)
				add(tcpsweep.RTTDesc, 0.04+float64(q)/100, append(buffers, rank)...)
			}
			add(tcpsweep.RetransmittedDesc, 0.01*float64(k), buffers...)
		}
	}
	return r
}

// fillAgent writes a track and the delays of the paths, which belong to no run.
func fillAgent(raw *point.Raw, at instant.Time, emit func(*point.Point)) {
	wide := point.NewWide(point.NewTable(families.All()))
	for i := range positions {
		now := at.Add(time.Duration(i) * time.Second)
		place := []int64{0, record.Real(37 + float64(i)/1000), record.Real(127 - float64(i)/1000), record.Real(float64(i))}
		raw.Table(&record.Table{Schema: record.Track, Begin: now, Rows: [][]int64{place}}, emit)
		if i%10 != 0 {
			continue
		}
		wide.Begin(now, emit)
		for _, path := range []string{"office", "other"} {
			for _, rank := range []string{"0.5", "0.95"} {
				wide.Add(metric.DelayQuantile, &metric.Reading{Labels: []string{path, "test", "forward", rank}, Number: float64(i) / 1000})
			}
		}
		wide.End()
	}
}

// filled is a store with the wanted run and others.
func filled(t *testing.T) *server {
	t.Helper()
	s := start(t)
	var lines []byte
	var encoder point.Encoder
	emit := func(p *point.Point) {
		tagged := *p
		tagged.Tags = withHost(p.Tags)
		var err error
		if lines, err = encoder.Append(lines, &tagged); err != nil {
			t.Fatal(err)
		}
	}
	raw := point.NewRaw(families.All())
	fill(raw, "office", "run-0", "report-0", begin.Add(-time.Minute), emit)
	fill(raw, "office", "run-1", "report-1", begin, emit)
	fill(raw, "other", "run-2", "report-2", begin, emit)
	fill(raw, "office", "run-3", "report-3", begin.Add(24*time.Hour), emit)
	fillAgent(raw, begin, emit)
	s.write(t, lines)
	return s
}

// withHost adds the tag of outputs in its place.
func withHost(tags []point.Tag) (all []point.Tag) {
	host, done := point.Tag{Key: "host", Value: "client"}, false
	for _, tag := range tags {
		if tag.Key > host.Key && !done {
			all, done = append(all, host), true
		}
		all = append(all, tag)
	}
	if !done {
		all = append(all, host)
	}
	return all
}

// returned is the result of a statement in a time range without run-3.
func returned(t *testing.T, s *server, one expr.Statement) []series {
	t.Helper()
	text, err := one.Fill(wanted(), begin.Add(-2*time.Minute).Time(), begin.Add(2*time.Minute).Time())
	if err != nil {
		t.Fatal(err)
	}
	return s.query(t, text)
}

func TestEveryStatementOfTheDashboardsReturnsTheSamplesOfItsRun(t *testing.T) {
	s := filled(t)
	all, err := expr.Statements(root)
	if err != nil {
		t.Fatal(err)
	}
	want, checked := expected(), 0
	for _, one := range all {
		got := returned(t, s, one)
		if len(got) == 0 || len(got[0].Values) == 0 {
			t.Errorf("%s returned nothing: %s", one.Source, one.Text)
			continue
		}
		if check := want[one.Source]; check != nil {
			checked++
			if fault := check(got); fault != "" {
				t.Errorf("%s: %s\n%s\n%v", one.Source, fault, one.Text, got)
			}
		}
	}
	if checked != len(want) {
		t.Errorf("%d of %d statements with known values are on the pages", checked, len(want))
	}
	if panels := len(all); checked < panels/2 {
		t.Errorf("values of %d of %d statements are known, want more", checked, panels)
	}
}

// A point without the tag host belongs to All.
func TestStatementsOfAllHostsFindPointsWithoutTheTag(t *testing.T) {
	s := start(t)
	s.write(t, []byte("oneway_track latitude_degrees=1,longitude_degrees=2,speed_meters_per_second=3 1800000000000000000\n"))
	all, err := expr.Statements(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		if strings.HasPrefix(one.Source, "raw_track.json: Track, by speed") {
			if got := returned(t, s, one); len(got) != 1 || len(got[0].Values) != 1 {
				t.Errorf("got %v, want the position", got)
			}
			return
		}
	}
	t.Error("no statement of the track")
}
