package sizesweep

import (
	"slices"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/estimate/orderstat"
	"oneway.example/exporter/load/stream"
	"oneway.example/exporter/load/traffictypes/udptraffic"
	"oneway.example/exporter/probe/report"
)

// Result is the result of a run: the report's "result".
type Result struct {
	// Seed is the seed of the order of the cells.
	Seed uint64 `json:"seed"`
	// CellDuration is the time of load of one measurement of a cell.
	CellDuration report.Seconds `json:"cell_duration_seconds"`
	// Cells are in the order of the configuration: direction, size, rate.
	Cells   []MeasuredCell `json:"cells"`
	Omitted []Omission     `json:"omitted,omitempty"`
}

// Withhold removes the one-way delays: a clock is wrong. Their differences stay.
func (r *Result) Withhold() (any bool) {
	for i := range r.Cells {
		c := &r.Cells[i]
		any = any || c.Median.Delay != nil
		c.Median.Delay, c.Median.Bound = nil, nil
		for j := range c.Repetitions {
			one := &c.Repetitions[j]
			one.Delay, one.Bound = nil, nil
		}
	}
	return any
}

// MeasuredCell is a cell and its results.
type MeasuredCell struct {
	Cell
	DirectionName string `json:"direction"`
	// Median joins the repetitions, which are in the order of measurement.
	Median      CellValues   `json:"median"`
	Repetitions []Repetition `json:"repetitions"`
}

// Repetition is one measurement of a cell. Unknown values are nil.
type Repetition struct {
	PlannedPackets int `json:"planned_packets"`
	// SentPackets were sent, late ones included.
	SentPackets int `json:"sent_packets"`
	// LatePackets were sent after the cell's time, OmittedPackets not at all.
	LatePackets    int `json:"late_packets,omitempty"`
	OmittedPackets int `json:"omitted_packets,omitempty"`
	// ReceivedPackets arrived intact, without copies.
	ReceivedPackets int `json:"received_packets"`
	// DroppedPackets were dropped by the receiving host because its buffer was full.
	DroppedPackets int `json:"host_dropped_packets,omitempty"`
	CellValues

	// endless: half of the packets or more are lost, so that the median delay is infinite.
	endless bool
	// noDelay is why the clocks have no error bound; sample.Unknown: they have one, or none by the configuration.
	noDelay sample.Reason
}

// CellValues are the values of a cell. Rates are in IP bytes a second, times in seconds. Unknown values are nil.
type CellValues struct {
	Sent *float64 `json:"sent_bytes_per_second,omitempty"`
	// Received is the rate within a time as long as that of sending; later packets do not count.
	Received *float64 `json:"received_bytes_per_second,omitempty"`
	// Loss is the share of the sent packets that the path lost.
	Loss *float64 `json:"loss_ratio,omitempty"`
	// Underrun is the share of the planned packets that the sender did not send in time; of several repetitions the
	// largest, since one high value makes the others doubtful.
	Underrun *float64 `json:"sender_underrun_ratio,omitempty"`
	// Delay is the median of all packets but those that a host dropped, lost ones infinitely late, with the error
	// Bound; nil if no delay is valid or half is lost. Bound is the largest of several repetitions.
	// Of these Delay is the median, in which a repetition that lost half is longer than all others; nil if that is infinite.
	Delay *float64 `json:"delay_median_seconds,omitempty"`
	Bound *float64 `json:"delay_error_bound_seconds,omitempty"`
	// IPDV is the mean of the absolute differences in delay of consecutive packets (RFC 5481 section 4.1); nil if
	// more than half was lost, in one of several repetitions: pairs that then arrive do not represent all.
	IPDV *float64 `json:"mean_absolute_ipdv_seconds,omitempty"`
	// Spread is the largest minus the smallest receiver rate of several repetitions.
	Spread *float64 `json:"received_spread_bytes_per_second,omitempty"`
}

// lossy reports whether more than half of the sent packets did not arrive.
func (m *Repetition) lossy() bool { return 2*m.ReceivedPackets < m.SentPackets }

