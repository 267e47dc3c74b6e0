package message

import (
	"fmt"
	"slices"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/estimate/orderstat"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/traffictypes/tcptraffic"
	"oneway.example/exporter/load/traffictypes/udptraffic"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/report"
	"oneway.example/exporter/probes/tcp"
)

// Result is the result of a run: the report's "results".
type Result struct {
	// MessageBytes is the payload of a message, and MessageRate the planned number per second.
	MessageBytes int            `json:"message_bytes"`
	MessageRate  float64        `json:"messages_per_second"`
	Duration     report.Seconds `json:"duration_seconds"`
	// Parts are in the order of measurement: direction, transport.
	Parts []Part `json:"parts"`
}

// Withhold removes the one-way delays: a clock is wrong.
func (r *Result) Withhold() (any bool) {
	for i := range r.Parts {
		if p := &r.Parts[i]; p.Delay != nil {
			p.Delay, p.DelayUnknown, any = nil, sample.ClocksApart.String(), true
		}
	}
	return any
}

// Part is one transport in one direction. Unknown values are nil.
type Part struct {
	Direction string    `json:"direction"`
	Transport Transport `json:"transport"`
	// Partial is why it ended before its plan; empty: it did not.
	Partial string `json:"ended_early,omitempty"`
	// Sent is the number of messages that the sender gave to the transport; absent if its record did not arrive.
	Sent *int64 `json:"sent_messages,omitempty"`
	// Offered and Throughput are the payload that the sender gave to the transport, and that arrived, per second: in the time of
	// sending, or in that from the first arrival to the last if it is longer.
	Offered    *float64 `json:"offered_bytes_per_second,omitempty"`
	Throughput *float64 `json:"throughput_bytes_per_second,omitempty"`
	// Packets are the IP packets that the sender sent without retransmissions, PerMessage those of each message. TCP's include
	// handshake and end. Both are absent if the record of the sender did not arrive.
	Packets    *int64   `json:"sent_packets,omitempty"`
	PerMessage *float64 `json:"packets_per_message,omitempty"`
	// Loss is the share of the packets of UDP that the path lost, Retransmitted that of TCP's payload that was sent again.
	Loss          *float64 `json:"loss_ratio,omitempty"`
	Retransmitted *float64 `json:"retransmitted_ratio,omitempty"`
	// RTT are the quartiles of the sender's smoothed round-trip time, TCP only.
	RTT *[3]float64 `json:"rtt_quartiles_seconds,omitempty"`
	// Delay is the one-way delay, UDP only.
	Delay *Delay `json:"delay_seconds,omitempty"`
	// DelayUnknown is why it is not known; empty: it is, or TCP.
	DelayUnknown string `json:"delay_reason,omitempty"`
	// CongestionControl is that of TCP's sender.
	CongestionControl string `json:"congestion_control,omitempty"`
}

// Delay has quantiles of delays, in seconds. A lost packet is later than all others.
type Delay struct {
	Median *float64 `json:"p50,omitempty"`
	Tail   *float64 `json:"p95,omitempty"`
	// Bound is the largest error bound of a delay.
	Bound float64 `json:"error_bound"`
}

// rate returns the mean rate of messages of which the first and the last are so far apart.
func (k *Kind) rate(messages float64, apart time.Duration) *float64 {
	if messages <= 0 {
		return nil
	}
	return new(messages * float64(k.opts.MessageBytes) / (max(0, apart) + k.opts.interval()).Seconds())
}

// ofUDP returns the values of a stream.
func (k *Kind) ofUDP(t *udptraffic.Transfer) Part {
	sent := int64(t.Counts.Sent)
	p := Part{Partial: t.Cut, Sent: &sent, Packets: &sent, Offered: k.rate(float64(sent), t.Duration())}
	if sent > 0 {
		p.PerMessage = new(1.0)
	}
	var first, last instant.Time
	for i := range t.Packets {
		if one := &t.Packets[i]; one.Copies > 0 && one.Arrived.Present() {
			if first == 0 || one.Arrived.At < first {
				first = one.Arrived.At
			}
			last = max(last, one.Arrived.At)
		}
	}
	if p.Throughput = k.rate(float64(t.Counts.Arrived), max(t.Duration(), last.Sub(first))); p.Throughput == nil && sent > 0 {
		p.Throughput = new(0.0) // all were lost
	}
	dropped := t.HostDropped()
	if of := t.Counts.Sent - dropped; of > 0 {
		p.Loss = new(float64(t.Counts.Lost-dropped) / float64(of))
	}
	p.Delay = delays(t, max(0, t.Counts.Lost-dropped))
	switch why := t.Bound().Reason; {
	case p.Delay != nil:
	case why != sample.OK:
		p.DelayUnknown = why.String()
	default:
		p.DelayUnknown = "more than half of the packets have none"
	}
	return p
}

