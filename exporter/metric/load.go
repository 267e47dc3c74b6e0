package metric

// capacityBuckets are rates in bytes a second, five a decade, 10 kb/s to 10 Gb/s.
func capacityBuckets() (b []float64) {
	for decade := 1e3; decade < 1e9; decade *= 10 {
		for _, step := range []float64{1.25, 2.1, 3.3, 5.1, 8.1} {
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
	// UDPThroughput is oneway_udp_throughput_bytes_per_second.
	UDPThroughput = loadGroup.add(Desc{
		Name: "oneway_udp_throughput_bytes_per_second", Kind: Gauge, Slim: true, Labels: perDirection,
		Help:   "IP bytes a second that came through a constant load: the median of the seconds of the last run in which the sender did not pause, its first and last part left out (all of it, where a second has few packets).",
		Absent: "Before the first completed run, and in modes sweep and search.",
		Source: "RFC 9097 section 5.3; Woo 2010 figure 6.1a",
	})
	// UDPRate is oneway_udp_rate_bytes_per_second.
	UDPRate = loadGroup.add(Desc{
		Name: "oneway_udp_rate_bytes_per_second", Kind: Gauge, Labels: perQuantile,
		Help:   "Quantile (0.05, 0.5, 0.95) of the IP bytes that came through in a second of the last run, from the first loss to the last: the rate of a link that is filled, and how it varies; all of the load, its first and last part left out, where few were lost: what was offered, then.",
		Absent: "Before the first completed run, in modes sweep and search, and where all arrived at once. Seconds in which the sender paused are left out.",
		Source: "RFC 9097 section 5.3; Woo 2010 figures 5.1 and 6.1a",
	})
	// UDPThroughputElapsed is oneway_udp_throughput_elapsed_bytes_per_second.
	UDPThroughputElapsed = loadGroup.add(Desc{
		Name: "oneway_udp_throughput_elapsed_bytes_per_second", Kind: Gauge, Labels: []string{Path, Probe, Direction, ElapsedL},
		Help:   "IP bytes a second that came through in a part of the last run, elapsed_bins parts at the most (15); the run's report has each second.",
		Absent: "Before the first completed run.",
		Source: "Woo 2010 figure 6.1a",
	})
	// UDPOffered is oneway_udp_offered_bytes_per_second.
	UDPOffered = loadGroup.add(Desc{
		Name: "oneway_udp_offered_bytes_per_second", Kind: Gauge, Labels: perDirection,
		Help:   "IP bytes a second that were really sent, in the last run: in the part that oneway_udp_throughput_bytes_per_second is of, or in the step of a sweep or search that brought most through; less than configured if the sender could not.",
		Absent: "Before the first completed run, and after a search that never filled the link.",
		Source: "RFC 9097 section 7.3; Woo 2010 section 6.1.3",
	})
	// UDPUnderrun is oneway_udp_sender_underrun_ratio.
	UDPUnderrun = loadGroup.add(Desc{
		Name: "oneway_udp_sender_underrun_ratio", Kind: Gauge, Labels: perDirection,
		Help:   "Share of the planned packets of the last run that the sender did not send: its own fault, no loss of the path.",
		Absent: "Before the first completed run.",
		Source: "D-ITG report, section 2.2.3 and figure 21",
	})
	// LoadedLoss is oneway_saturation_loss_ratio.
	LoadedLoss = loadGroup.add(Desc{
		Name: "oneway_saturation_loss_ratio", Kind: Gauge, Slim: true, Labels: perDirection, Source: "RFC 7680 section 4.1",
		Help:   "Share of the packets sent under load in the last run that the path lost, those that the receiving host dropped left out; of a sweep in the step that brought most through, of a search in the part of it that stands for its result.",
		Absent: "Before the first completed run.",
	})
	// LoadedDelay is oneway_saturation_delay_seconds.
	LoadedDelay = loadGroup.add(Desc{
		Name: "oneway_saturation_delay_seconds", Kind: Histogram, Labels: perDirection, Buckets: loadedBuckets(),
		Help:   "One-way delay under load, in seconds, of all runs; only those whose clocks are trusted.",
		Source: "RFC 7679 section 3; Woo 2010 figures 5.3 and 6.1c",
	})
	// LoadedDelayElapsed is oneway_delay_elapsed_seconds.
	LoadedDelayElapsed = loadGroup.add(Desc{
		Name: "oneway_delay_elapsed_seconds", Kind: Gauge, Labels: []string{Path, Probe, Direction, ElapsedL, QuantileL},
		Help:   "Median one-way delay in a bin of the first seconds of the last run, in seconds, of elapsed_bins bins at the most (15); with elapsed_range the smallest and the largest, too (quantile 0 and 1). The run's report has 60 bins.",
		Absent: "Before the first completed run, and for a bin without a valid delay.",
		Source: "Woo 2010 figure 6.1b",
	})
	// QueueIdleDelay is oneway_queue_idle_delay_seconds.
	QueueIdleDelay = loadGroup.add(Desc{
		Name: "oneway_queue_idle_delay_seconds", Kind: Gauge, Labels: perDirection, Source: "Woo 2010 sections 6.1.2 and 6.1.3",
		Help:   "Smallest one-way delay of the idle packets before the load of the last run and after it, of the load's size, in seconds.",
		Absent: "Before the first completed run, and while the clocks are not trusted.",
	})
	// QueueIdleDelayBound is oneway_queue_idle_delay_error_bound_seconds.
	QueueIdleDelayBound = loadGroup.add(Desc{
		Name: "oneway_queue_idle_delay_error_bound_seconds", Kind: Gauge, Labels: perDirection, Source: "design, invariant 1",
		Help:   "How far the idle delay may be off, in seconds: both clocks and the stamps.",
		Absent: "Where there is no idle delay.",
	})
	// QueueFullDelay is oneway_queue_full_delay_seconds.
	QueueFullDelay = loadGroup.add(Desc{
		Name: "oneway_queue_full_delay_seconds", Kind: Gauge, Labels: perDirection,
		Help:   "Smallest one-way delay of the packets that filled the queue, in seconds.",
		Absent: "Where the link was not filled, where it is in doubt which packets filled it (the rate moves, others' packets, losses), and while the clocks are not trusted.",
		Source: "Woo 2010 section 6.1.3 and table 6.1, column Min Delay",
	})
	// QueueFullDelayBound is oneway_queue_full_delay_error_bound_seconds.
	QueueFullDelayBound = loadGroup.add(Desc{
		Name: "oneway_queue_full_delay_error_bound_seconds", Kind: Gauge, Labels: perDirection, Source: "design, invariant 1",
		Help:   "How far the full queue's delay may be off, in seconds: both clocks and the stamps.",
		Absent: "Where there is no full queue's delay.",
	})
	// QueueDelay is oneway_queue_delay_seconds.
	QueueDelay = loadGroup.add(Desc{
		Name: "oneway_queue_delay_seconds", Kind: Gauge, Labels: perQuantile, Source: "Woo 2010 section 6.1.3",
		Help:   "What the full queue added to the delay in the last run, in seconds: quantile (0.05, 0.5, 0.95) of the packets that it took while it had no space for another, less the smallest idle delay. A constant offset of the clocks cancels.",
		Absent: "Where the link was not filled, and where nothing is known of the idle link.",
	})
	// QueueDelayBound is oneway_queue_delay_error_bound_seconds.
	QueueDelayBound = loadGroup.add(Desc{
		Name: "oneway_queue_delay_error_bound_seconds", Kind: Gauge, Labels: perQuantile, Source: "design, invariant 1",
		Help:   "How far the quantile of the queue's delay may be off, in seconds: the drift of both clocks over the run, the errors of the stamps, what the idle delays before the load and after it differ by, and in what doubt it is which packets filled the queue. A path that is longer while it is loaded, and only then, cannot be told from a queue.",
		Absent: "Where there is no queue's delay.",
	})
	// QueueSize is oneway_queue_size_bytes.
	QueueSize = loadGroup.add(Desc{
		Name: "oneway_queue_size_bytes", Kind: Gauge, Slim: true, Labels: perDirection,
		Help:   "Bytes of this test's IP packets that waited in the path's queues when they were full, and came through: between what they held with packets that they took, and what they would have held with those that they dropped. Others' bytes are not in it, nor those that wait and are discarded by a timer.",
		Absent: "Where the link was not filled, or what was found is no queue (see oneway_saturation_state).",
		Source: "decision 7 (exporter/doc/decisions); Woo 2010 table 6.1",
	})
	// QueueSizeBound is oneway_queue_size_error_bound_bytes.
	QueueSizeBound = loadGroup.add(Desc{
		Name: "oneway_queue_size_error_bound_bytes", Kind: Gauge, Labels: perDirection, Source: "design, invariant 1",
		Help:   "How far the queue's size may be off, in IP bytes.",
		Absent: "Where there is no size.",
	})
	// QueueAtLeast is oneway_queue_at_least_bytes.
	QueueAtLeast = loadGroup.add(Desc{
		Name: "oneway_queue_at_least_bytes", Kind: Gauge, Labels: perDirection, Source: "decision 7 (exporter/doc/decisions)",
		Help:   "Bytes of this test's IP packets that the path's queues held at the least, full or not.",
		Absent: "Where nothing waited, and where nothing is known of the idle link.",
	})
	// SaturationState is oneway_saturation_state.
	SaturationState = loadGroup.add(Desc{
		Name: "oneway_saturation_state", Kind: Gauge, Labels: []string{Path, Probe, Direction, StateL},
		Help:   "1 for what the last run found, 0 for the others: filled (a queue that drops at its end), not_filled, policer (loss without delay), aqm (dropped before it was full), time_limited (dropped after a time in the queue).",
		Absent: "Before the first completed run, in modes sweep and search, and where it cannot be told.",
		Source: "decision 7 (exporter/doc/decisions); RFC 7567",
	})
	// SweepThroughput is oneway_sweep_throughput_bytes_per_second.
	SweepThroughput = loadGroup.add(Desc{
		Name: "oneway_sweep_throughput_bytes_per_second", Kind: Gauge, Labels: perStep, Source: "Halepovic 2008 figure 2",
		Help:   "IP bytes a second that came through at a step of the last rate sweep, by offered rate. Each step is a burst from an idle link: a token bucket, which refills between the steps, passes more for a while than it sustains.",
		Absent: "Before the first completed sweep.",
	})
	// SweepLoss is oneway_sweep_loss_ratio.
	SweepLoss = loadGroup.add(Desc{
		Name: "oneway_sweep_loss_ratio", Kind: Gauge, Labels: perStep, Source: "Halepovic 2008 figure 2",
		Help:   "Share of the packets lost at a step of the last rate sweep, a burst from an idle link, by offered rate.",
		Absent: "Before the first completed sweep.",
	})
	// SweepMaximum is oneway_sweep_max_throughput_bytes_per_second.
	SweepMaximum = loadGroup.add(Desc{
		Name: "oneway_sweep_max_throughput_bytes_per_second", Kind: Gauge, Slim: true, Labels: perDirection, Source: "Halepovic 2008 figure 2",
		Help:   "Most that came through in a step of the last rate sweep, in IP bytes a second. Each step begins with an idle link: a token bucket that has filled in between is in it.",
		Absent: "Before the first completed sweep.",
	})
	// SweepLossless is oneway_sweep_lossless_bytes_per_second.
	SweepLossless = loadGroup.add(Desc{
		Name: "oneway_sweep_lossless_bytes_per_second", Kind: Gauge, Labels: perDirection, Source: "Halepovic 2008 figure 2",
		Help:   "Highest offered rate of the last sweep below which no step lost more than the configured share, in IP bytes a second.",
		Absent: "Before the first completed sweep, and where the lowest step lost more.",
	})
	// SearchMaximum is oneway_search_max_capacity_bytes_per_second.
	SearchMaximum = loadGroup.add(Desc{
		Name: "oneway_search_max_capacity_bytes_per_second", Kind: Gauge, Slim: true, Labels: perDirection, Source: "RFC 9097 section 6",
		Help:   "Maximum IP-layer capacity by the last search, in IP bytes a second: what the link sustains when it is full, without a pause (with a remote end of an older version, which the report's notes tell of, the highest of a burst). Losses of some 10 % that are no queue's look like a full link.",
		Absent: "Before the first completed search, and after one that never filled the link, or met losses or waiting at rates that have nothing in common.",
	})
)

// Size sweep.
var (
	// SizeSweepSent is oneway_size_sweep_sent_bytes_per_second.
	SizeSweepSent = sizeSweepGroup.add(Desc{
		Name: "oneway_size_sweep_sent_bytes_per_second", Kind: Gauge, Labels: perCell, Source: "D-ITG report, sections 2.1.1 and 2.2.3",
		Help:   "IP bytes a second at the sender, the median of the cell's repetitions in the last run.",
		Absent: "Before the first completed run.",
	})
	// SizeSweepReceived is oneway_size_sweep_received_bytes_per_second.
	SizeSweepReceived = sizeSweepGroup.add(Desc{
		Name: "oneway_size_sweep_received_bytes_per_second", Kind: Gauge, Labels: perCell,
		Help:   "IP bytes a second at the receiver in a time as long as the cell was sent in, the median of its repetitions in the last run; packets that came later count for no rate.",
		Absent: "Before the first completed run.",
		Source: "D-ITG report, sections 2.1.1 and 2.2.3",
	})
	// SizeSweepSpread is oneway_size_sweep_received_spread_bytes_per_second.
	SizeSweepSpread = sizeSweepGroup.add(Desc{
		Name: "oneway_size_sweep_received_spread_bytes_per_second", Kind: Gauge, Labels: perCell, Source: "design",
		Help:   "Largest minus smallest receiver rate of the cell's repetitions in the last run, in IP bytes a second.",
		Absent: "With a single repetition.",
	})
	// SizeSweepDelay is oneway_size_sweep_delay_seconds.
	SizeSweepDelay = sizeSweepGroup.add(Desc{
		Name: "oneway_size_sweep_delay_seconds", Kind: Gauge, Labels: perCell, Source: "RFC 7679 section 5.2",
		Help:   "Median one-way delay in the cell, lost packets counted as infinite, in seconds, the median of its repetitions.",
		Absent: "While the clocks are not trusted, and where it is infinite: half of the packets or more were lost.",
	})
	// SizeSweepDelayBound is oneway_size_sweep_delay_error_bound_seconds.
	SizeSweepDelayBound = sizeSweepGroup.add(Desc{
		Name: "oneway_size_sweep_delay_error_bound_seconds", Kind: Gauge, Labels: perCell, Source: "design, invariant 1",
		Help:   "How far that delay may be off, in seconds.",
		Absent: "Where that delay is.",
	})
	// SizeSweepIPDV is oneway_size_sweep_mean_absolute_ipdv_seconds.
	SizeSweepIPDV = sizeSweepGroup.add(Desc{
		Name: "oneway_size_sweep_mean_absolute_ipdv_seconds", Kind: Gauge, Labels: perCell, Source: "RFC 3393; RFC 5481 section 4.1",
		Help:   "Mean of the absolute differences in delay (IPDV) of packets of the cell that were sent one after the other and both arrived, in seconds, the median of its repetitions.",
		Absent: "Without two such packets, where a clock was set, and where more than half of the packets were lost: those that come through in pairs then are no sample of all.",
	})
	// SizeSweepLoss is oneway_size_sweep_loss_ratio.
	SizeSweepLoss = sizeSweepGroup.add(Desc{
		Name: "oneway_size_sweep_loss_ratio", Kind: Gauge, Labels: perCell, Source: "RFC 7680 section 4.1; D-ITG report, section 2.1.4",
		Help:   "Share of the packets sent in the cell that the path lost, those that the receiving host dropped left out, the median of its repetitions.",
		Absent: "Before the first completed run.",
	})
	// SizeSweepUnderrun is oneway_size_sweep_sender_underrun_ratio.
	SizeSweepUnderrun = sizeSweepGroup.add(Desc{
		Name: "oneway_size_sweep_sender_underrun_ratio", Kind: Gauge, Labels: perCell,
		Help:   "Share of the cell's planned packets that the sender did not send, or too late, the largest of its repetitions: the sender's fault.",
		Absent: "Before the first completed run.",
		Source: "D-ITG report, section 2.2.3 and figure 21",
	})
)

// Capacity by packet trains.
var (
	// PathCapacity is oneway_path_capacity_bytes_per_second.
	PathCapacity = capacityGroup.add(Desc{
		Name: "oneway_path_capacity_bytes_per_second", Kind: Gauge, Slim: true, Labels: perDirection,
		Help:   "Capacity by packet trains in the last run, in IP bytes a second: the median of the largest size that has one and is not fragmented. Small packets that others send evenly between those of the trains slow all trains alike and cannot be told from a slower link: it is what such others leave.",
		Absent: "Where no size has a capacity.",
		Source: "WPI EvDO report section 2.2.1; RFC 5136 section 2.3",
	})
	// PathCapacityBound is oneway_path_capacity_error_bound_bytes_per_second.
	PathCapacityBound = capacityGroup.add(Desc{
		Name: "oneway_path_capacity_error_bound_bytes_per_second", Kind: Gauge, Labels: perDirection,
		Help:   "How far oneway_path_capacity_bytes_per_second may be off: the trains' stamps, and how far they differ.",
		Absent: "As oneway_path_capacity_bytes_per_second is.",
		Source: "exporter/estimate/capacity",
	})
	// PathCapacityHidden is oneway_path_capacity_hidden_bucket_bytes.
	PathCapacityHidden = capacityGroup.add(Desc{
		Name: "oneway_path_capacity_hidden_bucket_bytes", Kind: Gauge, Labels: perDirection, Source: "exporter/estimate/capacity",
		Help:   "Bytes above which a token bucket that halves the rate, or more, would not have shown in the trains of the last run: the capacity is then that of the line before it.",
		Absent: "As oneway_path_capacity_bytes_per_second is.",
	})
	// Capacity is oneway_capacity_bytes_per_second.
	Capacity = capacityGroup.add(Desc{
		Name: "oneway_capacity_bytes_per_second", Kind: Gauge, Labels: []string{Path, Probe, Direction, PacketBytesL, QuantileL},
		Help:   "Capacity by packet trains, in IP bytes a second: quantile (0.05, 0.5, 0.95) of the trains of a size in the last run, b = (N-1) L / dispersion.",
		Absent: "Where too few trains were clean (oneway_trains_total says why), or they disagree, or longer ones show a token bucket.",
		Source: "WPI EvDO report section 2.2.1; RFC 5136 section 2.3",
	})
	// CapacityBound is oneway_capacity_error_bound_bytes_per_second.
	CapacityBound = capacityGroup.add(Desc{
		Name: "oneway_capacity_error_bound_bytes_per_second", Kind: Gauge, Labels: perSize, Source: "exporter/estimate/capacity",
		Help:   "How far the capacity of a size may be off the median of its trains: their stamps, and how far they differ.",
		Absent: "As oneway_capacity_bytes_per_second is.",
	})
	// TrainCapacity is oneway_train_capacity_bytes_per_second.
	TrainCapacity = capacityGroup.add(Desc{
		Name: "oneway_train_capacity_bytes_per_second", Kind: Histogram, Labels: perSize, Buckets: capacityBuckets(),
		Help:   "Capacity by each clean train, in IP bytes a second, of all runs.",
		Source: "WPI EvDO report section 2.2.1 and figure 7",
	})
	// TrainDispersion is oneway_train_dispersion_seconds.
	TrainDispersion = capacityGroup.add(Desc{
		Name: "oneway_train_dispersion_seconds", Kind: Gauge, Labels: perSize, Source: "WPI EvDO report figure 15",
		Help:   "Mean time between the packets of a clean train at the receiver in the last run, in seconds.",
		Absent: "Where too few trains were clean.",
	})
	// Trains is oneway_trains_total.
	Trains = capacityGroup.add(Desc{
		Name: "oneway_trains_total", Kind: Counter, Labels: []string{Path, Probe, Direction, PacketBytesL, ResultL},
		Help:   "Trains sent, by result: clean, or why it says nothing (lost, reordered, duplicated, unstamped, sender_pace, coalesced, batched, token_bucket, interleaved, too_short).",
		Source: "WPI EvDO report section 3.2.4",
	})
	// PathMTU is oneway_path_mtu_bytes.
	PathMTU = capacityGroup.add(Desc{
		Name: "oneway_path_mtu_bytes", Kind: Gauge, Slim: true, Labels: perDirection, Source: "RFC 8899",
		Help:   "Largest IP packet that passes the path unfragmented, in bytes, found by test packets.",
		Absent: "Where it was not found.",
	})
	// TrainFragmented is oneway_train_fragmented.
	TrainFragmented = capacityGroup.add(Desc{
		Name: "oneway_train_fragmented", Kind: Gauge, Labels: perSize, Source: "WPI EvDO report sections 3.5 and 4.2.1",
		Help:   "1 if packets of this size are fragmented on the path, else 0: such a train's capacity is that of the fragments.",
		Absent: "Where the path's MTU is not known.",
	})
)
