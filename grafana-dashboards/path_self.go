package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
)

// selfRow shows errors of the measuring host, which must not be attributed to the path.
func selfRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Measuring host"))
	b.WithPanel(hostTime(text{
		"Send lateness",
		"Time from the scheduled to the actual start of sending a test packet. The kernel timestamp keeps the delay correct; the send schedule (RFC 3432) requires small lateness. " + resolution(metric.ProbeLateness),
		"s", "No packet was sent" + orSlim,
	}, metric.ProbeLateness))
	b.WithPanel(counted(text{
		"Skipped and late packets",
		"Share of the scheduled test packets of 5 minutes that were skipped, or sent more than " + amount(rules.LateSeconds*1e3, "ms") + " late. They do not count as loss. The dashed line is the default threshold of " + rules.ProbeSelfLimited.Name + ".",
		"percentunit", "No packet was skipped" + orSlim,
	}, leastRatio,
		ranged(rec(rules.ScheduleSkippedRatio.Name), "skipped"),
		ranged(rec(rules.ScheduleLateRatio.Name), "late"),
	).Thresholds(steps(step{0, "transparent"}, step{rules.ThresholdSelfLimitedRatio.Default, red})).ThresholdsStyle(line()).
		OverrideByName("skipped", props{color(red), prop("custom.lineWidth", 2)}).
		OverrideByName("late", props{color(yellow)}))
	b.WithPanel(lines(text{
		"Timestamps by origin",
		"Share of the timestamps used, by event (t1: sent, t2: received by the reflector, t3: sent by the reflector, t4: received) and origin. Origin user is a fallback that includes the delay of the host.",
		"percentunit", "No timestamps: no replies" + orSlim,
	}, ranged("sum by (event, origin) (rate("+of(metric.Timestamps)+rateInterval+")) / on (event) group_left () sum by (event) (rate("+of(metric.Timestamps)+rateInterval+") > 0)", "{{event}} {{origin}}")).
		Max(1))
	b.WithPanel(counted(text{
		"Skipped packets and missing timestamps",
		"Scheduled test packets that were not sent, by reason, and timestamps that a measurement lacks, by event.",
		perMinute, "None in this time range" + orSlim,
	}, leastMinute,
		ranged(minutely(of(metric.ProbeSkipped)), "skipped: {{reason}}"),
		ranged(minutely(of(metric.TimestampsMissing)), "no timestamp: {{event}}"),
	))
	b.WithPanel(lines(text{
		"Host delay",
		"Time between user space and the kernel timestamp, 99th percentile: the error that timestamps in user space would add to each delay. By quantile: the wait of this path's test packets before they were sent, above all in a queue of the interface; no delay has it. Resolution: 9 % with native histograms, else classic buckets.",
		"s", "No kernel timestamps",
	}, ranged(here(quantileBy("0.99", metric.HostDelay)), "{{instance}} {{event}}"),
		ranged(of(metric.HostQueue), "wait before sending, quantile {{"+metric.QuantileL+"}}")).
		ScaleDistribution(scale(10)))
	b.WithPanel(counted(text{
		"Drops and send errors of hosts",
		"Test packets of the path that the receiving host dropped because its socket buffer was full (forward: remote host, reverse: local host); they count neither as received nor as lost. Also all datagrams that the local kernel dropped at oneway's sockets, and failed sends by reason.",
		perMinute, "None in this time range",
	}, leastMinute,
		ranged(minutely(of(metric.PacketsHostDropped)), "{{direction}} dropped by the receiver"),
		ranged(here(minutely(of(metric.SocketDrops))), "{{instance}} {{socket}} dropped"),
		ranged(here(minutely(of(metric.SendErrors))), "{{instance}} {{socket}}: {{reason}}"),
	).DrawStyle(common.GraphDrawStyleBars).FillOpacity(60))
}

// quantileBy is quantile for a family of the agent: by agent and event.
func quantileBy(q string, d *metric.Desc) string {
	return "(" + quantile(q, d, "job, instance, "+metric.EventL) + ")"
}

// hostTime shows the median and the 99th percentile of a time that a host takes.
func hostTime(t text, d *metric.Desc) *timeseries.PanelBuilder {
	return lines(t, ranged(quantile("0.5", d, ""), "p50"), ranged(quantile("0.99", d, ""), "p99")).
		OverrideByName("p50", props{color(purple), prop("custom.lineWidth", 2)}).
		OverrideByName("p99", props{color(purple), dashed()})
}
