package metric

import "oneway.example/exporter/core/sample"

// Packets.
var (
	PacketsSent = Family(Desc{
		Name: "oneway_packets_sent_total", Kind: Counter, Slim: true, Labels: perDirection, Source: "RFC 7680 section 2",
		Help:   "Test packets sent in the direction. Reverse: reflected packets, as counted by the reflector. Always sent = received + lost + host_dropped + undecided + outstanding.",
		Absent: "Reverse, with a reflector that does not number its replies itself.",
	})
	PacketsReceived = Family(Desc{
		Name: "oneway_packets_received_total", Kind: Counter, Labels: perDirection, Source: "RFC 7680 section 2",
		Help:   "First uncorrupted copies received within the waiting time. Forward, with a stateless foreign reflector: test packets with a reply.",
		Absent: "Until the first reply of the remote end; forward, with a foreign reflector that numbers its replies, until one waiting time has passed.",
	})
	PacketsLost = Family(Desc{
		Name: "oneway_packets_lost_total", Kind: Counter, Slim: true, Labels: perDirection, Source: "RFC 7680 section 2.4",
		Help:   "Test packets without an uncorrupted copy within the waiting time (loss_timeout). The waiting time is compared with the one-way delay of the packet if the clocks are trusted and the reply arrived, else it starts when a later packet arrives.",
		Absent: "With a foreign reflector that does not distinguish the directions.",
	})
	PacketsHostDropped = Family(Desc{
		Name: "oneway_packets_host_dropped_total", Kind: Counter, Labels: perDirection,
		Help:   "Test packets that did not arrive while the socket of the receiving host dropped packets, at most as many as it dropped; forward, also those that the reflector rejected because of its limits of packet rate and new sessions. The remote host (forward) or this host (reverse) dropped them, not the path. They are neither received nor lost.",
		Absent: "Forward, until the remote end reports its drops, which a foreign reflector never does. Reverse, where oneway_packets_lost_total is absent.",
		Source: "socket(7) SO_RXQ_OVFL, Linux 2.6.33; /proc/net/snmp",
	})
	PacketsUndecided = Family(Desc{
		Name: "oneway_packets_undecided_total", Kind: Counter, Slim: true, Labels: perDirection, Source: "design, invariant 3",
		Help:   "Test packets whose outcome in the direction stays unknown: they are neither received nor lost. The reflector restarted, or began, before it told which of them it had received, or the path took another source port, whose numbers begin anew, or the probe ended (a reload, another address of the peer) within the waiting time or before a reply told the direction of the loss. Lost round trips among them are in oneway_round_trips_lost_direction_unknown_total. Those forward may have been lost in reverse: they leave the loss of neither direction known in their window.",
		Absent: "Until the first one.",
	})
	PacketsOutstanding = Family(Desc{
		Name: "oneway_packets_outstanding", Kind: Gauge, Labels: perDirection, Source: "RFC 7680 section 2.4",
		Help:   "Test packets that are neither received nor lost yet. After the last reply of a path that is down, these are the packets whose loss has no direction yet.",
		Absent: "Where oneway_packets_lost_total is absent.",
	})
	PacketsDuplicated = Family(Desc{
		Name: "oneway_packets_duplicated_total", Kind: Counter, Labels: perDirection, Source: "RFC 5560 section 3",
		Help:   "Further uncorrupted copies of packets that were already received. Forward, with a key: only within the last 512 packets or more that the reflector stores.",
		Absent: "With a foreign reflector, forward.",
	})
	PacketsReordered = Family(Desc{
		Name: "oneway_packets_reordered_total", Kind: Counter, Labels: perDirection, Source: "RFC 4737 section 3.3",
		Help:   "Received packets with a sequence number below the next expected one.",
		Absent: "With a foreign reflector, forward.",
	})
	PacketsLate = Family(Desc{
		Name: "oneway_packets_late_total", Kind: Counter, Labels: perDirection, Source: "RFC 7680 section 2.4",
		Help:   "First copies that arrived after the waiting time; these packets count as lost.",
		Absent: "With a foreign reflector, forward.",
	})
	PacketsCorrupted = Family(Desc{
		Name: "oneway_packets_corrupted_total", Kind: Counter, Labels: perDirection,
		Help:   "Test packets that arrived with a corrupted payload; they count as lost unless an uncorrupted copy arrived. Forward, with a Receipt: those with the session's random Run or Epoch; with a key, also those with an authentic base packet. With a key, other packets that fail verification may be corrupted or forged and are not counted here, but in oneway_reflector_packets_total (bad_hmac) of the remote end and in oneway_packets_discarded_total (bad_hmac) of this host.",
		Absent: "With a foreign reflector, forward.",
		Source: "RFC 7680 section 2.5; Woo 2010 figure 5.5",
	})
	PacketsDiscarded = Family(Desc{
		Name: "oneway_packets_discarded_total", Kind: Counter, Labels: perReason, Source: "RFC 8762 section 4",
		Help:   "Arriving packets that belong to no measurement, by reason.",
		Absent: "Until the first of that reason.",
		Values: Values{
			ReasonL: {
				"short: shorter than a reply, which has at least 41 bytes, and with a key 112",
				"bad_hmac: corrupted, forged, or of another key",
				"unknown_session",
				"wrong_peer: from another address than the peer's",
				"unknown_sequence: matches no test packet by its number",
				"bad_echo: does not repeat the test packet's timestamp",
				"bad_receipt: its Receipt is invalid",
				"truncated: longer than the receive buffer",
				"wrong_number: its own number is impossible or a duplicate; the round trip counts",
				"corrupted: a damaged reply, which also counts as a corrupted packet",
				"key_rejected: the reflector reports that it has another key, or requires one",
				"no_key: the reply of a reflector without a key to an authenticated test packet",
			},
		},
	})
	DirectionUnknown = Family(Desc{
		Name: "oneway_round_trips_lost_direction_unknown_total", Kind: Counter, Labels: perReason, Source: "design, invariant 2",
		Help:   "Lost round trips that could not be assigned to a direction, by reason.",
		Absent: "Until the first of that reason.",
		Values: Values{
			ReasonL: {
				"foreign_reflector: it does not number its replies",
				"remote_restarted: the reflector's session restarted, or began, meanwhile",
				"source_port_changed: the path changed its source port meanwhile, and the reflector numbers the replies to each port, or restarted",
				"session_ended: the probe ended before the direction was known",
			},
		},
	})
	RoundTripLost = Family(Desc{
		Name: "oneway_round_trips_lost_total", Kind: Counter, Slim: true, Labels: perProbe, Source: "RFC 8762 section 4",
		Help: "Test packets without a reply within the waiting time, lost in either direction. Those that wait for a reply when the probe ends are not lost.",
	})
	RoundTripLossRatio = Family(Desc{
		Name: "oneway_round_trip_loss_ratio", Kind: Gauge, Slim: true, Labels: perProbe, Source: "RFC 8762 section 4",
		Help:   "Test packets of the last window without a reply within the waiting time divided by all, 0..1, lost in either direction; 1 while the target is down, when the direction of a loss is not known.",
		Absent: "In a window without a decided packet.",
	})
	RoundTripReceived = Family(Desc{
		Name: "oneway_round_trips_received_total", Kind: Counter, Labels: perProbe, Source: "RFC 8762 section 4",
		Help: "Test packets with a reply within the waiting time.",
	})
	RoundTripInvalid = Family(Desc{
		Name: "oneway_round_trips_invalid_total", Kind: Counter, Labels: perReason, Source: "design, invariant 2",
		Help:   "Test packets with a reply but without a round-trip time, by reason: the clock of one end was stepped between its two timestamps, or a timestamp of the reflector is missing or wrong.",
		Absent: "Until the first.",
		Values: Values{
			ReasonL: sample.Values(sample.LocalStepped, sample.RemoteStepped, sample.NoStamp, sample.TransmitBeforeReceive, sample.ResidenceTooLong),
		},
	})
	LossBurst = Family(Desc{
		Name: "oneway_loss_burst_packets", Kind: Histogram, Labels: perDirection, Buckets: burstBuckets(),
		Help:   "Lengths of runs of consecutive lost packets. A run that contains late packets is counted in parts.",
		Source: "RFC 3357 section 6.3",
	})
	LossBurstRatio = Family(Desc{
		Name: "oneway_loss_burst_ratio", Kind: Gauge, Labels: perDirection, Source: "ITU-T G.107 clause 7.5",
		Help:   "BurstR: mean length of the loss runs divided by the mean length expected under random loss, in the last window; 1 is random, above 1 is bursty.",
		Absent: "In a window without loss, in one with only losses, and where the lost packets cannot be identified: the receiving host dropped some, or a reply reported more losses than it has space to list.",
	})
	LossRatio = Family(Desc{
		Name: "oneway_loss_ratio", Kind: Gauge, Labels: perDirection, Source: "RFC 7680 section 4.1",
		Help:   "Lost over decided packets of the last window, 0..1.",
		Absent: "In a window without a decided packet, or in which packets have no outcome: no reply came after them, the reflector restarted, or the path took another source port.",
	})
	RemoteRestarts = Family(Desc{
		Name: "oneway_remote_restarts_total", Kind: Counter, Labels: perProbe, Source: "design; RFC 8762 section 4.2",
		Help: "Detected restarts of the reflector's session (process restart, or expiry of the session) and of its reply numbers: a test packet sent after a reply was received gets a lower number than that reply, or three replies in a row have numbers above the number of test packets. Test packets without an outcome are then undecided (oneway_packets_undecided_total), as after a change of the source port.",
	})
)

// packetsGroup has the families of TitlePackets.
func packetsGroup() Group {
	return Group{
		Title: TitlePackets,
		Descs: []*Desc{
			DSCP, DSCPRemarked, CongestionExperienced, HopChanges, Hops, LossBurst, LossBurstRatio, LossRatio,
			PacketsCorrupted, PacketsDiscarded, PacketsDuplicated, PacketsHostDropped, PacketsLate, PacketsLost,
			PacketsOutstanding, PacketsReceived, PacketsReordered, PacketsSent, PacketsUndecided, RemoteRestarts, RoundTripLossRatio,
			RoundTripInvalid, DirectionUnknown, RoundTripLost, RoundTripReceived,
		},
		Measurements: []Measurement{
			{Name: "oneway_packets", Labels: perDirection},
			{Name: "oneway_packets_reason", Labels: perReason},
			{Name: "oneway_packets_round_trip", Labels: perProbe},
		},
	}
}
