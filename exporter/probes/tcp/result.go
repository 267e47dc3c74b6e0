package tcp

import (
	"time"

	"oneway.example/exporter/core/record"
	"oneway.example/exporter/estimate/orderstat"
	"oneway.example/exporter/estimate/tcpstate"
	"oneway.example/exporter/load/traffictypes/tcptraffic"
	"oneway.example/exporter/net/tcpsocket"
)

// Result is the result of a run: the report's "results".
type Result struct {
	Directions []*Direction `json:"directions"`
	// TwoWay compares the directions of a two-way run.
	TwoWay *TwoWay `json:"two_way,omitempty"`
	// UDP has the small UDP packets before the first transfer; absent without stamps.
	UDP []Idle `json:"udp_before,omitempty"`
	// UDPRoundTrip is the sum of the least delays of UDP of both directions: the error of the clocks is not in it. Absent
	// where UDP did not pass.
	UDPRoundTrip *float64 `json:"udp_round_trip_seconds,omitempty"`
}

// Direction is one direction of a run. Unknown values are nil.
type Direction struct {
	Direction string `json:"direction"`
	// Partial is why sending ended before its plan; empty: it did not.
	Partial string `json:"ended_early,omitempty"`
	// Payload is the bytes that arrived, in Seconds from the first to the last; absent if the record of the receiver did not
	// arrive.
	Payload *int64  `json:"payload_bytes,omitempty"`
	Seconds float64 `json:"duration_seconds,omitempty"`
	// Throughput is the payload that arrived per second, without the omitted time; PerSecond is that of each whole
	// second, nothing omitted.
	Throughput *float64  `json:"throughput_bytes_per_second,omitempty"`
	PerSecond  []float64 `json:"throughput_by_second_bytes_per_second,omitempty"`
	// LinkRate is the configured rate of the link, in IP bytes, and LinkUsed the share of it that the throughput took,
	// headers counted.
	LinkRate *float64 `json:"link_rate_bytes_per_second,omitempty"`
	LinkUsed *float64 `json:"link_used_ratio,omitempty"`
	// Fairness compares the flows, if there are more than one.
	Fairness *Fairness `json:"fairness,omitempty"`
	// RTT are the quartiles of the sender's smoothed round-trip time, in seconds, without the omitted time; RTTMin is
	// the least of all flows.
	RTT    *[3]float64 `json:"rtt_quartiles_seconds,omitempty"`
	RTTMin *float64    `json:"rtt_min_seconds,omitempty"`
	// Retransmitted is the share of the sent payload that was sent again.
	Retransmitted *float64 `json:"retransmitted_ratio,omitempty"`
	// Timeouts are expired retransmission timeouts; kernel 6.7 or later.
	Timeouts *int64 `json:"retransmission_timeouts,omitempty"`
	// Limited has the shares of the time of all flows by what limited the sender, and Limit the one of most of the
	// time, if there is one.
	Limited tcpstate.Limits `json:"limited_ratio,omitempty"`
	Limit   tcpstate.Limit  `json:"limited_by,omitempty"`
	// Connect is the median time of a handshake, in seconds.
	Connect *float64 `json:"connect_seconds,omitempty"`
	// Marked is the share of the segments that arrived with the mark CE, if ECN was negotiated and the receiving kernel
	// counts them (6.18 or later). Echoed is the share of the delivered segments whose acknowledgments echoed a mark,
	// which is more: a receiver repeats the echo for a round trip (RFC 3168 section 6.1.3).
	Marked *float64 `json:"marked_ratio,omitempty"`
	Echoed *float64 `json:"echoed_ratio,omitempty"`
	Models *Models  `json:"models,omitempty"`
	// Delay, Acks and Split are of runs with stamps.
	Delay   *Delay `json:"delay,omitempty"`
	Acks    *Acks  `json:"ack_interarrival,omitempty"`
	Split   *Split `json:"split_tcp,omitempty"`
	RFC6349 Ratios `json:"rfc6349"`
	Flows   []Flow `json:"flows"`
}

