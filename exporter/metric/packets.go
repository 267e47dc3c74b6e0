package metric

// Packets.
var (
	// PacketsSent is oneway_packets_sent_total.
	PacketsSent = packetGroup.add(Desc{
		Name: "oneway_packets_sent_total", Kind: Counter, Slim: true, Labels: perDirection, Source: "RFC 7680 section 2",
		Help:   "Test packets sent in the direction. Reverse: answers that the reflector says it sent. Always sent = received + lost + host_dropped + outstanding.",
		Absent: "Reverse, with a reflector that numbers no replies of its own.",
	})
	// PacketsReceived is oneway_packets_received_total.
	PacketsReceived = packetGroup.add(Desc{
		Name: "oneway_packets_received_total", Kind: Counter, Labels: perDirection, Source: "RFC 7680 section 2",
		Help:   "First uncorrupted copies received within the waiting time. Forward, with a stateless foreign reflector: requests that were answered.",
		Absent: "Until the remote end has answered; forward, with a foreign reflector that numbers its replies, until a waiting time has passed.",
	})
	// PacketsLost is oneway_packets_lost_total.
	PacketsLost = packetGroup.add(Desc{
		Name: "oneway_packets_lost_total", Kind: Counter, Slim: true, Labels: perDirection, Source: "RFC 7680 section 2.4",
		Help:   "Test packets of which no uncorrupted copy came within the waiting time (loss_timeout), by their own one-way delay where the clocks are trusted and the reply came, else counted from when a later packet came.",
		Absent: "With a foreign reflector that does not tell the directions apart.",
	})
	// PacketsHostDropped is oneway_packets_host_dropped_total.
	PacketsHostDropped = packetGroup.add(Desc{
		Name: "oneway_packets_host_dropped_total", Kind: Counter, Labels: perDirection,
		Help:   "Test packets that did not arrive while the receiving host's own socket dropped packets, at most as many as it dropped; forward, those too that the reflector refused for their rate or that of new sessions. This host's fault in reverse, the remote end's forward, and no loss of the path. Neither received nor lost.",
		Absent: "Forward, while the remote end has told nothing of its host: another's reflector never does. Reverse, where packets_lost_total is.",
		Source: "socket(7) SO_RXQ_OVFL, Linux 2.6.33; /proc/net/snmp",
	})
	// PacketsOutstanding is oneway_packets_outstanding.
	PacketsOutstanding = packetGroup.add(Desc{
		Name: "oneway_packets_outstanding", Kind: Gauge, Labels: perDirection, Source: "RFC 7680 section 2.4",
		Help:   "Test packets whose outcome is not known yet.",
		Absent: "Where packets_lost_total is absent.",
	})
	// PacketsDuplicated is oneway_packets_duplicated_total.
	PacketsDuplicated = packetGroup.add(Desc{
		Name: "oneway_packets_duplicated_total", Kind: Counter, Labels: perDirection, Source: "RFC 5560 section 3",
		Help:   "Further uncorrupted copies of packets that were already received. Forward, with a key: of those that are remembered, 512 packets or more.",
		Absent: "With a foreign reflector, forward.",
	})
	// PacketsReordered is oneway_packets_reordered_total.
	PacketsReordered = packetGroup.add(Desc{
		Name: "oneway_packets_reordered_total", Kind: Counter, Labels: perDirection, Source: "RFC 4737 section 3.3",
		Help:   "Received packets whose number was below the next expected one.",
		Absent: "With a foreign reflector, forward.",
	})
	// PacketsLate is oneway_packets_late_total.
	PacketsLate = packetGroup.add(Desc{
		Name: "oneway_packets_late_total", Kind: Counter, Labels: perDirection, Source: "RFC 7680 section 2.4",
		Help:   "First copies that came after the waiting time; they are lost.",
		Absent: "With a foreign reflector, forward.",
	})
	// PacketsCorrupted is oneway_packets_corrupted_total.
	PacketsCorrupted = packetGroup.add(Desc{
		Name: "oneway_packets_corrupted_total", Kind: Counter, Labels: perDirection,
		Help:   "Test packets that arrived with a damaged payload; they count as lost unless a good copy came. Forward, with a Receipt: those that show the session's random Run or Epoch; with a key, those too whose base packet is authentic. With a key, what else cannot be verified is damaged or forged, which nobody can tell: it is in no path's count, but in oneway_reflector_packets_total (bad_hmac) at the remote end, and in oneway_packets_discarded_total (bad_hmac) here.",
		Absent: "With a foreign reflector, forward.",
		Source: "RFC 7680 section 2.5; Woo 2010 figure 5.5",
	})
	// PacketsDiscarded is oneway_packets_discarded_total.
	PacketsDiscarded = packetGroup.add(Desc{
		Name: "oneway_packets_discarded_total", Kind: Counter, Labels: perReason, Source: "RFC 8762 section 4",
		Help:   "Arriving packets that belong to no measurement, by reason: unknown_sequence and bad_echo answer nothing that was asked, or at another time than it was. Of wrong_number the reply's own number alone is refused, which no reflector can have counted to, or another reply has; its round trip counts.",
		Absent: "Until the first of that reason.",
	})
	// DirectionUnknown is oneway_direction_unknown_total.
	DirectionUnknown = packetGroup.add(Desc{
		Name: "oneway_direction_unknown_total", Kind: Counter, Labels: perReason, Source: "design, invariant 2",
		Help:   "Lost round trips that could not be assigned to a direction, by reason.",
		Absent: "Until the first of that reason.",
	})
	// RoundTripLost is oneway_round_trips_lost_total.
	RoundTripLost = packetGroup.add(Desc{
		Name: "oneway_round_trips_lost_total", Kind: Counter, Slim: true, Labels: perProbe, Source: "RFC 8762 section 4",
		Help: "Test packets without a reply within the waiting time, whichever direction lost them.",
	})
	// RoundTripReceived is oneway_round_trips_received_total.
	RoundTripReceived = packetGroup.add(Desc{
		Name: "oneway_round_trips_received_total", Kind: Counter, Labels: perProbe, Source: "RFC 8762 section 4",
		Help: "Test packets that were answered within the waiting time.",
	})
	// RoundTripInvalid is oneway_round_trips_invalid_total.
	RoundTripInvalid = packetGroup.add(Desc{
		Name: "oneway_round_trips_invalid_total", Kind: Counter, Labels: perReason, Source: "design, invariant 2",
		Help:   "Answered test packets without a round-trip time, because the clock of one end was stepped between its two stamps, by reason.",
		Absent: "Until the first.",
	})
	// LossBurst is oneway_loss_burst_packets.
	LossBurst = packetGroup.add(Desc{
		Name: "oneway_loss_burst_packets", Kind: Histogram, Labels: perDirection, Buckets: burstBuckets(),
		Help:   "Lengths of runs of consecutive lost packets. A run in which some came too late is told in parts.",
		Source: "RFC 3357 section 6.3",
	})
	// LossBurstRatio is oneway_loss_burst_ratio.
	LossBurstRatio = packetGroup.add(Desc{
		Name: "oneway_loss_burst_ratio", Kind: Gauge, Labels: perDirection, Source: "ITU-T G.107 clause 7.5",
		Help:   "BurstR: mean length of the loss runs over the one expected under random loss, in the last window; 1 is random, above 1 is bursty.",
		Absent: "In a window without loss, or with nothing but loss, or where it is not known which packets were lost: the receiving host dropped some, or a reply told of more than its room.",
	})
	// LossRatio is oneway_loss_ratio.
	LossRatio = packetGroup.add(Desc{
		Name: "oneway_loss_ratio", Kind: Gauge, Labels: perDirection, Source: "RFC 7680 section 4.1",
		Help:   "Lost over decided packets of the last window, 0..1.",
		Absent: "In a window that decided nothing.",
	})
	// RemoteRestarts is oneway_remote_restarts_total.
	RemoteRestarts = packetGroup.add(Desc{
		Name: "oneway_remote_restarts_total", Kind: Counter, Labels: perProbe, Source: "design; RFC 8762 section 4.2",
		Help: "Times the reflector was seen to have lost its session (restart or expiry), or to have begun its numbers anew: a request that was sent after a reply had come gets a lower number than that one, or three in a row get numbers beyond what was asked. What was outstanding and is not answered is lost.",
	})
)
