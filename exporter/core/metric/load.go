package metric

// capacityBuckets are rates in bytes per second, five per decade, from 10 kb/s to 10 Gb/s.
func capacityBuckets() (b []float64) {
	for decade := 10.0; decade < 1e7; decade *= 10 {
		for _, step := range []float64{125, 210, 330, 510, 810} { // whole numbers: a product of fractions has rounding noise
			b = append(b, decade*step)
		}
	}
	return append(b, 1.25e9)
}

var (
	perStep     = []string{Path, Probe, Direction, OfferedL}
	perQuantile = []string{Path, Probe, Direction, QuantileL}
	perCell     = []string{Path, Probe, Direction, PacketBytesL, PacketRateL}
	perSize     = []string{Path, Probe, Direction, PacketBytesL}
)

// Link under load. All rates count IP bytes, header included and no link layer (RFC
// 9097 section 5.3, IP-layer capacity), and all values are of the last completed run.
var (
	UDPThroughput = Family(Desc{
		Name: "oneway_udp_throughput_bytes_per_second", Kind: Gauge, Slim: true, Labels: perDirection,
		Help:   "Received IP bytes per second under constant load: the median over the seconds of the last run in which the sender did not pause, without the first and last part of the run (the whole run, if a second has few packets); without loss at most the offered rate.",
		Absent: "Before the first completed run, and in modes sweep and search.",
		Source: "RFC 9097 section 5.3; Woo 2010 figure 6.1a",
	})
	UDPRunThroughput = Family(Desc{
		Name: "oneway_udp_run_throughput_bytes_per_second", Kind: Histogram, NativeOnly: true, Fine: true, Slim: true, Labels: perDirection,
		Help:   "Values of oneway_udp_throughput_bytes_per_second, or in mode search of oneway_udp_search_maximum_bytes_per_second, one of each completed run: a run counts once, however long its gauge stands. Native buckets of 2.2 %.",
		Absent: "In a scrape that accepts no native histograms, and in mode sweep.",
		Source: "RFC 9097 section 5.3; Halepovic 2008 figure 15",
	})
	UDPRate = Family(Desc{
		Name: "oneway_udp_rate_bytes_per_second", Kind: Gauge, Labels: perQuantile,
		Help:   "Quantile (0.05, 0.5, 0.95) of the IP bytes received per second in the last run, from the first loss to the last: the rate of the filled link and its variation. With few losses it is taken over the whole load without its first and last part, and is then the offered rate.",
		Absent: "Before the first completed run, in modes sweep and search, and where all packets arrived at once. Seconds in which the sender paused are left out.",
		Source: "RFC 9097 section 5.3; Woo 2010 figures 5.1 and 6.1a",
	})
	UDPThroughputElapsed = Family(Desc{
		Name: "oneway_udp_throughput_elapsed_bytes_per_second", Kind: Gauge, Labels: []string{Path, Probe, Direction, ElapsedL},
		Help:   "Received IP bytes per second in one part of the last run, at most elapsed_bins parts, by the time of its end since the beginning of the load; the report of the run has each second.",
		Absent: "Before the first completed run.",
		Source: "Woo 2010 figure 6.1a",
	})
	UDPOffered = Family(Desc{
		Name: "oneway_udp_offered_bytes_per_second", Kind: Gauge, Labels: perDirection,
		Help:   "IP bytes per second that were really sent in the last run: over the part that oneway_udp_throughput_bytes_per_second covers, or in the step of a sweep or search with the highest received rate; less than configured if the sender could not keep up.",
		Absent: "Before the first completed run, and after a search that did not fill the link.",
		Source: "RFC 9097 section 7.3; Woo 2010 section 6.1.3",
	})
	UDPUnderrun = Family(Desc{
		Name: "oneway_udp_sender_underrun_ratio", Kind: Gauge, Labels: perDirection,
		Help:   "Share of the planned packets of the last run that the sender did not send; these are not loss of the path.",
		Absent: "Before the first completed run.",
		Source: "D-ITG report, section 2.2.3 and figure 21",
	})
	LoadedLoss = Family(Desc{
		Name: "oneway_saturation_loss_ratio", Kind: Gauge, Slim: true, Labels: perDirection, Source: "RFC 7680 section 4.1",
		Help:   "Share of the packets sent under load in the last run that the path lost, without those that the receiving host dropped; of a sweep in the step with the highest received rate, of a search in the part that its result is taken from.",
		Absent: "Before the first completed run.",
	})
	LoadedDelay = Family(Desc{
		Name: "oneway_saturation_delay_seconds", Kind: Histogram, Labels: perDirection, Buckets: loadedBuckets(),
		Help:   "One-way delay under load, in seconds, of the packets of all runs that arrived; only those with trusted clocks. Lost packets are in oneway_saturation_loss_ratio.",
		Absent: "In modes sweep and search.",
		Source: "RFC 7679 section 3; Woo 2010 figures 5.3 and 6.1c",
	})
	LoadedDelayElapsed = Family(Desc{
		Name: "oneway_delay_elapsed_seconds", Kind: Gauge, Labels: []string{Path, Probe, Direction, ElapsedL, QuantileL},
		Help:   "Median one-way delay, in seconds, of the packets that were sent in a bin of the first seconds of the last run and arrived, by the time of its end since the beginning of the load; with elapsed_range also the smallest and the largest (quantile_rank 0 and 1). The report of the run has 60 bins; of these at most elapsed_bins have a value, at even times, and the others none.",
		Absent: "Before the first completed run, and for a bin without a valid delay.",
		Source: "Woo 2010 figure 6.1b",
	})
	QueueIdleDelay = Family(Desc{
		Name: "oneway_queue_idle_delay_seconds", Kind: Gauge, Labels: perDirection, Source: "Woo 2010 sections 6.1.2 and 6.1.3",
		Help:   "Smallest one-way delay over the idle link, in seconds: of packets of the load's size before and after the load of the last run.",
		Absent: "Before the first completed run, and while the clocks are not trusted.",
	})
	QueueIdleDelayBound = Family(Desc{
		Name: "oneway_queue_idle_delay_error_bound_seconds", Kind: Gauge, Labels: perDirection, Source: "design, invariant 1",
		Help:   "Error bound of the idle delay, in seconds: both clocks' error bounds and the timestamps' errors.",
		Absent: "Where there is no idle delay.",
	})
	QueueFullDelay = Family(Desc{
		Name: "oneway_queue_full_delay_seconds", Kind: Gauge, Labels: perDirection,
		Help:   "Smallest one-way delay of the packets that met a full queue, in seconds.",
		Absent: "Where the link was not filled, where the packets that met a full queue cannot be identified (varying rate, cross traffic, losses), and while the clocks are not trusted.",
		Source: "Woo 2010 section 6.1.3 and table 6.1, column Min Delay",
	})
	QueueFullDelayBound = Family(Desc{
		Name: "oneway_queue_full_delay_error_bound_seconds", Kind: Gauge, Labels: perDirection, Source: "design, invariant 1",
		Help:   "Error bound of the delay of the full queue, in seconds: both clocks' error bounds and the timestamps' errors.",
		Absent: "Where oneway_queue_full_delay_seconds is absent.",
	})
	QueueDelay = Family(Desc{
		Name: "oneway_queue_delay_seconds", Kind: Gauge, Labels: perQuantile, Source: "Woo 2010 section 6.1.3",
		Help:   "Delay that the full queue added in the last run, in seconds: quantile (0.05, 0.5, 0.95) over the packets accepted while the queue had space for no other, minus the smallest idle delay. A constant offset of the clocks cancels.",
		Absent: "Where the link was not filled, and where the idle delay is not known.",
	})
	QueueDelayBound = Family(Desc{
		Name: "oneway_queue_delay_error_bound_seconds", Kind: Gauge, Labels: perQuantile, Source: "design, invariant 1",
		Help:   "Error bound of the quantile of the queue's delay, in seconds: the drift of both clocks over the run, the timestamps' errors, the difference between the idle delays before and after the load, and the uncertainty about which packets met a full queue. A path that gets longer only under load cannot be distinguished from a queue.",
		Absent: "Where oneway_queue_delay_seconds is absent.",
	})
	QueueSize = Family(Desc{
		Name: "oneway_queue_size_bytes", Kind: Gauge, Slim: true, Labels: perDirection,
		Help:   "IP bytes of this test in the path's full queues that were delivered: a value between the level reached with accepted packets and the level that dropped packets would have reached. Cross traffic and packets that a timer discards from the queue are not included.",
		Absent: "Where the link was not filled, or the finding is not a queue (see oneway_saturation_state), and where only the ends of its interval are known (see oneway_queue_at_most_bytes).",
		Source: "decision 7 (exporter/doc/decisions); Woo 2010 table 6.1",
	})
	QueueSizeBound = Family(Desc{
		Name: "oneway_queue_size_error_bound_bytes", Kind: Gauge, Labels: perDirection, Source: "design, invariant 1",
		Help:   "Error bound of the queue's size, in IP bytes.",
		Absent: "Where oneway_queue_size_bytes is absent.",
	})
	QueueAtLeast = Family(Desc{
		Name: "oneway_queue_at_least_bytes", Kind: Gauge, Labels: perDirection, Source: "decision 7 (exporter/doc/decisions)",
		Help:   "Lower bound of the IP bytes of this test that the path's queues held, full or not.",
		Absent: "Where no packet was queued, and where the idle delay is not known.",
	})
	QueueAtMost = Family(Desc{
		Name: "oneway_queue_at_most_bytes", Kind: Gauge, Labels: perDirection, Source: "decision 7 (exporter/doc/decisions)",
		Help:   "Upper end of the interval of the queue's size in IP bytes, where losses, outages or few idle packets widened the interval to one side, so that its middle is no estimate: the size is between oneway_queue_at_least_bytes and this.",
		Absent: "Where oneway_queue_size_bytes is present, and where the link was not filled or the finding is not a queue (see oneway_saturation_state).",
	})
	SaturationState = Family(Desc{
		Name: "oneway_saturation_state", Kind: Gauge, Labels: []string{Path, Probe, Direction, StateL},
		Help:   "1 for the finding of the last run, 0 for the others.",
		Absent: "Before the first completed run, in modes sweep and search, and where the finding is not certain.",
		Source: "decision 7 (exporter/doc/decisions); RFC 7567",
		Values: Values{
			StateL: {
				"filled: a tail-drop queue was full",
				"not_filled: the link carried the load, or its queue still grew",
				"policer: loss without delay",
				"aqm: packets were dropped before the queue was full",
				"time_limited: packets were dropped after a time in the queue",
			},
		},
	})
	SweepThroughput = Family(Desc{
		Name: "oneway_sweep_throughput_bytes_per_second", Kind: Gauge, Labels: perStep, Source: "Halepovic 2008 figure 2",
		Help:   "Received IP bytes per second in a step of the last rate sweep, by offered rate. Each step starts on an idle link: a token bucket that refills between the steps passes more than its sustained rate for a while.",
		Absent: "Before the first completed sweep.",
	})
	SweepLoss = Family(Desc{
		Name: "oneway_sweep_loss_ratio", Kind: Gauge, Labels: perStep, Source: "Halepovic 2008 figure 2",
		Help:   "Share of the packets lost in a step of the last rate sweep, by offered rate. Each step starts on an idle link.",
		Absent: "Before the first completed sweep.",
	})
	SweepMaximum = Family(Desc{
		Name: "oneway_sweep_max_throughput_bytes_per_second", Kind: Gauge, Slim: true, Labels: perDirection, Source: "Halepovic 2008 figure 2",
		Help:   "Highest received rate of a step of the last rate sweep, in IP bytes per second. Each step starts on an idle link: the burst of a token bucket that refills between the steps is included.",
		Absent: "Before the first completed sweep.",
	})
	SweepLossless = Family(Desc{
		Name: "oneway_sweep_lossless_bytes_per_second", Kind: Gauge, Labels: perDirection, Source: "Halepovic 2008 figure 2",
		Help:   "Highest offered rate of the last sweep up to which no step lost more than the configured share, in IP bytes per second.",
		Absent: "Before the first completed sweep, and where the lowest step lost more.",
	})
	SearchMaximum = Family(Desc{
		Name: "oneway_search_max_capacity_bytes_per_second", Kind: Gauge, Slim: true, Labels: perDirection, Source: "RFC 9097 section 6",
		Help:   "Maximum IP-layer capacity by the last search, in IP bytes per second: the sustained rate of the full link, without a pause. Losses of about 10 % that no queue causes look like a full link.",
		Absent: "Before the first completed search, and after a search that did not fill the link or found losses or queueing at inconsistent rates.",
	})
)

