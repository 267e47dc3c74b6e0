package slareport

import (
	"fmt"
	"time"
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
	return time.Date(y, m, d, 0, 0, 0, 0, t.Location())
}

// next is the begin of the next period; a day of daylight saving time has 23 or 25 hours.
func (b By) next(begin time.Time) time.Time {
	switch b {
	case Month:
		return begin.AddDate(0, 1, 0)
	case Week:
		return begin.AddDate(0, 0, 7)
	default:
		return begin.AddDate(0, 0, 1)
	}
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
	if t, err := time.ParseInLocation(time.DateOnly, text, zone); err == nil {
		return t, nil
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
