package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	tablepanel "github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"

	"oneway.example/exporter/metric"
)

const always = common.VisibilityModeAlways

// apart is up to which distance, in ms, points of runs are joined: six hours.
func apart() common.BoolOrFloat64 { return common.BoolOrFloat64{Float64: new(6 * 3600e3)} }

// loadTestRunsRow is of all load tests of the path, whatever their kind: they share its
// link and its quota.
func loadTestRunsRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Runs of all load tests of this path, and what they may use"))
	b.WithPanel(lastAndNext())
	b.WithPanel(columns(text{
		"Runs in the time range",
		"Runs that were due in the dashboard's time range, by result and reason: completed; incomplete (what it found is not published); refused by the remote end; failed; skipped, since the link or the remote end was busy, the quota was used, or the window was over.",
		"none", noRun,
	},
		column{title: "probe", label: metric.Probe},
		column{title: "result", label: metric.ResultL, own: props{
			prop("custom.cellOptions", map[string]string{"type": "color-text"}), prop("mappings", resultWords()),
		}},
		column{title: "reason", label: metric.ReasonL},
		column{title: "runs", query: "round(sum by (probe, result, reason) (increase(" + from(anyTest, metric.Runs) + dashboardRange + "))) > 0", own: props{prop("decimals", 0)}},
	).Span(12).Thresholds(steps(step{0, gray})))
	b.WithPanel(runsByResult())
	b.WithPanel(quota())
}

// lastAndNext has a next run in the past while that run waits for its link or is under way.
func lastAndNext() *tablepanel.PanelBuilder {
	each := func(expr string) string { return "max by (probe) (" + expr + ")" }
	last := from(anyTest, metric.RunLast)
	return columns(text{
		"Last and next runs",
		"When the last run ended that was completed, when the next is due by its calendar (jitter and windows of the day included; in the past while it waits for the link or runs; none if no window ever opens), the interval, how long the last run took, and whether one runs now.",
		"none", noRun,
	},
		column{title: "probe", label: metric.Probe, empty: "none configured"},
		column{title: "every", query: each(from(anyTest, metric.RunInterval)), unit: "s"},
		column{title: "last run", query: each("1000 * " + last), unit: "dateTimeFromNow", own: props{prop("custom.minWidth", 130)}},
		column{title: "next run", query: each("1000 * " + from(anyTest, metric.RunNext)), unit: "dateTimeFromNow", own: props{prop("custom.minWidth", 130)}},
		column{title: "took", query: each(from(anyTest, metric.RunDuration)), unit: "s"},
		column{title: "now", query: each(from(anyTest, metric.TestRunning)), own: props{
			prop("mappings", values(map[string]dashboard.ValueMappingResult{
				"1": word("running", blue, 0), "0": word("idle", gray, 1),
			})), prop("custom.cellOptions", map[string]string{"type": "color-text"}),
		}},
	).Thresholds(steps(step{0, gray}))
}

func resultWords() []dashboard.ValueMapping {
	return values(map[string]dashboard.ValueMappingResult{
		"completed": word("completed", green, 0), "incomplete": word("incomplete", orange, 1),
		"refused": word("refused", red, 2), "failed": word("failed", red, 3), "skipped": word("skipped", yellow, 4),
	})
}

func runsByResult() *timeseries.PanelBuilder {
	return bars(counted(text{
		"Runs of the hour before",
		"Runs that were due within the hour before each point, by result and reason. OnewayRunsFailing counts those that were refused, failed or incomplete; skipped ones are nobody's fault, but see OnewayRunResultStale and OnewayDataQuotaExhausted.",
		"none", noRun,
	}, leastMinute, ranged("round(sum by (probe, result, reason) (increase("+from(anyTest, metric.Runs)+"[1h]))) > 0", "{{probe}}: {{result}} {{reason}}"))).
		Thresholds(steps(step{0, "transparent"})).
		OverrideByRegexp("/: completed /", props{color(green)}).
		OverrideByRegexp("/: incomplete /", props{color(orange)}).
		OverrideByRegexp("/: (refused|failed) /", props{color(red)}).
		OverrideByRegexp("/: skipped /", props{color(yellow)})
}

// ofLink selects a family of links: those that the path's load tests use.
func ofLink(d *metric.Desc) string {
	return from(thisAgent, d) + " and on (job, instance, link) " + from(anyTest, metric.TestRunning)
}

func quota() *timeseries.PanelBuilder {
	return lines(text{
		"Data quota",
		"IP bytes that load tests have moved over the path's link since local midnight, both directions, what is left, and the limit (dashed). What is set aside for a run under way is taken off what is left. A run that does not fit is skipped (OnewayDataQuotaExhausted).",
		"decbytes", "The path's link has no quota (links: quota_bytes)",
	},
		ranged(ofLink(metric.QuotaUsed), "{{link}} used"),
		ranged(ofLink(metric.QuotaLeft), "{{link}} left"),
		ranged(ofLink(metric.QuotaLimit), "{{link}} limit"),
	).Thresholds(steps(step{0, "transparent"})).
		OverrideByRegexp("/ used$/", props{color(orange), prop("custom.lineWidth", 2), prop("custom.fillOpacity", 15)}).
		OverrideByRegexp("/ left$/", props{color(green), prop("custom.lineWidth", 2)}).
		OverrideByRegexp("/ limit$/", props{color(red), dashed()})
}

// quotaTile is what is left of the link's quota.
func quotaTile() *stat.PanelBuilder {
	left, limit := ofLink(metric.QuotaLeft), from(thisAgent, metric.QuotaLimit)
	return tile(text{
		"Quota left", "What load tests may still move over the path's link until local midnight, and its share of the day's quota. Orange below 20 %, red below 5 %.", "percentunit",
		"No quota on this link",
	},
		instant(left, "bytes"),
		instant("("+left+") / on (job, instance, link) "+limit, "of the day"),
	).Span(5).Decimals(0).
		TextMode(common.BigValueTextModeValueAndName).
		Thresholds(steps(step{0, gray}, step{0, red}, step{0.05, orange}, step{0.2, green})).
		OverrideByName("bytes", props{prop("unit", "decbytes"), prop("decimals", 1), color(gray)})
}

// lastRunTile tells the age of the page's values.
func lastRunTile(base string) *stat.PanelBuilder {
	age := "time() - " + from(base, metric.RunLast)
	return tile(text{
		"Last run", "How long ago the last run was completed, and how many intervals that is. Everything on this page that has no time axis is of that run. Red above three intervals (OnewayRunResultStale).", "none",
		"None was completed",
	},
		instant(age, "ago"),
		instant("("+age+") / "+from(base, metric.RunInterval), "intervals"),
	).Span(5).Decimals(1).
		TextMode(common.BigValueTextModeValueAndName).
		Thresholds(steps(step{0, gray}, step{-1, green}, step{2, orange}, step{3, red})).
		OverrideByName("ago", props{prop("unit", "s"), prop("decimals", 0), color(gray)})
}
