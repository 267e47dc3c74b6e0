package udptraffic

import (
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/stream"
)

// single reports whether a segment is one packet: such packets measure the idle link and are no load.
func single(s stream.Segment) bool { return s.Packets() == 1 }

// loaded returns the time of the load by this host's clock, from its first packet to the last one that the sender sent;
// zero: there is none. In reverse direction it begins with the first arrival, which no queue of the load delays, and lasts
// as long as the load server sent.
func (t *Transfer) loaded() (from, to instant.Time) {
	var first, last, arrived instant.Time
	for i := range t.Packets {
		p := &t.Packets[i]
		if !p.Sent.Present() || single(t.Plan.Segments[p.Segment]) {
			continue
		}
		if first == 0 {
			first = p.Sent.At
		}
		last = p.Sent.At
		if arrived == 0 && p.Arrived.Present() {
			arrived = p.Arrived.At.Add(first.Sub(p.Sent.At))
		}
	}
	if t.Direction == sample.Forward {
		return first, last
	}
	if arrived == 0 {
		return 0, 0
	}
	return arrived, arrived.Add(last.Sub(first))
}