// summarize joins the repetitions of a cell: medians, except where CellValues specifies otherwise.
func summarize(repetitions []Repetition) (f CellValues) {
	known := func(of func(*Repetition) *float64) (ascending []float64) {
		for i := range repetitions {
			if v := of(&repetitions[i]); v != nil {
				ascending = append(ascending, *v)
			}
		}
		slices.Sort(ascending)
		return ascending
	}
	received := known(func(m *Repetition) *float64 { return m.Received })
	f.Sent, f.Received = joined(known(func(m *Repetition) *float64 { return m.Sent }), orderstat.Median), joined(received, orderstat.Median)
	f.Loss = joined(known(func(m *Repetition) *float64 { return m.Loss }), orderstat.Median)
	endless := 0
	for i := range repetitions {
		if repetitions[i].endless {
			endless++
		}
	}
	if delay, ok := orderstat.MedianOfAll(known(func(m *Repetition) *float64 { return m.Delay }), endless); ok {
		f.Delay, f.Bound = &delay, joined(known(func(m *Repetition) *float64 { return m.Bound }), slices.Max)
	}
	if !slices.ContainsFunc(repetitions, func(m Repetition) bool { return m.lossy() }) {
		f.IPDV = joined(known(func(m *Repetition) *float64 { return m.IPDV }), orderstat.Median)
	}
	f.Underrun = joined(known(func(m *Repetition) *float64 { return m.Underrun }), slices.Max)
	if len(received) > 1 {
		f.Spread = new(slices.Max(received) - received[0])
	}
	return f
}

// joined applies join to all values; nil: there are none.
func joined(ascending []float64, join func([]float64) float64) *float64 {
	if len(ascending) == 0 {
		return nil
	}
	return new(join(ascending))
}

// packet is one packet that was to be sent, in sending order.
type packet struct {
	// sent is zero if the sender's kernel refused it: no loss of the path.
	sent instant.Time
	// arrived is zero if it did not arrive intact.
	arrived instant.Time
	// delay is the one-way delay with its bound; not OK if the clocks are not trusted.
	delay sample.Delay
}

// stepped reports whether a clock was, or may have been, stepped while the packet was outstanding.
func (p *packet) stepped() bool {
	return p.delay.Reason == sample.LocalStepped || p.delay.Reason == sample.RemoteStepped
}

// packets returns the packets of a transfer that count for a cell.
func packets(t *udptraffic.Transfer) []packet {
	all := make([]packet, len(t.Packets))
	for i := range t.Packets {
		p := &t.Packets[i]
		if !p.Sent.Present() {
			continue
		}
		all[i].sent, all[i].delay = p.Sent.At, t.Delay(i)
		if p.Copies > 0 {
			all[i].arrived = p.Arrived.At
		}
	}
	return all
}

// evaluate computes the values of a cell. planned is the planned segment; dropped are the drops of the receiver's
// socket, which are subtracted from the loss, since they are not the path's.
func evaluate(packets []packet, ipBytes int, planned stream.Segment, dropped uint64) Repetition {
	m := Repetition{PlannedPackets: planned.Packets()}
	window := time.Duration(planned.Bursts) * planned.Interval
	var first, last instant.Time // of a packet sent
	for _, p := range packets {
		if p.sent == 0 {
			continue
		}
		if first == 0 || p.sent < first {
			first = p.sent
		}
		last = max(last, p.sent)
		m.SentPackets++
		if p.arrived != 0 {
			m.ReceivedPackets++
		}
	}
	for _, p := range packets {
		if p.sent != 0 && p.sent.Sub(first) > window+stream.LateAfter {
			m.LatePackets++
		}
	}
	m.OmittedPackets = m.PlannedPackets - m.SentPackets
	m.Underrun = new(float64(m.OmittedPackets+m.LatePackets) / float64(m.PlannedPackets))
	if m.SentPackets == 0 {
		return m
	}
	sending := max(window, last.Sub(first)+planned.Interval)
	m.Sent = new(float64(m.SentPackets) * float64(ipBytes) / sending.Seconds())
	m.Received = new(received(packets, first, sending) * float64(ipBytes) / sending.Seconds())
	missing := m.SentPackets - m.ReceivedPackets
	m.DroppedPackets = int(min(dropped, uint64(missing)))
	if of := m.SentPackets - m.DroppedPackets; of > 0 {
		m.Loss = new(float64(missing-m.DroppedPackets) / float64(of))
	}
	lost := missing - m.DroppedPackets
	m.Delay, m.Bound = median(packets, lost)
	m.endless = orderstat.Rank(m.ReceivedPackets+lost, 0.5) > m.ReceivedPackets && lost > 0
	if !m.lossy() {
		m.IPDV = meanAbsoluteIPDV(packets)
	}
	return m
}

