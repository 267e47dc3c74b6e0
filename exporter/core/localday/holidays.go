package localday

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"oneway.example/exporter/core/textfile"
)

// Holidays is a list of days. A nil list has no day.
type Holidays struct {
	days map[int32]struct{} // year * 10000 + month * 100 + day
	last time.Time          // the last day, at 00:00 UTC
}

// Limits of a list.
const (
	maxFileBytes = 1 << 20
	maxDays      = 10_000
	maxEventDays = 31
	// yearsAhead is how far a yearly event without an end is repeated after the present year.
	yearsAhead = 10
)

// key is the date of t, in the location of t.
func key(t time.Time) int32 {
	year, month, day := t.Date()
	return int32(year*10000 + int(month)*100 + day) //nolint:gosec // a year of four digits
}

// Has reports whether the date of t, in its location, is a holiday.
func (h *Holidays) Has(t time.Time) bool {
	if h == nil {
		return false
	}
	_, found := h.days[key(t)]
	return found
}

// Last is the begin of the day after the last one of the list, in a location: nothing is known of the days from there on.
func (h *Holidays) Last(in *time.Location) time.Time {
	year, month, day := h.last.Date()
	return time.Date(year, month, day+1, 0, 0, 0, 0, in)
}

// Len is the number of days.
func (h *Holidays) Len() int { return len(h.days) }

func (h *Holidays) add(day time.Time) error {
	if h.days[key(day)] = struct{}{}; len(h.days) > maxDays {
		return fmt.Errorf("it has more than %d days", maxDays)
	}
	if day.After(h.last) {
		h.last = day
	}
	return nil
}