// Size sweep.
var (
	SizeSweepSent = Family(Desc{
		Name: "oneway_size_sweep_sent_bytes_per_second", Kind: Gauge, Labels: perCell, Source: "D-ITG report, sections 2.1.1 and 2.2.3",
		Help:   "IP bytes per second at the sender, median of the cell's repetitions in the last run.",
		Absent: "Before the first completed run.",
	})
	SizeSweepReceived = Family(Desc{
		Name: "oneway_size_sweep_received_bytes_per_second", Kind: Gauge, Labels: perCell,
		Help:   "IP bytes per second at the receiver over a time as long as the cell was sent, median of its repetitions in the last run; packets that arrive later are not counted.",
		Absent: "Before the first completed run.",
		Source: "D-ITG report, sections 2.1.1 and 2.2.3",
	})
	SizeSweepSpread = Family(Desc{
		Name: "oneway_size_sweep_received_spread_bytes_per_second", Kind: Gauge, Labels: perCell, Source: "design",
		Help:   "Largest minus smallest receiver rate of the cell's repetitions in the last run, in IP bytes per second.",
		Absent: "With a single repetition.",
	})
	SizeSweepDelay = Family(Desc{
		Name: "oneway_size_sweep_delay_seconds", Kind: Gauge, Labels: perCell, Source: "RFC 7679 section 5.2",
		Help:   "Median one-way delay in the cell, in seconds, a lost packet counts as infinite; median of its repetitions, the infinite ones included.",
		Absent: "While the clocks are not trusted, and where it is infinite because at least half of the packets were lost, in half of the repetitions.",
	})
	SizeSweepDelayBound = Family(Desc{
		Name: "oneway_size_sweep_delay_error_bound_seconds", Kind: Gauge, Labels: perCell, Source: "design, invariant 1",
		Help:   "Error bound of oneway_size_sweep_delay_seconds, in seconds.",
		Absent: "Where oneway_size_sweep_delay_seconds is absent.",
	})
	SizeSweepIPDV = Family(Desc{
		Name: "oneway_size_sweep_mean_absolute_ipdv_seconds", Kind: Gauge, Labels: perCell, Source: "RFC 3393; RFC 5481 section 4.1",
		Help:   "Mean absolute difference in delay (IPDV) of packets of the cell that were sent one after the other and both arrived, in seconds, median of its repetitions.",
		Absent: "Without two such packets, after a clock step, and where more than half of the packets of a repetition were lost, since the received pairs do not represent all packets.",
	})
	SizeSweepLoss = Family(Desc{
		Name: "oneway_size_sweep_loss_ratio", Kind: Gauge, Labels: perCell, Source: "RFC 7680 section 4.1; D-ITG report, section 2.1.4",
		Help:   "Share of the packets sent in the cell that the path lost, without those that the receiving host dropped, median of its repetitions.",
		Absent: "Before the first completed run.",
	})
	SizeSweepUnderrun = Family(Desc{
		Name: "oneway_size_sweep_sender_underrun_ratio", Kind: Gauge, Labels: perCell,
		Help:   "Share of the cell's planned packets that the sender did not send or sent too late, largest of its repetitions; these are not loss of the path.",
		Absent: "Before the first completed run.",
		Source: "D-ITG report, section 2.2.3 and figure 21",
	})
)

