//go:build !slim

package httpd

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/common/version"

	"oneway.example/exporter/agent"
	"oneway.example/exporter/core/errtext"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/probe/report"
)

//go:embed page.html
var pageSource string

//go:embed style.css
var styleSource string

// refreshInterval is after how long a browser reads the page again.
const refreshInterval = 30 * time.Second

// maxRows is the maximum number of probes on the page without ?all; probes with problems come first.
const maxRows = 200

// view is the data of the page.
type view struct {
	agent.Status
	Host, Version string
	Verdict       verdict
	Parts         []part
	Watchers      []watchedThing
	Paths         table
	// Tests are the load tests.
	Tests  []row
	Hidden int
	Now    time.Time
	// StoresIncidents: a report of the last packets of a path can be requested.
	StoresIncidents bool
}

// verdict is a summary of the status in one sentence, and notes on problems.
type verdict struct {
	// Level is the worst health of all parts.
	Level   agent.Health
	Summary string
	Notes   []string
}

func newView(s agent.Status, host string, now time.Time, all bool) view {
	v := view{Status: s, Host: host, Version: version.Version, Now: now, Parts: partsOf(s), Watchers: watched(s.Watchers)}
	rows := rowsOf(s)
	v.Verdict = judge(s, rows, now)
	if len(rows) > maxRows && !all {
		v.Hidden = len(rows) - maxRows
		rows = rows[:maxRows]
	}
	var light []row
	for _, r := range rows {
		if r.LoadTest {
			v.Tests = append(v.Tests, r)
		} else {
			light = append(light, r)
			v.StoresIncidents = v.StoresIncidents || s.Reports.Dir != "" && r.StoresIncidents
		}
	}
	v.Paths = tabulated(light)
	return v
}

func judge(s agent.Status, rows []row, now time.Time) verdict {
	v := verdict{Level: agent.Up}
	counts, idle := map[agent.Health]int{}, 0
	for _, r := range rows {
		if r.LoadTest && r.Health == agent.Starting {
			idle++ // the first run may be due in a day
			continue
		}
		counts[r.Health]++
		v.raise(r.Health)
	}
	v.Summary = summarize(len(rows), counts, idle)
	switch {
	case s.Started.IsZero():
		v.Level, v.Summary = agent.Starting, "Not measuring: the agent is starting or ending"
	case s.Config.Error != "":
		v.note("The last reload of the configuration failed; the previous configuration is still used.")
	}
	switch {
	case s.Clock.Trusted || s.Started.IsZero() || len(rows) == 0:
	case s.Clock.Disabled():
		v.Notes = append(v.Notes, "One-way delays are not measured, as the clock source is none; loss, round-trip times and delay variation are.")
	default:
		v.note("This host's clock is not trusted (%s), so one-way delays are not reported; loss, round-trip times and delay variation are. %s", words(s.Clock.Reason), s.Clock.Remedy)
	}
	if !s.Started.IsZero() && now.Sub(s.Started) >= settling {
		for _, w := range s.Watchers {
			for _, warning := range w.Warnings {
				v.note("%s", warning)
			}
		}
	}
	if r := s.Reflector; r != nil && r.Error != "" && r.Listening {
		v.note("The reflector does not listen on all of its addresses: %s.", r.Error)
	} else if r != nil && r.Error != "" {
		v.note("The reflector does not run: test packets of other hosts get no reply from this host.")
	}
	if r := s.Reflector; r != nil && r.KeyFaults != nil && len(r.KeyFaults.Sources) > 0 {
		v.note("The reflector rejects the key of %s; use the same key_file at both ends.", sources(r.KeyFaults.Sources))
	}
	if r := s.Reflector; r != nil && r.Forbidden > 0 {
		v.note("This host did not let out %s of the reflector in the last 5 minutes: their senders get no reply; %s.", unit.Counted(r.Forbidden, "reply", "replies"), errtext.ForbiddenBy)
	}
	if s.Reports.Error != "" {
		v.note("The last report of a load test was not stored; its results are available as metrics.")
	}
	if r := s.LoadServer; r != nil && r.Error != "" && r.Running {
		v.note("The load server does not listen on all of its addresses: %s.", r.Error)
	} else if r != nil && r.Error != "" {
		v.note("The load server does not run: other hosts cannot run load tests to this host.")
	}
	for _, o := range s.Outputs {
		switch {
		case o.Error != "":
			v.note("The output %s does not run: nothing is delivered to %s.", o.Name, o.Destination)
		case o.Reason != "":
			v.note("The output %s does not deliver to %s; %s.", o.Name, o.Destination, unit.Counted(o.Waiting, "point waits", "points wait"))
		}
	}
	return v
}

