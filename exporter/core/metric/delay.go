package metric

import (
	"oneway.example/exporter/core/bound"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/core/unit"
)

// Delay.
var (
	Delay = Family(Desc{
		Name: "oneway_delay_seconds", Kind: Histogram, Slim: true, Labels: perDirection, Buckets: delayBuckets(), Source: "RFC 7679 section 3",
		Help: "One-way delay of received packets whose reply arrived, in seconds, between kernel timestamps, the first one below the queue of the sending interface; only those with trusted clocks. The forward delay of a packet whose reply was lost is not known: such packets are received (oneway_packets_received_total) and not counted here. A packet whose delay exceeds the waiting time (loss_timeout) is lost and is not counted here.",
	})
	DelayMin = Family(Desc{
		Name: "oneway_delay_min_seconds", Kind: Gauge, Labels: perDirection, Source: "RFC 7679 section 5.3",
		Help:   "Smallest known one-way delay of the last window, in seconds; the forward delay of a packet whose reply was lost is not known.",
		Absent: "In a window without a valid delay.",
	})
	DelayMax = Family(Desc{
		Name: "oneway_delay_max_seconds", Kind: Gauge, Labels: perDirection, Source: "RFC 7679 section 3",
		Help:   "Largest known one-way delay of the last window, in seconds; the forward delay of a packet whose reply was lost is not known.",
		Absent: "In a window without a valid delay.",
	})
	DelayQuantile = Family(Desc{
		Name: "oneway_delay_quantile_seconds", Kind: Gauge, Slim: true, Labels: []string{Path, Probe, Direction, QuantileL},
		Help:   "Quantiles (0.5, 0.95, 0.99) of the one-way delay over the packets decided in the last window, in seconds: order statistics, a lost packet counts as infinite. The delay of some packets is not known: forward, of those whose reply was lost; of those without a trusted clock; and of undecided ones, which may be lost. What they can change, whatever their delays are, is within oneway_delay_error_bound_seconds.",
		Absent: "In a window without a valid delay, in one with so many lost packets that the quantile is infinite, and where packets without a known delay could change the quantile by more than the bound of the clocks and a tenth of the median.",
		Source: "RFC 7679 section 5.1",
	})
	DelayErrorBound = Family(Desc{
		Name: "oneway_delay_error_bound_seconds", Kind: Gauge, Slim: true, Labels: perDirection, Source: "RFC 7679 section 3.7",
		Help:   "Error bound of the reported smallest delay and median of the last window, in seconds: the sum of both clocks' error bounds and of the timestamps' errors. In a window with packets whose delay is not known it also includes how far they can move each reported quantile. For the smallest delay it covers packets with a known delay and without TX uncertainty. A single delay can have a wider bound: see oneway_delay_tx_uncertain_total and the origins in oneway_timestamps_total.",
		Absent: "In a window without a valid delay, and in both directions in a window with a delay that is negative by more than its bound (oneway_delay_negative_total), and for 5 minutes after it unless a clock is stepped: a queue hides such an error.",
	})
	DelayErrorComponent = Family(Desc{
		Name: "oneway_delay_error_component_seconds", Kind: Gauge, Labels: []string{Path, Probe, "component"}, Source: "RFC 7679 section 3.7; decision 4 (exporter/doc/decisions)",
		Help:   "Largest part of the error bounds of the last window's valid delays of both directions, in seconds, by component: local_clock and remote_clock, each clock's error bound (0 if both ends read one clock), and timestamps, the errors of both timestamps. The sum is not below oneway_delay_error_bound_seconds, unless that includes packets without a known delay.",
		Absent: "In a window without a valid delay.",
	})
	DelayTXUncertainty = Family(Desc{
		Name: "oneway_delay_tx_uncertain_total", Kind: Counter, Labels: perDirection, Source: "decision 4 (exporter/doc/decisions)",
		Help:   "Delays of packets that may have left the sending host more than " + unit.Duration(bound.KernelError) + " after their TX timestamp (for example because a virtual machine was paused); such a delay may be too large by that time.",
		Absent: "Until the first.",
	})
	TimestampErrorBound = Family(Desc{
		Name: "oneway_timestamp_error_bound_seconds", Kind: Gauge, Labels: []string{Path, Probe, "source"},
		Help:   "Error of a receive timestamp of this host's kernel in the error bound of a delay, in seconds. source is calibration (measured on the path's interface) or assumed (" + unit.Duration(bound.KernelError) + " plus the interrupt moderation that the driver reports as rx-usecs; not measured).",
		Source: "decision 4 (exporter/doc/decisions); RFC 7679 section 3.7.3; ethtool(8)",
	})
	DelayLowConfidence = Family(Desc{
		Name: "oneway_delay_low_confidence_total", Kind: Counter, Labels: perDirection, Source: "RFC 7679 section 3.7",
		Help:   "Valid delays that are smaller than their own error bound, so that even their sign is not known. On a short path with a good clock these are all delays; this is no fault. They are included in all distributions.",
		Absent: "Until the first.",
	})
	DelayInvalid = Family(Desc{
		Name: "oneway_delay_invalid_total", Kind: Counter, Labels: []string{Path, Probe, Direction, ReasonL},
		Help:   "Delays that were measured but not reported because they have no valid error bound, by reason: a clock is not trusted or was stepped, a timestamp is missing or wrong, or the bound is above max_bound, above one hour or below zero (bound_too_large).",
		Absent: "Until the first of that reason.",
		Source: "design, invariant 2",
		Values: Values{
			ReasonL: sample.Values(sample.Invalid()...),
		},
	})
	DelayNegative = Family(Desc{
		Name: "oneway_delay_negative_total", Kind: Counter, Labels: perDirection, Source: "RFC 7679 section 3.7.1",
		Help: "One-way delays between trusted clocks that are negative by more than their error bound, which proves a clock fault. They are in all distributions. A delay that is negative within its bound is valid.",
	})
	DelayVariation = Family(Desc{
		Name: "oneway_delay_variation_seconds", Kind: Histogram, Labels: perDirection, Buckets: variationBuckets(),
		Help:   "PDV: delay minus the smallest delay of the window, in seconds; a constant clock offset cancels, a change of it in the window does not (100 ppm: 2 ms in 20 s). It is off by at most twice the sum of oneway_delay_error_component_seconds while the delays of the window are valid, also while a clock is slewed; without a trusted clock, or with one that is proven wrong (oneway_delay_negative_total), it has no bound. Packets whose delay is not known, since their reply was lost, are left out, so a quantile of it may be wrong where the oneway_delay_quantile_seconds of the same rank is absent. With a Poisson schedule a window ends early after 65,536 packets.",
		Source: "RFC 5481 section 4.2",
	})
	IPDV = Family(Desc{
		Name: "oneway_ipdv_seconds", Kind: Histogram, NativeOnly: true, Labels: perDirection,
		Help:   "IPDV: delay minus the delay of the packet with the previous sequence number, signed, in seconds; undefined if either packet or its reply was lost, so a quantile of it may be wrong where the oneway_delay_quantile_seconds of the same rank is absent. It has native buckets only and is not exported to scrapes that accept none; use oneway_jitter_seconds there.",
		Source: "RFC 3393 section 2; RFC 5481 section 4.1",
	})
	Jitter = Family(Desc{
		Name: "oneway_jitter_seconds", Kind: Gauge, Labels: perDirection, Source: "RFC 3550 section 6.4.1",
		Help:   "RTP interarrival jitter, a running mean with gain 1/16, in seconds, of the packets whose reply arrived. Forward it is in the order of the replies: reordering in reverse raises it where the forward delay changes slowly.",
		Absent: "Before the second packet.",
	})
	RoundTripTime = Family(Desc{
		Name: "oneway_round_trip_time_seconds", Kind: Histogram, Labels: perProbe, Buckets: delayBuckets(),
		Help:   "(T4-T1)-(T3-T2) in seconds: clock offsets and the time in the reflector cancel. Round trips with a clock step between their timestamps are left out.",
		Source: "RFC 8762 section 4; RFC 2681",
	})
	RoundTripTimeMin = Family(Desc{
		Name: "oneway_round_trip_time_min_seconds", Kind: Gauge, Slim: true, Labels: perProbe, Source: "RFC 2681 section 4.3",
		Help:   "Smallest round-trip time of the last window, in seconds.",
		Absent: "In a window without a reply.",
	})
	RoundTripTimeMax = Family(Desc{
		Name: "oneway_round_trip_time_max_seconds", Kind: Gauge, Labels: perProbe, Source: "RFC 2681",
		Help:   "Largest round-trip time of the last window, in seconds.",
		Absent: "In a window without a reply.",
	})
	RoundTripTimeQuantile = Family(Desc{
		Name: "oneway_round_trip_time_quantile_seconds", Kind: Gauge, Labels: []string{Path, Probe, QuantileL},
		Help:   "Quantiles (0.5, 0.95, 0.99) of the round-trip time over the packets decided in the last window, in seconds: order statistics, a packet without a reply counts as infinite.",
		Absent: "In a window without a reply, in one with so many packets without a reply that the quantile is infinite, and where replies without a round-trip time (oneway_round_trips_invalid_total) could change the quantile by more than a tenth of the median.",
		Source: "RFC 2681 section 4.1",
	})
	HostQueue = Family(Desc{
		Name: "oneway_host_queue_seconds", Kind: Gauge, Labels: []string{Path, Probe, QuantileL},
		Help:   "Quantiles (0.5, 0.95, 0.99) of the time from user space to the kernel's transmit timestamp of the test packets of the last window, in seconds: the wait in a queue of this host's own interface, and the system call. It is in no delay of the path and in no round trip; ping has it. A packet without that timestamp within 2 s counts as infinite.",
		Absent: "In a window without such a timestamp, and in one with so many packets without it that the quantile is infinite.",
		Source: "RFC 7679 section 3.7.2; Linux SO_TIMESTAMPING, SCM_TSTAMP_SND",
	})
	Residence = Family(Desc{
		Name: "oneway_reflector_residence_seconds", Kind: Histogram, NativeOnly: true, Labels: perProbe,
		Help:   "T3-T2: time spent in the reflector, in seconds, on the reflector's clock. It has native buckets only, and is not shown to scrapes that take none.",
		Source: "RFC 8762 section 4",
	})
)

// delayGroup has the families of TitleDelay.
func delayGroup() Group {
	return Group{
		Title: TitleDelay,
		Descs: []*Desc{
			DelayErrorBound, DelayErrorComponent, DelayInvalid, DelayLowConfidence, DelayMax, DelayMin, DelayNegative,
			DelayQuantile, Delay, DelayTXUncertainty, DelayVariation, HostQueue, IPDV, Jitter, Residence, RoundTripTimeMax,
			RoundTripTimeMin, RoundTripTimeQuantile, RoundTripTime, TimestampErrorBound,
		},
		Measurements: []Measurement{
			{Name: "oneway_delay", Labels: perDirection},
			{Name: "oneway_delay_reason", Labels: []string{Path, Probe, Direction, ReasonL}},
			{Name: "oneway_delay_round_trip", Labels: perProbe},
			{Name: "oneway_delay_component", Labels: []string{Path, Probe, "component"}},
			{Name: "oneway_delay_timestamp", Labels: []string{Path, Probe, "source"}},
		},
	}
}
