package agent

import (
	"time"

	"oneway.example/exporter/clock/gpsd"
	"oneway.example/exporter/clock/pps"
	"oneway.example/exporter/config"
	"oneway.example/exporter/instant"
)

// ReceiverStatus is about the GNSS receiver behind gpsd. What is not known is nil,
// empty or zero.
type ReceiverStatus struct {
	// Name and Address are those of the configuration, Device what gpsd calls it.
	Name, Address, Device string
	// Answering: gpsd is there; Connected: it has the receiver, too.
	Answering, Connected bool
	// Error is why gpsd is not asked.
	Error string
	// Fix is "none", "2D", "3D" or "unknown".
	Fix string
	// Used and Seen count satellites.
	Used, Seen *int
	// PulseOffset is the system clock minus the true second at gpsd's last pulse.
	PulseOffset *time.Duration
	// LastMessage is when the receiver was last heard.
	LastMessage time.Time
}

// PulseStatus is about the pulse per second that the kernel stamps.
type PulseStatus struct {
	// Name, Device and Edge are those of the configuration.
	Name, Device, Edge string
	// Present: a pulse has just come. Error is why not, as far as that is known.
	Present bool
	Error   string
	// Pulses were stamped since the start, and Missed seconds had none.
	Pulses, Missed uint64
	// Last is the last pulse; zero before the first.
	Last time.Time
	// Jitter is that of the intervals; nil until there are enough.
	Jitter *time.Duration
	// Offset is the system clock minus the time of the pulses, modulo one second,
	// and Bound how far that may be off; nil until enough pulses agree.
	Offset, Bound *time.Duration
}

func receiverStatus(w *watched[config.GPSD, gpsd.State]) *ReceiverStatus {
	if w == nil {
		return nil
	}
	s := &w.state
	r := &ReceiverStatus{
		Name: w.config.Name, Address: w.config.Address, Device: s.Device, Answering: s.Answering, Connected: s.Connected,
		Error: w.err, Fix: s.Fix.String(), Used: counted(s.Used), Seen: counted(s.Seen), LastMessage: moment(s.LastMessage),
	}
	if !s.Pulse.At.IsZero() {
		r.PulseOffset = &s.Pulse.Offset
	}
	return r
}

func counted(c gpsd.Count) *int {
	if !c.Known {
		return nil
	}
	return &c.N
}

func pulseStatus(w *watched[config.PPS, pps.State]) *PulseStatus {
	if w == nil {
		return nil
	}
	s := &w.state
	p := &PulseStatus{
		Name: w.config.Name, Device: w.config.Device, Edge: w.config.Edge,
		Present: s.Present, Error: w.err, Pulses: s.Pulses, Missed: s.Missed, Last: moment(s.Last.Assert),
	}
	if p.Error == "" {
		p.Error = s.Fault
	}
	if s.JitterKnown {
		p.Jitter = &s.Jitter
	}
	if s.FitKnown {
		p.Offset, p.Bound = &s.FitOffset, &s.FitBound
	}
	return p
}

// moment is a time for people; zero if there is none.
func moment(t instant.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return time.Unix(0, int64(t))
}
