package matrix

import (
	"slices"
	"time"
)

// Result is what a run found: the report's "result".
type Result struct {
	// Seed is that of the order of the cells.
	Seed uint64 `json:"seed"`
	// CellDuration is how long each cell was loaded, once.
	CellDuration time.Duration `json:"cell_duration_ns"`
	// Cells are in the order of the configuration: direction, size, rate.
	Cells   []Measured `json:"cells"`
	Omitted []Omission `json:"omitted,omitempty"`
}

// Measured is a cell and what came of it.
type Measured struct {
	Cell
	Way string `json:"direction"`
	// Median joins the repetitions, which are in the order in which they were done.
	Median      Figures `json:"median"`
	Repetitions []Once  `json:"repetitions"`
}

// Once is what came of a cell once. What is not known is nil.
type Once struct {
	PlannedPackets int `json:"planned_packets"`
	// SentPackets left, those too late included.
	SentPackets int `json:"sent_packets"`
	// LatePackets left after the cell's time was over, and OmittedPackets not at all.
	LatePackets    int `json:"late_packets,omitempty"`
	OmittedPackets int `json:"omitted_packets,omitempty"`
	// ReceivedPackets arrived intact, copies not counted.
	ReceivedPackets int `json:"received_packets"`
	// DroppedPackets were dropped by the receiving host for want of buffer.
	DroppedPackets int `json:"receiver_dropped_packets,omitempty"`
	Figures
}

// Figures are those of a cell. Rates are in IP octets a second, times in seconds. What is
// not known is nil.
type Figures struct {
	Sent *float64 `json:"sent_bytes_per_second,omitempty"`
	// Received came in a time as long as was sent; what came later counts for no rate.
	Received *float64 `json:"received_bytes_per_second,omitempty"`
	// Loss is the share of the packets sent that the path lost.
	Loss *float64 `json:"loss_ratio,omitempty"`
	// Shortfall is the share of the planned packets that the sender did not send in time;
	// of several repetitions the largest, since one bad one makes the others suspect.
	Shortfall *float64 `json:"sender_shortfall_ratio,omitempty"`
	// Delay is the median of all packets but those that a host dropped, lost ones infinitely
	// late, true to Bound; nil where no delay is valid, or half is lost. Bound is the largest of
	// several repetitions.
	Delay *float64 `json:"delay_median_seconds,omitempty"`
	Bound *float64 `json:"delay_error_bound_seconds,omitempty"`
	// IPDV is the mean of the absolute differences in delay of packets sent one after the
	// other (RFC 5481 section 4.1); nil where more than half was lost: those that come through in
	// pairs then are no sample of all.
	IPDV *float64 `json:"mean_absolute_ipdv_seconds,omitempty"`
	// Spread is the largest minus the smallest receiver rate of several repetitions.
	Spread *float64 `json:"received_spread_bytes_per_second,omitempty"`
}

// summarise joins the repetitions of a cell: medians, but as Figures has it.
func summarise(repetitions []Once) Figures {
	var sent, received, loss, delay, ipdv []float64
	f := Figures{}
	for _, m := range repetitions {
		sent = appendKnown(sent, m.Sent)
		received = appendKnown(received, m.Received)
		loss = appendKnown(loss, m.Loss)
		delay = appendKnown(delay, m.Delay)
		ipdv = appendKnown(ipdv, m.IPDV)
		f.Bound = larger(f.Bound, m.Bound)
		f.Shortfall = larger(f.Shortfall, m.Shortfall)
	}
	if len(received) > 1 {
		spread := slices.Max(received) - slices.Min(received)
		f.Spread = &spread
	}
	f.Sent, f.Received, f.Loss = middle(sent), middle(received), middle(loss)
	f.Delay, f.IPDV = middle(delay), middle(ipdv)
	return f
}

func appendKnown(values []float64, v *float64) []float64 {
	if v == nil {
		return values
	}
	return append(values, *v)
}

func larger(a, b *float64) *float64 {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

// middle is the median: of an even number of values, the mean of the two in the middle.
func middle(values []float64) *float64 {
	if len(values) == 0 {
		return nil
	}
	slices.Sort(values)
	n := len(values)
	m := (values[(n-1)/2] + values[n/2]) / 2
	return &m
}
