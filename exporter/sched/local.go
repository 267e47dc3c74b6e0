package sched

import "time"

// wall is the first moment at which a clock on the wall, in loc, shows minute of a
// date or, where the clocks are put forward over that, something later. minute may
// be 1440 or more: the next date. day may be outside its month, as in time.Date.
func wall(year int, month time.Month, day, minute int, loc *time.Location) time.Time {
	// The clocks are put forward or back between the zones in force around it.
	shown := time.Date(year, month, day, 0, minute, 0, 0, time.UTC)
	guess := time.Date(year, month, day, 0, minute, 0, 0, loc)
	begin, end := guess.ZoneBounds()
	around := []time.Time{guess}
	if !begin.IsZero() {
		around = append(around, begin.Add(-1))
	}
	if !end.IsZero() {
		around = append(around, end)
	}
	var first time.Time
	for _, a := range around {
		_, offset := a.Zone()
		t := shown.Add(-time.Duration(offset) * time.Second).In(loc)
		if _, got := t.Zone(); got == offset && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	switch {
	case !first.IsZero():
		return first
	case onWall(guess).After(shown): // the guess is behind the gap
		return begin
	}
	return end
}

// onWall is what the clock on the wall shows at t, as if it were UTC.
func onWall(t time.Time) time.Time {
	_, offset := t.Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

// nextMidnight is when the next date begins where t is, always after t. Where clocks
// are put back from past midnight, a date begins twice.
func nextMidnight(t time.Time) time.Time {
	year, month, day := t.Date()
	if next := wall(year, month, day+1, 0, t.Location()); next.After(t) {
		return next
	}
	return t.Add(time.Date(year, month, day+1, 0, 0, 0, 0, time.UTC).Sub(onWall(t)))
}
