package record

import (
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
)

// Delays is the one-way delays of sampled bytes of the TCP streams of a direction of a run, recorded when the run has ended.
type Delays struct {
	// Path and Probe are the metric labels; Run is the run's id, the name of its report.
	Path, Probe, Run string
	Direction        sample.Direction
	// Begin is the reference of sent_ns, by the clock of the sender.
	Begin instant.Time
	// Rows are shared by all readers, which must not change them.
	Rows []DelayRow
}

// DelayRow is a sampled byte of a TCP stream, in the order of DelayColumns.
type DelayRow [6]int64

// DelayColumns names the elements of a DelayRow: the number of the flow, the offset of the byte in its stream, when it was sent
// for the first time, its delay with the error bound of that, and 1 if it was sent more than once. The delay is then that of its
// recovery: from the first transmission to the arrival.
func DelayColumns() []string {
	return []string{"flow", "offset_bytes", "sent_ns", "delay_ns", "delay_error_bound_ns", "retransmitted"}
}
