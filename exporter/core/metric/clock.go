package metric

// Clock.
var (
	ClockSynchronized = Family(Desc{
		Name: "oneway_clock_synchronized", Kind: Gauge, Labels: []string{ClockL}, Source: "RFC 7679 section 3.7.1",
		Help: "1 if this host's clock is trusted, else 0.",
	})
	ClockState = Family(Desc{
		Name: "oneway_clock_state", Kind: Gauge, Labels: []string{ClockL, "state"}, Source: "design",
		Help: "1 for the current state of the clock, 0 for the others.",
		Values: Values{
			StateL: {
				"synchronized",
				"holdover: the daemon lost its source, the bound grows",
				"stepping: stepped recently, delays are invalid",
				"unsynchronized: reported by the daemon",
				"silent: no reply of the daemon",
				"none: clock source none",
			},
		},
	})
	ClockErrorBound = Family(Desc{
		Name: "oneway_clock_error_bound_seconds", Kind: Gauge, Labels: []string{ClockL},
		Help:   "Largest possible offset of this host's clock to UTC, in seconds: |offset| + root dispersion aged by the skew + root delay/2, plus the largest slew until the next reply.",
		Absent: "While the clock is not trusted.",
		Source: "chrony manual, tracking; RFC 5905 section 11.2",
	})
	ClockOffset = Family(Desc{
		Name: "oneway_clock_offset_seconds", Kind: Gauge, Labels: []string{ClockL}, Source: "chrony manual, tracking: System time",
		Help:   "Offset of the system clock that the daemon is still correcting, in seconds, positive if the clock is fast.",
		Absent: "While the clock daemon does not reply.",
	})
	ClockFrequency = Family(Desc{
		Name: "oneway_clock_frequency_error_ratio", Kind: Gauge, Labels: []string{ClockL},
		Help:   "Rate at which the uncorrected clock would gain or lose, as a ratio; positive if fast.",
		Absent: "While the clock daemon does not reply.",
		Source: "chrony manual, tracking: Frequency",
	})
	ClockSkew = Family(Desc{
		Name: "oneway_clock_skew_ratio", Kind: Gauge, Labels: []string{ClockL}, Source: "chrony manual, tracking: Skew",
		Help:   "Error bound of the frequency, as a ratio.",
		Absent: "While the clock daemon does not reply.",
	})
	ClockReferenceInfo = Family(Desc{
		Name: "oneway_clock_reference_info", Kind: Gauge, Labels: []string{ClockL, "reference_id", "stratum", "leap_status", "kind"},
		Help:   "Always 1; the reference of the clock. kind is pps (a pulse), nmea (only a receiver's NMEA sentences), ptp (a hardware clock), ntp, local or other.",
		Absent: "While the clock daemon does not reply.",
		Source: "chrony manual, tracking: Reference ID",
	})
	ClockLastUpdate = Family(Desc{
		Name: "oneway_clock_last_update_timestamp_seconds", Kind: Gauge, Labels: []string{ClockL},
		Help:   "Unix time of the daemon's last update from its source.",
		Absent: "While the clock daemon does not reply.",
		Source: "chrony manual, tracking: Ref time",
	})
	ClockSteps = Family(Desc{
		Name: "oneway_clock_steps_total", Kind: Counter, Labels: []string{ClockL}, Source: "Linux clock_gettime(2)",
		Help: "Detected steps of CLOCK_REALTIME against CLOCK_MONOTONIC.",
	})
	ClockQueryFailures = Family(Desc{
		Name: "oneway_clock_query_failures_total", Kind: Counter, Labels: []string{ClockL, ReasonL}, Source: "chrony candm.h",
		Help: "Requests to the clock daemon without a usable reply, by reason.",
		Values: Values{
			ReasonL: {
				"unreachable: no socket, or no permission",
				"timeout",
				"truncated: shorter than a reply",
				"oversized: longer than a reply",
				"malformed: of another version or command",
				"wrong_sequence: a reply to another request",
				"flood: too many datagrams without the reply",
				"refused: chronyd's status is an error",
				"implausible: impossible for a clock",
			},
		},
	})
	RemoteClockSynchronized = Family(Desc{
		Name: "oneway_remote_clock_synchronized", Kind: Gauge, Labels: []string{Path, Probe},
		Help:   "1 if the remote end reports that its clock is synchronized (S bit of its Error Estimate, accepted only with an error of at most one hour), else 0.",
		Absent: "Before the first reply of the remote end and after it stops replying.",
		Source: "RFC 8762 section 4.2.1, RFC 4656 section 4.1.2",
	})
	RemoteClockErrorBound = Family(Desc{
		Name: "oneway_remote_clock_error_bound_seconds", Kind: Gauge, Labels: []string{Path, Probe},
		Help:   "Largest offset of the remote end's clock by its Error Estimate, in seconds.",
		Absent: "While the remote end is not synchronized or does not reply.",
		Source: "RFC 8762 section 4.2.1, RFC 4656 section 4.1.2",
	})
	TimestampCalibration = Family(Desc{
		Name: "oneway_timestamp_calibration_seconds", Kind: Gauge, Labels: []string{"interface", "kind"},
		Help:   "Calibration error of the timestamps of an interface, in seconds: kind systematic (removed from delays) or random (part of their bound).",
		Absent: "For an interface without a calibration (oneway calibrate).",
		Source: "RFC 7679 section 3.7.3",
	})
)

// clockGroup has the families of TitleClock.
func clockGroup() Group {
	return Group{
		Title: TitleClock,
		Descs: []*Desc{
			ClockErrorBound, ClockFrequency, ClockLastUpdate, ClockOffset, ClockQueryFailures, ClockReferenceInfo, ClockSkew,
			ClockState, ClockSteps, ClockSynchronized, RemoteClockErrorBound, RemoteClockSynchronized, TimestampCalibration,
		},
		Measurements: []Measurement{
			{Name: "oneway_clock", Labels: []string{ClockL}},
			{Name: "oneway_clock_reason", Labels: []string{ClockL, ReasonL}},
			{Name: "oneway_clock_state", Labels: []string{ClockL, StateL}},
			{Name: "oneway_clock_reference", Labels: []string{ClockL, "reference_id", "stratum", "leap_status", kindL}, Facts: []string{"reference_id", "stratum:int", "leap_status", "kind"}},
			{Name: "oneway_clock_remote", Labels: perProbe},
			{Name: "oneway_clock_calibration", Labels: []string{"interface", kindL}},
		},
	}
}
