package agent

import (
	"time"

	"oneway.example/exporter/agent/config"
	"oneway.example/exporter/core/errtext"
	"oneway.example/exporter/core/localday"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/option"
)

// calendarOptions are the keys of the section calendar.
type calendarOptions struct {
	Zone         string `yaml:"zone"`
	HolidaysFile string `yaml:"holidays_file"`
}

// Describe returns the descriptions of the keys of the calendar.
func (o *calendarOptions) Describe() []option.Description {
	return []option.Description{
		option.Text(&o.Zone, "The time zone of this host's paths, by its name in the zone database.").Unset("the zone of this host (TZ, else /etc/localtime)").WithExample("Asia/Seoul"),
		option.Text(&o.HolidaysFile, "The holidays: a text file with a date a line, such as 2026-12-25, or an iCalendar file with whole days, which may repeat yearly. A reload reads it again.").
			Unset("no day is a holiday").WithExample("holidays.txt"),
	}
}

// calendar makes the calendar of the options.
func (o *calendarOptions) calendar(at config.Section) (localday.Calendar, config.Problems) {
	var holidays *localday.Holidays
	var found config.Problems
	if at.Has("holidays_file") {
		list, err := localday.ReadHolidays(o.HolidaysFile, time.Now())
		if err != nil {
			found = at.Problems(option.Errorf("holidays_file", "cannot be used: %s", errtext.Words(err)))
		}
		holidays = list
	}
	switch {
	case at.Has("zone") && o.Zone == "":
		found = append(found, at.Problems(option.Errorf("zone", "is empty; it must be a name such as Asia/Seoul, or leave the key out"))...)
	default:
		c, err := localday.New(o.Zone, holidays)
		if err != nil {
			found = append(found, at.Problems(option.Errorf("zone", "%s", errtext.Words(err)))...)
		}
		return c, found
	}
	return localday.Calendar{}, found
}

// warnHolidays warns of a list of holidays that has ended.
func (s *sharedSection) warnHolidays(c *config.Config, now time.Time) config.Problems {
	list := s.local.Holidays()
	if list == nil {
		return nil
	}
	if end := list.Last(s.local.Local(now).Location()); !end.After(now) {
		return config.Problems{c.Calendar.Problem("holidays_file", "has no day after "+end.AddDate(0, 0, -1).Format(time.DateOnly)+"; add the holidays of this year, else they count as other days")}
	}
	return nil
}

// publishCalendar sets the series of the calendar.
func publishCalendar(local localday.Calendar, to *metric.Scope, now time.Time) {
	now = local.Local(now)
	_, offset := now.Zone()
	zone := local.Zone()
	to.Set(metric.UTCOffset, float64(offset), zone)
	if list := local.Holidays(); list != nil {
		holiday := 0.0
		if local.DayType(now) == localday.Holiday {
			holiday = 1
		}
		to.Set(metric.Holiday, holiday, zone)
		to.Set(metric.HolidaysEnd, float64(list.Last(now.Location()).Unix()))
	}
}
