package matrix

import (
	"slices"
	"time"

	"oneway.example/exporter/instant"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/stream"
)

// packet is one packet that was tried, in the order of sending.
type packet struct {
	// sent is zero for one that the sender's kernel refused: it is no loss of the path.
	sent instant.Time
	// arrived is zero for one that did not arrive intact.
	arrived instant.Time
	// delay is the one-way delay with its bound; not OK while the clocks are not trusted.
	delay sample.Delay
}

// stepped tells whether a clock was set while the packet was under way, or may have been.
func (p *packet) stepped() bool {
	return p.delay.Reason == sample.NearStepped || p.delay.Reason == sample.FarStepped
}

// evaluate turns the packets of a cell into its figures. planned is the segment as it was
// to be sent; dropped is what the receiver's socket dropped: it looks like loss and is the
// receiver's fault, and is taken off.
func evaluate(packets []packet, ipBytes int, planned stream.Segment, dropped uint64) Once {
	m := Once{PlannedPackets: planned.Packets()}
	window := time.Duration(planned.Bursts) * planned.Interval
	first, last := sendingTimes(packets)
	for _, p := range packets {
		if p.sent == 0 {
			continue
		}
		m.SentPackets++
		if p.sent.Sub(first) > window+stream.LateAfter {
			m.LatePackets++
		}
		if p.arrived != 0 {
			m.ReceivedPackets++
		}
	}
	m.OmittedPackets = m.PlannedPackets - m.SentPackets
	m.Shortfall = new(float64(m.OmittedPackets+m.LatePackets) / float64(m.PlannedPackets))
	if m.SentPackets == 0 {
		return m
	}
	sending := max(window, last.Sub(first)+planned.Interval)
	m.Sent = new(float64(m.SentPackets*ipBytes) / sending.Seconds())
	m.Received = new(received(packets, first, sending) * float64(ipBytes) / sending.Seconds())
	missing := m.SentPackets - m.ReceivedPackets
	m.DroppedPackets = int(min(dropped, uint64(missing)))
	if of := m.SentPackets - m.DroppedPackets; of > 0 {
		m.Loss = new(float64(missing-m.DroppedPackets) / float64(of))
	}
	m.Delay, m.Bound = median(packets, missing-m.DroppedPackets)
	if 2*missing <= m.SentPackets {
		m.IPDV = meanAbsoluteIPDV(packets)
	}
	return m
}

// sendingTimes are those of the first and the last packet that left.
func sendingTimes(packets []packet) (first, last instant.Time) {
	for _, p := range packets {
		if p.sent == 0 {
			continue
		}
		if first == 0 || p.sent < first {
			first = p.sent
		}
		last = max(last, p.sent)
	}
	return first, last
}

// stragglers is the share of the packets that may come after the time of a cell without
// anything having waited for a link that was too slow; one may in any case.
const stragglers = 0.01

// received is how many packets came in a time as long as they were sent in. It is counted
// from when the first packet would have arrived with the smallest delay of all, so that
// packets lost at either end are not taken for a shorter time; and what comes after it, from
// a queue that drains or as a straggler, counts for no rate of that time. Where a queue is
// left, the packet that the end of the time cuts counts in part.
func received(packets []packet, first instant.Time, sending time.Duration) float64 {
	var begin, before, after instant.Time // the last arrival in the time, and the first after it
	n, within := 0, 0
	for _, p := range packets {
		if p.sent == 0 || p.arrived == 0 {
			continue
		}
		if would := p.arrived.Add(-p.sent.Sub(first)); n == 0 || would < begin {
			begin = would
		}
		n++
	}
	end := begin.Add(sending)
	for _, p := range packets {
		switch {
		case p.sent == 0 || p.arrived == 0:
		case p.arrived < end:
			within++
			before = max(before, p.arrived)
		case after == 0 || p.arrived < after:
			after = p.arrived
		}
	}
	if within == 0 || n-within <= max(1, int(stragglers*float64(n))) {
		return float64(within)
	}
	// Packets that wait have one space less between them than they are.
	return float64(within-1) + float64(end.Sub(before))/float64(after.Sub(before))
}

// median is the median delay of the packets, in seconds, those lost on the path infinitely
// late (RFC 7679 section 5.2), and how far it may be off: the medians of the lower and of the
// upper ends of all intervals enclose it, since a median grows with each of its values. Delays of
// trusted clocks stand for all that arrived. Nil without one, and where it is infinite.
func median(packets []packet, lost int) (value, bound *float64) {
	var delays, low, high []time.Duration
	arrived := 0
	for _, p := range packets {
		if p.sent == 0 || p.arrived == 0 {
			continue
		}
		arrived++
		if !p.delay.OK() {
			continue
		}
		delays = append(delays, p.delay.Value)
		low = append(low, p.delay.Value-p.delay.Bound)
		high = append(high, p.delay.Value+p.delay.Bound)
	}
	rank := (arrived + lost + 1) / 2
	if len(delays) == 0 || rank > arrived {
		return nil, nil
	}
	at := (rank*len(delays)+arrived-1)/arrived - 1
	slices.Sort(delays)
	slices.Sort(low)
	slices.Sort(high)
	off := max(delays[at]-low[at], high[at]-delays[at])
	return new(delays[at].Seconds()), new(off.Seconds())
}

// meanAbsoluteIPDV is the mean of the absolute values of the inter-packet delay variation
// (RFC 3393; RFC 5481 section 4.1) of packets sent one after the other that both arrived, in
// seconds. A constant offset of the clocks cancels in it; a clock that was set does not.
// Nil without two such packets.
//
// It is not the jitter of the D-ITG report (section 2.1.3), which is the standard deviation
// of the delays: that grows with a queue that slowly fills or drains, this does not.
func meanAbsoluteIPDV(packets []packet) *float64 {
	var sum time.Duration
	n := 0
	for i := 1; i < len(packets); i++ {
		a, b := packets[i-1], packets[i]
		if a.sent == 0 || b.sent == 0 || a.arrived == 0 || b.arrived == 0 || a.stepped() || b.stepped() {
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
