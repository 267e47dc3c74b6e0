package localday

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the host may lack a zone database
)

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// list reads a list of holidays.
func list(t *testing.T, content string) (*Holidays, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "holidays")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := ReadHolidays(file, now)
	if err != nil && !strings.Contains(err.Error(), file) {
		t.Errorf("%q: error %q does not name the file", content, err)
	}
	return h, err
}

func calendarEvents(events ...string) string {
	text := "BEGIN:VCALENDAR\r\nVERSION:2.0\r\n"
	for _, e := range events {
		text += "BEGIN:VEVENT\r\n" + strings.ReplaceAll(e, "\n", "\r\n") + "\r\nEND:VEVENT\r\n"
	}
	return text + "END:VCALENDAR\r\n"
}

func TestDaysOfListsOfHolidays(t *testing.T) {
	for name, c := range map[string]struct {
		content  string
		days     []string
		others   []string
		number   int
		lastDate string
	}{
		"text": {
			"# of Korea\n\n2026-12-25 Christmas Day\r\n2027-01-01\tNew Year\n", []string{"2026-12-25", "2027-01-01"}, []string{"2026-12-26", "2027-12-25"}, 2, "2027-01-01",
		},
		"mark of byte order": {"\ufeff2026-12-25\n", []string{"2026-12-25"}, nil, 1, "2026-12-25"},
		"event of two days": {
			calendarEvents("DTSTART;VALUE=DATE:20261225\nDTEND;VALUE=DATE:20261227\nSUMMARY:Christmas"),
			[]string{"2026-12-25", "2026-12-26"},
			[]string{"2026-12-24", "2026-12-27"},
			2, "2026-12-26",
		},
		"event with times": {calendarEvents("DTSTART:20261225T000000Z\nSUMMARY:x"), []string{"2026-12-25"}, nil, 1, "2026-12-25"},
		"yearly": {
			calendarEvents("RRULE:FREQ=YEARLY;BYMONTH=12;BYMONTHDAY=25\nDTSTART;VALUE=DATE:20201225"),
			[]string{"2020-12-25", "2026-12-25", "2036-12-25"},
			[]string{"2019-12-25", "2037-12-25"},
			17, "2036-12-25",
		},
		"yearly, folded, with an end and an exception": {
			calendarEvents("DTSTART;VALUE=DATE:20240501\nRRULE:FREQ=YEARLY;\n UNTIL=20280501\nEXDATE;VALUE=DATE:20260501"),
			[]string{"2024-05-01", "2025-05-01", "2027-05-01", "2028-05-01"},
			[]string{"2026-05-01", "2029-05-01"},
			4, "2028-05-01",
		},
		"three times, each second year": {
			calendarEvents("DTSTART;VALUE=DATE:20240501\nRRULE:FREQ=YEARLY;INTERVAL=2;COUNT=3"),
			[]string{"2024-05-01", "2026-05-01", "2028-05-01"},
			[]string{"2025-05-01", "2030-05-01"},
			3, "2028-05-01",
		},
		"29 February (RFC 5545 section 3.3.10: a date that does not exist is left out)": {
			calendarEvents("DTSTART;VALUE=DATE:20240229\nRRULE:FREQ=YEARLY;COUNT=2"),
			[]string{"2024-02-29", "2028-02-29"},
			[]string{"2025-02-28", "2025-03-01", "2032-02-29"},
			2, "2028-02-29",
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, err := list(t, c.content)
			if err != nil {
				t.Fatal(err)
			}
			has := func(day string) bool {
				at, err := time.Parse(time.DateOnly, day)
				if err != nil {
					t.Fatal(err)
				}
				return h.Has(at.Add(23 * time.Hour))
			}
			for _, day := range c.days {
				if !has(day) {
					t.Errorf("%s is no holiday; it must be one", day)
				}
			}
			if i := slices.IndexFunc(c.others, has); i >= 0 {
				t.Errorf("%s is a holiday; it must be none", c.others[i])
			}
			if h.Len() != c.number {
				t.Errorf("%d days; want %d", h.Len(), c.number)
			}
			if got := h.Last(time.UTC).Add(-time.Second).Format(time.DateOnly); got != c.lastDate {
				t.Errorf("the last day is %s; want %s", got, c.lastDate)
			}
		})
	}
}

