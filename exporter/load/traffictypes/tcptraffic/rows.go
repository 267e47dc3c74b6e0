package tcptraffic

import (
	"strconv"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/core/sample"
)

// Row is a sample as a row of a report, with the columns of record.TCPTrace.
type Row [16]int64

// Rows returns samples as rows.
func Rows(samples []Sample) []Row {
	all := make([]Row, len(samples))
	for i, s := range samples {
		all[i] = Row{
			int64(s.At), s.Payload, s.Acked, s.Sent, s.Retransmitted, s.Outstanding, s.NotSent, s.Cwnd, s.Ssthresh,
			int64(s.RTT), int64(s.RTTVar), int64(s.Busy), int64(s.RwndLimited), int64(s.SndbufLimited), s.SendBuffer, s.ReceiveBuffer,
		}
	}
	return all
}

// record passes the samples of both ends of a transfer to the recorder.
func (s *Session) record(r *Result) {
	to := s.recorder.Tables()
	if r == nil || !to.HasListeners() {
		return
	}
	for i := range r.Sender {
		for _, end := range []struct {
			name string
			of   *FlowEnd
		}{{record.SenderEnd, &r.Sender[i]}, {record.ReceiverEnd, &r.Receiver[i]}} {
			t := record.Table{
				Schema: record.TCPTrace, Tags: []string{r.Plan.Direction.String(), end.name, strconv.Itoa(i), s.path, s.probe}, ID: s.run,
				Begin: instant.FromTime(r.Begin),
			}
			for _, row := range Rows(end.of.Samples) {
				t.Rows = append(t.Rows, row[:])
			}
			to.Record(&t)
		}
	}
}

// RecordDelays passes the delays of a direction to the recorder: begin is in nanoseconds since 1970, and rows, with the columns of
// record.TCPBytes, must not be changed afterwards.
func (s *Session) RecordDelays(d sample.Direction, begin int64, rows [][]int64) {
	if to := s.recorder.Tables(); to.HasListeners() && len(rows) > 0 {
		to.Record(&record.Table{
			Schema: record.TCPBytes, Tags: []string{d.String(), s.path, s.probe}, ID: s.run, Begin: instant.Time(begin), Rows: rows,
		})
	}
}
