package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/heatmap"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/statetimeline"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// Colors have the same meaning on every panel: blue is forward, orange reverse, green the round trip. All are in Grafana's
// palette, which has light and dark variants.
const (
	blue   = "blue"
	orange = "orange"
	green  = "green"
	red    = "red"
	yellow = "yellow"
	purple = "purple"
	gray   = "text"
	// faint is a gray area for the absence of data that is no fault.
	faint = "rgba(128, 128, 128, 0.3)"
)

// perMinute is a custom unit; Grafana has none for events per minute.
const perMinute = "suffix:/min"

// text has the texts and the unit that every panel needs.
type text struct {
	title, description string
	// unit is one of Grafana's unit ids.
	unit string
	// none is the noValue text of an empty panel: the reason.
	none string
}

// bothDirections adds a panel of each direction, which has the name and the matcher of the direction.
func bothDirections[P cog.Builder[dashboard.Panel]](b *boardBuilder, panel func(name, matcher string) P) {
	b.WithPanel(panel("forward", forward))
	b.WithPanel(panel("reverse", reverse))
}

// annotate adds an annotation where expr has a series: title and detail are templates, tags are labels.
func annotate(b *boardBuilder, name, colorName, expr, title, detail, tags string) {
	b.Annotation(dashboard.NewAnnotationQueryBuilder().Name(name).Datasource(datasource()).Enable(true).
		IconColor(colorName).Expr(expr).Step("60s").TitleFormat(title).TextFormat(detail).TagKeys(tags))
}

// maintenanceAnnotation shades the time of planned work, where expr has a series.
func maintenanceAnnotation(b *boardBuilder, expr, of string) {
	annotate(b, "Maintenance", gray, expr, "Maintenance", of, "instance")
}

func targets(qs []*prometheus.DataqueryBuilder) []cog.Builder[variants.Dataquery] {
	out := make([]cog.Builder[variants.Dataquery], len(qs))
	for i, q := range qs {
		out[i] = q.RefId(string(rune('A' + i)))
	}
	return out
}

func datasource() common.DataSourceRef {
	return common.DataSourceRef{Type: new("prometheus"), Uid: new(datasourceInUse)}
}

// lines is a plot whose axis begins at zero.
func lines(t text, qs ...*prometheus.DataqueryBuilder) *timeseries.PanelBuilder {
	return plot(t, qs...).AxisSoftMin(0)
}

// counted is a plot of values that are mostly zero. least is the smallest range of the axis; without it Grafana draws an
// axis up to 10 000 %.
func counted(t text, least float64, qs ...*prometheus.DataqueryBuilder) *timeseries.PanelBuilder {
	return plot(t, qs...).Min(0).AxisSoftMax(least)
}

// Smallest ranges of counted.
const (
	leastRatio  = 0.015
	leastMinute = 2
)

// plot is a panel over time, half of the page wide. Its legend is below the plot, which keeps the plot readable on a phone.
func plot(t text, qs ...*prometheus.DataqueryBuilder) *timeseries.PanelBuilder {
	return timeseries.NewPanelBuilder().
		Title(t.title).Description(t.description).Unit(t.unit).NoValue(t.none).
		Datasource(datasource()).Targets(targets(qs)).Span(12).Height(8).
		LineWidth(1).FillOpacity(0).ShowPoints(common.VisibilityModeNever).
		SpanNulls(common.BoolOrFloat64{Bool: new(false)}).
		Legend(common.NewVizLegendOptionsBuilder().ShowLegend(true).
			DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom)).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).
			Sort(common.SortOrderDescending))
}

// ranked is the legend of lines of many paths: a table, with the largest maximum first.
func ranked() *common.VizLegendOptionsBuilder {
	return common.NewVizLegendOptionsBuilder().ShowLegend(true).
		DisplayMode(common.LegendDisplayModeTable).Placement(common.LegendPlacementBottom).
		Calcs([]string{"lastNotNull", "max"}).SortBy("Max").SortDesc(true)
}

// tile is a panel with the last value of each query.
func tile(t text, qs ...*prometheus.DataqueryBuilder) *stat.PanelBuilder {
	return stat.NewPanelBuilder().
		Title(t.title).Description(t.description).Unit(t.unit).NoValue(t.none).
		Datasource(datasource()).Targets(targets(qs)).Height(4).
		ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"})).
		GraphMode(common.BigValueGraphModeNone).ColorMode(common.BigValueColorModeValue).
		JustifyMode(common.BigValueJustifyModeCenter).
		// Without it the SDK writes "" and Grafana shows the first value only.
		Orientation(common.VizOrientationAuto)
}

