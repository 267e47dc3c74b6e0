package record

import (
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
)

// Flow is the samples of one end of a TCP connection of a run, recorded when its transfer has ended.
type Flow struct {
	// Path and Probe are the metric labels; Run is the run's id, the name of its report.
	Path, Probe, Run string
	Direction        sample.Direction
	// Index is the number of the connection in its transfer, from 0.
	Index int
	// Sender: the samples are of the sending end, else of the receiving one.
	Sender bool
	// Begin is when this host's end began: the reference of at_ns. The remote end began at most one round trip
	// earlier or later.
	Begin instant.Time
	// Rows are shared by all readers, which must not change them.
	Rows []FlowRow
}

// FlowRow is a sample of the kernel's state of a connection, in the order of FlowColumns.
type FlowRow [16]int64

// FlowColumns names the elements of a FlowRow.
func FlowColumns() []string {
	return []string{
		"at_ns", "payload_bytes", "acked_bytes", "sent_bytes", "retransmitted_bytes", "outstanding_bytes", "not_sent_bytes",
		"cwnd_segments", "ssthresh_segments", "rtt_ns", "rttvar_ns", "busy_ns", "receive_window_limited_ns", "send_buffer_limited_ns",
		"send_buffer_bytes", "receive_buffer_bytes",
	}
}