func TestListsThatCannotBeUsed(t *testing.T) {
	for content, want := range map[string]string{
		"":                                 "has no day",
		"# nothing\n":                      "has no day",
		"2026-12-25\n25.12.2026\n":         `:2: "25.12.2026" is no date`,
		"2026-02-30\n":                     `:1: "2026-02-30" is no date`,
		"BEGIN:VCALENDAR\nEND:VCALENDAR\n": "has no day",
		calendarEvents("SUMMARY:x"):        "has no DTSTART",
		calendarEvents("DTSTART:2026"):     "is no date",
		calendarEvents("DTSTART:20261126\nRRULE:FREQ=YEARLY;BYMONTH=11;BYDAY=4TH"): ":5: RRULE with BYDAY is not supported",
		calendarEvents("DTSTART:20270115T090000Z"):                                 `:4: the event begins within a day, at "20270115T090000Z"`,
		calendarEvents("DTSTART:20261126\nRRULE:FREQ=DAILY"):                       "FREQ=DAILY is not supported",
		calendarEvents("DTSTART:20261126\nRRULE:FREQ=YEARLY;BYMONTH=12"):           "BYMONTH=12 is not supported",
		calendarEvents("DTSTART:20261126\nRRULE:FREQ=YEARLY;COUNT=0"):              "COUNT of an RRULE",
		calendarEvents("DTSTART:20260101\nDTEND:20270101"):                         "an event has 365 days",
		"BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:20261126\n":                        "is cut off",
	} {
		if _, err := list(t, content); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v; want %q", content, err, want)
		}
	}
	if _, err := ReadHolidays(t.TempDir(), now); err == nil {
		t.Error("a directory is a list; want an error")
	}
}

func TestKindOfADayFollowsTheZone(t *testing.T) {
	h, err := list(t, "2026-12-25\n2026-12-26\n")
	if err != nil {
		t.Fatal(err)
	}
	seoul, err := New("Asia/Seoul", h)
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string]DayType{
		"2026-12-24T14:59:59Z": Weekday, // 23:59:59
		"2026-12-24T15:00:00Z": Holiday,
		"2026-12-26T14:59:59Z": Holiday, // a Saturday
		"2026-12-26T15:00:00Z": Weekend, // Sunday
		"2026-12-27T15:00:00Z": Weekday,
	} {
		instant, err := time.Parse(time.RFC3339, at)
		if err != nil {
			t.Fatal(err)
		}
		if got := seoul.DayType(instant); got != want {
			t.Errorf("%s is a %s in Seoul; want %s", at, got, want)
		}
	}
	if got := seoul.Zone(); got != "Asia/Seoul" {
		t.Errorf("zone %s", got)
	}
	for _, zone := range []string{"Seoul", "Local", "Asia/", "../etc"} {
		if _, err := New(zone, nil); err == nil {
			t.Errorf("zone %q is accepted", zone)
		}
	}
}

func TestClockHasTheCalendarThatWasSetLast(t *testing.T) {
	var c *Clock
	if got := c.Now().Location(); got != time.Local {
		t.Errorf("location %v without a clock; want the local one", got)
	}
	c = &Clock{}
	if got := c.Now().Location(); got != time.Local {
		t.Errorf("location %v of the zero value; want the local one", got)
	}
	kathmandu, err := New("Asia/Kathmandu", nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Set(kathmandu)
	if _, offset := c.Now().Zone(); offset != 5*3600+45*60 {
		t.Errorf("offset %d s in Kathmandu; want 20700", offset)
	}
}
