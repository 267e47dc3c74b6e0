// Package maintenance has the times of planned work on paths: the windows of the configuration, and those that operators add to a running
// agent. A path under maintenance is measured as always; its alerts are quiet, reports leave the time out, and pages say so.
package maintenance

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"oneway.example/exporter/probe/calendar"
)

// Limits of a window.
const (
	// MaxLength is the longest time of a window with a begin and an end: a forgotten one would silence alerts forever.
	MaxLength = 31 * 24 * time.Hour
	// MaxReason is the most characters of a reason, MaxSelectors the most names and patterns of each kind.
	MaxReason    = 200
	MaxSelectors = 100
	maxName      = 300
)

// Path is what a selection can tell of a path.
type Path struct {
	// Name is the path's name, Host its peer without a port, Site its label site; empty: without one.
	Name, Host, Site string
	// Links are its links.
	Links []string
}

// Selection selects paths. A path is selected if any of the fields selects it. The zero value selects none.
type Selection struct {
	// All selects all paths of the agent, and the agent itself: work on its host or site.
	All bool `json:"all,omitempty"`
	// Paths are names of paths; in a pattern * is any text and ? any character.
	Paths []string `json:"paths,omitempty"`
	// Peers are hosts at the other end, as the configuration has them, without a port. Capitals do not matter. Patterns are as in Paths.
	Peers []string `json:"peers,omitempty"`
	// Links are names of links of paths, Sites values of their label site.
	Links []string `json:"links,omitempty"`
	Sites []string `json:"sites,omitempty"`
}

// Selects reports whether a path is selected.
func (s *Selection) Selects(p Path) bool {
	if s.All || slices.ContainsFunc(s.Paths, func(pattern string) bool { return matches(pattern, p.Name) }) {
		return true
	}
	host := folded(p.Host)
	return slices.ContainsFunc(s.Peers, func(pattern string) bool { return matches(folded(pattern), host) }) ||
		slices.ContainsFunc(s.Links, func(link string) bool { return slices.Contains(p.Links, link) }) ||
		p.Site != "" && slices.Contains(s.Sites, p.Site)
}

// folded is a host name for comparison.
func folded(host string) string { return strings.ToLower(strings.TrimSuffix(host, ".")) }

// matches reports whether a text has the form of a pattern. It takes at most the product of both lengths.
func matches(pattern, text string) bool {
	p, t := []rune(pattern), []rune(text)
	star, from := -1, 0 // the last *, and where the text behind what it stands for begins
	i, j := 0, 0
	for j < len(t) {
		switch {
		case i < len(p) && p[i] == '*':
			star, from = i, j
			i++
		case i < len(p) && (p[i] == '?' || p[i] == t[j]):
			i++
			j++
		case star >= 0:
			from++
			i, j = star+1, from
		default:
			return false
		}
	}
	for i < len(p) && p[i] == '*' {
		i++
	}
	return i == len(p)
}

// String is what is selected, such as "path berlin-*, site hamburg".
func (s *Selection) String() string {
	var all []string
	if s.All {
		all = append(all, "all paths")
	}
	for _, list := range s.lists() {
		for _, name := range list.names {
			all = append(all, list.noun+" "+name)
		}
	}
	return strings.Join(all, ", ")
}

// list is a field of a selection.
type list struct {
	key, noun string
	names     []string
}

func (s *Selection) lists() []list {
	return []list{{"paths", "path", s.Paths}, {"peers", "peer", s.Peers}, {"links", "link", s.Links}, {"sites", "site", s.Sites}}
}

// FieldError is a wrong value of a window. Key is the name of the key in the configuration; empty: of several keys.
type FieldError struct{ Key, Problem string }

// Error has key and problem.
func (e *FieldError) Error() string {
	return strings.TrimSpace("maintenance: " + e.Key + " " + e.Problem)
}

func wrong(key, format string, args ...any) error {
	return &FieldError{key, fmt.Sprintf(format, args...)}
}

// check returns the errors of a selection, each a *FieldError.
func (s *Selection) check() (errs []error) {
	if s.String() == "" {
		errs = append(errs, wrong("", "selects nothing; it must have all: true, or paths, peers, links or sites"))
	}
	for _, l := range s.lists() {
		if len(l.names) > MaxSelectors {
			errs = append(errs, wrong(l.key, "has %d entries; it may have %d", len(l.names), MaxSelectors))
		}
		for i, name := range l.names {
			if name == "" || utf8.RuneCountInString(name) > maxName || !printable(name) {
				errs = append(errs, wrong(fmt.Sprintf("%s[%d]", l.key, i), "is %.100q; it must be text of 1 to %d printable characters", name, maxName))
			}
		}
	}
	return errs
}

func printable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