// delays returns the quantiles of the delays of a stream of which the path lost some packets; nil: the median is not known. The
// valid delays represent all packets that arrived.
func delays(t *udptraffic.Transfer, lost int) *Delay {
	var known []time.Duration
	d := &Delay{}
	for i := range t.Packets {
		if v := t.Delay(i); v.Reason == sample.OK {
			known = append(known, v.Value)
			d.Bound = max(d.Bound, v.Bound.Seconds())
		}
	}
	slices.Sort(known)
	quantile := func(q float64) *float64 {
		v, ok := orderstat.OfArrived(known, t.Counts.Arrived, lost, q)
		if !ok {
			return nil
		}
		return new(v.Seconds())
	}
	if d.Median, d.Tail = quantile(0.5), quantile(0.95); d.Median == nil {
		return nil
	}
	return d
}

// ofTCP returns the values of a transfer of one flow.
func (k *Kind) ofTCP(t *tcptraffic.Result, ipv6 bool) Part {
	from, to := &t.Sender[0], &t.Receiver[0]
	size := float64(k.opts.MessageBytes)
	p := Part{
		Partial: t.Cut, CongestionControl: from.CongestionControl,
		Offered:    k.rate(float64(from.Payload)/size, from.Last-from.First),
		Throughput: k.rate(float64(to.Payload)/size, max(from.Last-from.First, to.Last-to.First)),
	}
	if from.Known() {
		sent, packets := from.Payload/int64(k.opts.MessageBytes), max(0, from.Final.SegmentsOut-from.Final.RetransmittedSegments)
		if p.Sent, p.Packets = &sent, &packets; sent > 0 {
			p.PerMessage = new(float64(packets) / float64(sent))
		}
	}
	d := tcp.Evaluate(t, &tcp.Options{}, ipv6)
	p.Retransmitted, p.RTT = d.Retransmitted, d.RTT
	return p
}

// Words is "UDP", "TCP with Nagle" or "TCP without Nagle".
func (t Transport) Words() string {
	return map[Transport]string{UDP: "UDP", TCP: "TCP with Nagle", TCPNoDelay: "TCP without Nagle"}[t]
}

// heldBack is the least share of the planned messages that the sender did not send which has a note, and of the offered
// rate that did not arrive which the summary shows.
const heldBack = 0.01

// conclude summarizes the result in a few lines, with notes.
func (res *Result) conclude(r *loadtest.Run) {
	planned := res.MessageRate * res.Duration.Seconds()
	for _, p := range res.Parts {
		var numbers []report.Number
		if p.Throughput != nil && p.Offered != nil {
			numbers = append(numbers, report.Number{Value: p.Throughput, Unit: unit.BytesPerSecond})
			if *p.Throughput < (1-heldBack)**p.Offered {
				numbers = append(numbers, report.Number{Label: "of", Value: p.Offered, Unit: unit.BytesPerSecond})
			}
		}
		if p.Loss != nil {
			numbers = append(numbers, report.Number{Label: "lost", Value: p.Loss, Unit: unit.Ratio})
		}
		if p.Retransmitted != nil {
			numbers = append(numbers, report.Number{Label: "retransmitted", Value: p.Retransmitted, Unit: unit.Ratio})
		}
		if len(numbers) > 0 {
			r.Summary = append(r.Summary, probe.Result{Quantity: p.Transport.Words(), Direction: p.Direction, Numbers: numbers})
		}
		share := 1.0
		if p.Sent != nil {
			share = float64(*p.Sent) / planned
		}
		switch {
		case p.Partial != "":
			r.Note(fmt.Sprintf("%s, %s: partial: %s", p.Direction, p.Transport.Words(), p.Partial))
		case share < 1-heldBack && p.Transport == UDP:
			r.Note(fmt.Sprintf("%s, UDP: the sender sent %s of the messages", p.Direction, unit.Ratio.Format(share)))
		case share < 1-heldBack:
			r.Note(fmt.Sprintf("%s, %s: the socket took %s of the messages and held back the others", p.Direction, p.Transport.Words(), unit.Ratio.Format(share)))
		}
		if p.DelayUnknown != "" {
			r.Note(fmt.Sprintf("%s: one-way delays are unknown: %s", p.Direction, sample.InWords(p.DelayUnknown)))
		}
	}
}
