package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	tablepanel "github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
	"github.com/grafana/grafana-foundation-sdk/go/trend"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
)

const (
	compareTitle = "Compare"
	compareUID   = "oneway-compare"
	// enough is the least number of runs, or of hours, whose median is not marked.
	enough = 10
)

const (
	noCompared = "No recorded hours of A or B in the time range (deploy/prometheus/rules)"
	noSweeps   = slimOr + "no completed run of the probe size_sweep on paths of A or B in this time range"
)

// condition is one side of a comparison: the paths with a value of a label, in a period.
type condition struct{ name, value, shift, color string }

// conditions are A and B, by their variables.
func conditions() [2]condition {
	return [2]condition{{"A", "$a", "$shift_a", purple}, {"B", "$b", "$shift_b", "#1aa3a3"}}
}

// compareBoard compares two service conditions (D-ITG report): paths by any of their labels, or two periods.
func compareBoard() *boardBuilder {
	b := board(compareTitle, compareUID, "now-7d",
		"Two conditions beside each other: paths with one value of a label (access, device, system, application, site: any label that the configuration gives) against those with another, or one period against an earlier one. Distributions over each other, differences, and cells of packet size by packet rate.").
		Links(append(links(page{trendsTitle, trendsUID, "Months and years of one path"}, page{overviewTitle, overviewUID, "All paths"}), runbooks()))
	agentVariables(b, metric.PacketsSent.Name)
	b.WithVariable(labelVariable())
	for _, c := range conditions() {
		variable := map[string]string{"A": "a", "B": "b"}[c.name]
		// A is the first value and B the last one, until somebody chooses: with one value both are the same.
		order := map[string]dashboard.VariableSort{"A": dashboard.VariableSortAlphabeticalAsc, "B": dashboard.VariableSortAlphabeticalDesc}[c.name]
		b.WithVariable(labelValues("$label", c.name, withLabel("")).Name(variable).Sort(order))
		b.WithVariable(periodVariable("shift_"+variable, "Period of "+c.name+", ago"))
	}
	b.WithVariable(directionVariable())
	summaryOfConditions(b)
	distributionsOfConditions(b)
	cellsRow(b)
	return b
}

// withLabel are the series that have the labels of paths, and those that have path, probe and instance.
func withLabel(more string) string {
	return `{__name__=~"` + metric.PathLabels.Name + "|" + rules.LongIncrease(metric.PacketsSent) + "|" + metric.RunInterval.Name + `",` + thisAgent + more + "}"
}

// labelVariable selects the label whose values are A and B: the parts of a service condition, and labels that all paths have. In Grafana
// one can type another.
func labelVariable() *dashboard.CustomVariableBuilder {
	return dashboard.NewCustomVariableBuilder("label").Label("Label").AllowCustomValue(true).
		Values(dashboard.StringOrMap{String: new("path,instance,site,access,device,system,application,from_site,from_access,profile")}).
		Current(dashboard.VariableOption{
			Text: dashboard.StringOrArrayOfString{String: new(metric.Path)}, Value: dashboard.StringOrArrayOfString{String: new(metric.Path)},
		})
}

// periodVariable moves a condition back in time. Prometheus before 3 refuses an offset of 0s.
func periodVariable(name, label string) *dashboard.CustomVariableBuilder {
	return dashboard.NewCustomVariableBuilder(name).Label(label).
		Values(dashboard.StringOrMap{String: new("now : 1ms,1d,1w,4w,12w,52w")}).
		Current(dashboard.VariableOption{
			Text: dashboard.StringOrArrayOfString{String: new("now")}, Value: dashboard.StringOrArrayOfString{String: new("1ms")},
		})
}

// paths has a series of each path that the condition had at the end of its period: sets of series are intersected with it.
func (c condition) paths() string {
	return "group by (job, instance, path) (last_over_time(" + withLabel(`,$label="`+c.value+`"`) + "[1d] @ end() offset " + c.shift + "))"
}

// chosenPaths keeps series of paths of the condition.
func (c condition) chosenPaths(expr string) string {
	return "(" + expr + " and on (job, instance, path) " + c.paths() + ")"
}

// hours adds the recorded hours of the condition's paths: one sum of each path, so that they are not summed before they are selected.
func (c condition) hours(name, by string, matchers ...string) string {
	p := past{base: thisAgent, within: dashboardRange, matchers: matchers, offset: c.shift}
	return "sum by (" + by + ") " + c.chosenPaths("sum by (job, instance, path, "+by+") (sum_over_time("+p.series(name)+"))")
}

// named gives the series of a condition the label condition.
func (c condition) named(expr string) string {
	return `label_replace(` + expr + `, "condition", "` + c.name + `", "", "")`
}

// eachCondition joins what both have.
func eachCondition(of func(c condition) string) string {
	all := conditions()
	return all[0].named(of(all[0])) + " or " + all[1].named(of(all[1]))
}

