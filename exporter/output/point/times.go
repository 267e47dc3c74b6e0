package point

import (
	"strings"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/record"
)

// times are the last times of tag sets.
type times map[string]*last

// last is the time of the last point of a tag set.
type last struct{ at instant.Time }

// maxStep separates an equal time from a clock that was stepped back: points of a stepped clock keep their times.
const maxStep = time.Millisecond

// maxTimes limits the tag sets that are remembered.
const maxTimes = 1 << 14

// of is the last time of the tag set of p.
func (t times) of(p *Point) *last {
	key := keyOf(p)
	one := t[key]
	if one == nil {
		if len(t) >= maxTimes {
			clear(t)
		}
		one = &last{}
		t[key] = one
	}
	return one
}

func keyOf(p *Point) string {
	var b strings.Builder
	b.WriteString(p.Measurement)
	for _, t := range p.Tags {
		b.WriteByte(0)
		b.WriteString(t.Value)
	}
	return b.String()
}

// unique is at, or 1 ns after the last time if that is not before it.
func (l *last) unique(at instant.Time) instant.Time {
	if behind := l.at.Sub(at); behind >= 0 && behind < maxStep {
		at = l.at + 1
	}
	l.at = at
	return at
}

// Reports of a path whose packets overlap are moved by different times of at most a microsecond: at most overlaps of them have a
// packet in common (package incident: one report in 10 s, of 10 minutes), and at most sameTime packets have one time of sending.
const (
	overlaps = 128
	sameTime = 8
)

// overlap is when the last report of a path ends, and the number of reports before it without a gap.
type overlap struct {
	end    instant.Time
	number instant.Time
}

// shift is the time by which the packets of a report, in the order of sending, are moved.
func (r *Raw) shift(p *Point, from *record.Table) instant.Time {
	rows, time := from.Rows, from.Schema.Time
	if len(rows) == 0 {
		return 0
	}
	key := keyOf(p)
	before, known := r.overlap[key]
	now := overlap{end: from.Begin + instant.Time(rows[len(rows)-1][time])}
	if known && from.Begin+instant.Time(rows[0][time]) <= before.end+overlaps*sameTime {
		now.number = before.number + 1
	}
	if len(r.overlap) >= maxTimes {
		clear(r.overlap)
	}
	r.overlap[key] = now
	return now.number % overlaps * sameTime
}