// Capacity by packet trains.
var (
	PathCapacity = Family(Desc{
		Name: "oneway_path_capacity_bytes_per_second", Kind: Gauge, Slim: true, Labels: perDirection,
		Help:   "Capacity by packet trains in the last run, in IP bytes per second: the median of the largest unfragmented packet size with a result. Evenly spaced small packets of cross traffic slow all trains alike and cannot be distinguished from a slower link; the value is then the capacity that the cross traffic leaves.",
		Absent: "Where no size has a capacity.",
		Source: "WPI EvDO report section 2.2.1; RFC 5136 section 2.3",
	})
	PathCapacityBound = Family(Desc{
		Name: "oneway_path_capacity_error_bound_bytes_per_second", Kind: Gauge, Labels: perDirection,
		Help:   "Error bound of oneway_path_capacity_bytes_per_second, from the timestamps' errors and the spread of the trains.",
		Absent: "Where oneway_path_capacity_bytes_per_second is absent.",
		Source: "exporter/estimate/capacity",
	})
	PathCapacityHidden = Family(Desc{
		Name: "oneway_path_capacity_hidden_bucket_bytes", Kind: Gauge, Labels: perDirection, Source: "exporter/estimate/capacity",
		Help:   "Size in bytes above which the trains of the last run cannot detect a token bucket that at least halves the rate; the capacity is then that of the line before the bucket.",
		Absent: "Where oneway_path_capacity_bytes_per_second is absent.",
	})
	ShaperRate = Family(Desc{
		Name: "oneway_path_shaper_rate_bytes_per_second", Kind: Gauge, Labels: perDirection, Source: "exporter/estimate/capacity",
		Help:   "Rate of the token bucket that the trains of the last run have emptied, in IP bytes per second: the rate that remains after a burst.",
		Absent: "Where the trains have emptied no token bucket, or too few of them agree, or the error bound exceeds a tenth of the rate.",
	})
	ShaperRateBound = Family(Desc{
		Name: "oneway_path_shaper_rate_error_bound_bytes_per_second", Kind: Gauge, Labels: perDirection, Source: "exporter/estimate/capacity",
		Help:   "Error bound of oneway_path_shaper_rate_bytes_per_second, from the timestamps' errors and the spread of the trains.",
		Absent: "Where oneway_path_shaper_rate_bytes_per_second is absent.",
	})
	ShaperBurst = Family(Desc{
		Name: "oneway_path_shaper_burst_bytes", Kind: Gauge, Labels: perDirection, Source: "exporter/estimate/capacity",
		Help:   "Size of the token bucket that the trains of the last run have emptied, in IP bytes: the burst that passes at the rate of the line before the shaper.",
		Absent: "Where oneway_path_shaper_rate_bytes_per_second is absent, the pauses between the trains do not fill the bucket, or the error bound exceeds a tenth of the burst.",
	})
	ShaperBurstBound = Family(Desc{
		Name: "oneway_path_shaper_burst_error_bound_bytes", Kind: Gauge, Labels: perDirection, Source: "exporter/estimate/capacity",
		Help:   "Error bound of oneway_path_shaper_burst_bytes.",
		Absent: "Where oneway_path_shaper_burst_bytes is absent.",
	})
	Capacity = Family(Desc{
		Name: "oneway_capacity_bytes_per_second", Kind: Gauge, Labels: []string{Path, Probe, Direction, PacketBytesL, QuantileL},
		Help:   "Capacity by packet trains, in IP bytes per second: quantile (0.05, 0.5, 0.95) of the trains of a size in the last run, b = (N-1) L / dispersion.",
		Absent: "Where too few trains were clean (see oneway_trains_total), they disagree, or longer ones show a token bucket.",
		Source: "WPI EvDO report section 2.2.1; RFC 5136 section 2.3",
	})
	CapacityBound = Family(Desc{
		Name: "oneway_capacity_error_bound_bytes_per_second", Kind: Gauge, Labels: perSize, Source: "exporter/estimate/capacity",
		Help:   "Error bound of the capacity of a size (the median of its trains), from the timestamps' errors and the spread of the trains.",
		Absent: "Where oneway_capacity_bytes_per_second is absent.",
	})
	TrainCapacity = Family(Desc{
		Name: "oneway_train_capacity_bytes_per_second", Kind: Histogram, Labels: perSize, Buckets: capacityBuckets(),
		Help:   "Capacity by each clean train of all runs, in IP bytes per second.",
		Absent: "Before the first session with a load server that has a name: the size of the IP header is not known.",
		Source: "WPI EvDO report section 2.2.1 and figure 7",
	})
	TrainDispersion = Family(Desc{
		Name: "oneway_train_dispersion_seconds", Kind: Gauge, Labels: perSize, Source: "WPI EvDO report figure 15",
		Help:   "Mean time between the packets of a clean train at the receiver in the last run, in seconds.",
		Absent: "Where too few trains were clean.",
	})
	Trains = Family(Desc{
		Name: "oneway_trains_total", Kind: Counter, Labels: []string{Path, Probe, Direction, PacketBytesL, ResultL},
		Help:   "Trains sent, by result: clean, or the reason why a train gives no capacity.",
		Absent: "Before the first session with a load server that has a name: the size of the IP header is not known.",
		Source: "WPI EvDO report section 3.2.4",
		Values: Values{
			ResultL: {
				"clean: used for the capacity",
				"lost: a packet was lost",
				"reordered",
				"duplicated",
				"no_timestamp: no kernel timestamp of a packet at one end",
				"sender_pace: the sender was not faster than the link",
				"coalesced: the receiver's network card merged packets",
				"batched: packets arrived in groups",
				"token_bucket: the first packets passed on the tokens of a shaper",
				"interleaved: packets of others, or pauses of the link, were in between",
				"too_short: timestamp errors may exceed a tenth of the dispersion",
			},
		},
	})
	PathMTU = Family(Desc{
		Name: "oneway_path_mtu_bytes", Kind: Gauge, Slim: true, Labels: perDirection, Source: "RFC 8899",
		Help:   "Largest IP packet that passes the path unfragmented, in bytes, measured with test packets.",
		Absent: "Where it could not be measured.",
	})
	TrainFragmented = Family(Desc{
		Name: "oneway_train_fragmented", Kind: Gauge, Labels: perSize, Source: "WPI EvDO report sections 3.5 and 4.2.1",
		Help:   "1 if packets of this size are fragmented on the path, else 0: the capacity of such a train is that of the fragments.",
		Absent: "Where the path's MTU is not known.",
	})
)

