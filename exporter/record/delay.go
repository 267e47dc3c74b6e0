package record

// DelayRow is a sampled byte of a TCP stream, in the order of DelayColumns.
type DelayRow [6]int64

// DelayColumns names the elements of a DelayRow: the number of the flow, the offset of the byte in its stream, when it was sent
// for the first time, its delay with the error bound of that, and 1 if it was sent more than once. The delay is then that of its
// recovery: from the first transmission to the arrival.
func DelayColumns() []string {
	return []string{"flow", "offset_bytes", "sent_ns", "delay_ns", "delay_error_bound_ns", "retransmitted"}
}
