package tcp

import (
	"fmt"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/core/tcpstamp"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/estimate/tcpdelay"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/traffictypes/tcptraffic"
	"oneway.example/exporter/net/tcpsocket"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/report"
)

// Split is whether a host between both ends ends the TCP connections of a direction and opens others (split TCP), with the
// evidence. Absent values are not visible.
type Split struct {
	// State is yes, no, or cannot tell.
	State string `json:"state"`
	// Reason is why it cannot tell: a value of label reason of oneway_tcp_split_undecided.
	Reason string `json:"reason,omitempty"`
	// By is what decided.
	By string `json:"decided_by,omitempty"`
	// Tested is the number of sampled bytes whose acknowledgment could have come before the byte.
	Tested int `json:"tested_samples"`
	// Early is the number of those whose acknowledgment did, beyond the error bound of both clocks.
	Early int `json:"early_samples"`
	// Lead is the largest time by which one did.
	Lead *float64 `json:"lead_seconds,omitempty"`
	// SYN is whether the SYN that arrived is that of the client: unknown, the client's or rewritten.
	SYN string `json:"syn"`
	// Client and Server are the handshake of the first flow as each end knows it.
	Client *Handshake `json:"client,omitempty"`
	Server *Handshake `json:"server,omitempty"`
	// TCPRoundTrip is the least time from the transmission of data to its acknowledgment, ReceiverRoundTrip that from
	// acknowledgments to data at the receiver, UDPRoundTrip the sum of the least one-way delays of UDP packets in both
	// directions over the idle path.
	TCPRoundTrip      *float64 `json:"tcp_round_trip_seconds,omitempty"`
	ReceiverRoundTrip *float64 `json:"receiver_round_trip_seconds,omitempty"`
	UDPRoundTrip      *float64 `json:"udp_round_trip_seconds,omitempty"`
	// AckRoundTrip is the least time from the arrival of a byte to that of its acknowledgment, both directions of the run
	// together, so that the offset of the clocks cancels: a round trip of the path, or zero or less if a proxy
	// acknowledges.
	AckRoundTrip *float64 `json:"ack_round_trip_seconds,omitempty"`

	evidence tcpdelay.Evidence
	lag      time.Duration // of tcpdelay.Result, if lagKnown
	lagKnown bool
	shared   bool         // both ends read one clock
	clocks   sample.Bound // of both
	begin    time.Time
	took     time.Duration
}

// Handshake is what an end knows of a handshake: the client what it sent, the server what arrived.
type Handshake struct {
	// MSS is the largest segment in the SYN.
	MSS *int32 `json:"mss_bytes,omitempty"`
	// TTL is that of the SYN, or its hop limit.
	TTL *uint8 `json:"ttl,omitempty"`
	// OwnScale and PeerScale are the window scales that this end announced, and that it received, in bits; absent: none.
	OwnScale  *int8 `json:"own_window_scale,omitempty"`
	PeerScale *int8 `json:"peer_window_scale,omitempty"`
	// Timestamps is whether this option was negotiated.
	Timestamps bool `json:"timestamps"`
	// SACK is whether selective acknowledgments were negotiated.
	SACK bool `json:"sack"`
	// TSval is the timestamp value of the SYN, in milliseconds, from a random offset.
	TSval *uint32 `json:"tsval,omitempty"`
	// TSvalError is how much TSval may differ from that of the SYN.
	TSvalError *uint32 `json:"tsval_error,omitempty"`
}

func newHandshake(h *tcpstamp.Handshake, client bool) *Handshake {
	if h == nil {
		return nil
	}
	one := &Handshake{Timestamps: h.Timestamps, SACK: h.SACK}
	if h.MSS > 0 {
		one.MSS = &h.MSS
	}
	if h.TTL > 0 {
		one.TTL = &h.TTL
	}
	if h.OwnScale >= 0 {
		one.OwnScale = &h.OwnScale
	}
	if h.PeerScale >= 0 {
		one.PeerScale = &h.PeerScale
	}
	if h.Timestamps && (client || h.SYN) {
		one.TSval, one.TSvalError = &h.TSval, &h.TSvalError
	}
	return one
}

