package udptraffic

import (
	"time"

	"oneway.example/exporter/core/bound"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/stream"
	"oneway.example/exporter/probe/endclock"
)

// Join is join.
func Join(p stream.Plan, overhead int, s *stream.Sent, r *stream.Received) ([]Packet, Counts) {
	return join(p, overhead, s, r)
}

// SetMaxRows sets the limit of rows of the session's report.
func (s *Session) SetMaxRows(n int) { s.recorder.most = n }

// Series returns the session's series for the report.
func (s *Session) Series() []*Series { return s.recorder.series }

// NewTransfer returns a transfer with two clocks.
func NewTransfer(local, remote endclock.Span, shared bool, took time.Duration, packets ...Packet) *Transfer {
	t := &Transfer{
		Local: local, Remote: remote, SharedClock: shared, Packets: packets, Direction: sample.Forward,
		ends: bound.Ends{Local: endclock.RemoteStamps(), Remote: endclock.RemoteStamps()},
		Sent: &stream.Sent{Begin: 1e18, End: 1e18 + 1}, Received: &stream.Received{},
	}
	t.Sent.End = t.Sent.Begin.Add(took)
	t.bound = endclock.Bound(local, remote, shared)
	return t
}

// Timeout returns the idle timeout of a carrier with that drain_timeout.
func Timeout(drain, idle time.Duration) time.Duration {
	return (&carrier{drain: drain}).idle(idle)
}
