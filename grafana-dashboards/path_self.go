package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"

	"oneway.example/exporter/metric"
)

// selfRow is what this host did to the measurement, so that it is not taken for
// what the path did.
func selfRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Can the measurement be believed? This host"))
	b.WithPanel(lines(text{
		"Lateness of the sends",
		"How long after its due time the sending of a test packet began. The kernel's stamp makes the delay right whatever the lateness; the schedule's fidelity (RFC 3432) needs it small. Read to 9 % off a native histogram, else off classic buckets at 1 and 10 ms.",
		"s", "Nothing was sent." + orSlim,
	},
		ranged(quantile("0.5", metric.ProbeLateness, ""), "p50"),
		ranged(quantile("0.99", metric.ProbeLateness, ""), "p99"),
	).
		OverrideByName("p50", props{color(purple), prop("custom.lineWidth", 2)}).
		OverrideByName("p99", props{color(purple), dashed()}))
	b.WithPanel(counted(text{
		"Not sent as due",
		"Share of the test packets of 5 minutes that were skipped, or sent more than 10 ms late: no loss of the path. The dashed line is the default threshold of OnewayProbeSelfLimited.",
		"percentunit", "Nothing was skipped." + orSlim,
	}, leastRatio,
		ranged(rec(recSkipped), "skipped"),
		ranged(rec(recLate), "late"),
	).Thresholds(steps(step{0, "transparent"}, step{0.01, red})).ThresholdsStyle(line()).
		OverrideByName("skipped", props{color(red), prop("custom.lineWidth", 2)}).
		OverrideByName("late", props{color(yellow)}))
	b.WithPanel(lines(text{
		"Where the stamps came from",
		"Share of the stamps used, by event (t1 sent, t2 reached the remote end, t3 left it, t4 came back) and origin. user is a fallback: it holds this host's delay, too.",
		"percentunit", "No stamps: no replies." + orSlim,
	}, ranged("sum by (event, origin) (rate("+of(metric.Timestamps)+rateInterval+")) / on (event) group_left () sum by (event) (rate("+of(metric.Timestamps)+rateInterval+") > 0)", "{{event}} {{origin}}")).
		Max(1))
	b.WithPanel(counted(text{
		"Skipped sends and missing stamps",
		"Test packets that were due and not sent, by reason, and stamps that a sample needed and that never came, by event.",
		perMinute, "None in this time range." + orSlim,
	}, leastMinute,
		ranged(minutely(of(metric.ProbeSkipped)), "skipped: {{reason}}"),
		ranged(minutely(of(metric.TimestampsMissing)), "no stamp: {{event}}"),
	))
	b.WithPanel(lines(text{
		"This host's own delay",
		"Time between user space and the kernel's stamp, 99th percentile, read to 9 % off a native histogram, else off classic buckets: what a tool without kernel stamps would have added to each delay.",
		"s", "No kernel stamps",
	}, ranged(here(quantileBy("0.99", metric.HostDelay)), "{{instance}} {{event}}")).
		ScaleDistribution(scale(10)))
	b.WithPanel(counted(text{
		"Dropped and refused by hosts",
		"Test packets of the path that the receiving host dropped at its socket for want of buffer: the remote end's forward, this host's in reverse; neither received nor lost. Datagrams of any kind that this host's kernel dropped at our sockets, and sends that it refused.",
		perMinute, "None in this time range",
	}, leastMinute,
		ranged(minutely(of(metric.PacketsHostDropped)), "{{direction}} dropped by its receiver"),
		ranged(here(minutely(of(metric.SocketDrops))), "{{instance}} {{socket}} dropped"),
		ranged(here(minutely(of(metric.SendErrors))), "{{instance}} {{socket}}: {{reason}}"),
	).DrawStyle(common.GraphDrawStyleBars).FillOpacity(60))
}

// quantileBy is quantile for a family of the agent: by agent and event.
func quantileBy(q string, d *metric.Desc) string {
	return "(" + quantile(q, d, "job, instance, "+metric.EventL) + ")"
}
