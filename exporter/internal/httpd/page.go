package httpd

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/version"

	"oneway.example/exporter/agent"
	"oneway.example/exporter/clock/gpsd"
	"oneway.example/exporter/probe"
)

//go:embed page.html
var pageSource string

//go:embed style.css
var styleSource string

// maxRows is how many probes the page shows unless it is asked for all; those
// with problems come first.
const maxRows = 200

// view is what the page shows.
type view struct {
	Host, Version string
	Verdict       verdict
	Clock         agent.ClockStatus
	Receiver      *agent.ReceiverStatus
	Pulse         *agent.PulseStatus
	Reflector     *agent.ReflectorStatus
	Responder     *agent.ResponderStatus
	Links         []agent.LinkStatus
	Reports       agent.ReportsStatus
	Runs          []runRow
	Config        agent.ConfigStatus
	Started       time.Time
	Rows          []row
	Hidden        int
	Now           time.Time
}

// verdict is the answer in one sentence, and what else must be known.
type verdict struct {
	// Level is a health: the worst of all.
	Level   agent.Health
	Summary string
	Notes   []string
}

// row is one probe of one path.
type row struct {
	Path, Peer string
	agent.ProbeStatus
	Forward, Reverse, Both []figure
}

type figure struct{ Quantity, Value string }

func newView(s agent.Status, host string, now time.Time, all bool) view {
	v := view{
		Host: host, Version: version.Version, Clock: s.Clock, Receiver: s.Receiver, Pulse: s.Pulse, Reflector: s.Reflector, Responder: s.Responder, Config: s.Config,
		Links: s.Links, Reports: s.Reports, Runs: newRunRows(s.Reports.Last), Started: s.Started, Now: now,
	}
	for _, p := range s.Paths {
		for _, one := range p.Probes {
			v.Rows = append(v.Rows, newRow(p, one))
		}
	}
	v.Verdict = judge(s, v.Rows, now)
	slices.SortStableFunc(v.Rows, func(a, b row) int { return cmp.Compare(severity(b.Health), severity(a.Health)) })
	if len(v.Rows) > maxRows && !all {
		v.Hidden = len(v.Rows) - maxRows
		v.Rows = v.Rows[:maxRows]
	}
	return v
}

func newRow(p agent.PathStatus, one agent.ProbeStatus) row {
	r := row{Path: p.Name, Peer: p.Peer, ProbeStatus: one}
	for _, result := range one.Results {
		f := figure{result.Quantity, result.Value}
		switch result.Direction {
		case "forward":
			r.Forward = append(r.Forward, f)
		case "reverse":
			r.Reverse = append(r.Reverse, f)
		default:
			r.Both = append(r.Both, f)
		}
	}
	return r
}

// severity orders healths, the worst last.
func severity(h agent.Health) int {
	return slices.Index([]agent.Health{agent.Up, agent.Starting, agent.Impaired, agent.Down, agent.Failed}, h)
}

func judge(s agent.Status, rows []row, now time.Time) verdict {
	v := verdict{Level: agent.Up}
	counts := map[agent.Health]int{}
	for _, r := range rows {
		counts[r.Health]++
		v.raise(r.Health)
	}
	v.Summary = summarise(len(rows), counts)
	switch {
	case s.Started.IsZero():
		v.Level, v.Summary = agent.Starting, "Not measuring: the agent is starting or ending"
	case s.Config.Error != "":
		v.raise(agent.Impaired)
		v.Notes = append(v.Notes, "The last reload of the configuration failed; the one before is in force.")
	}
	if !s.Clock.Trusted && !s.Started.IsZero() && len(rows) > 0 {
		v.raise(agent.Impaired)
		v.Notes = append(v.Notes, fmt.Sprintf("This host's clock is not trusted (%s), so no one-way delay is reported; loss, round trips and variation are.", words(s.Clock.Reason)))
	}
	for _, note := range watchNotes(s, now) {
		v.raise(agent.Impaired)
		v.Notes = append(v.Notes, note)
	}
	if r := s.Reflector; r != nil && r.Error != "" {
		v.raise(agent.Impaired)
		v.Notes = append(v.Notes, "The reflector does not run: other hosts get no answer from this one.")
	}
	if s.Reports.Error != "" {
		v.raise(agent.Impaired)
		v.Notes = append(v.Notes, "The last report of a heavy test was not kept; its results are.")
	}
	if r := s.Responder; r != nil && r.Error != "" {
		v.raise(agent.Impaired)
		v.Notes = append(v.Notes, "The responder does not run: other hosts can run no heavy test against this one.")
	}
	return v
}

