package stamp

import (
	"cmp"

	"oneway.example/exporter/core/document"
	"oneway.example/exporter/probe"
)

// Document is a Report in JSON: by quantity, then by direction, with the names of METRICS.md. The loss counts are null if the
// reflector does not allow to separate the directions.
type Document struct {
	// Peer is the remote end's address.
	Peer string `json:"peer"`
	// Reflector is its kind: oneway, stateful, stateless, or unknown before its first reply.
	Reflector string `json:"reflector"`
	// SharedClock: both ends run on one kernel and read one clock.
	SharedClock bool `json:"shared_clock"`
	probe.LightValues
	// Sent are the test packets that were sent. They are those received, lost, dropped by the receiving host, undecided or outstanding.
	Sent        counted `json:"sent_packets"`
	Received    counted `json:"received_packets"`
	Lost        counted `json:"lost_packets"`
	HostDropped counted `json:"host_dropped_packets"`
	Outstanding counted `json:"outstanding_packets"`
	// Undecided packets have an outcome that stays unknown, because the reflector restarted before it told.
	Undecided *counted `json:"undecided_packets,omitempty"`
	// LossLimits replace the loss ratio where packets without an outcome could change it.
	LossLimits *document.ByDirection[*LossLimits] `json:"loss_ratio_limits,omitempty"`
	// Duplicated, Reordered, Late and Corrupted packets are counted separately.
	Duplicated counted `json:"duplicated_packets"`
	Reordered  counted `json:"reordered_packets"`
	Late       counted `json:"late_packets"`
	Corrupted  counted `json:"corrupted_packets"`
	// RoundTrips are the packets whose reply arrived, or did not.
	RoundTrips RoundTrips `json:"round_trips"`
	// Negative counts delays below zero by more than their bound: a proven clock fault.
	Negative document.ByDirection[uint64] `json:"negative_delays"`
	// LowConfidence counts valid delays that are smaller than their own bound, so that not even the sign is known.
	LowConfidence document.ByDirection[uint64] `json:"low_confidence_delays"`
	// TXUncertain counts delays of packets that may have left the sending host later after their timestamp than its error bound allows.
	TXUncertain document.ByDirection[uint64] `json:"tx_uncertain_delays"`
	// UnknownDelays counts packets that were received or have no outcome, and whose delay is not known, because the reply was lost or
	// a clock was not trusted, or in reverse because it is the late reply to a copy of a request, which the path made; absent without such a packet. What they can change of R and of the quantiles is within the error bound, or R or the quantile is null.
	UnknownDelays document.ByDirection[uint64] `json:"unknown_delays,omitzero"`
	// Invalid counts delays without a valid bound, by reason.
	Invalid document.ByDirection[map[string]uint64] `json:"invalid_delays"`
	// Skipped counts due test packets that were not sent, by reason.
	Skipped map[string]uint64 `json:"skipped_packets,omitempty"`
	// Discarded counts received packets that belong to no test packet, by reason.
	Discarded map[string]uint64 `json:"discarded_packets,omitempty"`
	// Timestamps counts timestamps, by event (t1..t4) and origin; "absent" are missing ones.
	Timestamps map[string]map[string]uint64 `json:"timestamps"`
	// StampError is the error limit of a receive timestamp of this host's kernel in the bounds.
	StampError ReceiveStamp `json:"receive_timestamp_error"`
}

type counted = document.ByDirection[*uint64]

// RoundTrips are numbers of test packets.
type RoundTrips struct {
	// Received have a reply, Lost have none within the loss timeout.
	Received uint64 `json:"received_packets"`
	Lost     uint64 `json:"lost_packets"`
}

// Document returns the report as it is printed.
func (r *Report) Document() *Document {
	return &Document{
		Peer: r.Peer, Reflector: r.Reflector, SharedClock: r.SharedClock, LightValues: r.light(),
		Sent:          each(r, func(d *DirectionReport) *uint64 { return d.Sent }),
		Received:      each(r, func(d *DirectionReport) *uint64 { return d.Received }),
		Lost:          each(r, func(d *DirectionReport) *uint64 { return d.Lost }),
		HostDropped:   each(r, func(d *DirectionReport) *uint64 { return d.HostDropped }),
		Outstanding:   each(r, func(d *DirectionReport) *uint64 { return d.Outstanding }),
		Undecided:     ifKnown(each(r, func(d *DirectionReport) *uint64 { return d.Undecided })),
		LossLimits:    ifKnown(each(r, func(d *DirectionReport) *LossLimits { return d.LossLimits })),
		Duplicated:    each(r, func(d *DirectionReport) *uint64 { return d.Duplicated }),
		Reordered:     each(r, func(d *DirectionReport) *uint64 { return d.Reordered }),
		Late:          each(r, func(d *DirectionReport) *uint64 { return d.Late }),
		Corrupted:     each(r, func(d *DirectionReport) *uint64 { return d.Corrupted }),
		RoundTrips:    RoundTrips{r.RoundTrip.Received, r.RoundTrip.Lost},
		Negative:      each(r, func(d *DirectionReport) uint64 { return d.Negative }),
		LowConfidence: each(r, func(d *DirectionReport) uint64 { return d.LowConfidence }),
		TXUncertain:   each(r, func(d *DirectionReport) uint64 { return d.TXUncertain }),
		UnknownDelays: each(r, func(d *DirectionReport) uint64 { return d.UnknownDelays }),
		Invalid:       each(r, func(d *DirectionReport) map[string]uint64 { return d.Invalid }),
		Skipped:       r.Skipped, Discarded: r.Discarded, Timestamps: r.Stamps, StampError: r.StampError,
	}
}

func each[T any](r *Report, of func(*DirectionReport) T) document.ByDirection[T] {
	return document.ByDirection[T]{Forward: of(&r.Forward), Reverse: of(&r.Reverse)}
}

// light returns the values that are known in a direction.
func (r *Report) light() probe.LightValues {
	return probe.LightValues{
		Delay:      ifKnown(each(r, func(d *DirectionReport) *Distribution { return d.Delay })),
		Variation:  ifKnown(each(r, func(d *DirectionReport) *Distribution { return d.PDV })),
		IPDV:       ifKnown(each(r, func(d *DirectionReport) *Distribution { return d.IPDV })),
		Jitter:     ifKnown(each(r, func(d *DirectionReport) *float64 { return d.Jitter })),
		Loss:       ifKnown(each(r, func(d *DirectionReport) *float64 { return d.Loss })),
		BurstRatio: ifKnown(each(r, func(d *DirectionReport) *float64 { return d.BurstRatio })),
		Voice:      r.voice(), RoundTrip: r.RoundTrip.Time, RoundTripLoss: r.RoundTrip.Loss, HostQueue: r.HostQueue,
	}
}

func (r *Report) voice() *document.ByDirection[[]VoiceReport] {
	if len(r.Forward.Voice)+len(r.Reverse.Voice) == 0 {
		return nil
	}
	return new(each(r, func(d *DirectionReport) []VoiceReport { return d.Voice }))
}

// ifKnown returns nil if the value of neither direction is.
func ifKnown[T any](by document.ByDirection[*T]) *document.ByDirection[*T] {
	if cmp.Or(by.Forward, by.Reverse) == nil {
		return nil
	}
	return &by
}
