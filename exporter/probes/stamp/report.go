package stamp

import (
	"oneway.example/exporter/sample"
)

// Report is the result of one measurement. Durations are in seconds; unknown values are absent (null), never zero.
type Report struct {
	// Peer is the remote end's address; Reflector its kind: oneway, stateful, stateless, or unknown before its
	// first reply.
	Peer      string `json:"peer"`
	Reflector string `json:"reflector"`
	// SharedClock: both ends run on one kernel and read one clock. The delays need no disciplined clock; their
	// bound is that of the timestamps.
	SharedClock bool `json:"shared_clock"`
	// Forward is from this host to the peer, Reverse from the peer to this host.
	Forward DirectionReport `json:"forward"`
	Reverse DirectionReport `json:"reverse"`
	// RoundTrip is free of clock error: (T4-T1)-(T3-T2).
	RoundTrip RoundTripReport `json:"round_trip"`
	// Skipped counts due test packets that were not sent, by reason.
	Skipped map[string]uint64 `json:"skipped_packets,omitempty"`
	// Discarded counts received packets that belong to no test packet, by reason.
	Discarded map[string]uint64 `json:"discarded_packets,omitempty"`
	// Stamps counts timestamps, by event (t1..t4) and origin; "absent" are missing ones.
	Stamps map[string]map[string]uint64 `json:"timestamps"`
	// StampError is the error limit of a receive timestamp of this host's kernel in the bounds.
	StampError ReceiveStamp `json:"receive_timestamp_error"`
	// Error is the last error reported by the network for the peer.
	Error string `json:"error,omitempty"`
}

// ReceiveStamp is the error limit of a receive timestamp, in seconds.
type ReceiveStamp struct {
	Seconds float64 `json:"error_bound_seconds"`
	// Calibrated: it was measured on the path's interface; otherwise it is assumed.
	Calibrated bool `json:"calibrated"`
}

// DirectionReport is one direction of the path. The loss counts are absent if the reflector does not allow to
// separate the directions.
type DirectionReport struct {
	Sent     *uint64 `json:"sent_packets"`
	Received *uint64 `json:"received_packets"`
	Lost     *uint64 `json:"lost_packets"`
	// HostDropped counts packets dropped by the receiving host: neither received nor lost. Sent = Received + Lost +
	// HostDropped + Outstanding.
	HostDropped *uint64 `json:"host_dropped_packets"`
	Duplicated  *uint64 `json:"duplicated_packets"`
	Reordered   *uint64 `json:"reordered_packets"`
	Late        *uint64 `json:"late_packets"`
	Corrupted   *uint64 `json:"corrupted_packets"`
	Outstanding *uint64 `json:"outstanding_packets"`
	// BurstRatio is BurstR of G.107; absent without loss.
	BurstRatio *float64 `json:"loss_burst_ratio"`
	// Delay is the one-way delay; lost packets count as infinite in its quantiles. It is absent without trusted
	// clocks: see Invalid.
	Delay *Distribution `json:"delay_seconds"`
	// ErrorBound is that of the smallest delay and of the median.
	ErrorBound *float64 `json:"delay_error_bound_seconds"`
	// IPDV is signed (RFC 3393); PDV is delay minus its minimum (RFC 5481).
	IPDV *Distribution `json:"ipdv_seconds"`
	PDV  *Distribution `json:"delay_variation_seconds"`
	// Jitter is that of RFC 3550.
	Jitter *float64 `json:"jitter_seconds"`
	// Negative counts delays below zero by more than their bound: a proven clock fault.
	Negative uint64 `json:"negative_delays"`
	// LowConfidence counts valid delays that are smaller than their own bound, so that not even the sign is known.
	// They are part of every distribution.
	LowConfidence uint64 `json:"low_confidence_delays"`
	// TXUncertain counts delays of packets that may have left the sending host more than 25 us after their
	// timestamp.
	TXUncertain uint64 `json:"tx_uncertain_delays"`
	// Invalid counts delays without a valid bound, by reason.
	Invalid map[string]uint64 `json:"invalid_delays,omitempty"`
	Voice   []VoiceReport     `json:"voice,omitempty"`
}

