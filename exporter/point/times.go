package point

import (
	"strings"
	"time"

	"oneway.example/exporter/instant"
	"oneway.example/exporter/record"
)

func instantOf(ns int64) instant.Time { return instant.Time(ns) }

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

// overlap is the end of the last report of a path, and the number of reports before it that it overlaps.
type overlap struct {
	end    int64
	number int64
}

// shift is the time by which the packets of a report are moved: the number of earlier reports, in a row, that have the same
// packets, in nanoseconds.
func (r *Raw) shift(p *Point, rows []record.RingRow) int64 {
	if len(rows) == 0 {
		return 0
	}
	begin, end := rows[0][record.RingSent], rows[0][record.RingSent]
	for i := range rows {
		begin, end = min(begin, rows[i][record.RingSent]), max(end, rows[i][record.RingSent])
	}
	key := keyOf(p)
	before, known := r.overlap[key]
	now := overlap{end: end}
	if known && begin <= before.end {
		now.number = before.number + 1
	}
	if len(r.overlap) >= maxTimes {
		clear(r.overlap)
	}
	r.overlap[key] = now
	return now.number
}
