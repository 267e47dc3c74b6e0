package metric

// ReceiverL names a GNSS receiver, PulseL a pulse per second, by their name in the
// configuration.
const (
	ReceiverL = "receiver"
	PulseL    = "pps"
)

// The GNSS receiver, as gpsd tells of it.
var (
	// GNSSConnected is oneway_gnss_connected.
	GNSSConnected = &Desc{
		Name: "oneway_gnss_connected", Kind: Gauge, Labels: []string{ReceiverL},
		Help:   "1 while gpsd is connected and has a device that it found or heard in the last 15 s, else 0.",
		Source: "gpsd_json(5), DEVICES",
	}
	// GNSSFix is oneway_gnss_fix.
	GNSSFix = &Desc{
		Name: "oneway_gnss_fix", Kind: Gauge, Labels: []string{ReceiverL},
		Help:   "Kind of fix: 1 none, 2 two-dimensional, 3 three-dimensional.",
		Absent: "Until the receiver has said, and while it is not heard.",
		Source: "gpsd_json(5), TPV mode",
	}
	// GNSSSatellitesUsed is oneway_gnss_satellites_used.
	GNSSSatellitesUsed = &Desc{
		Name: "oneway_gnss_satellites_used", Kind: Gauge, Labels: []string{ReceiverL},
		Help:   "Satellites used in the solution.",
		Absent: "Until the receiver has said, and while it is not heard.",
		Source: "gpsd_json(5), SKY uSat",
	}
	// GNSSSatellitesSeen is oneway_gnss_satellites_seen.
	GNSSSatellitesSeen = &Desc{
		Name: "oneway_gnss_satellites_seen", Kind: Gauge, Labels: []string{ReceiverL},
		Help:   "Satellites in view.",
		Absent: "Until the receiver has said, and while it is not heard.",
		Source: "gpsd_json(5), SKY nSat",
	}
	// GNSSPulseOffset is oneway_gnss_pulse_offset_seconds.
	GNSSPulseOffset = &Desc{
		Name: "oneway_gnss_pulse_offset_seconds", Kind: Gauge, Labels: []string{ReceiverL},
		Help:   "System clock minus the true second at gpsd's last pulse, in seconds; positive: the clock is fast.",
		Absent: "Without a pulse for 5 s.",
		Source: "gpsd_json(5), PPS",
	}
	// GNSSSawtooth is oneway_gnss_sawtooth_seconds.
	GNSSSawtooth = &Desc{
		Name: "oneway_gnss_sawtooth_seconds", Kind: Gauge, Labels: []string{ReceiverL},
		Help:   "Quantisation error of the last pulse that the receiver itself tells of (qErr), in seconds.",
		Absent: "From a receiver that does not tell, and without a pulse for 5 s.",
		Source: "gpsd_json(5), PPS qErr",
	}
	// GNSSTimeOffset is oneway_gnss_time_offset_seconds.
	GNSSTimeOffset = &Desc{
		Name: "oneway_gnss_time_offset_seconds", Kind: Gauge, Labels: []string{ReceiverL},
		Help:   "System clock minus the time in the receiver's last sentence (NMEA), in seconds: the sentence's own lateness included.",
		Absent: "Without such a message for 5 s.",
		Source: "gpsd_json(5), TOFF",
	}
	// GNSSLastMessage is oneway_gnss_last_message_timestamp_seconds.
	GNSSLastMessage = &Desc{
		Name: "oneway_gnss_last_message_timestamp_seconds", Kind: Gauge, Labels: []string{ReceiverL},
		Help:   "Unix time of the receiver's last message.",
		Absent: "Before the first.",
		Source: "gpsd_json(5)",
	}
	// GNSSConnections is oneway_gnss_connections_total.
	GNSSConnections = &Desc{
		Name: "oneway_gnss_connections_total", Kind: Counter, Labels: []string{ReceiverL},
		Help:   "Connections made to gpsd: more than one means that it went away.",
		Source: "clock/gpsd",
	}
	// GNSSMalformed is oneway_gnss_malformed_total.
	GNSSMalformed = &Desc{
		Name: "oneway_gnss_malformed_total", Kind: Counter, Labels: []string{ReceiverL, ReasonL},
		Help:   "Lines of gpsd that were not understood, by reason.",
		Source: "clock/gpsd",
	}
)

// The pulse per second, as the kernel stamps it.
var (
	// PPSPulses is oneway_pps_pulses_total.
	PPSPulses = &Desc{
		Name: "oneway_pps_pulses_total", Kind: Counter, Labels: []string{PulseL},
		Help:   "Pulses per second that the kernel has stamped.",
		Source: "RFC 2783; Linux Documentation/driver-api/pps.rst",
	}
	// PPSMissed is oneway_pps_missed_total.
	PPSMissed = &Desc{
		Name: "oneway_pps_missed_total", Kind: Counter, Labels: []string{PulseL},
		Help:   "Seconds without a pulse between two pulses.",
		Source: "RFC 2783",
	}
	// PPSJitter is oneway_pps_jitter_seconds.
	PPSJitter = &Desc{
		Name: "oneway_pps_jitter_seconds", Kind: Gauge, Labels: []string{PulseL},
		Help:   "Standard deviation of the last 64 intervals between pulses on CLOCK_MONOTONIC_RAW, in seconds.",
		Absent: "Before eight intervals, and without a pulse for 5 s.",
		Source: "thesis, figure 4.2",
	}
	// PPSLast is oneway_pps_last_pulse_timestamp_seconds.
	PPSLast = &Desc{
		Name: "oneway_pps_last_pulse_timestamp_seconds", Kind: Gauge, Labels: []string{PulseL},
		Help:   "Unix time of the last pulse.",
		Absent: "Before the first.",
		Source: "RFC 2783",
	}
	// PPSRejected is oneway_pps_rejected_total.
	PPSRejected = &Desc{
		Name: "oneway_pps_rejected_total", Kind: Counter, Labels: []string{PulseL, ReasonL},
		Help:   "Pulses that the independent judge of the clock did not use, by reason: doubled, noisy, gap, step, garbled (a stamp or sequence that cannot be) or late (read too long after the pulse to place it).",
		Source: "thesis, figure 4.2: median filter, relative threshold 1e-4",
	}
	// PPSFitOffset is oneway_pps_fit_offset_seconds.
	PPSFitOffset = &Desc{
		Name: "oneway_pps_fit_offset_seconds", Kind: Gauge, Labels: []string{PulseL},
		Help:   "System clock minus the time interpolated between filtered pulses over CLOCK_MONOTONIC_RAW, in seconds: the thesis's own method, independent of the clock daemon. Modulo one second.",
		Absent: "Until enough pulses agree, and without a pulse for 5 s.",
		Source: "thesis, chapter 4, figures 4.1 to 4.3",
	}
	// PPSFitBound is oneway_pps_fit_error_bound_seconds.
	PPSFitBound = &Desc{
		Name: "oneway_pps_fit_error_bound_seconds", Kind: Gauge, Labels: []string{PulseL},
		Help:   "How far the pulses' interpolation itself may be off, in seconds.",
		Absent: "As oneway_pps_fit_offset_seconds.",
		Source: "estimate/ppsfit",
	}
)
