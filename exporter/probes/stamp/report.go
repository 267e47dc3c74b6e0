package stamp

import (
	"oneway.example/exporter/core/errtext"
	"oneway.example/exporter/core/lightreason"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes/stamp/ledger"
)

// Report is the result of one measurement. Durations are in seconds; unknown values are nil, never zero. Document is its
// form in JSON.
type Report struct {
	// Peer is the remote end's address; Reflector its kind: oneway, stateful, stateless, or unknown before its
	// first reply.
	Peer      string
	Reflector string
	// SharedClock: both ends run on one kernel and read one clock. The delays need no disciplined clock; their
	// bound is that of the timestamps.
	SharedClock bool
	// Forward is from this host to the peer, Reverse from the peer to this host.
	Forward DirectionReport
	Reverse DirectionReport
	// RoundTrip is free of clock error: (T4-T1)-(T3-T2).
	RoundTrip RoundTripReport
	// HostQueue is how long test packets waited in this host, see metric.HostQueue; nil: not known.
	HostQueue *Distribution
	// Undirected is why losses of the last window have no direction; empty: they have one, or nothing was lost in it.
	Undirected string
	// Skipped counts due test packets that were not sent, by reason.
	Skipped map[string]uint64
	// Discarded counts received packets that belong to no test packet, by reason.
	Discarded map[string]uint64
	// RepliesFrom is the address that the last reply came from whose source is not the peer; empty: there was none.
	RepliesFrom string
	// Stamps counts timestamps, by event (t1..t4) and origin; "absent" are missing ones.
	Stamps map[string]map[string]uint64
	// StampError is the error limit of a receive timestamp of this host's kernel in the bounds.
	StampError ReceiveStamp
	// Failure is why no reply was received; empty: one was.
	Failure lightreason.Reason
	// Error is the last error reported by the network for the peer.
	Error string
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
	Sent     *uint64
	Received *uint64
	Lost     *uint64
	// HostDropped counts packets dropped by the receiving host: neither received nor lost. Sent = Received + Lost +
	// HostDropped + Undecided + Outstanding.
	HostDropped *uint64
	// Undecided counts packets whose outcome stays unknown, because the reflector restarted before it told; nil if there are none.
	Undecided   *uint64
	Duplicated  *uint64
	Reordered   *uint64
	Late        *uint64
	Corrupted   *uint64
	Outstanding *uint64
	// Loss is the share of lost packets. BurstRatio is BurstR of G.107; nil without loss.
	Loss *float64
	// UnknownDelays counts received and undecided packets whose delay is not known.
	UnknownDelays uint64
	// LossLimits replace Loss where packets without an outcome could change it.
	LossLimits *LossLimits
	BurstRatio *float64
	// Delay is the one-way delay; lost packets count as infinite in its quantiles. It is absent without trusted
	// clocks: see Invalid.
	Delay *Distribution
	// IPDV is signed (RFC 3393); PDV is delay minus its minimum (RFC 5481).
	IPDV *Distribution
	PDV  *Distribution
	// Jitter is that of RFC 3550.
	Jitter *float64
	// Negative counts delays below zero by more than their bound: a proven clock fault.
	Negative uint64
	// LowConfidence counts valid delays that are smaller than their own bound, so that not even the sign is known.
	// They are part of every distribution.
	LowConfidence uint64
	// TXUncertain counts delays of packets that may have left the sending host more than bound.KernelError
	// after their timestamp.
	TXUncertain uint64
	// Invalid counts delays without a valid bound, by reason.
	Invalid map[string]uint64
	Voice   []VoiceReport
}

// Distribution is in seconds.
type Distribution = probe.Distribution

// LossLimits are the limits of an unknown loss ratio.
type LossLimits struct {
	// Low and High are the loss ratios if none and all of the undecided packets were lost in the direction, 0..1.
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	// Undecided are the packets that no later reply, and no count of the remote end, assigns to a direction.
	Undecided uint64 `json:"undecided_packets"`
}

// RoundTripReport is the counts of round trips and their distribution.
type RoundTripReport struct {
	Received uint64
	Lost     uint64
	Loss     *float64
	Time     *Distribution
}

// VoiceReport is the rating of one codec with one kind of playout buffer.
type VoiceReport = probe.Voice

// reportOf makes the report of a snapshot.
func reportOf(v snapshot) Report {
	r := Report{
		Peer: v.peer.String(), Reflector: v.Kind.String(), SharedClock: v.shared,
		Forward: v.report(sample.Forward), Reverse: v.report(sample.Reverse),
		RoundTrip: v.roundTrip(), HostQueue: v.window.hostQueue.distribution(), Undirected: v.undirected(),
		Skipped: map[string]uint64{}, Discarded: map[string]uint64{}, Stamps: map[string]map[string]uint64{},
		StampError: ReceiveStamp{v.stampError.Seconds(), v.calibrated},
	}
	for i, n := range v.Skipped {
		addIfAny(r.Skipped, ledger.SkipReason(i).String(), n)
	}
	for i, n := range v.Discarded {
		addIfAny(r.Discarded, ledger.DiscardReason(i).String(), n)
	}
	for event, name := range eventNames() {
		r.Stamps[name] = map[string]uint64{}
		for origin, n := range v.stamps[event] {
			addIfAny(r.Stamps[name], sample.Origin(origin).String(), n)
		}
	}
	if v.repliesFrom != nil {
		r.RepliesFrom = v.repliesFrom.String()
	}
	if v.peerError != nil {
		r.Error = errtext.Words(v.peerError)
	}
	return r
}

func (v *snapshot) report(dir sample.Direction) DirectionReport {
	d, w := &v.directions[dir], &v.window.directions[dir]
	r := DirectionReport{
		Sent: d.Sent.Pointer(), Received: d.Received.Pointer(), Lost: d.Lost.Pointer(), HostDropped: d.Dropped.Pointer(), Undecided: d.Undecided.Pointer(),
		Duplicated: d.Duplicated.Pointer(), Reordered: d.Reordered.Pointer(), Late: d.Late.Pointer(),
		Corrupted: d.Corrupted.Pointer(), Outstanding: d.Outstanding.Pointer(), Loss: w.lossRatio.Pointer(), LossLimits: w.lossLimits, UnknownDelays: w.unknown, BurstRatio: w.burstRatio.Pointer(),
		Delay: w.delay.distribution(), Jitter: d.jitter.Pointer(), Negative: d.negative, LowConfidence: d.lowConfidence, TXUncertain: d.txUncertain, Invalid: map[string]uint64{},
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

func (v *snapshot) roundTrip() RoundTripReport {
	return RoundTripReport{Received: v.RoundTripsReceived, Lost: v.RoundTripsLost, Loss: v.window.lossRatio.Pointer(), Time: v.window.roundTrip.distribution()}
}

// distribution returns nil for an empty spread, and for none.
func (s *spread) distribution() *Distribution {
	if s == nil || !s.min.Known {
		return nil
	}
	return &Distribution{
		Min: s.min.Pointer(), P50: s.ranks[0].Pointer(), P95: s.ranks[1].Pointer(), P99: s.ranks[2].Pointer(),
		Max: s.max.Pointer(), ErrorBound: s.bound.Pointer(),
	}
}

func addIfAny(m map[string]uint64, key string, n uint64) {
	if n > 0 {
		m[key] = n
	}
}