// Flow is one connection. An end whose record did not arrive is nil.
type Flow struct {
	*SenderEnd
	*ReceiverEnd
	// Throughput is that of Fairness; nil with a single flow.
	Throughput *float64 `json:"throughput_bytes_per_second,omitempty"`
	// SenderRows and ReceiverRows are samples, with these Columns.
	Columns      []string         `json:"columns"`
	SenderRows   []tcptraffic.Row `json:"sender_rows"`
	ReceiverRows []tcptraffic.Row `json:"receiver_rows"`
}

// SenderEnd is the record of the sender of a flow.
type SenderEnd struct {
	// Sent and Retransmitted are the sender's payload bytes, retransmissions included; absent if its record did not arrive.
	Sent          int64 `json:"sent_bytes"`
	Retransmitted int64 `json:"retransmitted_bytes"`
	// RetransmittedSegments also counts SYN and FIN; absent if the record of the sender did not arrive.
	RetransmittedSegments int64 `json:"retransmitted_segments"`
	// MSS and CongestionControl are of the sender; absent if its record did not arrive.
	MSS               int64  `json:"mss_bytes"`
	CongestionControl string `json:"congestion_control"`
	// SendBuffer is the buffer at the end, Sender why the sender ended, and ECN whether it was negotiated; absent if the record of
	// the sender did not arrive.
	SendBuffer tcpsocket.Buffer `json:"send_buffer"`
	ECN        bool             `json:"ecn"`
	Sender     tcptraffic.Ended `json:"sender_ended"`
}

// ReceiverEnd is the record of the receiver of a flow.
type ReceiverEnd struct {
	// Payload is the bytes that arrived, ReceiveBuffer the buffer at the end, and Receiver why the receiver ended; absent if its record
	// did not arrive.
	Payload       int64            `json:"payload_bytes"`
	ReceiveBuffer tcpsocket.Buffer `json:"receive_buffer"`
	Receiver      tcptraffic.Ended `json:"receiver_ended"`
}

// rttRanks are the label values of Direction.RTT.
func rttRanks() [3]string { return [3]string{"0.25", "0.5", "0.75"} }

// Evaluate computes the values of a transfer; ipv6 is whether its packets are.
func Evaluate(t *tcptraffic.Result, o *Options, ipv6 bool) *Direction {
	d, payload := &Direction{Direction: t.Plan.Direction.String(), Partial: t.Cut}, int64(0)
	for i := range t.Sender {
		from, to := &t.Sender[i], &t.Receiver[i]
		f := Flow{Columns: record.TCPTrace.Names(), SenderRows: tcptraffic.Rows(from.Samples), ReceiverRows: tcptraffic.Rows(to.Samples)}
		if from.Known() {
			f.SenderEnd = &SenderEnd{
				Sent: from.Final.Sent, Retransmitted: from.Final.Retransmitted, RetransmittedSegments: from.Final.RetransmittedSegments, MSS: from.Final.MSS,
				CongestionControl: from.CongestionControl, SendBuffer: from.Buffer, ECN: from.Final.Negotiated&tcpsocket.ECN != 0, Sender: from.Ended,
			}
		}
		if to.Known() { // the records of all flows arrive together
			f.ReceiverEnd = &ReceiverEnd{Payload: to.Payload, ReceiveBuffer: to.Buffer, Receiver: to.Ended}
			payload += to.Payload
			d.Payload = &payload
		}
		d.Flows = append(d.Flows, f)
	}
	d.throughput(t, o.Omit)
	d.compare(t, d.sender(t, o.Omit), o.LinkRate.Of(t.Plan.Direction), ipv6)
	if len(t.Connect) > 0 {
		d.Connect = new(orderstat.Quantile(orderstat.Sorted(t.Connect), 0.5).Seconds())
	}
	return d
}

// leastPartial is the shortest time of a transfer that ended early with a throughput: of a shorter one it is the first burst,
// which may be faster than the link.
const leastPartial = 500 * time.Millisecond