// ReadHolidays reads a list of holidays: a text file with a date a line, such as "2026-12-25 Christmas Day", where empty lines and lines
// that begin with # are left out, or an iCalendar file (RFC 5545). now decides how far yearly events are repeated. An error names file and line.
func ReadHolidays(name string, now time.Time) (*Holidays, error) {
	content, err := textfile.Read(name, maxFileBytes, regular)
	if err != nil {
		return nil, err
	}
	h, line, err := parse(content, now)
	if err != nil && line > 0 {
		return nil, fmt.Errorf("%s:%d: %w", name, line, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return h, nil
}

// regular refuses a pipe or a device, whose end may never come.
func regular(name string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s must be a regular file", name)
	}
	return nil
}

// parse returns the line of an error; 0: it is of the whole file.
func parse(content []byte, now time.Time) (*Holidays, int, error) {
	h := &Holidays{days: map[int32]struct{}{}}
	read := h.text
	if bytes.HasPrefix(bytes.TrimSpace(bytes.ToUpper(content[:min(len(content), 64)])), []byte("BEGIN:VCALENDAR")) {
		read = h.iCalendar
	}
	if line, err := read(strings.Split(string(content), "\n"), now); err != nil {
		return nil, line, err
	}
	if len(h.days) == 0 {
		return nil, 0, errors.New("it has no day; it must have dates such as 2026-12-25, one a line, or events of an iCalendar file")
	}
	return h, 0, nil
}

func (h *Holidays) text(lines []string, _ time.Time) (int, error) {
	for i, line := range lines {
		date, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		date, _, _ = strings.Cut(date, "\t")
		if date == "" || strings.HasPrefix(date, "#") {
			continue
		}
		day, err := time.Parse(time.DateOnly, date)
		if err != nil {
			return i + 1, fmt.Errorf("%.40q is no date; it must be like 2026-12-25", date)
		}
		if err := h.add(day); err != nil {
			return i + 1, err
		}
	}
	return 0, nil
}

// event is a VEVENT of an iCalendar file.
type event struct {
	first, end time.Time // end is not included; zero: one day
	yearly     bool
	until      time.Time // the last begin of a yearly event; zero: without an end
	count      int       // of a yearly event; 0: without one
	every      int       // years
	by         []string  // the parts of the rule that restate the date, such as BYMONTH=12
	without    map[int32]struct{}
}

// iCalendar reads the events of RFC 5545: whole days (DTSTART, DTEND), and their yearly repetition (RRULE with
// FREQ=YEARLY, INTERVAL, COUNT and UNTIL; EXDATE).
func (h *Holidays) iCalendar(lines []string, now time.Time) (int, error) {
	var e *event
	for i := 0; i < len(lines); i++ {
		at, line := i+1, strings.TrimRight(lines[i], "\r")
		for i+1 < len(lines) && (strings.HasPrefix(lines[i+1], " ") || strings.HasPrefix(lines[i+1], "\t")) { // RFC 5545 section 3.1: a folded line
			i++
			line += strings.TrimRight(lines[i][1:], "\r")
		}
		name, value, _ := strings.Cut(line, ":")
		name, _, _ = strings.Cut(strings.ToUpper(name), ";")
		value = strings.TrimSpace(value)
		var err error
		switch {
		case name == "BEGIN" && strings.EqualFold(value, "VEVENT"):
			e = &event{every: 1, without: map[int32]struct{}{}}
		case e == nil:
		case name == "END" && strings.EqualFold(value, "VEVENT"):
			err, e = h.event(e, now), nil
		case name == "DTSTART":
			if e.first, err = iCalendarDate(value); err == nil {
				err = wholeDay(value)
			}
		case name == "DTEND":
			e.end, err = iCalendarDate(value)
		case name == "RRULE":
			err = e.repeat(value)
		case name == "RDATE":
			err = errors.New("RDATE is not supported; write the dates as events")
		case name == "EXDATE":
			for one := range strings.SplitSeq(value, ",") {
				day, wrong := iCalendarDate(one)
				e.without[key(day)], err = struct{}{}, errors.Join(err, wrong)
			}
		}
		if err != nil {
			return at, err
		}
	}
	if e != nil {
		return 0, errors.New("its last VEVENT has no END; the file is cut off")
	}
	return 0, nil
}

// iCalendarDate is the day of a DATE or DATE-TIME; the time is left out.
func iCalendarDate(value string) (time.Time, error) {
	date, _, _ := strings.Cut(value, "T")
	day, err := time.Parse("20060102", date)
	if err != nil {
		return day, fmt.Errorf("%.40q is no date; it must be like 20261225", value)
	}
	return day, nil
}

// wholeDay refuses an event that begins within a day, such as a meeting: it is no holiday, or its date is of another zone.
func wholeDay(value string) error {
	if _, clock, _ := strings.Cut(strings.TrimSuffix(strings.ToUpper(value), "Z"), "T"); strings.Trim(clock, "0") != "" {
		return fmt.Errorf("the event begins within a day, at %.40q; a holiday must be whole days, such as DTSTART;VALUE=DATE:20261225", value)
	}
	return nil
}

// repeat reads a recurrence rule.
func (e *event) repeat(rule string) (err error) {
	for part := range strings.SplitSeq(rule, ";") {
		name, value, _ := strings.Cut(strings.ToUpper(part), "=")
		switch name {
		case "FREQ":
			if e.yearly = value == "YEARLY"; !e.yearly {
				return fmt.Errorf("RRULE with FREQ=%.20s is not supported; it must be FREQ=YEARLY, or write the dates as events", value)
			}
		case "INTERVAL", "COUNT":
			n, wrong := strconv.Atoi(value)
			if wrong != nil || n < 1 {
				return fmt.Errorf("%s of an RRULE is %.20q; it must be a number from 1 on", name, value)
			}
			if name == "COUNT" {
				e.count = n
			} else {
				e.every = n
			}
		case "UNTIL":
			if e.until, err = iCalendarDate(value); err != nil {
				return err
			}
		case "WKST":
		case "BYMONTH", "BYMONTHDAY":
			e.by = append(e.by, name+"="+value)
		default:
			return fmt.Errorf("RRULE with %.20s is not supported; write the dates as events", name)
		}
	}
	return nil
}

// event adds the days of an event.
func (h *Holidays) event(e *event, now time.Time) error {
	if e.first.IsZero() {
		return errors.New("the VEVENT has no DTSTART")
	}
	for _, part := range e.by {
		if part != fmt.Sprintf("BYMONTH=%d", e.first.Month()) && part != fmt.Sprintf("BYMONTHDAY=%d", e.first.Day()) {
			return fmt.Errorf("RRULE with %.40s is not supported where DTSTART has another date; write the dates as events", part)
		}
	}
	days := 1
	if !e.end.IsZero() {
		days = max(1, int(e.end.Sub(e.first)/(24*time.Hour)))
	}
	if days > maxEventDays {
		return fmt.Errorf("an event has %d days; it must have at most %d", days, maxEventDays)
	}
	last := e.first.Year()
	if e.yearly {
		last = now.Year() + yearsAhead
	}
	for year, n := e.first.Year(), 0; year <= last && (e.count == 0 || n < e.count); year += e.every {
		begin := time.Date(year, e.first.Month(), e.first.Day(), 0, 0, 0, 0, time.UTC)
		if !e.until.IsZero() && begin.After(e.until) {
			break
		}
		if begin.Day() != e.first.Day() { // 29 February of a common year
			continue
		}
		n++
		if _, left := e.without[key(begin)]; left {
			continue
		}
		for day := range days {
			if err := h.add(begin.AddDate(0, 0, day)); err != nil {
				return err
			}
		}
	}
	return nil
}
