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
	GNSSConnected = pulseGroup.add(Desc{
		Name: "oneway_gnss_connected", Kind: Gauge, Labels: []string{ReceiverL}, Source: "gpsd_json(5), DEVICES",
		Help: "1 while gpsd is connected and has a device that it found or heard in the last 15 s, else 0.",
	})
	// GNSSFix is oneway_gnss_fix.
	GNSSFix = pulseGroup.add(Desc{
		Name: "oneway_gnss_fix", Kind: Gauge, Labels: []string{ReceiverL}, Source: "gpsd_json(5), TPV mode",
		Help:   "Kind of fix: 1 none, 2 two-dimensional, 3 three-dimensional.",
		Absent: "Until the receiver has said, and while it is not heard.",
	})
	// GNSSSatellitesUsed is oneway_gnss_satellites_used.
	GNSSSatellitesUsed = pulseGroup.add(Desc{
		Name: "oneway_gnss_satellites_used", Kind: Gauge, Labels: []string{ReceiverL}, Source: "gpsd_json(5), SKY uSat",
		Help:   "Satellites used in the solution.",
		Absent: "Until the receiver has said, and while it is not heard.",
	})
	// GNSSSatellitesSeen is oneway_gnss_satellites_seen.
	GNSSSatellitesSeen = pulseGroup.add(Desc{
		Name: "oneway_gnss_satellites_seen", Kind: Gauge, Labels: []string{ReceiverL}, Source: "gpsd_json(5), SKY nSat",
		Help:   "Satellites in view.",
		Absent: "Until the receiver has said, and while it is not heard.",
	})
	// GNSSPulseOffset is oneway_gnss_pulse_offset_seconds.
	GNSSPulseOffset = pulseGroup.add(Desc{
		Name: "oneway_gnss_pulse_offset_seconds", Kind: Gauge, Labels: []string{ReceiverL}, Source: "gpsd_json(5), PPS",
		Help:   "System clock minus the true second at gpsd's last pulse, in seconds; positive: the clock is fast.",
		Absent: "Without a pulse for 5 s.",
	})
	// GNSSSawtooth is oneway_gnss_sawtooth_seconds.
	GNSSSawtooth = pulseGroup.add(Desc{
		Name: "oneway_gnss_sawtooth_seconds", Kind: Gauge, Labels: []string{ReceiverL}, Source: "gpsd_json(5), PPS qErr",
		Help:   "Quantization error of the last pulse that the receiver itself tells of (qErr), in seconds.",
		Absent: "From a receiver that does not tell, and without a pulse for 5 s.",
	})
	// GNSSTimeOffset is oneway_gnss_time_offset_seconds.
	GNSSTimeOffset = pulseGroup.add(Desc{
		Name: "oneway_gnss_time_offset_seconds", Kind: Gauge, Labels: []string{ReceiverL}, Source: "gpsd_json(5), TOFF",
		Help:   "System clock minus the time in the receiver's last sentence (NMEA), in seconds: the sentence's own lateness included.",
		Absent: "Without such a message for 5 s.",
	})
	// GNSSLastMessage is oneway_gnss_last_message_timestamp_seconds.
	GNSSLastMessage = pulseGroup.add(Desc{
		Name: "oneway_gnss_last_message_timestamp_seconds", Kind: Gauge, Labels: []string{ReceiverL}, Source: "gpsd_json(5)",
		Help:   "Unix time of the receiver's last message.",
		Absent: "Before the first.",
	})
	// GNSSConnections is oneway_gnss_connections_total.
	GNSSConnections = pulseGroup.add(Desc{
		Name: "oneway_gnss_connections_total", Kind: Counter, Labels: []string{ReceiverL}, Source: "clock/gpsd",
		Help: "Connections made to gpsd: more than one means that it went away.",
	})
	// GNSSMalformed is oneway_gnss_malformed_total.
	GNSSMalformed = pulseGroup.add(Desc{
		Name: "oneway_gnss_malformed_total", Kind: Counter, Labels: []string{ReceiverL, ReasonL}, Source: "clock/gpsd",
		Help: "Lines of gpsd that were not understood, by reason.",
	})
)

// The pulse per second, as the kernel stamps it.
var (
	// PPSPulses is oneway_pps_pulses_total.
	PPSPulses = pulseGroup.add(Desc{
		Name: "oneway_pps_pulses_total", Kind: Counter, Labels: []string{PulseL},
		Help:   "Pulses per second that the kernel has stamped.",
		Source: "RFC 2783; Linux Documentation/driver-api/pps.rst",
	})
	// PPSMissed is oneway_pps_missed_total.
	PPSMissed = pulseGroup.add(Desc{
		Name: "oneway_pps_missed_total", Kind: Counter, Labels: []string{PulseL}, Source: "RFC 2783",
		Help: "Seconds without a pulse between two pulses.",
	})
	// PPSJitter is oneway_pps_jitter_seconds.
	PPSJitter = pulseGroup.add(Desc{
		Name: "oneway_pps_jitter_seconds", Kind: Gauge, Labels: []string{PulseL}, Source: "thesis, figure 4.2",
		Help:   "Standard deviation of the last 64 intervals between pulses on CLOCK_MONOTONIC_RAW, in seconds.",
		Absent: "Before eight intervals, and without a pulse for 5 s.",
	})
	// PPSLast is oneway_pps_last_pulse_timestamp_seconds.
	PPSLast = pulseGroup.add(Desc{
		Name: "oneway_pps_last_pulse_timestamp_seconds", Kind: Gauge, Labels: []string{PulseL}, Source: "RFC 2783",
		Help:   "Unix time of the last pulse.",
		Absent: "Before the first.",
	})
	// PPSRejected is oneway_pps_rejected_total.
	PPSRejected = pulseGroup.add(Desc{
		Name: "oneway_pps_rejected_total", Kind: Counter, Labels: []string{PulseL, ReasonL},
		Help:   "Pulses that the independent judge of the clock did not use, by reason: doubled, noisy, gap, step, garbled (a stamp or sequence that cannot be) or late (read too long after the pulse to place it).",
		Source: "thesis, figure 4.2: median filter, relative threshold 1e-4",
	})
	// PPSFitOffset is oneway_pps_fit_offset_seconds.
	PPSFitOffset = pulseGroup.add(Desc{
		Name: "oneway_pps_fit_offset_seconds", Kind: Gauge, Labels: []string{PulseL},
		Help:   "System clock minus the time interpolated between filtered pulses over CLOCK_MONOTONIC_RAW, in seconds: the thesis's own method, independent of the clock daemon. Modulo one second.",
		Absent: "Until enough pulses agree, and without a pulse for 5 s.",
		Source: "thesis, chapter 4, figures 4.1 to 4.3",
	})
	// PPSFitBound is oneway_pps_fit_error_bound_seconds.
	PPSFitBound = pulseGroup.add(Desc{
		Name: "oneway_pps_fit_error_bound_seconds", Kind: Gauge, Labels: []string{PulseL}, Source: "estimate/ppsfit",
		Help:   "How far the pulses' interpolation itself may be off, in seconds.",
		Absent: "As oneway_pps_fit_offset_seconds.",
	})
)
