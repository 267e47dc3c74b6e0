// Package localday is the local calendar of an agent: its time zone, its holidays, and the kind of a day. Windows of load tests, quotas of
// a day, and the labels hour and day_type of recorded series follow it.
package localday

import (
	"fmt"
	"sync/atomic"
	"time"

	"oneway.example/exporter/core/localzone"
)

// DayType is the kind of a local day, as the label day_type has it.
type DayType string

// The kinds of days. A holiday is neither of the others.
const (
	Weekday DayType = "weekday" // Monday to Friday
	Weekend DayType = "weekend" // Saturday and Sunday
	Holiday DayType = "holiday" // a day of the list of holidays
)

// Calendar is a time zone and its holidays. The zero value is the zone of this host without a list of holidays; see New.
type Calendar struct {
	name     string         // of the zone; empty: the zero value
	location *time.Location // nil: the zone of this host
	holidays *Holidays
}

// New returns the calendar of a zone of the zone database, such as Asia/Seoul; an empty name is the zone of this host. holidays may be nil:
// there is no list.
func New(zone string, holidays *Holidays) (Calendar, error) {
	c := Calendar{name: localzone.Host().ID(), holidays: holidays}
	if zone == "" {
		return c, nil
	}
	location, err := time.LoadLocation(zone)
	if err != nil || zone == "Local" {
		return c, fmt.Errorf("is %q, which is not in the zone database; it must be a name such as Asia/Seoul or Europe/Berlin", zone)
	}
	c.name, c.location = zone, location
	return c, nil
}

// Zone is the name of the zone, such as Asia/Seoul; "/etc/localtime" if this host has a copy of a zone without its name.
func (c Calendar) Zone() string {
	if c.name == "" {
		return localzone.Host().ID()
	}
	return c.name
}

// Name is the name of the zone, and its abbreviation and offset at a time.
func (c Calendar) Name(at time.Time) string {
	if c.location == nil {
		return localzone.Host().Name(at)
	}
	return c.name + " (" + c.Local(at).Format("MST, -07:00") + ")"
}

// Local is t in the zone.
func (c Calendar) Local(t time.Time) time.Time {
	if c.location == nil {
		return t.Local()
	}
	return t.In(c.location)
}

// Holidays is the list of holidays; nil: there is none.
func (c Calendar) Holidays() *Holidays { return c.holidays }

// DayType is the kind of the local day at t.
func (c Calendar) DayType(t time.Time) DayType {
	t = c.Local(t)
	return TypeOf(t.Weekday(), c.holidays.Has(t))
}

// TypeOf is the kind of a day of the week.
func TypeOf(day time.Weekday, holiday bool) DayType {
	switch {
	case holiday:
		return Holiday
	case day == time.Saturday || day == time.Sunday:
		return Weekend
	}
	return Weekday
}

// Clock is the present calendar of an agent, which a reload replaces. A nil Clock, and the zero value, have the zero Calendar. Its methods
// are safe for concurrent use.
type Clock struct{ calendar atomic.Pointer[Calendar] }

// Set replaces the calendar.
func (c *Clock) Set(calendar Calendar) { c.calendar.Store(&calendar) }

// Calendar is the present one.
func (c *Clock) Calendar() Calendar {
	if c == nil {
		return Calendar{}
	}
	if now := c.calendar.Load(); now != nil {
		return *now
	}
	return Calendar{}
}

// Now is the present time, in the zone of the calendar.
func (c *Clock) Now() time.Time { return c.Calendar().Local(time.Now()) }
