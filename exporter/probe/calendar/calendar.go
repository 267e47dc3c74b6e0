// Package calendar calculates when runs of a load test are due: at an interval, in windows of the
// local day.
package calendar

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// Calendar calculates when runs of a load test are due. The zero Calendar is invalid; see
// Check.
type Calendar struct {
	// Every is the interval between runs, above 0.
	Every time.Duration
	// Jitter is the range of a random offset of each run, half of it before and half after
	// Every, so that the mean interval stays Every; at most Every/JitterPart. Without it, two schedules
	// that coincide once on a link coincide at each run.
	Jitter time.Duration
	// Windows are when a run may begin, in the location of Next's argument; none:
	// at any time.
	Windows []Window
}

// JitterPart is the least ratio of Every to Jitter.
const JitterPart = 2

// Check validates a calendar.
func (c Calendar) Check() error {
	switch {
	case c.Every <= 0:
		return fmt.Errorf("calendar: every is %v; it must be above 0s", c.Every)
	case c.Jitter < 0 || c.Jitter > c.Every/JitterPart:
		return fmt.Errorf("calendar: jitter is %v; it must be between 0s and %v", c.Jitter, c.Every/JitterPart)
	}
	for _, w := range c.Windows {
		if w.From < 0 || w.From >= minutesOfDay || w.To < 1 || w.To > minutesOfDay || w.From == w.To {
			return errors.New("calendar: a window is never open")
		}
	}
	return nil
}

// First returns when the first run after a start at now is due: after a random part of Every, so
// that the tests of a restarted host do not all begin at once. A nil rng: now.
func (c Calendar) First(now time.Time, rng *rand.Rand) time.Time {
	return c.fit(now.Add(below(c.Every, rng)), rng)
}

// Next returns when the run that follows the run due at after is due: Every later, plus a random
// offset within Jitter. If no window is open then, it is when the next opens, plus a random part of
// Every or of the window, so that waiting runs do not all begin at once. It is the zero Time if no
// window ever opens. A nil rng: no random part.
func (c Calendar) Next(after time.Time, rng *rand.Rand) time.Time {
	due := after.Add(c.Every)
	if rng != nil && c.Jitter > 0 {
		due = due.Add(below(c.Jitter+1, rng) - c.Jitter/2)
	}
	return c.fit(due, rng)
}

// Open reports whether a run may begin at t.
func (c Calendar) Open(t time.Time) bool {
	for _, w := range c.Windows {
		if _, open := w.OpenUntil(t); open {
			return true
		}
	}
	return len(c.Windows) == 0
}

// OpenUntil is the end of the time in which the window is open at t, in the location of t; open is false, with a zero end, if it is closed then.
func (w Window) OpenUntil(t time.Time) (end time.Time, open bool) {
	for days := -1; days <= 0; days++ { // and the window that opened yesterday
		if begin, to, ok := w.opens(t, days); ok && !t.Before(begin) && t.Before(to) {
			return to, true
		}
	}
	return time.Time{}, false
}

// Opens is when the window opens next after t, in the location of t; the zero Time: never.
func (w Window) Opens(t time.Time) time.Time {
	for days := 0; days <= maxAhead; days++ {
		if begin, end, ok := w.opens(t, days); ok && begin.After(t) && end.After(begin) {
			return begin
		}
	}
	return time.Time{}
}

// MostRuns is the most runs that are due within a day without a change of daylight saving time, by a plan without jitter.
func (c Calendar) MostRuns() int {
	most := 0
	if len(c.Windows) == 0 {
		most = minutesOfDay
	}
	for day := 0; day < 7 && len(c.Windows) > 0; day++ {
		var open [minutesOfDay]bool
		for _, w := range c.Windows {
			w.mark(&open, time.Weekday(day))
		}
		n := 0
		for _, is := range open {
			if is {
				n++
			}
		}
		most = max(most, n)
	}
	return int((time.Duration(most)*time.Minute + c.Every - 1) / c.Every)
}

// mark marks the minutes of a day of the week at which the window is open.
func (w Window) mark(open *[minutesOfDay]bool, day time.Weekday) {
	on := func(d time.Weekday) bool { return w.Days == 0 || w.Days&(1<<d) != 0 }
	for m := range open {
		switch {
		case w.To > w.From:
			open[m] = open[m] || on(day) && m >= w.From && m < w.To
		default: // it closes on the day after it opened
			open[m] = open[m] || on(day) && m >= w.From || on((day+6)%7) && m < w.To
		}
	}
}

// fit returns t if a window is open then, or else a time in the next window.
func (c Calendar) fit(t time.Time, rng *rand.Rand) time.Time {
	if c.Open(t) {
		return t
	}
	var begin, end time.Time
	for _, w := range c.Windows {
		for days := 0; days <= maxAhead; days++ {
			b, e, ok := w.opens(t, days)
			if !ok || !b.After(t) || !e.After(b) {
				continue
			}
			if begin.IsZero() || b.Before(begin) {
				begin, end = b, e
			}
			break
		}
	}
	if begin.IsZero() {
		return begin
	}
	return begin.Add(below(min(c.Every, end.Sub(begin)), rng))
}

// maxAhead is in days. It suffices for a window of one day of the week within the hour that a
// change to daylight saving time skips.
const maxAhead = 14

// below returns a random duration in [0, d); 0 without rng.
func below(d time.Duration, rng *rand.Rand) time.Duration {
	if rng == nil || d <= 0 {
		return 0
	}
	return time.Duration(rng.Int64N(int64(d)))
}

