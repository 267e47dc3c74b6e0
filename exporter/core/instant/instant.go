// Package instant represents a UTC instant as an integer number of nanoseconds.
//
// It is the common representation of a timestamp in the sockets, the wire formats and the estimators: eight bytes,
// comparable, without allocation, and without the time zone and monotonic reading of time.Time.
package instant

import "time"

// Time is the number of nanoseconds since 1970-01-01T00:00:00Z without leap seconds (POSIX time). The range is 1677-09-21
// to 2262-04-11. The zero value means "no timestamp".
type Time int64

// FromTime converts t without its monotonic reading and time zone. A zero time.Time becomes the zero Time.
func FromTime(t time.Time) Time {
	if t.IsZero() {
		return 0
	}
	return Time(t.UnixNano())
}

// FromUnix makes a Time from seconds and nanoseconds, as in a kernel timespec.
func FromUnix(seconds, nanoseconds int64) Time {
	return Time(seconds*int64(time.Second) + nanoseconds)
}

// Now reads CLOCK_REALTIME.
func Now() Time { return Time(time.Now().UnixNano()) }

// IsZero reports whether there is no timestamp.
func (t Time) IsZero() bool { return t == 0 }

// Sub returns t-u. It is negative if t is before u, for example with two clocks that differ.
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