// Window is a time of planned work on the selected paths: once, from From to To, or Weekly.
type Window struct {
	// ID is the name of a window that was added to a running agent; empty: it is of the configuration.
	ID string `json:"id,omitempty"`
	Selection
	// From and To are the time of a window that is open once, without To; zero with Weekly.
	From time.Time `json:"from,omitzero"`
	To   time.Time `json:"to,omitzero"`
	// Weekly are local times of the week, by the agent's calendar, such as "sun 02:00-04:00", "mon-fri 22:00-06:00" or "sat,sun".
	Weekly []calendar.Window `json:"weekly,omitempty"`
	// Reason is what the work is, for people.
	Reason string `json:"reason"`
}

// Check returns all errors of a window, each a *FieldError.
func (w *Window) Check() error {
	errs := w.check()
	once := !w.From.IsZero() || !w.To.IsZero()
	switch {
	case once && len(w.Weekly) > 0:
		errs = append(errs, wrong("weekly", "is given beside from and to; a window has either a begin and an end, or weekly times"))
	case !once && len(w.Weekly) == 0:
		errs = append(errs, wrong("", "has no time; it must have from and to, such as 2026-12-01T22:00:00+01:00, or weekly, such as \"sun 02:00-04:00\""))
	case once && w.From.IsZero():
		errs = append(errs, wrong("from", "is missing; it must be a time such as 2026-12-01T22:00:00+01:00"))
	case once && w.To.IsZero():
		errs = append(errs, wrong("to", "is missing; it must be a time such as 2026-12-02T04:00:00+01:00, since a window without an end would silence alerts forever"))
	case once && !w.To.After(w.From):
		errs = append(errs, wrong("to", "is %s, which is not after from, %s", stamp(w.To), stamp(w.From)))
	case once && w.To.Sub(w.From) > MaxLength:
		errs = append(errs, wrong("to", "is %s, more than %d days after from; it may be at most %s", stamp(w.To), MaxLength/(24*time.Hour), stamp(w.From.Add(MaxLength))))
	}
	if len(w.Weekly) > MaxSelectors {
		errs = append(errs, wrong("weekly", "has %d entries; it may have %d", len(w.Weekly), MaxSelectors))
	}
	if n := utf8.RuneCountInString(w.Reason); n == 0 || n > MaxReason || !printable(w.Reason) {
		errs = append(errs, wrong("reason", "is %.100q; it must be text of 1 to %d printable characters, which says what the work is", w.Reason, MaxReason))
	}
	return errors.Join(errs...)
}

// ParseWeekly parses weekly times. Its errors are joined, each a *FieldError of one of them.
func ParseWeekly(texts []string) ([]calendar.Window, error) {
	all, errs := make([]calendar.Window, len(texts)), make([]error, len(texts))
	for i, text := range texts {
		if err := all[i].UnmarshalText([]byte(text)); err != nil {
			errs[i] = wrong(fmt.Sprintf("weekly[%d]", i), "is %.100q; %v", text, err)
		}
	}
	return all, errors.Join(errs...)
}

func stamp(t time.Time) string { return t.Format(time.RFC3339) }

// Open reports whether the window is open at a time, in the zone of the calendar, and until when.
func (w *Window) Open(now time.Time) (until time.Time, open bool) {
	// Weekly times may meet: the end is the end of the last one. What is always open ends after a week at most, and is open again then.
	for end, is := latestEnd(w.Weekly, now); is && end.Sub(now) <= 7*24*time.Hour; end, is = latestEnd(w.Weekly, end) {
		until, open = end, true
	}
	if !w.To.IsZero() && !now.Before(w.From) && now.Before(w.To) && w.To.After(until) {
		until, open = w.To, true
	}
	return until, open
}

// latestEnd is the latest end of the times that are open at a time.
func latestEnd(week []calendar.Window, at time.Time) (last time.Time, open bool) {
	for _, one := range week {
		if to, is := one.OpenUntil(at); is && to.After(last) {
			last, open = to, true
		}
	}
	return last, open
}

// Next is when the window opens next after a time; the zero Time: never.
func (w *Window) Next(now time.Time) (next time.Time) {
	if w.From.After(now) {
		next = w.From
	}
	for _, one := range w.Weekly {
		if at := one.Opens(now); !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// hasEnded reports whether the window never opens again.
func (w *Window) hasEnded(now time.Time) bool { return len(w.Weekly) == 0 && !now.Before(w.To) }

// Times are its times in words, in the zone of a time: "2026-12-01 22:00 to 2026-12-02 04:00", or the weekly ones.
func (w *Window) Times(in *time.Location) string {
	var all []string
	for _, one := range w.Weekly {
		all = append(all, one.String())
	}
	if !w.From.IsZero() {
		all = append(all, w.From.In(in).Format("2006-01-02 15:04")+" to "+w.To.In(in).Format("2006-01-02 15:04"))
	}
	return strings.Join(all, ", ")
}