// newSplit judges the connections of a transfer: by the evidence of all flows, and the handshake of the first.
func newSplit(t *tcptraffic.Result, r *tcpdelay.Result, clocks sample.Bound, udp time.Duration) *Split {
	e := tcpdelay.Evidence{Tested: r.Tested, Early: r.Early, Lead: r.Lead, Synchronized: clocks.Reason == sample.OK, UDPRoundTrip: udp}
	e.Stamped = len(r.Samples) - r.Counts[tcpdelay.NoStamp]
	if len(r.Acked) > 0 {
		e.TCPRoundTrip = r.Acked[0]
	}
	for i := range t.Receiver {
		if final := &t.Receiver[i].Final; final.Negotiated&tcpsocket.Timestamps != 0 {
			e.ReceiverRoundTrip = least(e.ReceiverRoundTrip, final.ReceiverRTT)
		}
	}
	if len(t.Sender) > 0 {
		client, server := &t.Sender[0].Handshake, &t.Receiver[0].Handshake
		if t.Plan.Direction == sample.Reverse {
			client, server = server, client
		}
		e.Client, e.Server = seen(client), seen(server)
	}
	s := &Split{evidence: e, Tested: e.Tested, Early: e.Early, SYN: e.Identity().String(), Client: newHandshake(e.Client, true), Server: newHandshake(e.Server, false)}
	s.lag, s.lagKnown, s.shared, s.clocks, s.begin, s.took = r.Lag, r.Lags >= tcpdelay.LeastLags, t.SharedClock, clocks, t.Begin, t.Plan.Duration
	if e.Early > 0 {
		s.Lead = new(e.Lead.Seconds())
	}
	for _, c := range []struct {
		to **float64
		of time.Duration
	}{{&s.TCPRoundTrip, e.TCPRoundTrip}, {&s.ReceiverRoundTrip, e.ReceiverRoundTrip}, {&s.UDPRoundTrip, e.UDPRoundTrip}} {
		if c.of > 0 {
			*c.to = new(c.of.Seconds())
		}
	}
	s.judge()
	return s
}

func (s *Split) judge() {
	v := s.evidence.Judge()
	s.State, s.Reason, s.By = v.State.String(), string(v.Reason), v.By
}

// judgeTogether judges each direction again with what is known of the other one: the least delay of its data, and whether it
// is split for certain.
func judgeTogether(all []*Direction) {
	for _, d := range all {
		for _, other := range all {
			if a, b := d.leastDelay(), other.leastDelay(); d.Direction != other.Direction && d.Split != nil && a != nil && b != nil {
				d.Split.evidence.DataRoundTrip = least(d.Split.evidence.DataRoundTrip, max(*a+*b, 0))
				d.Split.judge()
			}
			if d.Direction != other.Direction && d.Split != nil && other.Split != nil {
				d.Split.addAcks(other.Split)
				d.Split.judge()
			}
			if d != other && d.Split != nil && other.Split != nil && other.Split.State == tcpdelay.Split.String() && other.Split.Early > 0 {
				d.Split.evidence.ElsewhereSplit = true
				d.Split.judge()
			}
		}
	}
}

// drift is the largest drift between two free-running clocks, of 50 ppm each: the tolerance of ordinary oscillators.
const drift = 100e-6

