package tcp

import (
	"slices"
	"time"

	"oneway.example/exporter/estimate/order"
	"oneway.example/exporter/tcpsocket"
	"oneway.example/exporter/traffic/tcp"
)

// Result is the result of a run: the report's "result".
type Result struct {
	Directions []*Direction `json:"directions"`
}

// Direction is one direction of a run. Unknown values are nil.
type Direction struct {
	Direction string `json:"direction"`
	// Partial is why sending ended before its plan; empty: it did not.
	Partial string `json:"partial,omitempty"`
	// Payload is the bytes that arrived, in Seconds from the first to the last.
	Payload int64   `json:"payload_bytes"`
	Seconds float64 `json:"seconds"`
	// Throughput is the payload that arrived per second, without the omitted time; PerSecond is that of each whole
	// second, nothing omitted.
	Throughput *float64  `json:"throughput_bytes_per_second,omitempty"`
	PerSecond  []float64 `json:"throughput_per_second,omitempty"`
	// RTT are the quartiles of the sender's smoothed round-trip time, in seconds, without the omitted time; RTTMin is
	// the least of all flows.
	RTT    *[3]float64 `json:"rtt_quartiles_seconds,omitempty"`
	RTTMin *float64    `json:"rtt_min_seconds,omitempty"`
	// Retransmitted is the share of the sent payload that was sent again.
	Retransmitted *float64 `json:"retransmitted_ratio,omitempty"`
	// Timeouts are expired retransmission timeouts; kernel 6.7 or later.
	Timeouts *int64 `json:"retransmission_timeouts,omitempty"`
	// Limited has the shares of the time of all flows by what limited the sender, and Limit the largest.
	Limited map[string]float64 `json:"limited_ratio,omitempty"`
	Limit   string             `json:"limited_by,omitempty"`
	// Connect is the median time of a handshake, in seconds.
	Connect *float64 `json:"connect_seconds,omitempty"`
	// Marked is the share of the delivered segments with the mark CE, if ECN was negotiated.
	Marked *float64 `json:"marked_ratio,omitempty"`
	Flows  []Flow   `json:"flows"`
}

// Flow is one connection.
type Flow struct {
	Payload int64 `json:"payload_bytes"`
	// Sent and Retransmitted are the sender's payload bytes, retransmissions included.
	Sent          int64 `json:"sent_bytes"`
	Retransmitted int64 `json:"retransmitted_bytes"`
	// MSS and CongestionControl are those of the sender.
	MSS               int64            `json:"mss_bytes"`
	CongestionControl string           `json:"congestion_control"`
	SendBuffer        tcpsocket.Buffer `json:"send_buffer"`
	ReceiveBuffer     tcpsocket.Buffer `json:"receive_buffer"`
	ECN               bool             `json:"ecn"`
	Sender            tcp.Ended        `json:"sender_ended"`
	Receiver          tcp.Ended        `json:"receiver_ended"`
	// SenderRows and ReceiverRows are samples, with these Columns.
	Columns      []string `json:"columns"`
	SenderRows   []row    `json:"sender_rows"`
	ReceiverRows []row    `json:"receiver_rows"`
}

// row is a sample in the order of columns.
type row [16]int64

func columns() []string {
	return []string{
		"at_ns", "payload_bytes", "acked_bytes", "sent_bytes", "retransmitted_bytes", "outstanding_bytes", "not_sent_bytes",
		"cwnd_segments", "ssthresh_segments", "rtt_ns", "rttvar_ns", "busy_ns", "receive_window_limited_ns", "send_buffer_limited_ns",
		"send_buffer_bytes", "receive_buffer_bytes",
	}
}

func rows(samples []tcp.Sample) []row {
	all := make([]row, len(samples))
	for i, s := range samples {
		all[i] = row{
			int64(s.At), s.Payload, s.Acked, s.Sent, s.Retransmitted, s.Outstanding, s.NotSent, s.Cwnd, s.Ssthresh,
			int64(s.RTT), int64(s.RTTVar), int64(s.Busy), int64(s.RwndLimited), int64(s.SndbufLimited), s.SendBuffer, s.ReceiveBuffer,
		}
	}
	return all
}

// What limits a sender: names of Direction.Limited.
const (
	limitNetwork     = "network"        // the congestion window, or the pacing
	limitReceiver    = "receive_window" // the receiver's buffer
	limitSendBuffer  = "send_buffer"
	limitApplication = "application" // nothing to send
)

// rttRanks are the label values of Direction.RTT.
func rttRanks() [3]string { return [3]string{"0.25", "0.5", "0.75"} }

// evaluate computes the values of a direction.
func evaluate(t *tcp.Result, omit time.Duration) *Direction {
	d := &Direction{Direction: t.Plan.Direction.String(), Partial: t.Cut}
	for i := range t.Sender {
		from, to := &t.Sender[i], &t.Receiver[i]
		d.Payload += to.Payload
		d.Flows = append(d.Flows, Flow{
			Payload: to.Payload, Sent: from.Final.Sent, Retransmitted: from.Final.Retransmitted, MSS: from.Final.MSS,
			CongestionControl: from.CongestionControl, SendBuffer: from.Buffer, ReceiveBuffer: to.Buffer,
			ECN: from.Final.Negotiated&tcpsocket.ECN != 0, Sender: from.Ended, Receiver: to.Ended,
			Columns: columns(), SenderRows: rows(from.Samples), ReceiverRows: rows(to.Samples),
		})
	}
	d.throughput(t, omit)
	d.roundTrips(t, omit)
	d.sender(t)
	if len(t.Connect) > 0 {
		d.Connect = new(order.Quantile(order.Sorted(t.Connect), 0.5).Seconds())
	}
	return d
}

