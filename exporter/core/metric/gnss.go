package metric

// ReceiverL is the name of a GNSS receiver in the configuration, PulseL the name of a pulse per second.
const (
	ReceiverL = "receiver"
	PulseL    = "pps"
)

// GNSS receiver, as reported by gpsd.
var (
	GNSSConnected = Family(Desc{
		Name: "oneway_gnss_connected", Kind: Gauge, Labels: []string{ReceiverL}, Source: "gpsd_json(5), DEVICES",
		Help: "1 while gpsd is connected and has a device that was found or sent data in the last 15 s, else 0.",
	})
	GNSSFix = Family(Desc{
		Name: "oneway_gnss_fix", Kind: Gauge, Labels: []string{ReceiverL}, Source: "gpsd_json(5), TPV mode",
		Help:   "Kind of fix: 1 none, 2 two-dimensional, 3 three-dimensional.",
		Absent: "Until the receiver reports it, and while the receiver sends no data.",
	})
	GNSSSatellitesUsed = Family(Desc{
		Name: "oneway_gnss_satellites_used", Kind: Gauge, Labels: []string{ReceiverL}, Source: "gpsd_json(5), SKY uSat",
		Help:   "Satellites used in the solution.",
		Absent: "Until the receiver reports it, and while the receiver sends no data.",
	})
	GNSSSatellitesSeen = Family(Desc{
		Name: "oneway_gnss_satellites_seen", Kind: Gauge, Labels: []string{ReceiverL}, Source: "gpsd_json(5), SKY nSat",
		Help:   "Satellites in view.",
		Absent: "Until the receiver reports it, and while the receiver sends no data.",
	})
	GNSSPulseOffset = Family(Desc{
		Name: "oneway_gnss_pulse_offset_seconds", Kind: Gauge, Labels: []string{ReceiverL}, Source: "gpsd_json(5), PPS",
		Help:   "System clock minus the true second at gpsd's last pulse, in seconds; positive: the clock is fast.",
		Absent: "After 5 s without a pulse.",
	})
	GNSSSawtooth = Family(Desc{
		Name: "oneway_gnss_sawtooth_seconds", Kind: Gauge, Labels: []string{ReceiverL}, Source: "gpsd_json(5), PPS qErr",
		Help:   "Quantization error of the last pulse as reported by the receiver (qErr), in seconds.",
		Absent: "With a receiver that does not report it, and after 5 s without a pulse.",
	})
	GNSSTimeOffset = Family(Desc{
		Name: "oneway_gnss_time_offset_seconds", Kind: Gauge, Labels: []string{ReceiverL}, Source: "gpsd_json(5), TOFF",
		Help:   "System clock minus the time in the receiver's last NMEA sentence, in seconds; includes the delay of the sentence.",
		Absent: "After 5 s without such a message.",
	})
	GNSSLastMessage = Family(Desc{
		Name: "oneway_gnss_last_message_timestamp_seconds", Kind: Gauge, Labels: []string{ReceiverL}, Source: "gpsd_json(5)",
		Help:   "Unix time of the receiver's last message.",
		Absent: "Before the first.",
	})
	GNSSConnections = Family(Desc{
		Name: "oneway_gnss_connections_total", Kind: Counter, Labels: []string{ReceiverL}, Source: "gpsd",
		Help: "Connections made to gpsd: more than one means that a connection was lost.",
	})
	GNSSMalformed = Family(Desc{
		Name: "oneway_gnss_malformed_total", Kind: Counter, Labels: []string{ReceiverL, ReasonL}, Source: "gpsd",
		Help: "Lines from gpsd that could not be decoded, by reason.",
		Values: Values{
			ReasonL: {
				"too_long",
				"not_json",
				"wrong_type: a field is missing or of another type",
				"implausible: impossible for a receiver",
			},
		},
	})
)

// Pulse per second, as timestamped by the kernel.
var (
	PPSPulses = Family(Desc{
		Name: "oneway_pps_pulses_total", Kind: Counter, Labels: []string{PulseL},
		Help:   "Pulses of the PPS signal that the kernel timestamped.",
		Source: "RFC 2783; Linux Documentation/driver-api/pps.rst",
	})
	PPSMissed = Family(Desc{
		Name: "oneway_pps_missed_total", Kind: Counter, Labels: []string{PulseL}, Source: "RFC 2783",
		Help: "Seconds without a pulse between two pulses.",
	})
	PPSJitter = Family(Desc{
		Name: "oneway_pps_jitter_seconds", Kind: Gauge, Labels: []string{PulseL}, Source: "Woo 2010, figure 4.2",
		Help:   "Standard deviation of the last 64 intervals between pulses on CLOCK_MONOTONIC_RAW, in seconds.",
		Absent: "Before eight intervals, and after 5 s without a pulse.",
	})
	PPSLast = Family(Desc{
		Name: "oneway_pps_last_pulse_timestamp_seconds", Kind: Gauge, Labels: []string{PulseL}, Source: "RFC 2783",
		Help:   "Unix time of the last pulse.",
		Absent: "Before the first.",
	})
	PPSRejected = Family(Desc{
		Name: "oneway_pps_rejected_total", Kind: Counter, Labels: []string{PulseL, ReasonL},
		Help:   "Pulses that the interpolation of oneway_pps_fit_offset_seconds did not use, by reason.",
		Source: "Woo 2010, figure 4.2: median filter, relative threshold 1e-4",
		Values: Values{
			ReasonL: {
				"doubled: two pulses within a second",
				"noisy: its interval differs by more than 100 ppm from the median",
				"gap: the first after missed pulses",
				"step: the clock was stepped",
				"garbled: its timestamp or sequence number is impossible",
				"late: read too long after the pulse to assign it to a second",
			},
		},
	})
	PPSFitOffset = Family(Desc{
		Name: "oneway_pps_fit_offset_seconds", Kind: Gauge, Labels: []string{PulseL},
		Help:   "System clock minus the time interpolated between filtered pulses over CLOCK_MONOTONIC_RAW, modulo one second, in seconds (the method of Woo 2010), independent of the clock daemon.",
		Absent: "Until enough pulses agree, and after 5 s without a pulse.",
		Source: "Woo 2010, chapter 4, figures 4.1 to 4.3",
	})
	PPSFitBound = Family(Desc{
		Name: "oneway_pps_fit_error_bound_seconds", Kind: Gauge, Labels: []string{PulseL}, Source: "estimate/ppsfit",
		Help:   "Error bound of the interpolation itself, in seconds.",
		Absent: "As oneway_pps_fit_offset_seconds.",
	})
)

// pulseGroup has the families of TitlePulse.
func pulseGroup() Group {
	return Group{
		Title: TitlePulse,
		Descs: []*Desc{
			GNSSConnected, GNSSConnections, GNSSFix, GNSSLastMessage, GNSSMalformed, GNSSPulseOffset, GNSSSatellitesSeen,
			GNSSSatellitesUsed, GNSSSawtooth, GNSSTimeOffset, PPSFitBound, PPSFitOffset, PPSJitter, PPSLast, PPSMissed,
			PPSPulses, PPSRejected,
		},
		Measurements: []Measurement{
			{Name: "oneway_gnss", Labels: []string{ReceiverL}},
			{Name: "oneway_gnss_reason", Labels: []string{ReceiverL, ReasonL}},
			{Name: "oneway_pps", Labels: []string{PulseL}},
			{Name: "oneway_pps_reason", Labels: []string{PulseL, ReasonL}},
		},
	}
}
