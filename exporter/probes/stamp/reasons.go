package stamp

// discardReason says why an arriving packet belongs to no measurement.
type discardReason uint8

const (
	discardShort discardReason = iota
	discardBadHMAC
	discardUnknownSession
	discardWrongPeer
	discardUnknownSequence
	discardBadEcho
	discardBadReceipt
	discardTruncated
	discardWrongNumber
	discardReasons
)

// String is the value of the label `reason` of oneway_packets_discarded_total.
func (r discardReason) String() string {
	return [discardReasons]string{
		"short", "bad_hmac", "unknown_session", "wrong_peer", "unknown_sequence",
		"bad_echo", "bad_receipt", "truncated", "wrong_number",
	}[r]
}

// skipReason says why a test packet that was due was not sent.
type skipReason uint8

const (
	skipLate skipReason = iota
	skipBufferFull
	skipUnreachable
	skipRefusedByHost
	skipError
	skipReasons
)

// String is the value of the label `reason` of oneway_probe_schedule_skipped_total.
func (r skipReason) String() string {
	return [skipReasons]string{"late", "send_buffer_full", "unreachable", "refused_by_host", "send_error"}[r]
}

// unsureReason says why a lost round trip has no direction.
type unsureReason uint8

const (
	unsureForeign unsureReason = iota
	unsureFarRestart
	unsureEnded
	unsureReasons
)

// String is the value of the label `reason` of oneway_direction_unknown_total.
func (r unsureReason) String() string {
	return [unsureReasons]string{"foreign_reflector", "far_end_restarted", "session_ended"}[r]
}
