package main

import (
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

// monthsTable has the calendar months of the agent.
func monthsTable() *tablepanel.PanelBuilder {
	of := func(name string, matchers ...string) string {
		return byDate(rules.LongMonth, "month", "", name, matchers...)
	}
	delay := of(rules.LongIncrease(metric.Delay), chosen)
	called := metric.CodecL + `="$codec"`
	low := func(limit rules.Rule) string {
		return "max by (month) (" + byDate(rules.LongMonth, "month", metric.BufferL, limit.Name, called, metric.ModelL+`="g107"`, chosen) + ")"
	}
	return columns(text{
		"Months, $direction",
		"Calendar months in the local time of the agent: number of known delays, their median and 95th percentile, loss, availability, and minutes of a call with R below 70 and 80 (codec above, with the playout buffer that has more of them). All are sums over the hours. Select the direction above.",
		"none", noHours,
	},
		column{title: "month", label: "month", empty: "no recorded hours", own: props{prop("custom.width", 110)}},
		column{title: "n", query: "histogram_count(" + delay + ")", own: props{prop("decimals", 0)}},
		column{title: "p50", query: "histogram_quantile(0.5, " + delay + ")", unit: "s", own: props{prop("decimals", 2)}},
		column{title: "p95", query: "histogram_quantile(0.95, " + delay + ")", unit: "s", own: props{prop("decimals", 2)}},
		column{title: "loss", query: of(rules.LongIncrease(metric.PacketsLost), chosen) + " / (" + of(rules.LongOutcomes.Name, chosen) + " > 0)", unit: "percentunit", own: props{prop("decimals", 3)}},
		column{title: "availability", query: of(rules.LongUp.Name) + " / (" + of(rules.LongMeasured.Name) + " > 0)", unit: "percentunit", own: props{prop("decimals", 3)}},
		column{title: "measured", query: "60 * " + of(rules.LongMeasured.Name), unit: "dtdurations", own: props{prop("decimals", 0)}},
		column{title: "R < 70", query: low(rules.LongRBelow70), unit: "suffix:min", own: props{prop("decimals", 0)}},
		column{title: "R < 80", query: low(rules.LongRBelow80), unit: "suffix:min", own: props{prop("decimals", 0)}},
	).Span(14).Height(12).
		WithTransformation(transform("sortBy", map[string]any{"fields": map[string]any{}, "sort": []map[string]any{{"field": "month", "desc": true}}}))
}

// outagesTable lists the hours in which a measured path did not reply.
func outagesTable() *tablepanel.PanelBuilder {
	all := past{base: thisPath, within: "[1h]"}
	down := all.sum(rules.LongMeasured.Name, metric.Path) + " - " + all.sum(rules.LongUp.Name, metric.Path) + " > 0"
	return plainTable(text{
		"Outages, by hour",
		"Hours with minutes in which the path was measured and did not reply, the latest first, by the end of the hour.",
		"suffix:min", "No minute without a reply in the recorded hours of this time range",
	}).Span(10).Height(12).Interval(hourly).MaxDataPoints(10000).
		Targets(targets(one(ranged(down, "without a reply")))).
		OverrideByFieldType("number", dashes()).
		OverrideByName("Time", props{prop("displayName", "hour until")}).
		WithTransformation(transform("sortBy", map[string]any{"fields": map[string]any{}, "sort": []map[string]any{{"field": "Time", "desc": true}}}))
}

func comparedRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("This week beside others"))
	bothDirections(b, comparedWeeks)
}

// comparedWeeks has its own time range: a week.
func comparedWeeks(name, matcher string) *timeseries.PanelBuilder {
	at := func(offset string) string {
		p := overTime(matcher)
		p.offset = offset
		return p.quantile("0.95", metric.Delay, metric.Direction)
	}
	main := colorOf(name)
	return byTime(plot(text{
		"p95 of the delay " + name + ": this week, last week, last year",
		"95th percentile of the delays of each hour in the last seven days, of the week before, and of 52 weeks before, which are the same days of the week.",
		"s", noHours,
	},
		ranged(at(""), "this week"), ranged(at("1w"), "last week"), ranged(at("52w"), "last year"),
	)).TimeFrom("7d").
		OverrideByName("this week", props{color(main), prop("custom.lineWidth", 2)}).
		OverrideByName("last week", props{color(main), dashed()}).
		OverrideByName("last year", props{color(gray), dotted()})
}