// loadGroup has the families of TitleLoad.
func loadGroup() Group {
	return Group{
		Title: TitleLoad, Experimental: true,
		Descs: []*Desc{
			LoadedDelayElapsed, QueueAtLeast, QueueAtMost, QueueDelayBound, QueueDelay, QueueFullDelayBound, QueueFullDelay,
			QueueIdleDelayBound, QueueIdleDelay, QueueSize, QueueSizeBound, LoadedDelay, LoadedLoss, SaturationState,
			SearchMaximum, SweepLoss, SweepLossless, SweepMaximum, SweepThroughput, UDPOffered, UDPRate, UDPRunThroughput, UDPUnderrun,
			UDPThroughput, UDPThroughputElapsed,
		},
		Measurements: []Measurement{
			{Name: "oneway_load", Labels: perDirection},
			{Name: "oneway_load_elapsed", Labels: []string{Path, Probe, Direction, ElapsedL}},
			{Name: "oneway_load_state", Labels: []string{Path, Probe, Direction, StateL}},
			{Name: "oneway_load_sweep", Labels: perStep},
		},
	}
}

// sizeSweepGroup has the families of TitleSizeSweep.
func sizeSweepGroup() Group {
	return Group{
		Title: TitleSizeSweep, Experimental: true,
		Descs: []*Desc{
			SizeSweepDelayBound, SizeSweepDelay, SizeSweepLoss, SizeSweepIPDV, SizeSweepReceived, SizeSweepSpread,
			SizeSweepUnderrun, SizeSweepSent,
		},
		Measurements: []Measurement{
			{Name: "oneway_size_sweep", Labels: perCell},
		},
	}
}

// capacityGroup has the families of TitleCapacity.
func capacityGroup() Group {
	return Group{
		Title: TitleCapacity, Experimental: true,
		Descs: []*Desc{
			Capacity, CapacityBound, PathCapacity, PathCapacityBound, PathCapacityHidden, PathMTU, ShaperBurst, ShaperBurstBound,
			ShaperRate, ShaperRateBound, TrainCapacity,
			TrainDispersion, TrainFragmented, Trains,
		},
		Measurements: []Measurement{
			{Name: "oneway_capacity", Labels: perDirection},
			{Name: "oneway_capacity_size", Labels: perSize},
			{Name: "oneway_capacity_trains", Labels: []string{Path, Probe, Direction, PacketBytesL, ResultL}},
		},
	}
}