// Names of the row with what B has less A.
const (
	difference = "B less A"
	same       = "B is A: choose another B"
)

// withDifference joins what both have, and what B has less A; its row says where both are the same paths in the same period.
func withDifference(of func(c condition) string) string {
	all := conditions()
	choice := func(c condition) string {
		return `label_replace(vector(1), "choice", "` + c.value + " " + c.shift + `", "", "")`
	}
	row := func(name string) string { return `label_replace(vector(1), "condition", "` + name + `", "", "")` }
	name := "(" + row(same) + " and on () (" + choice(all[0]) + " and on (choice) " + choice(all[1]) + ") or on () " + row(difference) + ")"
	return eachCondition(of) + " or ((" + of(all[1]) + ") - (" + of(all[0]) + ")) * on () group_left (condition) " + name
}

// summaryOfConditions has a row of each quantity, and the paths that are compared.
func summaryOfConditions(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("A and B, $direction"))
	b.WithPanel(summaryTable())
	b.WithPanel(pathsOfConditions())
	b.WithPanel(compareVerdicts())
}

func summaryTable() *tablepanel.PanelBuilder {
	delay := func(c condition) string { return c.hours(rules.LongIncrease(metric.Delay), metric.Direction, chosen) }
	quantile := func(q string) string {
		return withDifference(func(c condition) string {
			native := "histogram_quantile(" + q + ", " + delay(c) + ")"
			return "(" + native + " or histogram_quantile(" + q + ", " + c.hours(rules.LongBuckets(metric.Delay), metric.Direction+", le", chosen) + "))"
		})
	}
	most := func(r rules.Rule) func(c condition) string {
		return func(c condition) string {
			p := past{base: thisAgent, within: dashboardRange, matchers: []string{chosen}, offset: c.shift}
			return "max by (direction) " + c.chosenPaths("max by (job, instance, path, direction) (max_over_time("+p.series(r.Name)+"))")
		}
	}
	return columns(text{
		"A and B, $direction",
		"The paths of each condition in its period, all their packets together: known delays, median and 95th percentile with the largest error bound of a delay, loss (packets without an outcome count as not lost), largest delay; and how much more B has. Whether A and B differ by more than chance is below. Corresponds to the D-ITG report: its service conditions.",
		"none", noCompared,
	},
		column{title: "condition", label: "condition", empty: "no recorded hours", own: append(wrapped("color-text"), prop("custom.width", 105), prop("mappings", values(map[string]dashboard.ValueMappingResult{
			same: word(same, orange, 0),
		})))},
		column{title: "n", query: eachCondition(func(c condition) string { return "histogram_count(" + delay(c) + ")" }), unit: "short", own: props{prop("decimals", 1)}},
		column{title: "p50", query: quantile("0.5"), unit: "s", own: props{prop("decimals", 2)}},
		column{title: "p95", query: quantile("0.95"), unit: "s", own: props{prop("decimals", 2)}},
		column{title: "± bound", query: eachCondition(most(rules.LongBound)), unit: "s", own: props{prop("decimals", 2)}},
		column{title: "loss", query: withDifference(func(c condition) string {
			return c.hours(rules.LongIncrease(metric.PacketsLost), metric.Direction, chosen) + " / (" + c.hours(rules.LongOutcomes.Name, metric.Direction, chosen) + " > 0)"
		}), unit: "percentunit", own: props{prop("decimals", 3)}},
		column{title: "largest", query: eachCondition(most(rules.LongDelayMax)), unit: "s", own: props{prop("decimals", 2)}},
		column{title: "direction", label: metric.Direction, own: invisible()},
	).Span(14).Height(6).Thresholds(steps(step{0, gray})).WithTransformation(sortedBy("condition"))
}

func pathsOfConditions() *tablepanel.PanelBuilder {
	return columns(text{
		"Paths of A and B",
		"The paths that had the chosen value of the label on the last day of the period. Give paths labels such as access, device, system and application of both ends (labels in the configuration): they are the parts of a service condition in the D-ITG report (tables 1 and 4).",
		"none", "No path has these values of the label in the time range",
	},
		column{title: "condition", label: "condition", empty: "no paths", own: props{prop("custom.width", 90)}},
		column{title: "path", label: metric.Path, own: props{prop("custom.minWidth", 150)}},
		column{title: "agent", label: "instance"},
		column{title: "job", label: "job", own: invisible()},
		column{title: "paths", query: eachCondition(condition.paths), own: invisible()},
	).Span(10).Height(6).WithTransformation(sortedBy("path")).WithTransformation(sortedBy("condition"))
}

