package gpsd

import (
	"fmt"
	"time"

	"oneway.example/exporter/instant"
)

// Fix is what kind of solution the receiver has. The values are those of TPV's mode.
type Fix uint8

// The kinds of fix. The zero value: the receiver has not said, or is not heard.
const (
	FixUnknown Fix = iota
	FixNone
	Fix2D
	Fix3D
)

// String is a short word for people.
func (f Fix) String() string {
	switch f {
	case FixUnknown:
		return "unknown"
	case FixNone:
		return "none"
	case Fix2D:
		return "2D"
	case Fix3D:
		return "3D"
	}
	return fmt.Sprintf("Fix(%d)", uint8(f))
}

// Count is a number that may be unknown, which is its zero value.
type Count struct {
	N     int
	Known bool
}

// String is the number, or "unknown".
func (c Count) String() string {
	if !c.Known {
		return "unknown"
	}
	return fmt.Sprint(c.N)
}

// Reading is the system's clock against the receiver at one event: a pulse, or
// the arrival of a sentence.
type Reading struct {
	// At is the event's time as the receiver tells it; zero: there is no reading.
	At instant.Time
	// Offset is the system's clock minus At; positive: the clock is fast.
	Offset time.Duration
	// Precision is gpsd's guess of the reading's precision, as a power of two in
	// seconds (-20: a microsecond); zero if it did not say.
	Precision int
}

// State is what is known of the receiver at one moment. What is not known, or
// no longer, has its zero value.
type State struct {
	// Answering: gpsd is connected and talks its protocol.
	Answering bool
	// Connected: gpsd is connected, has the receiver's device open, and has heard it
	// or found it in the last 15 s.
	Connected bool
	// Release is gpsd's version, such as 3.22.
	Release string
	// Device is the name of the device that is followed.
	Device string
	// Fix is the kind of solution.
	Fix Fix
	// Seen and Used are the numbers of satellites in view and in the solution.
	Seen, Used Count
	// Pulse is the last pulse per second, and Sawtooth the pulse's error as the
	// receiver itself tells it (qErr, in seconds), if it does.
	Pulse       Reading
	Sawtooth    float64
	HasSawtooth bool
	// Sentence is the last time report over the serial line (TOFF): its offset has
	// the sentence's lateness in it, and that of the clock.
	Sentence Reading
	// LastMessage is when the receiver was last heard, by the system's clock; it
	// outlives the connection.
	LastMessage instant.Time
}
