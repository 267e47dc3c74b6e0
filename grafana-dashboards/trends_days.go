package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/heatmap"
	tablepanel "github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/trend"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
)

const dayType = metric.DayTypeL

func timeOfDayRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Hours and days, in the local time of the agent"))
	b.WithPanel(delayByHour())
	b.WithPanel(lossByHour())
	b.WithPanel(weekTable())
	b.WithPanel(hourByDate())
}

// delayByHour has the quartiles of each hour of the day.
func delayByHour() *trend.PanelBuilder {
	all := overAll(chosen)
	one := func(q, suffix string) string {
		return `label_replace(` + all.quantile(q, metric.Delay, "hour, "+dayType) + `, "` + dayType + `", "$1` + suffix + `", "` + dayType + `", "(.*)")`
	}
	p := curve(text{
		"Delay by hour of day, $direction",
		"Median of all delays in each hour of the day, on weekdays, weekends and holidays, with their quartiles as a band, from the sum of the histograms of these hours in the time range. Hours whose bands lie apart differ by more than chance would explain only if oneway trends says so. Corresponds to WPI figures 3 to 5 and 8 to 13.",
		"s", noHours,
	}, axis{label: "hour", column: dayType, unit: "suffix:h", least: new(0.0), most: new(23.0)},
		one("0.5", "")+" or "+one("0.25", " 25 %")+" or "+one("0.75", " 75 %"))
	for _, d := range dayTypes() {
		p.OverrideByName(d.name, props{color(d.color)}).
			OverrideByName(d.name+" 75 %", append(valuedEdge(color(d.color)), filledTo(d.name+" 25 %", 15)...)).
			OverrideByName(d.name+" 25 %", valuedEdge(color(d.color)))
	}
	return p
}

// dayTypes have the color of each kind of day.
func dayTypes() []state {
	return []state{{"weekday", "blue"}, {"weekend", "purple"}, {"holiday", "yellow"}}
}

func lossByHour() *trend.PanelBuilder {
	p := curve(text{
		"Loss by hour of day, $direction",
		"Lost over received, lost and undecided packets in each hour of the day, on weekdays, weekends and holidays, by the sums of these hours in the time range.",
		"percentunit", noHours,
	}, axis{label: "hour", column: dayType, unit: "suffix:h", least: new(0.0), most: new(23.0)}, overAll(chosen).loss("hour, "+dayType)).Min(0)
	for _, d := range dayTypes() {
		p.OverrideByName(d.name, props{color(d.color)})
	}
	return p
}

// weekTable has a cell of each hour of the week.
func weekTable() *tablepanel.PanelBuilder {
	p := plainTable(text{
		"Hours of the week, $direction: p95",
		"95th percentile of the delays in each hour of each day of the week, from the sum of the histograms of these hours in the time range (native histograms only); the color is from the least to the largest cell.",
		"s", noHours + ". Native histograms are needed",
	}).Span(12).Height(25).MinWidth(76).
		Targets(targets(one(table("histogram_quantile(0.95, "+byWeekday(rules.LongIncrease(metric.Delay), chosen)+")")))).
		OverrideByFieldType("number", props{
			prop("custom.cellOptions", map[string]any{"type": "color-background", "mode": "basic"}),
			prop("color", map[string]any{"mode": "continuous-BlYlRd"}), prop("decimals", 1),
			prop("mappings", []any{noNumber()}), prop("noValue", "–"),
		}).
		OverrideByName("hour", props{prop("mappings", []any{map[string]any{
			"type": "regex", "options": map[string]any{"pattern": "(.+)", "result": map[string]any{"text": "$1 h"}},
		}}), prop("custom.align", "right"), prop("custom.width", 60)})
	for i, name := range []string{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"} {
		p.OverrideByName(string(rune('0'+i)), props{prop("displayName", name)})
	}
	for _, s := range pivot("hour", "weekday") {
		p.WithTransformation(s)
	}
	// The hour is text: Grafana colors the cells from the least to the largest number of the table, and an hour would be one.
	return p.WithTransformation(fieldAs("hour", "string")).WithTransformation(transform("organize", map[string]any{
		"indexByName": map[string]int{"hour": 0, "1": 1, "2": 2, "3": 3, "4": 4, "5": 5, "6": 6, "0": 7},
	}))
}

// hourByDate has a column of each day and a row of each hour, the first one at the top as in the table beside it: Grafana orders series with
// numbers as names.
func hourByDate() *heatmap.PanelBuilder {
	all := past{base: thisPath, within: "[1d]", matchers: []string{chosen}}
	return heatmap.NewPanelBuilder().
		Title("Hours by date, $direction: p95").
		Description("95th percentile of the delays of each hour of the day (rows) and date (columns). A horizontal stripe is a busy hour, a vertical one a bad day, an edge a change. Days end at midnight UTC.").
		NoValue(noHours).Datasource(datasource()).
		Targets(targets(one(ranged(all.quantile("0.95", metric.Delay, "hour"), "{{hour}}")))).
		Interval("1d").Span(12).Height(25).CellGap(0).
		RowsFrame(heatmap.NewRowsHeatmapOptionsBuilder().Layout(common.HeatmapCellLayoutAuto)).
		CellValues(heatmap.NewCellValuesBuilder().Unit("s").Decimals(1)).
		YAxis(heatmap.NewYAxisConfigBuilder().AxisPlacement(common.AxisPlacementLeft).Unit("suffix:h").Reverse(true)).
		Color(heatmap.NewHeatmapColorOptionsBuilder().Mode(heatmap.HeatmapColorModeScheme).
			Scheme("Spectral").Scale(heatmap.HeatmapColorScaleExponential).Exponent(0.5).Steps(64)).
		ShowLegend()
}
