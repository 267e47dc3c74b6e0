package udp

import (
	"time"

	"oneway.example/exporter/bound"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/stream"
)

// Join is join.
func Join(p stream.Plan, overhead int, s *stream.Sent, r *stream.Received) ([]Packet, Counts) {
	return join(p, overhead, s, r)
}

// SetMaxRows bounds the rows of the session's report.
func (s *Session) SetMaxRows(n int) { s.recorder.most = n }

// Series is what the session has kept for the report.
func (s *Session) Series() []*Series { return s.recorder.series }

// NewTransfer is a transfer of two clocks and no packets.
func NewTransfer(local, remote Clocks, shared bool, took time.Duration, packets ...Packet) *Transfer {
	t := &Transfer{
		Local: local, Remote: remote, Shared: shared, Packets: packets, Direction: sample.Forward,
		ends: bound.Ends{Local: remoteStamps(), Remote: remoteStamps()},
		Sent: &stream.Sent{Begin: 1e18, End: 1e18 + 1}, Received: &stream.Received{},
	}
	t.Sent.End = t.Sent.Begin.Add(took)
	t.judgeClocks()
	return t
}

// Timeout is how long a carrier of that drain_timeout waits when asked for idle.
func Timeout(drain, idle time.Duration) time.Duration {
	return (&carrier{drain: drain}).idle(idle)
}