// heats is a heatmap of a histogram's buckets.
func heats(t text, q *prometheus.DataqueryBuilder) *heatmap.PanelBuilder {
	return heatmap.NewPanelBuilder().
		Title(t.title).Description(t.description).NoValue(t.none).
		Datasource(datasource()).Targets(targets([]*prometheus.DataqueryBuilder{q})).Span(12).Height(8).
		YAxis(heatmap.NewYAxisConfigBuilder().Unit(t.unit).AxisPlacement(common.AxisPlacementLeft)).
		CellGap(0).
		// From 1e-9: an empty cell has no color instead of the lowest one.
		FilterValues(heatmap.NewFilterValueRangeBuilder().Le(1e-9)).
		Color(heatmap.NewHeatmapColorOptionsBuilder().Mode(heatmap.HeatmapColorModeScheme).
			Scheme("Spectral").Scale(heatmap.HeatmapColorScaleExponential).Exponent(0.4).Steps(64)).
		ShowLegend()
}

// bars draws a count as stacked bars.
func bars(p *timeseries.PanelBuilder) *timeseries.PanelBuilder {
	return p.DrawStyle(common.GraphDrawStyleBars).FillOpacity(60).LineWidth(0).
		Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal).Group("A"))
}

// states is a state timeline.
func states(t text, qs ...*prometheus.DataqueryBuilder) *statetimeline.PanelBuilder {
	return statetimeline.NewPanelBuilder().
		Title(t.title).Description(t.description).Unit(t.unit).NoValue(t.none).
		Datasource(datasource()).Targets(targets(qs)).Span(12).Height(8).
		ShowValue(common.VisibilityModeNever).MergeValues(true).RowHeight(0.8).DisablePagination().
		Legend(common.NewVizLegendOptionsBuilder().ShowLegend(true).
			DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom))
}

// step is a threshold: color applies from value on. The value of the first step is ignored.
type step struct {
	value float64
	color string
}

func steps(ss ...step) *dashboard.ThresholdsConfigBuilder {
	out := make([]dashboard.Threshold, len(ss))
	for i, s := range ss {
		out[i].Color = s.color
		if i > 0 {
			out[i].Value = new(s.value)
		}
	}
	return dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute).Steps(out)
}

// inColor is the color of every value; the text for no data is gray.
func inColor(colorName string) *dashboard.ThresholdsConfigBuilder {
	const lowest = -1e15
	return steps(step{0, gray}, step{lowest, colorName})
}

// line draws thresholds as lines, area as colored areas.
func line() *common.GraphThresholdsStyleConfigBuilder {
	return common.NewGraphThresholdsStyleConfigBuilder().Mode(common.GraphThresholdsStyleModeDashed)
}

func area() *common.GraphThresholdsStyleConfigBuilder {
	return common.NewGraphThresholdsStyleConfigBuilder().Mode(common.GraphThresholdsStyleModeArea)
}

// props are the properties of an override, by Grafana's property ids.
type props = []dashboard.DynamicConfigValue

func color(name string) dashboard.DynamicConfigValue {
	return dashboard.DynamicConfigValue{Id: "color", Value: map[string]any{"mode": "fixed", "fixedColor": name}}
}

// shades is for lines of one direction by codec: each has its own shade of the color.
func shades(name string) dashboard.DynamicConfigValue {
	return dashboard.DynamicConfigValue{Id: "color", Value: map[string]any{"mode": "shades", "fixedColor": name}}
}

func prop(id string, value any) dashboard.DynamicConfigValue {
	return dashboard.DynamicConfigValue{Id: id, Value: value}
}

// dashed is the line style of outer quantiles: p95, p99.
func dashed() dashboard.DynamicConfigValue {
	return prop("custom.lineStyle", map[string]any{"fill": "dash", "dash": []int{6, 4}})
}

func dotted() dashboard.DynamicConfigValue {
	return prop("custom.lineStyle", map[string]any{"fill": "dot", "dash": []int{1, 5}})
}

// edge is a limit of a band: it is not drawn, and is neither in the legend nor in the tooltip.
func edge(more ...dashboard.DynamicConfigValue) props { return undrawn(true, more) }

// valuedEdge is an edge whose value is in the tooltip.
func valuedEdge(more ...dashboard.DynamicConfigValue) props { return undrawn(false, more) }

func undrawn(silent bool, more []dashboard.DynamicConfigValue) props {
	return append(props{
		prop("custom.lineWidth", 0), prop("custom.showPoints", "never"),
		prop("custom.hideFrom", map[string]bool{"legend": true, "tooltip": silent, "viz": false}),
	}, more...)
}

// filledTo fills the area down to another line.
func filledTo(line string, percent int) props {
	return props{prop("custom.fillBelowTo", line), prop("custom.fillOpacity", percent)}
}

// values maps numbers to colored text.
func values(of map[string]dashboard.ValueMappingResult) []dashboard.ValueMapping {
	return []dashboard.ValueMapping{{ValueMap: &dashboard.ValueMap{Type: dashboard.MappingTypeValueToText, Options: of}}}
}

func word(s, colorName string, index int32) dashboard.ValueMappingResult {
	return dashboard.ValueMappingResult{Text: &s, Color: &colorName, Index: &index}
}
