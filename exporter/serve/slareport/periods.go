package slareport

import (
	"fmt"
	"time"

	"oneway.example/exporter/probe/calendar"
)

// By is the length of a row's period, in local time.
type By string

// The lengths of periods. A week begins on Monday.
const (
	Month By = "month"
	Week  By = "week"
	Day   By = "day"
)

// Units returns the lengths of periods.
func Units() []string { return []string{string(Month), string(Week), string(Day)} }

// Period is the time of a row: from From to To, without To.
type Period struct {
	From, To time.Time
	// Partial: the report has only a part of the month, week or day.
	Partial bool
}

// begin is the begin of the period that has t.
func (b By) begin(t time.Time) time.Time {
	y, m, d := t.Date()
	switch b {
	case Month:
		d = 1
	case Week:
		d -= (int(t.Weekday()) + 6) % 7
	default: // a day
	}
	return calendar.Wall(y, m, d, 0, t.Location())
}

// next is the begin of the next period; a day of daylight saving time has 23 or 25 hours, and may begin at 01:00.
func (b By) next(begin time.Time) time.Time {
	y, m, d := begin.Date()
	switch b {
	case Month:
		m, d = m+1, 1
	case Week:
		d += 7
	default:
		d++
	}
	return calendar.Wall(y, m, d, 0, begin.Location())
}

// AddMonths adds months to a time; the begin of a day remains one.
func AddMonths(t time.Time, months int) time.Time {
	if y, m, d := t.Date(); t.Equal(calendar.Wall(y, m, d, 0, t.Location())) {
		return calendar.Wall(y, m+time.Month(months), d, 0, t.Location())
	}
	return t.AddDate(0, months, 0)
}

// periods divides a time.
func (b By) periods(from, to time.Time) (all []Period) {
	for begin := b.begin(from); begin.Before(to); begin = b.next(begin) {
		p := Period{From: begin, To: b.next(begin)}
		if p.From.Before(from) {
			p.From, p.Partial = from, true
		}
		if p.To.After(to) {
			p.To, p.Partial = to, true
		}
		all = append(all, p)
	}
	return all
}

// ParseTime parses a date, its begin in the zone, or a time of RFC 3339.
func ParseTime(text string, zone *time.Location) (time.Time, error) {
	if t, err := time.Parse(time.DateOnly, text); err == nil {
		y, m, d := t.Date()
		return calendar.Wall(y, m, d, 0, zone), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, fmt.Errorf("is %q; it must be a date such as 2026-10-01, or a time such as 2026-10-01T06:00:00Z", text)
	}
	return t.In(zone), nil
}

// PreviousMonth is the last whole month before a time.
func PreviousMonth(now time.Time) (from, to time.Time) {
	to = Month.begin(now)
	return Month.begin(to.AddDate(0, 0, -1)), to
}