func distributionsOfConditions(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Distributions, and the course of time"))
	b.WithPanel(conditionCDF(text{
		"Delay CDF, A and B, $direction",
		"Share of the known delays of each condition that are at most this delay. From the sum of the hours' native histograms (resolution 9 %), at about 60 delays up to the 99.9th percentile. A curve further left is faster for that share of the packets.",
		"percentunit", noCompared + ". Native histograms are needed",
	}, "s", "1", "0.999", metric.Delay))
	b.WithPanel(conditionCDF(text{
		"TCP throughput CDF, A and B, $direction",
		"Share of the TCP runs of each condition with at most this throughput; each run counts once. From native histograms with a resolution of 2.2 %. Corresponds to WPI figure 2, for any two conditions.",
		"percentunit", "No recorded runs of TCP of A or B in the time range. Native histograms are needed",
	}, inBits, "8", "1", metric.TCPRunThroughput))
	b.WithPanel(differenceOverTime())
}

// passed is the share of the dashboard's time range that has passed at a step of a range query: 0 to 1.
const passed = "((time() - ${__from} / 1000) / $__range_s)"

// conditionCDF sweeps a threshold over the steps of range queries, whose histograms do not depend on the step (@ end()), so that Prometheus
// adds them once: sixteen quantiles of a month of twenty paths would add them sixteen times. The steps are then joined to curves.
func conditionCDF(t text, unit, factor, last string, d *metric.Desc) *trend.PanelBuilder {
	histogram := func(c condition) string {
		p := past{base: thisAgent, within: dashboardRange, matchers: []string{chosen}, offset: c.shift}
		return "sum by (direction) " + c.chosenPaths("sum by (job, instance, path, direction) (sum_over_time("+p.series(rules.LongIncrease(d))+" @ end()))")
	}
	limit := func(q, function string) string {
		return "scalar(" + function + "(" + eachCondition(func(c condition) string { return "histogram_quantile(" + q + ", " + histogram(c) + ")" }) + "))"
	}
	// From the least value to the largest, or the quantile last, in equal ratios.
	at := "scalar(clamp_min(vector(" + limit("0", "min") + "), 1e-6) ^ (1 - " + passed + ") * " + limit(last, "max") + " ^ " + passed + ")"
	share := func(c condition) string { return "histogram_fraction(-Inf, " + at + ", " + histogram(c) + ")" }
	both := conditions()
	p := trend.NewPanelBuilder().Title(t.title).Description(withReason(t)).Unit(t.unit).NoValue(t.none).
		Datasource(datasource()).Span(12).Height(9).MaxDataPoints(60).
		// Without its x field a trend panel shows an error: without data the axis is any.
		WithTarget(ranged(factor+" * vector("+at+") > 0 or 10 ^ vector("+passed+")", valueField).RefId("A")).
		WithTarget(ranged(share(both[0]), both[0].name).RefId("B")).
		WithTarget(ranged(share(both[1]), both[1].name).RefId("C")).
		WithTarget(ranged("vector(NaN) unless on () ("+histogram(both[0])+" or "+histogram(both[1])+")", nothing).RefId("D")).
		XField(valueField).LineWidth(2).ShowPoints(common.VisibilityModeNever).
		Legend(common.NewVizLegendOptionsBuilder().ShowLegend(true).
			DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom)).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti)).
		WithTransformation(transform("joinByField", map[string]any{"byField": "Time", "mode": "outer"})).
		WithTransformation(transform("organize", map[string]any{"excludeByName": map[string]bool{"Time": true}})).
		Min(0).Max(1).
		OverrideByName(valueField, props{
			prop("unit", unit), prop("min", nil), prop("max", nil), prop("custom.scaleDistribution", map[string]any{"type": "log", "log": 10}),
		}).
		OverrideByName(nothing, props{prop("displayName", inLegend(t.none)), color(gray)})
	for _, c := range both {
		p.OverrideByName(c.name, props{color(c.color)})
	}
	return p
}

// valueField is the field of the x axis.
const valueField = "value"

// differenceOverTime shows both medians of each interval, B moved onto A's time.
func differenceOverTime() *timeseries.PanelBuilder {
	p := byTime(hourly, plot(text{
		"Median delay over time, A and B, $direction",
		"Median of the known delays of each interval, of all paths of the condition together; a condition of another period is moved to the time of the axis.",
		"s", noCompared,
	})).Span(24)
	for i, c := range conditions() {
		at := past{base: thisAgent, within: stepRange, matchers: []string{chosen}, offset: c.shift}
		sum := func(name, by string) string {
			return "sum by (" + by + ") " + c.chosenPaths("sum by (job, instance, path, "+by+") (sum_over_time("+at.series(name)+"))")
		}
		p.WithTarget(ranged("histogram_quantile(0.5, "+sum(rules.LongIncrease(metric.Delay), metric.Direction)+") or histogram_quantile(0.5, "+
			sum(rules.LongBuckets(metric.Delay), metric.Direction+", le")+")", c.name).RefId(string(rune('A'+i)))).
			OverrideByName(c.name, props{color(c.color), prop("custom.lineWidth", 2)})
	}
	return p
}
