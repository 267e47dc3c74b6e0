package main

import (
	"reflect"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/common"
)

// Datasource of raw points. Its variable has another name than that of Prometheus, so that a link that keeps variables does
// not select one of the wrong type.
const (
	influxVariable   = "influxdb"
	influxUID        = "oneway-influxdb"
	influxInUse      = "${" + influxVariable + "}"
	influxType       = "influxdb"
	formatTable      = "table"
	formatTimeSeries = "time_series"
)

// influxQuery is a query of Grafana's datasource InfluxDB in the language InfluxQL; the SDK has none.
type influxQuery struct {
	RefID string `json:"refId"`
	// Query is the statement, with Grafana's variables.
	Query    string `json:"query"`
	RawQuery bool   `json:"rawQuery"`
	// ResultFormat is formatTable, one frame with a column per field, or formatTimeSeries, a frame per field and group.
	ResultFormat string `json:"resultFormat"`
	// Alias is the name of a series; $tag_NAME is the value of a tag, $col the name of the column.
	Alias string `json:"alias,omitempty"`
}

func (influxQuery) ImplementsDataqueryVariant() {}
func (influxQuery) DataqueryType() string       { return influxType }
func (influxQuery) Validate() error             { return nil }

// Equals implements variants.Dataquery.
func (q influxQuery) Equals(other variants.Dataquery) bool { return reflect.DeepEqual(q, other) }

// Build implements cog.Builder.
func (q influxQuery) Build() (variants.Dataquery, error) { return q, nil }

func influxSource() common.DataSourceRef {
	return common.DataSourceRef{Type: new(influxType), Uid: new(influxInUse)}
}

// rawTable is a query whose result is one table.
func rawTable(statement string) influxQuery {
	return influxQuery{Query: statement, RawQuery: true, ResultFormat: formatTable}
}

// rawSeries is a query whose result is a series per column and group, named by alias.
func rawSeries(statement, alias string) influxQuery {
	return influxQuery{Query: statement, RawQuery: true, ResultFormat: formatTimeSeries, Alias: alias}
}

func rawTargets(qs []influxQuery) []cog.Builder[variants.Dataquery] {
	out := make([]cog.Builder[variants.Dataquery], len(qs))
	for i, q := range qs {
		q.RefID = string(rune('A' + i))
		out[i] = q
	}
	return out
}

// selection is a SELECT statement. Its clauses are those that InfluxDB 1.8, 2 and 3 have in common.
type selection struct {
	columns []string
	from    string
	where   []string
	// by are the tags and the interval of GROUP BY.
	by []string
	// fill is the value of an empty interval; empty: there is no interval.
	fill  string
	limit string
}

// String is the statement. Every statement is limited to the time range of the dashboard.
func (s selection) String() string {
	var b strings.Builder
	b.WriteString("SELECT " + strings.Join(s.columns, ", ") + " FROM " + s.from)
	b.WriteString(" WHERE " + strings.Join(append(s.where, "$timeFilter"), " AND "))
	if len(s.by) > 0 {
		b.WriteString(" GROUP BY " + strings.Join(s.by, ", "))
	}
	if s.fill != "" {
		b.WriteString(" fill(" + s.fill + ")")
	}
	if s.limit != "" {
		b.WriteString(" LIMIT " + s.limit)
	}
	return b.String()
}

// name quotes the name of a measurement, tag or field.
func name(s string) string { return `"` + s + `"` }

// as gives an expression the name of its column.
func as(expr, title string) string { return expr + " AS " + name(title) }

// is compares a quoted tag or field with a string, which may be a variable.
func is(quoted, value string) string { return quoted + " = '" + value + "'" }
