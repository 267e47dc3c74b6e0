//go:build !slim

package httpd

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"oneway.example/exporter/agent"
	"oneway.example/exporter/agent/maintenance"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/report"
)

// row is one probe of one path.
type row struct {
	Path, Peer string
	agent.ProbeStatus
	// Work is the planned work on the path that is under way; nil: there is none.
	Work *maintenance.State
	// Word is the state in a word.
	Word string
	// Cells are in the columns of the table; empty for load tests.
	Cells []cell
}

// Stated reports whether the state in words adds to Word.
func (r row) Stated() bool {
	return r.State != r.Word && (r.LoadTest || r.Health != agent.Up)
}

// cell is a value with its error bound and what it is of, such as a codec; empty: unknown.
type cell struct{ Value, Bound, Of string }

// table is the light probes. Columns have a title within their direction.
type table struct {
	Groups  []group
	Columns []column
	Rows    []row
}

// group is a direction with its number of columns.
type group struct {
	Title string
	Span  int
}

// column is a quantity in a direction. First: of its group; Of: what the value of its first row is of.
type column struct {
	Direction, Title, Of string
	First                bool
}

// Label is the title outside of the table's head.
func (c column) Label() string {
	if c.Direction == directions[2].title {
		return capital(c.Title)
	}
	return c.Direction + " " + c.Title
}

// severity is the position of a health in the order from best to worst.
func severity(h agent.Health) int {
	return slices.Index([]agent.Health{agent.Up, agent.Starting, agent.Impaired, agent.Degraded, agent.Down, agent.Failed}, h)
}

// rowsOf are all probes, those with problems first.
func rowsOf(s agent.Status) (rows []row) {
	for _, p := range s.Paths {
		for _, one := range p.Probes {
			rows = append(rows, newRow(p, one))
		}
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(severity(b.Health), severity(a.Health)) })
	return rows
}

// newRow has of a load test the result of its last run, also if that was before the start of the agent.
func newRow(p agent.PathStatus, one agent.ProbeStatus) row {
	r := row{Path: p.Name, Peer: p.Peer, Work: p.Maintenance, ProbeStatus: one, Word: string(one.Health)}
	if !r.LoadTest {
		return r
	}
	switch {
	case r.LastRun != nil:
		r.Word = r.LastRun.Result
	case r.Health == agent.Starting:
		r.Word = "waiting"
	}
	if r.Reason == "" && r.LastRun != nil && r.LastRun.Why() != "" {
		r.Reason = report.LastRun(r.LastRun.Result, r.LastRun.Why())
	}
	return r
}

// directions are in the order of columns, with their titles.
var directions = []struct{ name, title string }{{"forward", "Forward"}, {"reverse", "Reverse"}, {"", "Both ways"}}

// byDirection are the results of each direction, in the order of directions.
func byDirection(all []probe.Result) (by [3][]probe.Result) {
	for _, r := range all {
		i := slices.IndexFunc(directions, func(d struct{ name, title string }) bool { return d.name == r.Direction })
		if i < 0 {
			i = len(directions) - 1
		}
		by[i] = append(by[i], r)
	}
	return by
}

// tabulated gives each quantity of each direction a column. Values of one quantity that are of different things, such as
// "R (G.711-PLC)" and "R (G.729)", share one.
func tabulated(rows []row) table {
	t := table{Rows: rows}
	for i, d := range directions {
		var own []column
		for _, r := range rows {
			for _, one := range byDirection(r.Results)[i] {
				if !slices.ContainsFunc(own, func(c column) bool { return c.Title == one.Quantity }) {
					own = append(own, column{Direction: d.title, Title: one.Quantity, Of: one.Of, First: len(own) == 0})
				}
			}
		}
		if len(own) > 0 {
			t.Groups = append(t.Groups, group{d.title, len(own)})
			t.Columns = append(t.Columns, own...)
		}
	}
	for i := range t.Rows {
		t.Rows[i].Cells = t.cells(t.Rows[i].Results)
	}
	return t
}

func (t *table) cells(results []probe.Result) []cell {
	cells := make([]cell, len(t.Columns))
	by := byDirection(results)
	for i, d := range directions {
		for _, one := range by[i] {
			at := slices.IndexFunc(t.Columns, func(c column) bool { return c.Direction == d.title && c.Title == one.Quantity })
			of := one.Of
			if of == t.Columns[at].Of {
				of = ""
			}
			value, bound := one.Cell()
			cells[at] = cell{value, bound, of}
		}
	}
	return cells
}

// section is the results of a direction.
type section struct {
	Title   string
	Results []probe.Result
}

// mainResults are the first results of both directions; the page of the run has all.
func mainResults(all []probe.Result, most int) (main []section) {
	by := byDirection(all)
	for i, results := range by[:2] {
		main = append(main, section{directions[i].title, results[:min(len(results), most)]})
	}
	return main
}

// breaks escapes a name and permits line breaks after its separators, so that a long one need not break within a word.
func breaks(s string) template.HTML {
	var b strings.Builder
	for len(s) > 0 {
		n := strings.IndexAny(s, "-_./:>") + 1
		if n == 0 {
			n = len(s)
		}
		fmt.Fprint(&b, template.HTMLEscapeString(s[:n]))
		if s = s[n:]; s != "" {
			b.WriteString("<wbr/>")
		}
	}
	return template.HTML(b.String())
}
