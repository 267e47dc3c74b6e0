package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/trend"
)

// axis is an x axis that is no time: a label whose values are numbers.
type axis struct {
	// label's values are x, column's the names of the curves.
	label, column string
	// unit is that of x as shown.
	unit string
	// log is the base of a logarithmic axis; 0: linear.
	log float64
	// bytes: the label counts bytes a second, which are shown as bits a second.
	bytes bool
	// sorted: the column's values are numbers, and the curves stand in their order.
	sorted bool
}

// bitField is made of a label that counts bytes a second.
const bitField = "bits"

// curve is a panel over a label: one instant table, turned so that there is a row for
// each value of the label and a column for each curve.
func curve(t text, x axis, query string) *trend.PanelBuilder {
	field, steps := x.label, pivot(x.label, x.column)
	if x.bytes {
		field, steps = bitField, append(steps, bits(x.label, bitField)...)
	}
	p := trend.NewPanelBuilder().Title(t.title).Description(t.description).Unit(t.unit).NoValue(t.none).
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
	own := props{prop("unit", x.unit), prop("min", nil), prop("max", nil), prop("decimals", nil)}
	if x.log > 0 {
		own = append(own, prop("custom.scaleDistribution", map[string]any{"type": "log", "log": x.log}))
	}
	return p.OverrideByName(field, own).
		OverrideByName(nothing, props{prop("displayName", t.none), color(gray)})
}

// nothing names the curve that stands for none; it has no point.
const nothing = "-1"

// orNothing gives a panel without data that curve, whose legend says why: without its x
// field a trend panel complains of that and shows no reason.
func (x axis) orNothing(query string) string {
	return "(" + query + `) or on () label_replace(label_replace(vector(NaN), "` + x.label + `", "1", "", ""), "` + x.column + `", "` + nothing + `", "", "")`
}

// pivot makes rows of a label's values, as numbers and in their order, and columns of
// another label's. The table format gives a label as text, and the matrix does again.
func pivot(row, column string) []dashboard.DataTransformerConfig {
	return []dashboard.DataTransformerConfig{
		numberOf(row),
		sortedBy(row),
		transform("groupingToMatrix", map[string]any{
			"rowField": row, "columnField": column, "valueField": "Value", "emptyValue": "null",
		}),
		// The matrix names its first column after both fields.
		transform("organize", map[string]any{"renameByName": map[string]string{row + `\` + column: row}}), //nolint:misspell // Grafana's word
		numberOf(row),
	}
}

// numberOf makes numbers of a field of text.
func numberOf(field string) dashboard.DataTransformerConfig { return fieldAs(field, "number") }

func fieldAs(field, kind string) dashboard.DataTransformerConfig {
	return transform("convertFieldType", map[string]any{
		"conversions": []map[string]any{{"targetField": field, "destinationType": kind}}, "fields": map[string]any{},
	})
}

func sortedBy(field string) dashboard.DataTransformerConfig {
	return transform("sortBy", map[string]any{"fields": map[string]any{}, "sort": []map[string]any{{"field": field}}})
}

// bits replaces a field of bytes by one of bits.
func bits(from, to string) []dashboard.DataTransformerConfig {
	return []dashboard.DataTransformerConfig{
		times(from, "8", to),
		transform("organize", map[string]any{"excludeByName": map[string]bool{from: true}}), //nolint:misspell // Grafana's word
	}
}

// times adds a field that is another one times a factor.
func times(from, factor, to string) dashboard.DataTransformerConfig {
	return transform("calculateField", map[string]any{
		"mode": "binary", "alias": to, "replaceFields": false,
		"binary": map[string]string{"left": from, "operator": "*", "right": factor},
	})
}

func transform(id string, options any) dashboard.DataTransformerConfig {
	return dashboard.DataTransformerConfig{Id: id, Options: options}
}
