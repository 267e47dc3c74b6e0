package point

import (
	"fmt"
	"math"
	"testing"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/core/sample"
)

// position is a table of the track.
func position(at instant.Time, latitude, longitude, speed float64) *record.Table {
	return &record.Table{Schema: record.Track, Begin: at, Rows: [][]int64{{0, record.Real(latitude), record.Real(longitude), record.Real(speed)}}}
}

// TestSampledBytesOfTCPArePointsAtTheirTimeOfSending: of two bytes that were sent at one time, the second point is moved.
func TestSampledBytesOfTCPArePointsAtTheirTimeOfSending(t *testing.T) {
	from := &record.Table{
		Schema: record.TCPBytes, Tags: []string{"reverse", "a", "tcp"}, ID: "r", Begin: 1000,
		Rows: [][]int64{{0, 4096, 0, 20e6, 1e6, 0}, {1, 4096, 5, 3e9, 2e6, 1}, {0, 8192, 5, 7, 8, 0}},
	}
	var got kept
	NewRaw(metric.Groups()).Table(from, got.add)
	lines(t, got, []string{
		`oneway_run_tcp_byte,direction=reverse,path=a,probe=tcp run="r",flow=0i,offset_bytes=4096i,sent_seconds=0,delay_seconds=0.02,delay_error_bound_seconds=0.001,retransmitted=0i 1000`,
		`oneway_run_tcp_byte,direction=reverse,path=a,probe=tcp run="r",flow=1i,offset_bytes=4096i,sent_seconds=5e-09,delay_seconds=3,delay_error_bound_seconds=0.002,retransmitted=1i 1005`,
		`oneway_run_tcp_byte,direction=reverse,path=a,probe=tcp run="r",flow=0i,offset_bytes=8192i,sent_seconds=5e-09,delay_seconds=7e-09,delay_error_bound_seconds=8e-09,retransmitted=0i 1006`,
	})
}

// TestNewKindOfTableNeedsASchemaOnly: numbers, times, real numbers and names; each but a name may be unknown.
func TestNewKindOfTableNeedsASchemaOnly(t *testing.T) {
	radio := &record.Schema{
		Name: "oneway_radio", Tags: []string{"path"}, ID: "modem", IDHelp: "Id of the modem.", Time: 1, TimeOnly: true,
		Columns: []record.Column{
			{Name: "cell"},
			{Name: "at_ns"},
			{Name: "attached_ns"},
			{Name: "power_dbm", Real: true},
			{Name: "state", Text: func(v int64) string { return []string{"idle", "attached"}[v] }},
		},
	}
	var got kept
	NewRaw(metric.Groups()).Table(&record.Table{Schema: radio, Tags: []string{""}, ID: "m", Begin: begin, Rows: [][]int64{
		{7, 0, 2e9, record.Real(-97.5), 1}, {8, 1e9, record.NoTime, record.Real(math.NaN()), 0},
	}}, got.add)
	lines(t, got, []string{
		`oneway_radio,path=none modem="m",cell=7i,attached_seconds=2,power_dbm=-97.5,state="attached" 1790000000000000000`,
		`oneway_radio,path=none modem="m",cell=8i,state="idle" 1790000001000000000`,
	})
	m := measurementOf(radio)
	if len(m.Columns) != 5 || m.Columns[1].Key != "attached_seconds" || m.Columns[1].Help != "Column attached_ns of the run's report (json.md), in seconds." {
		t.Errorf("%+v", m)
	}
}

func TestSamplesOfAConnection(t *testing.T) {
	var got kept
	r := NewRaw(metric.Groups())
	row := []int64{5e6, 1, 2, 3, 4, 5, 6, 7, 8, 9e6, 10e6, 11e6, 12e6, 13e6, 14, 15}
	for _, end := range []string{record.SenderEnd, record.ReceiverEnd} {
		r.Table(&record.Table{Schema: record.TCPTrace, Tags: []string{"forward", end, "3", "a", "tcp"}, ID: "run-1", Begin: begin, Rows: [][]int64{row, row}}, got.add)
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

func incidentRow(seq int64, sent instant.Time, outcome record.Outcome) []int64 {
	if outcome == record.Lost {
		return []int64{seq, int64(sent), int64(outcome), record.NoTime, record.NoTime, int64(sample.NoStamp), record.NoTime, record.NoTime, int64(sample.NoStamp), record.NoTime}
	}
	return []int64{seq, int64(sent), int64(outcome), 30e6, 1e3, int64(sample.OK), record.NoTime, record.NoTime, int64(sample.BoundTooLarge), 40e6}
}

func TestPacketsOfAReport(t *testing.T) {
	var got kept
	NewRaw(metric.Groups()).Table(&record.Table{Schema: record.IncidentPackets, Tags: []string{"a", "stamp"}, ID: "r", Rows: [][]int64{
		incidentRow(1, begin, record.Lost), incidentRow(1, begin, record.Late), incidentRow(2, begin+1e9, record.Received),
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
	r := NewRaw(metric.Groups())
	var got kept
	for report := range 360 {
		table := &record.Table{Schema: record.IncidentPackets, Tags: []string{"a", "stamp"}, ID: fmt.Sprint(report)}
		for i := range 60 {
			sent := begin + instant.Time(report+i)*10e9
			table.Rows = append(table.Rows, incidentRow(int64(report+i), sent, record.Lost), incidentRow(int64(report+i), sent, record.Late))
		}
		r.Table(table, got.add)
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
	r := NewRaw(metric.Groups())
	r.Table(position(begin, 37.5, -127.25, 3.5), got.add)
	r.Table(position(begin, 37.5, -127.25, math.NaN()), got.add)
	got.check(t)
	lines(t, got, []string{
		`oneway_track latitude_degrees=37.5,longitude_degrees=-127.25,speed_meters_per_second=3.5 1790000000000000000`,
		`oneway_track latitude_degrees=37.5,longitude_degrees=-127.25 1790000000000000001`,
	})
}
