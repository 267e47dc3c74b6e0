// Package instant holds a UTC instant as a whole number of nanoseconds.
//
// It is the one representation of a time stamp between the sockets, the wire
// formats and the estimators: eight bytes, comparable, free of allocation, and
// without the time zone and monotonic reading that time.Time carries along.
package instant

import "time"

// Time is a count of nanoseconds since 1970-01-01T00:00:00Z, leap seconds not
// counted (POSIX time). The range is 1677-09-21 to 2262-04-11. The zero value
// means "no stamp": the year 1970 never occurs in a measurement.
type Time int64

// FromTime converts t; the monotonic reading and the zone are dropped. A zero
// time.Time becomes the zero Time.
func FromTime(t time.Time) Time {
	if t.IsZero() {
		return 0
	}
	return Time(t.UnixNano())
}

// FromUnix builds a Time from seconds and nanoseconds, as a kernel timespec
// has them.
func FromUnix(seconds, nanoseconds int64) Time {
	return Time(seconds*int64(time.Second) + nanoseconds)
}

// Now reads the system's real-time clock.
func Now() Time { return Time(time.Now().UnixNano()) }

// IsZero reports whether there is no stamp.
func (t Time) IsZero() bool { return t == 0 }

// Sub returns t-u. A negative difference is a fact (two clocks that disagree)
// and is kept.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// Add returns t+d.
func (t Time) Add(d time.Duration) Time { return t + Time(d) }

// Time converts to a time.Time in UTC. The zero Time becomes the zero time.Time.
func (t Time) Time() time.Time {
	if t == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(t)).UTC()
}

// String is RFC 3339 with nanoseconds, or "none" for the zero value.
func (t Time) String() string {
	if t == 0 {
		return "none"
	}
	return t.Time().Format(time.RFC3339Nano)
}