// sources names the first sources of packets that cannot be authenticated.
func sources(all []agent.KeyFault) string {
	const most = 3
	var named []string
	for _, f := range all[:min(len(all), most)] {
		named = append(named, fmt.Sprintf("%s (%s)", f.Source, f.Reason))
	}
	if more := len(all) - most; more > 0 {
		named = append(named, fmt.Sprintf("%d more", more))
	}
	return strings.Join(named, ", ")
}

// note adds a problem that is not one of a probe.
func (v *verdict) note(format string, args ...any) {
	v.raise(agent.Impaired)
	v.Notes = append(v.Notes, strings.TrimSpace(fmt.Sprintf(format, args...)))
}

// settling is the time after the start in which what is watched may be missing.
const settling = 10 * time.Second

func (v *verdict) raise(h agent.Health) {
	if severity(h) > severity(v.Level) {
		v.Level = h
	}
}

// summarize counts all probes, as check-config does. Idle ones are load tests before their first run.
func summarize(total int, counts map[agent.Health]int, idle int) string {
	bad := total - counts[agent.Up] - counts[agent.Starting] - idle
	switch {
	case total == 0:
		return "No paths are configured"
	case bad > 0:
		var parts []string
		for _, h := range []agent.Health{agent.Failed, agent.Down, agent.Degraded, agent.Impaired} {
			if n := counts[h]; n > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", n, h))
			}
		}
		verb := "have"
		if bad == 1 {
			verb = "has"
		}
		return fmt.Sprintf("%d of %s %s a problem: %s", bad, unit.Counted(total, "probe", "probes"), verb, strings.Join(parts, ", "))
	case counts[agent.Up] < total:
		text := fmt.Sprintf("%d of %s measuring", counts[agent.Up], unit.Counted(total, "probe", "probes"))
		if n := counts[agent.Starting]; n > 0 {
			text += fmt.Sprintf(", %d starting", n)
		}
		if idle > 0 {
			text += fmt.Sprintf(", %d before the first run", idle)
		}
		return text
	case total == 1:
		return "The one probe is measuring"
	}
	return fmt.Sprintf("All %d probes are measuring", total)
}

// words is a reason as text, without the prefix local_: the sentence names this host's clock.
func words(label string) string {
	return metric.Words(strings.TrimPrefix(label, "local_"))
}

// glyph distinguishes states without color.
func glyph(h agent.Health) string {
	return map[agent.Health]string{agent.Up: "●", agent.Impaired: "◐", agent.Degraded: "◒", agent.Down: "▼", agent.Failed: "✕", agent.Starting: "○"}[h]
}

// age is the time since then as text.
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

// parsed parses a template at each use, which takes a fraction of a millisecond and needs no package state.
func parsed(source string) (*template.Template, error) {
	return template.New("page").Funcs(template.FuncMap{
		"age": age, "glyph": glyph, "bytes": func(n int64) string { return unit.Bytes.Format(float64(n)) }, "runHealth": agent.RunHealth, "runWord": runWord, "took": took, "breaks": breaks, "capital": capital,
		"add":        func(a, b int) int { return a + b },
		"shown":      shown,
		"partOf":     partOf,
		"main":       mainResults,
		"figures":    func(s report.Seconds) string { return unit.Duration(time.Duration(s)) },
		"refresh":    func() report.Seconds { return report.Seconds(refreshInterval) },
		"limit":      func(s report.Seconds) string { return unit.Seconds.FormatLimit(s.Seconds()) },
		"utcSeconds": func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
		"utc":        func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") },
	}).Parse(source)
}

func (s *server) page(w http.ResponseWriter, r *http.Request) {
	s.html(w, pageSource, newView(s.Source.Status(), r.Host, s.Now(), r.URL.Query().Has("all")))
}

// html sends a page.
func (s *server) html(w http.ResponseWriter, source string, data any) {
	t, err := parsed(source)
	var b bytes.Buffer
	if err == nil {
		err = t.Execute(&b, data)
	}
	if err != nil {
		s.Log.Error("Page not made", "err", err)
		http.Error(w, "the page could not be made: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(b.Bytes()) // a failed write concerns the client only
}

func style(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	w.Header().Set("Cache-Control", "max-age=300")
	_, _ = w.Write([]byte(styleSource)) // a failed write concerns the client only
}
