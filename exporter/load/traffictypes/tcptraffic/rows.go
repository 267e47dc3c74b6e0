package tcptraffic

import (
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/core/sample"
)

// Rows returns samples as rows of a report.
func Rows(samples []Sample) []record.FlowRow {
	all := make([]record.FlowRow, len(samples))
	for i, s := range samples {
		all[i] = record.FlowRow{
			int64(s.At), s.Payload, s.Acked, s.Sent, s.Retransmitted, s.Outstanding, s.NotSent, s.Cwnd, s.Ssthresh,
			int64(s.RTT), int64(s.RTTVar), int64(s.Busy), int64(s.RwndLimited), int64(s.SndbufLimited), s.SendBuffer, s.ReceiveBuffer,
		}
	}
	return all
}

// record passes the samples of both ends of a transfer to the recorder.
func (s *Session) record(r *Result) {
	to := s.recorder.Flows()
	if r == nil || !to.HasListeners() {
		return
	}
	for i := range r.Sender {
		for _, end := range []struct {
			of     *FlowEnd
			sender bool
		}{{&r.Sender[i], true}, {&r.Receiver[i], false}} {
			to.Record(&record.Flow{
				Path: s.path, Probe: s.probe, Run: s.run, Direction: r.Plan.Direction, Index: i, Sender: end.sender,
				Begin: instant.FromTime(r.Begin), Rows: Rows(end.of.Samples),
			})
		}
	}
}

// RecordDelays passes the delays of a direction to the recorder: begin is in nanoseconds since 1970, and rows must not be changed afterwards.
func (s *Session) RecordDelays(d sample.Direction, begin int64, rows []record.DelayRow) {
	if to := s.recorder.Delays(); to.HasListeners() && len(rows) > 0 {
		to.Record(&record.Delays{Path: s.path, Probe: s.probe, Run: s.run, Direction: d, Begin: instant.Time(begin), Rows: rows})
	}
}
