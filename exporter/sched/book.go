package sched

import (
	"maps"
	"path/filepath"
	"slices"
	"time"
)

// maxDays is how many dates the book remembers.
const maxDays = 8

// day is what was used at one date of the local calendar.
type day struct {
	// Date is like 2026-11-21, so that dates sort as text.
	Date string `json:"date"`
	// Used is in IP octets, by link.
	Used map[string]int64 `json:"used"`
	// Unknown is the file, beside the state file, that is kept of one that was damaged, so
	// that Used may be too little; empty: it is not.
	Unknown string `json:"unknown,omitempty"`

	damage error // what was wrong with it; nil: a life before knew
}

// book has what was used by date, the date of now last. It remembers some dates,
// so that a clock that is stepped over midnight and back, or that is wrong between
// boot and the first answer of a time server, does not renew a budget:
//
//   - a date that is known has what it had;
//   - a new date later than the last begins with nothing used;
//   - a new date earlier than the last takes over what was used: a clock that goes
//     back gives nothing. Its next midnight renews the budget as ever.
type book struct{ days []*day }

// at returns the page of a date.
func (b *book) at(date string) *day {
	last := len(b.days) - 1
	if last >= 0 && b.days[last].Date == date {
		return b.days[last]
	}
	today := &day{Date: date, Used: map[string]int64{}}
	if i := slices.IndexFunc(b.days, func(d *day) bool { return d.Date == date }); i >= 0 {
		today = b.days[i]
		b.days = slices.Delete(b.days, i, i+1)
	} else if last >= 0 && date < b.days[last].Date {
		before := b.days[last]
		today.Used, today.Unknown, today.damage = maps.Clone(before.Used), before.Unknown, before.damage
	}
	b.days = append(b.days, today)
	if len(b.days) > maxDays {
		b.days = slices.Delete(b.days, 0, len(b.days)-maxDays)
	}
	return today
}

// add takes over what another book has of more, as if its days came after.
func (b *book) add(later book) {
	for _, d := range later.days {
		page := b.at(d.Date)
		for name, used := range d.Used {
			page.Used[name] = max(page.Used[name], used)
		}
		if d.Unknown != "" {
			page.Unknown, page.damage = d.Unknown, d.damage
		}
	}
}

// lose says that nobody knows what was used at a date, since a file was damaged that is
// kept under a name.
func (b *book) lose(date, kept string, damage error) {
	d := b.at(date)
	d.Unknown, d.damage = filepath.Base(kept), damage
}

// unknown are the files that are kept of damaged ones.
func (b *book) unknown() (files []string) {
	for _, d := range b.days {
		if d.Unknown != "" && !slices.Contains(files, d.Unknown) {
			files = append(files, d.Unknown)
		}
	}
	return files
}

// believe takes what is known of a day as all there was, since somebody has removed what
// was kept of the damaged file.
func (b *book) believe(file string) {
	for _, d := range b.days {
		if d.Unknown == file {
			d.Unknown, d.damage = "", nil
		}
	}
}

// today is the page of now; mu is held.
func (l *Links) today() *day { return l.book.at(l.now().Format(time.DateOnly)) }
