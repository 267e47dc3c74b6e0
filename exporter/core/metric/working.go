package metric

// LoadedL is the label with the directions of the load.
const LoadedL = "loaded"

// Working delay: test packets of the light kind while a load test fills the link.
var (
	loads = Values{LoadedL: {"none: before the load", "forward", "reverse", "both"}}

	perLoad         = []string{Path, Probe, Direction, LoadedL}
	perLoadQuantile = []string{Path, Probe, Direction, LoadedL, QuantileL}

	WorkingDelay = Family(Desc{
		Name: "oneway_working_delay_seconds", Kind: Gauge, Labels: perLoadQuantile, Values: loads,
		Help:   "Quantile (0.5, 0.95) of the one-way delay of those light test packets of the last run that arrived within the loss timeout (drain_timeout, at most a minute), in seconds, while traffic loaded the directions of label loaded. Of the parts of a run in which its direction was loaded, alone or with the other one, only the one with the most packets has a value. Lost packets are in oneway_working_loss_ratio only. The delay of some that arrived is not known: forward, of those whose reply was lost or is undecided; and of those without a trusted clock.",
		Absent: "Before the first completed run, with working_delay_interval 0, beside a train, without a reply of the load server's reflector, where fewer than 10 packets had a valid delay, and where packets without a known delay could change the quantile by more than the bound of the clocks and a tenth of the median.",
		Source: "RFC 7679 section 5.1; RFC 9318 section 4.2.4 (working latency)",
	})
	WorkingDelayBound = Family(Desc{
		Name: "oneway_working_delay_error_bound_seconds", Kind: Gauge, Labels: perLoad, Values: loads,
		Help:   "Largest error bound of the delays of oneway_working_delay_seconds, in seconds. It includes how far packets without a known delay can move its quantiles.",
		Absent: "Where oneway_working_delay_seconds is absent.",
		Source: "RFC 7679 section 3.7; design, invariant 1",
	})
	WorkingVariation = Family(Desc{
		Name: "oneway_working_delay_variation_seconds", Kind: Gauge, Labels: perLoadQuantile, Values: loads,
		Help:   "Quantile (0.5, 0.95) of the packet delay variation, delay less the least delay of the same part of the run, in seconds.",
		Absent: "Where oneway_working_delay_seconds is absent.",
		Source: "RFC 5481 section 4.2",
	})
	WorkingLoss = Family(Desc{
		Name: "oneway_working_loss_ratio", Kind: Gauge, Labels: perLoad, Values: loads,
		Help:   "Share of the light test packets of the last run that this direction lost, or delayed by more than the loss timeout (drain_timeout, at most a minute), 0..1, while traffic loaded the directions of label loaded.",
		Absent: "As oneway_working_delay_seconds, but where fewer than 10 packets were decided, or some were not: of those after the last reply nobody knows which direction lost them.",
		Source: "RFC 7680 section 4.1",
	})
	WorkingR = Family(Desc{
		Name: "oneway_working_r_factor", Kind: Gauge, Labels: perLoad, Values: loads,
		Help:   "Transmission rating R, 0..100, of a call with codec G.711 during the load, from the delay, variation and loss of the light test packets. With so few it is coarse: one of 20 packets that is lost or late for playout lowers it by 50, one of 100 by 18.",
		Absent: "Where the median of oneway_working_delay_seconds or oneway_working_loss_ratio is absent, and where packets without a known delay could change it by more than 10.",
		Source: "ITU-T G.107 (06/2015) clause 7",
	})
	WorkingRStep = Family(Desc{
		Name: "oneway_working_step_r_factor", Kind: Gauge, Labels: perLoad, Values: loads,
		Help:   "Largest change of oneway_working_r_factor if one light test packet more, or one less, had been lost, or by those without a known delay: how coarse R of so few packets is.",
		Absent: "Where oneway_working_r_factor is absent.",
		Source: "ITU-T G.107 (06/2015) clause 7.5; design, invariant 1",
	})
	WorkingRTT = Family(Desc{
		Name: "oneway_working_round_trip_time_seconds", Kind: Gauge, Labels: []string{Path, Probe, LoadedL, QuantileL}, Values: loads,
		Help:   "Quantile (0.5, 0.95) of the round-trip time of those light test packets of the last run whose reply arrived within the loss timeout, the reflector's time left out, in seconds; it needs no synchronized clock.",
		Absent: "As oneway_working_delay_seconds, but where fewer than 10 replies arrived; it needs no synchronized clocks.",
		Source: "RFC 2681 section 2; RFC 9318 section 4.2.4",
	})
	WorkingRoundTrips = Family(Desc{
		Name: "oneway_working_round_trips_per_minute", Kind: Gauge, Labels: []string{Path, Probe, LoadedL}, Values: loads,
		Help:   "60 divided by the median working round-trip time in seconds: the round trips one after another that a minute has. It is of packets during the load, not the RPM of an HTTP transfer.",
		Absent: "Where oneway_working_round_trip_time_seconds is absent.",
		Source: "design; draft-ietf-ippm-responsiveness has another definition",
	})
)

// workingGroup has the families of TitleWorking.
func workingGroup() Group {
	return Group{
		Title: TitleWorking, Experimental: true,
		Descs: []*Desc{
			WorkingDelayBound, WorkingDelay, WorkingVariation, WorkingLoss, WorkingR, WorkingRTT, WorkingRoundTrips,
			WorkingRStep,
		},
		Measurements: []Measurement{
			{Name: "oneway_working", Labels: perLoad},
			{Name: "oneway_working_round_trip", Labels: []string{Path, Probe, LoadedL}},
		},
	}
}