// throughput computes the rates of arrival. The time begins with the first payload of any flow, so that the path's
// delay does not count, and takes as long as sending: after it a queue drains.
func (d *Direction) throughput(t *tcp.Result, omit time.Duration) {
	begin, end := time.Duration(0), time.Duration(0)
	for i := range t.Receiver {
		if r := &t.Receiver[i]; r.Payload > 0 {
			if begin == 0 || r.First < begin {
				begin = r.First
			}
			end = max(end, r.Last)
		}
	}
	if t.Cut == "" && t.Plan.Bytes == 0 {
		end = begin + t.Plan.Duration
	}
	if end <= begin {
		return
	}
	arrived := func(at time.Duration) (n float64) {
		for i := range t.Receiver {
			n += payloadAt(&t.Receiver[i], at)
		}
		return n
	}
	d.Seconds = (end - begin).Seconds()
	if omit >= (end-begin)/2 { // short, as it ended by its bytes
		omit = 0
	}
	d.Throughput = new((arrived(end) - arrived(begin+omit)) / (end - begin - omit).Seconds())
	for at := begin; at+time.Second <= end; at += time.Second {
		d.PerSecond = append(d.PerSecond, arrived(at+time.Second)-arrived(at))
	}
}

// payloadAt returns the payload of a receiver at a time, linear between its samples.
func payloadAt(r *tcp.FlowEnd, at time.Duration) float64 {
	if r.Payload == 0 || at <= r.First {
		return 0
	}
	if at >= r.Last {
		return float64(r.Payload)
	}
	before, after := tcp.Sample{At: r.First}, tcp.Sample{At: r.Last, Payload: r.Payload}
	for _, s := range r.Samples {
		if s.At > before.At && s.At <= at {
			before = s
		}
		if s.At > at && s.At < after.At {
			after = s
			break
		}
	}
	return float64(before.Payload) + float64(after.Payload-before.Payload)*float64(at-before.At)/float64(after.At-before.At)
}

// roundTrips computes the quartiles of the sender's RTT, from samples that are an interval apart.
func (d *Direction) roundTrips(t *tcp.Result, omit time.Duration) {
	var all []time.Duration
	for i := range t.Sender {
		f, next := &t.Sender[i], omit
		for _, s := range f.Samples {
			if s.At < next || s.RTT == 0 {
				continue
			}
			for all = append(all, s.RTT); next <= s.At; next += t.Plan.Interval {
				continue // a sample may be late
			}
		}
		if least := f.Final.MinRTT.Seconds(); least > 0 && (d.RTTMin == nil || least < *d.RTTMin) {
			d.RTTMin = new(least)
		}
	}
	if len(all) == 0 || d.RTTMin == nil {
		return
	}
	slices.Sort(all)
	d.RTT = &[3]float64{order.Quantile(all, 0.25).Seconds(), order.Quantile(all, 0.5).Seconds(), order.Quantile(all, 0.75).Seconds()}
}

// sender adds the counters of the sending end.
func (d *Direction) sender(t *tcp.Result) {
	var sent, again, delivered, marked, timeouts int64
	var busy, window, buffer, total time.Duration
	ecn, known := false, true
	for i := range t.Sender {
		f := &t.Sender[i]
		sent, again = sent+f.Final.Sent, again+f.Final.Retransmitted
		delivered, marked = delivered+f.Final.Delivered, marked+f.Final.DeliveredCE
		timeouts, known = timeouts+f.Final.RTOs, known && f.Final.Known(tcpsocket.RTOs)
		ecn = ecn || f.Final.Negotiated&tcpsocket.ECN != 0
		if n := len(f.Samples); n > 0 {
			last := &f.Samples[n-1]
			total += last.At
			busy, window, buffer = busy+min(last.Busy, last.At), window+last.RwndLimited, buffer+last.SndbufLimited
		}
	}
	if sent > 0 {
		d.Retransmitted = new(float64(again) / float64(sent))
	}
	if known {
		d.Timeouts = &timeouts
	}
	if ecn && delivered > 0 {
		d.Marked = new(float64(marked) / float64(delivered))
	}
	if total <= 0 {
		return
	}
	share := func(t time.Duration) float64 { return float64(max(0, t)) / float64(total) }
	d.Limited = map[string]float64{
		limitReceiver: share(window), limitSendBuffer: share(buffer), limitNetwork: share(busy - window - buffer), limitApplication: share(total - busy),
	}
	for _, state := range []string{limitNetwork, limitReceiver, limitSendBuffer, limitApplication} {
		if d.Limit == "" || d.Limited[state] > d.Limited[d.Limit] {
			d.Limit = state
		}
	}
}
