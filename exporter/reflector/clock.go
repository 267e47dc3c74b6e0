package reflector

import (
	"oneway.example/exporter/clock"
	"oneway.example/exporter/instant"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/wire/stamp"
	"oneway.example/exporter/wire/timefmt"
)

// clockView is what this host's clock is worth during one batch: asking for
// each packet would tell nothing new.
type clockView struct {
	estimates [2]timefmt.ErrorEstimate // by format
	code      stamp.ClockCode
	source    uint8 // RFC 8972 section 4.3: synchronisation source
}

// Synchronisation sources and methods of RFC 8972 tables 7 and 9.
const (
	syncNTP, syncLocal        = 1, 5
	methodHW, methodSoftLocal = 1, 2
)

func viewClock(m clock.Monitor, at instant.Time) clockView {
	q := m.Quality(at)
	v := clockView{code: clockCode(q.State), source: syncLocal}
	if q.Synchronised() {
		v.source = syncNTP
	}
	for _, f := range []timefmt.Format{timefmt.NTP, timefmt.PTP} {
		v.estimates[f] = q.ErrorEstimate(f)
	}
	return v
}

func clockCode(s clock.State) stamp.ClockCode {
	switch s {
	case clock.Synchronised, clock.Holdover:
		return stamp.ClockOK
	case clock.Stepping:
		return stamp.ClockStepped
	case clock.None:
		return stamp.ClockNone
	case clock.Silent:
		return stamp.ClockSilent
	case clock.Unsynchronised:
	}
	return stamp.ClockUnsynchronised
}

// method is how a stamp was taken, as RFC 8972 has it. It does not tell the
// kernel from user space; our Receipt does.
func method(o sample.Origin) uint8 {
	if o == sample.Hardware {
		return methodHW
	}
	return methodSoftLocal
}
