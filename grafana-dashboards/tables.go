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
	// query is the query of the value, aggregated to the labels of the table; empty for a label column.
	query string
	// label is the name of the label of a label column.
	label string
	// empty is the text of the label column in a table without rows: with several queries Grafana shows only the column
	// headers and not the noValue text.
	empty string
	// emptyIf is another text, where an expression has a series.
	emptyIf *known
	// unit is a Grafana unit id.
	unit string
	// own are additional properties.
	own props
}

// known is a text for what is known where expr has a series.
type known struct{ expr, text string }

// columns is a table of instant queries with the same labels: a row per label set, a column per query, in the order
// given. Labels without a column are omitted.
func columns(t text, cs ...column) *tablepanel.PanelBuilder {
	var queries []*prometheus.DataqueryBuilder
	names, order := map[string]string{}, map[string]int{}
	p := plainTable(t)
	none := ""
	for i, c := range cs {
		field := c.label
		if c.empty != "" {
			row := func(text string) string {
				return `label_replace(vector(NaN), "` + c.label + `", "` + text + `", "", "")`
			}
			none = row(c.empty)
			if c.emptyIf != nil {
				none = "(" + row(c.emptyIf.text) + " and on () " + c.emptyIf.expr + " or on () " + none + ")"
			}
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
	if len(queries) == 1 { // Grafana numbers the values only with several queries
		names["Value"], order["Value"] = names["Value #A"], order["Value #A"]
	}
	return p.Targets(targets(queries)).
		WithTransformation(transform("merge", map[string]any{})).
		WithTransformation(transform("organize", map[string]any{
			"excludeByName": map[string]bool{"Time": true}, "renameByName": names, "indexByName": order,
		}))
}

// properties are the properties of a column: a cell without a value shows a dash instead of the panel's noValue text. The
// list is never empty, since a panel with an override without properties does not load.
func (c column) properties() props {
	if c.query == "" {
		return props{prop("noValue", c.empty)}
	}
	own := dashes()
	if c.unit != "" {
		own = append(own, prop("unit", c.unit))
	}
	return own
}

// dashes shows a cell without a value as a dash without color.
func dashes() props {
	return props{prop("noValue", "–"), prop("mappings", []any{noNumber()})}
}

// noNumber maps a missing value to a dash without color.
func noNumber() any {
	return map[string]any{
		"type": "special", "options": map[string]any{"match": "null+nan", "result": map[string]any{"text": "–", "color": "transparent"}},
	}
}

// plainTable is a table whose columns have a minimum width, so that it scrolls on a phone.
func plainTable(t text) *tablepanel.PanelBuilder {
	return tablepanel.NewPanelBuilder().
		Title(t.title).Description(t.description).Unit(t.unit).NoValue(t.none).
		Datasource(datasource()).Span(12).Height(7).ShowHeader(true).
		CellHeight(common.TableCellHeightSm).MinWidth(90)
}

// quoted shows published results for comparison with the panel before it.
func quoted(title, description, markdown string) *textpanel.PanelBuilder {
	return textpanel.NewPanelBuilder().Title(title).Description(description).
		Mode(textpanel.TextModeMarkdown).Content(markdown).Span(10).Height(7)
}

// wrapped breaks the text of a cell of this kind into lines.
func wrapped(kind string) props {
	return props{prop("custom.cellOptions", map[string]any{"type": kind, "wrapText": true}), prop("custom.wrapText", true)}
}
