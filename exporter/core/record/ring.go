package record

// Ring has the packets of a light probe in the last minutes before a report of an incident.
type Ring struct {
	// Path and Probe are the metric labels; Report is the id of the report.
	Path, Probe, Report string
	// Rows are in the order of sending; they are shared by all readers, which must not change them.
	Rows []RingRow
}

// RingRow is a packet; an undefined time is NoTime. Its elements are those of RingColumns.
type RingRow [10]int64

// Indices of a RingRow. The error bound and the reason of a delay follow it.
const (
	RingSeq       = 0
	RingSent      = 1
	RingOutcome   = 2
	RingForward   = 3
	RingReverse   = 6
	RingRoundTrip = 9
)

// RingColumns names the elements of a RingRow. Times are nanoseconds; outcome is an Outcome, a reason a sample.Reason.
func RingColumns() []string {
	return []string{
		"seq", "sent_ns", "outcome", "forward_ns", "forward_error_bound_ns", "forward_reason",
		"reverse_ns", "reverse_error_bound_ns", "reverse_reason", "round_trip_ns",
	}
}
