package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	tablepanel "github.com/grafana/grafana-foundation-sdk/go/table"
	textpanel "github.com/grafana/grafana-foundation-sdk/go/text"
)

// column is one column of a table: a label, or the value of a query.
type column struct {
	title string
	// query of the value, aggregated to the labels of the table; empty: a label.
	query string
	// label is the label's name, if it is one.
	label string
	// empty is what stands in the label's place in a table without rows: with several
	// queries Grafana shows the heads of the columns, and no reason.
	empty string
	// unit of Grafana's.
	unit string
	// own are further properties.
	own props
}

// columns is a table of instant queries with the same labels: a row for each set of
// labels, a column for each query. Columns stand in the order given; what is not named
// is left out.
func columns(t text, cs ...column) *tablepanel.PanelBuilder {
	var queries []*prometheus.DataqueryBuilder
	names, order := map[string]string{}, map[string]int{}
	p := plainTable(t)
	none := ""
	for i, c := range cs {
		field := c.label
		if c.empty != "" {
			none = `label_replace(vector(NaN), "` + c.label + `", "` + c.empty + `", "", "")`
		}
		if c.query != "" {
			field = "Value #" + string(rune('A'+len(queries)))
			query := c.query
			if none != "" {
				query, none = "("+query+") or on () "+none, ""
			}
			queries = append(queries, table(query))
		}
		names[field], order[field] = c.title, i
		p.OverrideByName(c.title, append(c.properties(), c.own...))
	}
	if len(queries) == 1 { // Grafana numbers values only where there are several
		names["Value"], order["Value"] = names["Value #A"], order["Value #A"]
	}
	return p.Targets(targets(queries)).
		WithTransformation(transform("merge", map[string]any{})).
		WithTransformation(transform("organize", map[string]any{ //nolint:misspell // Grafana's word
			"excludeByName": map[string]bool{"Time": true}, "renameByName": names, "indexByName": order,
		}))
}

// properties are those of every column: a cell without a value has a dash, and not the
// panel's reason. The list is never empty: a panel with an override of nothing does not
// load.
func (c column) properties() props {
	if c.query == "" {
		return props{prop("noValue", c.empty)}
	}
	own := props{prop("noValue", "–"), prop("mappings", []map[string]any{{
		"type": "special", "options": map[string]any{"match": "nan", "result": map[string]any{"text": "–"}},
	}})}
	if c.unit != "" {
		own = append(own, prop("unit", c.unit))
	}
	return own
}

// plainTable is a table without rows that cannot be read on a phone: it scrolls.
func plainTable(t text) *tablepanel.PanelBuilder {
	return tablepanel.NewPanelBuilder().
		Title(t.title).Description(t.description).Unit(t.unit).NoValue(t.none).
		Datasource(datasource()).Span(12).Height(7).ShowHeader(true).
		CellHeight(common.TableCellHeightSm).MinWidth(90)
}

// quoted is what somebody else has measured, to be held beside the panel before it.
func quoted(title, description, markdown string) *textpanel.PanelBuilder {
	return textpanel.NewPanelBuilder().Title(title).Description(description).
		Mode(textpanel.TextModeMarkdown).Content(markdown).Span(10).Height(7)
}
