package main

import (
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	tablepanel "github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
)

func monthsRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Months and outages"))
	b.WithPanel(monthsTable())
	b.WithPanel(outagesTable())
}

// monthsTable has the calendar months of the agent, from the series of days. Each value has its column as the label cell.
func monthsTable() *tablepanel.PanelBuilder {
	const month, cell = "month", "cell"
	all := past{base: thisPath, within: dashboardRange, days: true, offset: "-1d"} // a day is recorded on the next one
	named := func(expr, column string) string {
		return "label_replace(" + expr + `, "` + cell + `", "` + column + `", "", "")`
	}
	delay := all.counts(metric.Delay, month, chosen)
	values := []string{named("histogram_count("+delay+")", "n")}
	for _, rank := range []string{"0.5", "0.95"} {
		values = append(values, named("histogram_quantile("+rank+", "+delay+")", rank))
	}
	counted := map[string]string{} // column by series
	add := func(name, of string, matchers ...string) {
		counted[name] = strings.Split(name, ":")[2]
		values = append(values, named("max by ("+month+") ("+all.sum(name, month+of, matchers...)+")", counted[name]))
	}
	add(rules.LongIncrease(metric.PacketsLost), "", chosen)
	add(rules.LongOutcomes.Name, "", chosen)
	add(rules.LongUp.Name, "")
	add(rules.LongMeasured.Name, "")
	for _, name := range []string{rules.LongRBelow70.Name, rules.LongRBelow80.Name} {
		add(name, ", "+metric.BufferL, chosen, selectedCodec, g107)
	}
	p := plainTable(text{
		"Months, $direction",
		"Calendar months in the local time of the agent: number of known delays, their median and 95th percentile, loss (packets without an outcome, as in an outage, count as not lost), availability, the days that were measured, and minutes of a call with R below 70 and 80 (codec above, with the playout buffer that has more of them). All are sums over whole days, which are recorded on the morning after. Select the direction above.",
		"none", noHours,
	}).Span(14).Height(15).
		Targets(targets(one(table(strings.Join(values, " or "))))).
		WithTransformation(transform("groupingToMatrix", map[string]any{"rowField": month, "columnField": cell, "valueField": "Value", "emptyValue": "null"})).
		WithTransformation(transform("organize", map[string]any{"renameByName": map[string]string{month + `\` + cell: month}})).
		WithTransformation(transform("sortBy", map[string]any{"fields": map[string]any{}, "sort": []map[string]any{{"field": month, "desc": true}}}))
	lost, outcomes, up, measured := counted[rules.LongIncrease(metric.PacketsLost)], counted[rules.LongOutcomes.Name], counted[rules.LongUp.Name], counted[rules.LongMeasured.Name]
	p.WithTransformation(computed(lost, "/", outcomes, "loss")).WithTransformation(computed(up, "/", measured, "availability")).WithTransformation(computed(measured, "/", "1440", "measured"))
	renamed, order := map[string]string{}, map[string]int{}
	for i, c := range []struct {
		field string
		column
	}{
		{month, column{title: month, own: props{prop("custom.width", 110)}}},
		{"n", column{title: "n", own: props{prop("decimals", 0)}}},
		{"0.5", column{title: "p50", unit: "s", own: props{prop("decimals", 2)}}},
		{"0.95", column{title: "p95", unit: "s", own: props{prop("decimals", 2)}}},
		{"loss", column{title: "loss", unit: "percentunit", own: props{prop("decimals", 3)}}},
		{"availability", column{title: "availability", unit: "percentunit", own: props{prop("decimals", 3)}}},
		{"measured", column{title: "measured", unit: "suffix:d", own: props{prop("decimals", 1)}}},
		{counted[rules.LongRBelow70.Name], column{title: "R < 70", unit: "suffix:min", own: props{prop("decimals", 0)}}},
		{counted[rules.LongRBelow80.Name], column{title: "R < 80", unit: "suffix:min", own: props{prop("decimals", 0)}}},
	} {
		renamed[c.field], order[c.field] = c.title, i
		own := c.own
		if c.field != month {
			own = append(dashes(), own...)
		}
		if c.unit != "" {
			own = append(own, prop("unit", c.unit))
		}
		p.OverrideByName(c.title, own)
	}
	return p.WithTransformation(transform("organize", map[string]any{
		"excludeByName": map[string]bool{lost: true, outcomes: true, up: true, measured: true}, "renameByName": renamed, "indexByName": order,
	}))
}

// outagesTable lists the hours in which a measured path did not reply.
func outagesTable() *tablepanel.PanelBuilder {
	all := past{base: thisPath, within: "[1h]"}
	down := all.sum(rules.LongMeasured.Name, metric.Path) + " - " + all.sum(rules.LongUp.Name, metric.Path) + " > 0"
	return plainTable(text{
		"Outages, by hour",
		"Hours with minutes in which the path was measured and did not reply, the latest first, by the end of the hour.",
		"suffix:min", "No minute without a reply in the recorded hours of this time range",
	}).Span(10).Height(15).Interval(hourly).MaxDataPoints(10000).
		Targets(targets(one(ranged(down, "without a reply")))).
		OverrideByFieldType("number", dashes()).
		OverrideByName("Time", props{prop("displayName", "hour until")}).
		WithTransformation(transform("sortBy", map[string]any{"fields": map[string]any{}, "sort": []map[string]any{{"field": "Time", "desc": true}}}))
}

func comparedRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("This week beside others, and verdicts"))
	bothDirections(b, comparedWeeks)
	b.WithPanel(trendVerdicts())
}

// comparedWeeks has its own time range: a week.
func comparedWeeks(name, matcher string) *timeseries.PanelBuilder {
	at := func(offset string) string {
		p := overHours(matcher)
		p.offset = offset
		return p.quantile("0.95", metric.Delay, metric.Direction)
	}
	main := colorOf(name)
	return byTime(hourly, plot(text{
		"p95 " + name + ", this week and others",
		"95th percentile of the delays of each hour in the last seven days, of the week before, and of 52 weeks before, which are the same days of the week.",
		"s", noHours,
	},
		ranged(at(""), "this week"), ranged(at("1w"), "last week"), ranged(at("52w"), "last year"),
	)).TimeFrom("7d").
		OverrideByName("this week", props{color(main), prop("custom.lineWidth", 2)}).
		OverrideByName("last week", props{color(main), dashed()}).
		OverrideByName("last year", props{color(gray), dotted()})
}