// throughput adds the rates of arrival.
func (d *Direction) throughput(t *tcptraffic.Result, omit time.Duration) {
	planned := t.Plan.Duration
	if t.Cut != "" || t.Plan.Bytes > 0 {
		planned = 0
	}
	flows := arrivals(t)
	if r, ok := tcpstate.Rate(flows, planned, omit); ok && (t.Cut == "" || r.Seconds >= leastPartial.Seconds()) {
		d.Seconds, d.Throughput, d.PerSecond = r.Seconds, &r.Rate, r.PerSecond
	}
	if r, ok := tcpstate.Each(flows, planned, omit); ok && len(flows) > 1 {
		d.compareFlows(&r)
	}
}

// arrivals returns those of each flow; none if it received nothing.
func arrivals(t *tcptraffic.Result) [][]tcpstate.Arrival {
	all := make([][]tcpstate.Arrival, len(t.Receiver))
	for i := range t.Receiver {
		r := &t.Receiver[i]
		if r.Payload == 0 {
			continue
		}
		all[i] = append(all[i], tcpstate.Arrival{At: r.First})
		for _, s := range r.Samples {
			if s.At > r.First && s.At < r.Last {
				all[i] = append(all[i], tcpstate.Arrival{At: s.At, Payload: s.Payload})
			}
		}
		all[i] = append(all[i], tcpstate.Arrival{At: r.Last, Payload: r.Payload})
	}
	return all
}

// sender adds the values of the sending end, and returns how it sent; zero: unknown.
func (d *Direction) sender(t *tcptraffic.Result, omit time.Duration) tcpstate.Sending {
	var sent, again, timeouts int64
	var last []tcpstate.State
	ecn, counted := false, true
	states := make([][]tcpstate.State, len(t.Sender))
	for i := range t.Sender {
		f := &t.Sender[i]
		sent, again = sent+f.Final.Sent, again+f.Final.Retransmitted
		timeouts, counted = timeouts+f.Final.RTOs, counted && f.Final.Known(tcpsocket.RTOs)
		ecn = ecn || f.Final.Negotiated&tcpsocket.ECN != 0
		for _, s := range f.Samples {
			states[i] = append(states[i], tcpstate.State{
				At: s.At, RTT: s.RTT, Acked: s.Acked, Outstanding: s.Outstanding, Busy: s.Busy, RwndLimited: s.RwndLimited, SndbufLimited: s.SndbufLimited,
			})
		}
		if n := len(states[i]); n > 0 {
			last = append(last, states[i][n-1])
		}
		if least := f.Final.MinRTT.Seconds(); least > 0 && (d.RTTMin == nil || least < *d.RTTMin) {
			d.RTTMin = new(least)
		}
	}
	d.Retransmitted = known(tcpstate.Retransmitted(sent, again))
	if counted {
		d.Timeouts = &timeouts
	}
	if ecn {
		d.marks(t)
	}
	r, ok := tcpstate.Sent(states, t.Plan.Interval, omit)
	if ok && d.RTTMin != nil {
		d.RTT = &[3]float64{r.Quartiles[0].Seconds(), r.Quartiles[1].Seconds(), r.Quartiles[2].Seconds()}
	}
	if limits, ok := tcpstate.Limited(last); ok {
		d.Limited, d.Limit = limits, limits.Main()
	}
	return r
}

// marks adds the shares of congestion marks.
func (d *Direction) marks(t *tcptraffic.Result) {
	var delivered, echoed, arrived, marked int64
	counted := true
	for i := range t.Sender {
		from, to := &t.Sender[i].Final, &t.Receiver[i].Final
		delivered, echoed = delivered+from.Delivered, echoed+from.DeliveredCE
		arrived, marked = arrived+to.SegmentsIn, marked+to.ReceivedCE
		counted = counted && to.Known(tcpsocket.ReceivedCE)
	}
	if delivered > 0 {
		d.Echoed = new(float64(echoed) / float64(delivered))
	}
	if counted && arrived > 0 {
		d.Marked = new(float64(marked) / float64(arrived))
	}
}