// Distribution is in seconds. A quantile that lost packets make infinite is absent.
type Distribution struct {
	Min *float64 `json:"min"`
	P50 *float64 `json:"p50"`
	P95 *float64 `json:"p95"`
	P99 *float64 `json:"p99"`
	Max *float64 `json:"max"`
	// ErrorBound is the bound of Min and P50. Variation has none.
	ErrorBound *float64 `json:"error_bound,omitempty"`
}

// RoundTripReport is the counts of round trips and their distribution.
type RoundTripReport struct {
	Received uint64        `json:"received_packets"`
	Lost     uint64        `json:"lost_packets"`
	Time     *Distribution `json:"round_trip_time_seconds"`
}

// VoiceReport is the rating of one codec with one kind of playout buffer.
type VoiceReport struct {
	Codec  string  `json:"codec"`
	Buffer string  `json:"buffer"`
	Model  string  `json:"model"`
	R      float64 `json:"r_factor"`
	// ErrorBound limits the error of R caused by the bound of the delay.
	ErrorBound float64 `json:"r_factor_error_bound"`
	MOS        float64 `json:"mos"`
}

// reportOf makes the report of a snapshot.
func reportOf(v snapshot) Report {
	r := Report{
		Peer: v.peer.String(), Reflector: v.kind.String(), SharedClock: v.shared,
		Forward: v.report(sample.Forward), Reverse: v.report(sample.Reverse),
		RoundTrip: RoundTripReport{Received: v.roundTripsReceived, Lost: v.roundTripsLost, Time: v.window.roundTrip.distribution()},
		Skipped:   map[string]uint64{}, Discarded: map[string]uint64{}, Stamps: map[string]map[string]uint64{},
		StampError: ReceiveStamp{v.stampError.Seconds(), v.calibrated},
	}
	for i, n := range v.skipped {
		addIfAny(r.Skipped, skipReason(i).String(), n)
	}
	for i, n := range v.discarded {
		addIfAny(r.Discarded, discardReason(i).String(), n)
	}
	for event, name := range []string{"t1", "t2", "t3", "t4"} {
		r.Stamps[name] = map[string]uint64{}
		for origin, n := range v.stamps[event] {
			addIfAny(r.Stamps[name], sample.Origin(origin).String(), n)
		}
	}
	if v.peerError != nil {
		r.Error = v.peerError.Error()
	}
	return r
}

func (v *snapshot) report(dir sample.Direction) DirectionReport {
	d, w := &v.directions[dir], &v.window.directions[dir]
	r := DirectionReport{
		Sent: d.sent.pointer(), Received: d.received.pointer(), Lost: d.lost.pointer(), HostDropped: d.dropped.pointer(),
		Duplicated: d.duplicated.pointer(), Reordered: d.reordered.pointer(), Late: d.late.pointer(),
		Corrupted: d.corrupted.pointer(), Outstanding: d.outstanding.pointer(), BurstRatio: w.burstRatio.pointer(),
		Delay: w.delay.distribution(), ErrorBound: w.delay.bound.pointer(),
		Jitter: d.jitter.pointer(), Negative: d.negative, LowConfidence: d.lowConfidence, TXUncertain: d.txUncertain, Invalid: map[string]uint64{},
	}
	if w.spreads != nil {
		r.IPDV, r.PDV = w.spreads.ipdv.distribution(), w.spreads.pdv.distribution()
	}
	for reason, n := range d.invalid {
		addIfAny(r.Invalid, sample.Reason(reason).String(), n)
	}
	for _, c := range w.ratings {
		if c.ok {
			r.Voice = append(r.Voice, VoiceReport{Codec: c.codec, Buffer: c.buffer, Model: c.model, R: c.R, ErrorBound: c.off, MOS: c.MOS})
		}
	}
	return r
}

// distribution returns nil for an empty spread.
func (s *spread) distribution() *Distribution {
	if !s.min.known {
		return nil
	}
	return &Distribution{
		Min: s.min.pointer(), P50: s.ranks[0].pointer(), P95: s.ranks[1].pointer(), P99: s.ranks[2].pointer(),
		Max: s.max.pointer(), ErrorBound: s.bound.pointer(),
	}
}

func addIfAny(m map[string]uint64, key string, n uint64) {
	if n > 0 {
		m[key] = n
	}
}