// addAcks adds the round trip of acknowledgments, of this direction and the other one.
func (s *Split) addAcks(other *Split) {
	stepped := func(b sample.Bound) bool {
		return b.Reason == sample.LocalStepped || b.Reason == sample.RemoteStepped
	}
	if !s.lagKnown || !other.lagKnown || stepped(s.clocks) || stepped(other.clocks) {
		return
	}
	e := &s.evidence
	e.AckRoundTrip, e.AckKnown = s.lag+other.lag, true
	s.AckRoundTrip = new(e.AckRoundTrip.Seconds())
	if s.shared && other.shared {
		return
	}
	e.AckError = time.Duration(drift * float64(s.begin.Sub(other.begin).Abs()+max(s.took, other.took)))
	if s.clocks.Reason == sample.OK && other.clocks.Reason == sample.OK {
		e.AckError = min(e.AckError, 2*max(s.clocks.Error, other.clocks.Error))
	}
}

// leastDelay is the least one-way delay of data; nil: unknown.
func (d *Direction) leastDelay() *time.Duration {
	if d.Delay == nil || len(d.Delay.values) == 0 {
		return nil
	}
	return &d.Delay.values[0]
}

// seen is nil for a handshake that an end does not know.
func seen(h *tcpstamp.Handshake) *tcpstamp.Handshake {
	if *h == (tcpstamp.Handshake{}) {
		return nil
	}
	return h
}

// least is the smaller one of two times, of which zero is unknown.
func least(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

func (s *Split) publish(v *loadtest.Values, direction string) {
	if s.Reason != "" {
		v.Set(metric.TCPSplitUndecided, 1, direction, s.Reason)
	} else {
		v.Set(metric.TCPSplit, metric.Flag(s.State == tcpdelay.Split.String()), direction)
	}
	v.SetKnown(metric.TCPSplitLead, s.Lead, direction)
}

// wideBound is the share of a quantile from which on its interval is told instead: withheld bytes widen it to one side, so that its middle
// is no estimate.
const wideBound = 0.1

// number is a quantile with its error bound, or its interval.
func (d *Delay) number(label, rank string) report.Number {
	n := report.Number{Label: label, Unit: unit.Seconds}
	if value, bound := d.Quantiles[rank], d.QuantileBounds[rank]; bound > wideBound*value {
		n.Range = &[2]float64{value - bound, value + bound}
	} else {
		n.Value, n.Bound = &value, &bound
	}
	return n
}

// stampLines are the lines of the timestamps in the summary.
func (d *Direction) stampLines(line func(quantity string, numbers ...report.Number) probe.Result) (lines []probe.Result) {
	if one := d.Delay; one != nil {
		if _, ok := one.Quantiles["0.5"]; ok {
			numbers := []report.Number{one.number("", "0.5")}
			if _, ok := one.Quantiles["0.95"]; ok {
				numbers = append(numbers, one.number("95 %", "0.95"))
			}
			lines = append(lines, line("delay of TCP data", numbers...))
		} else if one.NoQuantiles != "" {
			unknown := line("delay of TCP data")
			unknown.Value = "unknown (" + one.NoQuantiles + ")"
			lines = append(lines, unknown)
		}
		if half, ok := one.Recovery["0.5"]; ok {
			lines = append(lines, line("recovery", report.Number{Value: &half, Unit: unit.Seconds, Text: "(median)"}))
		}
	}
	if a := d.Acks; a != nil && a.Compressed != nil {
		lines = append(lines, line("ACKs compressed", report.Number{Value: a.Compressed, Unit: unit.Ratio}, report.Number{Label: "of", Value: new(float64(a.Tested))}))
	}
	if s := d.Split; s != nil {
		verdict := line("split TCP")
		verdict.Value = s.State
		if s.Reason != "" {
			verdict.Value += " (" + s.Reason + ")"
		}
		lines = append(lines, verdict)
	}
	return lines
}

// noteStamps says in words what the timestamps found.
func (d *Direction) noteStamps(r *loadtest.Run) {
	if s := d.Split; s != nil && s.State == tcpdelay.Split.String() {
		what := s.By
		if s.Lead != nil {
			what = fmt.Sprintf("a proxy acknowledges bytes up to %s before they arrive", unit.Duration(time.Duration(*s.Lead*1e9)))
		}
		r.Note(fmt.Sprintf("%s: split TCP: %s", d.Direction, what))
	}
}
