package sched

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// minutesOfDay is how many there are as a rule; on two days of the year there are
// more or less.
const minutesOfDay = 24 * 60

// Window is a time of the day, in local time. The zero Window is never open.
type Window struct {
	// Days has a bit (1 << time.Sunday ... 1 << time.Saturday) for every day on which
	// it opens; 0: every day.
	Days uint8
	// From and To are minutes since midnight: From 0 to 1439, To 1 to 1440. If To is
	// not above From, the window closes on the day after that on which it opened.
	From, To int
}

var errWindow = errors.New(`it must be a time of the day, such as "22:00-06:00", with days, such as "mon-fri 09:00-17:00", or days alone, such as "sat,sun"`)

// ParseWindow reads "22:00-06:00", "mon-fri 09:00-17:00" or "sat,sun". A window
// ends at the minute named; 24:00 is the end of the day.
func ParseWindow(s string) (Window, error) {
	fields := strings.Fields(strings.ToLower(s))
	w := Window{To: minutesOfDay}
	var err error
	switch len(fields) {
	case 1:
		if strings.Contains(fields[0], ":") {
			err = w.setTimes(fields[0])
		} else {
			err = w.setDays(fields[0])
		}
	case 2:
		err = errors.Join(w.setDays(fields[0]), w.setTimes(fields[1]))
	default:
		err = errWindow
	}
	if err != nil {
		return Window{}, fmt.Errorf("sched: window %q: %w", s, err)
	}
	return w, nil
}

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

// minute reads "09:30", 00:00 to 24:00.
func minute(s string) (int, bool) {
	hour, rest, ok := strings.Cut(s, ":")
	h, errHour := strconv.ParseUint(hour, 10, 8)
	m, errMinute := strconv.ParseUint(rest, 10, 8)
	if !ok || len(hour) > 2 || len(rest) != 2 || errHour != nil || errMinute != nil || m > 59 || h*60+m > minutesOfDay {
		return 0, false
	}
	return int(h*60 + m), true
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

// weekday reads "mon" or "monday".
func weekday(s string) (time.Weekday, bool) {
	for d := time.Sunday; d <= time.Saturday; d++ {
		if name := strings.ToLower(d.String()); s == name || s == name[:3] {
			return d, true
		}
	}
	return 0, false
}

// UnmarshalText is ParseWindow, for configurations.
func (w *Window) UnmarshalText(text []byte) error {
	parsed, err := ParseWindow(string(text))
	if err != nil {
		return err
	}
	*w = parsed
	return nil
}

// String is what ParseWindow reads.
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

// opens says when the window that begins on the date of t, offset by days, is open;
// ok is false if it opens on another day of the week. On the day on which the
// clocks are put forward over the whole of it, begin is end.
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
	return wall(year, month, day+days, w.From, t.Location()), wall(year, month, day+days, to, t.Location()), true
}