// lateShare is the share of the packets that may arrive after the cell's time without a queue at a slow link as
// the reason; one packet may in any case.
const lateShare = 0.01

// received is how many packets arrived within a time as long as that of sending. The time begins when the first
// packet would have arrived with the smallest delay of all, so that losses at either end do not shorten it. Packets
// after it, of a draining queue or stragglers, do not count. If a queue is left, the packet at the end of the time
// counts in part.
func received(packets []packet, first instant.Time, sending time.Duration) float64 {
	var begin instant.Time
	var arrivals []instant.Time
	for _, p := range packets {
		if p.arrived == 0 {
			continue
		}
		if would := p.arrived.Add(-p.sent.Sub(first)); len(arrivals) == 0 || would < begin {
			begin = would
		}
		arrivals = append(arrivals, p.arrived)
	}
	slices.Sort(arrivals)
	end := begin.Add(sending)
	within, _ := slices.BinarySearch(arrivals, end)
	if n := len(arrivals); within == 0 || n-within <= max(1, int(lateShare*float64(n))) {
		return float64(within)
	}
	// N queued packets have N-1 intervals.
	before, after := arrivals[within-1], arrivals[within]
	return float64(within-1) + float64(end.Sub(before))/float64(after.Sub(before))
}

// median is the median delay of the packets in seconds, lost packets being infinitely late (RFC 7679 section 5.2),
// and its error bound: the medians of the lower and of the upper ends of all intervals enclose it, since a median
// grows with each of its values. Delays of trusted clocks represent all that arrived. Nil without any, or if it is
// infinite.
func median(packets []packet, lost int) (value, bound *float64) {
	var delays []sample.Delay
	arrived := 0
	for _, p := range packets {
		if p.arrived == 0 {
			continue
		}
		arrived++
		if p.delay.OK() {
			delays = append(delays, p.delay)
		}
	}
	middle := func(side time.Duration) (time.Duration, bool) { // lower ends, values or upper ends
		ascending := make([]time.Duration, len(delays))
		for i, d := range delays {
			ascending[i] = d.Value + side*d.Bound
		}
		slices.Sort(ascending)
		return orderstat.OfArrived(ascending, arrived, lost, 0.5)
	}
	delay, ok := middle(0)
	if !ok {
		return nil, nil
	}
	low, _ := middle(-1)
	high, _ := middle(1)
	off := max(delay-low, high-delay)
	return new(delay.Seconds()), new(off.Seconds())
}

// meanAbsoluteIPDV is the mean of the absolute values of the inter-packet delay variation (RFC 3393; RFC 5481
// section 4.1) of consecutive packets that both arrived, in seconds. A constant clock offset cancels; pairs across
// a clock step are left out. Nil without two such packets.
//
// The jitter of the D-ITG report (section 2.1.3) is the standard deviation of the delays instead, which also grows
// with a queue that slowly fills or drains.
func meanAbsoluteIPDV(packets []packet) *float64 {
	var sum time.Duration
	n := 0
	for i := 1; i < len(packets); i++ {
		a, b := packets[i-1], packets[i]
		if a.arrived == 0 || b.arrived == 0 || a.stepped() || b.stepped() {
			continue
		}
		sum += (b.arrived.Sub(b.sent) - a.arrived.Sub(a.sent)).Abs()
		n++
	}
	if n == 0 {
		return nil
	}
	return new(sum.Seconds() / float64(n))
}