// settling is how long a receiver and its pulse may take to be heard.
const settling = 10 * time.Second

// watchNotes says what is wrong with the receiver and the pulse.
func watchNotes(s agent.Status, now time.Time) (notes []string) {
	if s.Started.IsZero() || now.Sub(s.Started) < settling {
		return nil
	}
	if r := s.Receiver; r != nil {
		switch {
		case !r.Answering:
			notes = append(notes, fmt.Sprintf("gpsd does not answer at %s: nothing is known of the receiver %s.", r.Address, r.Name))
		case !r.Connected:
			notes = append(notes, fmt.Sprintf("gpsd does not hear the receiver %s.", r.Name))
		case r.Fix == gpsd.FixNone.String():
			notes = append(notes, fmt.Sprintf("The receiver %s has no fix.", r.Name))
		}
	}
	if p := s.Pulse; p != nil && !p.Present {
		notes = append(notes, fmt.Sprintf("No pulse comes from %s.", p.Device))
	}
	return notes
}

func (v *verdict) raise(h agent.Health) {
	if severity(h) > severity(v.Level) {
		v.Level = h
	}
}

func summarise(total int, counts map[agent.Health]int) string {
	bad := total - counts[agent.Up] - counts[agent.Starting]
	switch {
	case total == 0:
		return "No paths are configured"
	case bad > 0:
		var parts []string
		for _, h := range []agent.Health{agent.Failed, agent.Down, agent.Impaired} {
			if n := counts[h]; n > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", n, h))
			}
		}
		verb := "have"
		if bad == 1 {
			verb = "has"
		}
		return fmt.Sprintf("%d of %s %s a problem: %s", bad, plural(total, "probe"), verb, strings.Join(parts, ", "))
	case counts[agent.Starting] > 0:
		return fmt.Sprintf("%d of %s measuring, %d starting", counts[agent.Up], plural(total, "probe"), counts[agent.Starting])
	case total == 1:
		return "The one probe is measuring"
	}
	return fmt.Sprintf("All %d probes are measuring", total)
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// words makes a reason's label readable; that it is this host's clock is said.
func words(label string) string {
	return strings.ReplaceAll(strings.TrimPrefix(label, "near_"), "_", " ")
}

// glyphs tell states apart without colour.
func glyph(h agent.Health) string {
	switch h {
	case agent.Up:
		return "●"
	case agent.Impaired:
		return "◐"
	case agent.Down:
		return "▼"
	case agent.Failed:
		return "✕"
	case agent.Starting:
	}
	return "○"
}

// age writes how long ago something was.
func age(now, then time.Time) string {
	switch d := now.Sub(then); {
	case then.IsZero():
		return "never"
	case d < 2*time.Second:
		return "just now"
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0f s ago", d.Seconds())
	case d < 2*time.Hour:
		return fmt.Sprintf("%.0f min ago", d.Minutes())
	case d < 48*time.Hour:
		return fmt.Sprintf("%.0f h ago", d.Hours())
	}
	return then.UTC().Format("2006-01-02 15:04 UTC")
}

// pageTemplate is parsed at each use, a fraction of a millisecond: the page is
// for people, and so there is no state in the package.
func pageTemplate() (*template.Template, error) {
	return template.New("page").Funcs(template.FuncMap{
		"age": age, "figures": probe.Figures, "glyph": glyph, "octets": octets, "took": took,
		"utc": func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") },
	}).Parse(pageSource)
}

func (s *server) page(w http.ResponseWriter, r *http.Request) {
	t, err := pageTemplate()
	var b bytes.Buffer
	if err == nil {
		err = t.Execute(&b, newView(s.Source.Status(), r.Host, s.Now(), r.URL.Query().Has("all")))
	}
	if err != nil {
		s.Log.Error("Page not made", "err", err)
		http.Error(w, "the page could not be made: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(b.Bytes()) // the client's loss
}

func style(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	w.Header().Set("Cache-Control", "max-age=300")
	_, _ = w.Write([]byte(styleSource)) // the client's loss
}
