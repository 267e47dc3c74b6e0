package main

import (
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/trend"
)

// axis is an x axis other than time: a label whose values are numbers.
type axis struct {
	// label has the values of x, column the names of the curves.
	label, column string
	// unit is the displayed unit of x.
	unit string
	// least and most are the ends of the axis; nil is that of the data.
	least, most *float64
	// log is the base of a logarithmic axis; 0 is a linear axis.
	log float64
	// bytes converts a label in bytes per second to bits per second.
	bytes bool
	// sorted orders the curves by the column's values, which are numbers.
	sorted bool
}

// bitField is the field that times computes from a label in bytes per second.
const bitField = "bits"

// curve is a panel over a label: one instant table, transformed to a row per value of the label and a column per curve.
func curve(t text, x axis, query string) *trend.PanelBuilder {
	field, steps := x.label, pivot(x.label, x.column)
	if x.bytes {
		field, steps = bitField, append(steps, bits(x.label, bitField)...)
	}
	p := trend.NewPanelBuilder().Title(t.title).Description(withReason(t)).Unit(t.unit).NoValue(t.none).
		Datasource(datasource()).Targets([]cog.Builder[variants.Dataquery]{table(x.orNothing(query)).RefId("A")}).
		Span(12).Height(9).
		XField(field).LineWidth(2).ShowPoints(common.VisibilityModeAlways).PointSize(4).
		SpanNulls(common.BoolOrFloat64{Bool: new(true)}).
		Legend(common.NewVizLegendOptionsBuilder().ShowLegend(true).
			DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom)).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti))
	if x.sorted {
		p.WithTransformation(numberOf(x.column)).WithTransformation(sortedBy(x.column))
	}
	for _, s := range steps {
		p.WithTransformation(s)
	}
	own := props{prop("unit", x.unit), prop("min", x.least), prop("max", x.most), prop("decimals", nil)}
	if x.log > 0 {
		own = append(own, prop("custom.scaleDistribution", map[string]any{"type": "log", "log": x.log}))
	}
	return p.OverrideByName(field, own).
		OverrideByName(nothing, props{prop("displayName", inLegend(t.none)), color(gray)})
}

// inLegend is the main part of a text for no data: Grafana cuts a longer name of a curve on a phone.
func inLegend(none string) string {
	for _, end := range []string{": ", " (", ". ", " of the probe ", " in this time range", " in the time range", " and synchronized ", " of stamped "} {
		none, _, _ = strings.Cut(none, end)
	}
	return none
}

// withReason is the description, with all of the text for no data.
func withReason(t text) string { return t.description + " Without data: " + t.none + "." }

// nothing is the name of a curve without points, which is shown if there is no data.
const nothing = "-1"

// orNothing adds that curve to a panel without data; its legend is the main part of the noValue text. Without its x field a trend panel
// shows an error instead.
func (x axis) orNothing(query string) string {
	return "(" + query + `) or on () label_replace(label_replace(vector(NaN), "` + x.label + `", "1", "", ""), "` + x.column + `", "` + nothing + `", "", "")`
}

// pivot makes a row of each value of a label, sorted as numbers, and a column of each value of another. Labels are text in
// the table format and after groupingToMatrix.
func pivot(row, column string) []dashboard.DataTransformerConfig {
	return []dashboard.DataTransformerConfig{
		numberOf(row),
		sortedBy(row),
		transform("groupingToMatrix", map[string]any{
			"rowField": row, "columnField": column, "valueField": "Value", "emptyValue": "null",
		}),
		// The matrix names its first column after both fields.
		transform("organize", map[string]any{"renameByName": map[string]string{row + `\` + column: row}}),
		numberOf(row),
	}
}

// numberOf converts a text field to numbers.
func numberOf(field string) dashboard.DataTransformerConfig { return fieldAs(field, "number") }

func fieldAs(field, kind string) dashboard.DataTransformerConfig {
	return transform("convertFieldType", map[string]any{
		"conversions": []map[string]any{{"targetField": field, "destinationType": kind}}, "fields": map[string]any{},
	})
}

func sortedBy(field string) dashboard.DataTransformerConfig {
	return transform("sortBy", map[string]any{"fields": map[string]any{}, "sort": []map[string]any{{"field": field}}})
}

// bits replaces a field in bytes by one in bits.
func bits(from, to string) []dashboard.DataTransformerConfig {
	return []dashboard.DataTransformerConfig{
		times(from, "8", to),
		transform("organize", map[string]any{"excludeByName": map[string]bool{from: true}}),
	}
}

// times adds a field that is the product of a field and a factor.
func times(from, factor, to string) dashboard.DataTransformerConfig {
	return computed(from, "*", factor, to)
}

// computed adds a field of two others, or of one and a number.
func computed(left, operator, right, to string) dashboard.DataTransformerConfig {
	return transform("calculateField", map[string]any{
		"mode": "binary", "alias": to, "replaceFields": false,
		"binary": map[string]string{"left": left, "operator": operator, "right": right},
	})
}

func transform(id string, options any) dashboard.DataTransformerConfig {
	return dashboard.DataTransformerConfig{Id: id, Options: options}
}