// minutesOfDay of a day without a change of daylight saving time.
const minutesOfDay = 24 * 60

// Window is a time of day, in local time. The zero Window never opens.
type Window struct {
	// Days has a bit (1 << time.Sunday ... 1 << time.Saturday) for each day on which the window
	// opens; 0: every day.
	Days uint8
	// From and To are minutes since midnight: From 0 to 1439, To 1 to 1440. If To is not above
	// From, the window closes on the day after it opened.
	From, To int
}

var errWindow = errors.New(`it must be a time of the day, such as "22:00-06:00", with days, such as "mon-fri 09:00-17:00", or days alone, such as "sat,sun"`)

// UnmarshalText parses "22:00-06:00", "mon-fri 09:00-17:00" or "sat,sun". The second time is
// exclusive; 24:00 is the end of the day.
func (w *Window) UnmarshalText(text []byte) (err error) {
	*w = Window{To: minutesOfDay}
	switch fields := strings.Fields(strings.ToLower(string(text))); {
	case len(fields) == 2:
		if err = w.setDays(fields[0]); err == nil {
			err = w.setTimes(fields[1])
		}
	case len(fields) != 1:
		err = errWindow
	case strings.Contains(fields[0], ":"):
		err = w.setTimes(fields[0])
	default:
		err = w.setDays(fields[0])
	}
	if err != nil {
		*w = Window{}
	}
	return err
}

// Pattern matches the texts of UnmarshalText.
func (Window) Pattern() string { return `^[A-Za-z,-]* *([0-9]{1,2}:[0-9]{2}-[0-9]{1,2}:[0-9]{2})?$` }

func (w *Window) setTimes(s string) error {
	from, to, ok := strings.Cut(s, "-")
	first, okFrom := minute(from)
	last, okTo := minute(to)
	switch {
	case !ok || !okFrom || !okTo || first == minutesOfDay || last == 0:
		return errWindow
	case first == last:
		return errors.New("it is never open; for the whole day write 00:00-24:00")
	}
	w.From, w.To = first, last
	return nil
}

// minute parses "09:30", 00:00 to 24:00.
func minute(s string) (int, bool) {
	if s == "24:00" {
		return minutesOfDay, true
	}
	t, err := time.Parse("15:04", s)
	return t.Hour()*60 + t.Minute(), err == nil
}

func (w *Window) setDays(s string) error {
	for part := range strings.SplitSeq(s, ",") {
		from, to, ranged := strings.Cut(part, "-")
		first, ok := weekday(from)
		last := first
		if ok && ranged {
			last, ok = weekday(to)
		}
		if !ok {
			return errWindow
		}
		for d := first; ; d = (d + 1) % 7 {
			w.Days |= 1 << d
			if d == last {
				break
			}
		}
	}
	return nil
}

// weekday parses "mon" or "monday".
func weekday(s string) (time.Weekday, bool) {
	for d := time.Sunday; d <= time.Saturday; d++ {
		if name := strings.ToLower(d.String()); s == name || s == name[:3] {
			return d, true
		}
	}
	return 0, false
}

// MarshalText returns what UnmarshalText parses. The error is nil.
func (w Window) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// String returns the format that UnmarshalText parses.
func (w Window) String() string {
	times := fmt.Sprintf("%02d:%02d-%02d:%02d", w.From/60, w.From%60, w.To/60, w.To%60)
	var days []string
	for d := time.Sunday; d <= time.Saturday; d++ {
		if w.Days&(1<<d) != 0 {
			days = append(days, strings.ToLower(d.String()[:3]))
		}
	}
	if len(days) == 0 {
		return times
	}
	return strings.Join(days, ",") + " " + times
}

// opens returns the interval of the window that begins on the date of t, offset by days; ok is
// false if it opens on other days of the week. If a change to daylight saving time skips the whole
// window, begin equals end.
func (w Window) opens(t time.Time, days int) (begin, end time.Time, ok bool) {
	year, month, day := t.Date()
	date := time.Date(year, month, day+days, 12, 0, 0, 0, time.UTC)
	if w.From == w.To || w.Days != 0 && w.Days&(1<<date.Weekday()) == 0 {
		return time.Time{}, time.Time{}, false
	}
	to := w.To
	if to <= w.From {
		to += minutesOfDay
	}
	return Wall(year, month, day+days, w.From, t.Location()), Wall(year, month, day+days, to, t.Location()), true
}

// Wall returns the first instant at which local time in loc is minute of a date. If a change to
// daylight saving time skips that minute, it is the instant of the change. minute may be 1440 or
// more (the next date), and day outside its month, as in time.Date.
func Wall(year int, month time.Month, day, minute int, loc *time.Location) time.Time {
	// A change of offset is between the zones in force around the guess.
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
	case onWall(guess).After(shown): // the guess is after the gap
		return begin
	}
	return end
}

// onWall returns local time at t as if it were UTC.
func onWall(t time.Time) time.Time {
	_, offset := t.Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

// NextMidnight returns when the next date begins in the location of t, always after t. If clocks
// are put back over midnight, a date begins twice.
func NextMidnight(t time.Time) time.Time {
	year, month, day := t.Date()
	if next := Wall(year, month, day+1, 0, t.Location()); next.After(t) {
		return next
	}
	return t.Add(time.Date(year, month, day+1, 0, 0, 0, 0, time.UTC).Sub(onWall(t)))
}
