// Command metricdoc writes exporter/doc/METRICS.md from all metric families (package families), and MEASUREMENTS.md from their schema
// in package point.
package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/pathstate"
	"oneway.example/exporter/core/rules"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/families"
)

//go:generate go run . ../METRICS.md ../MEASUREMENTS.md

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "metricdoc:", err)
		os.Exit(1)
	}
}

// run writes the documents to the files in args.
func run(args []string) error {
	if len(args) != 2 {
		return errors.New("usage: metricdoc METRICS MEASUREMENTS")
	}
	return errors.Join(
		os.WriteFile(args[0], []byte(document(families.All())), 0o644),
		os.WriteFile(args[1], []byte(measurements(families.All(), families.Tables())), 0o644),
	)
}

// introduction is the beginning of METRICS.md.
func introduction() string {
	return strings.NewReplacer(
		"MAXFULL", strconv.Itoa(metric.MaxFull), "MAXFAULTS", strconv.Itoa(metric.MaxFullFaults), "MAXSLIM", strconv.Itoa(metric.MaxSlim),
	).Replace(`# Metrics

Generated from the families of ` + "`exporter/core/metric`" + ` and of the types by ` + "`make generate`" + `; do not edit.

- A series is absent while its value is not known. Unknown values are never exported as 0, -1 or NaN.
- ` + "`path`" + ` and ` + "`probe`" + ` are names from the configuration. ` + "`direction`" + ` is ` + "`forward`" + ` (from this agent to the peer) or
  ` + "`reverse`" + `. No label is an address, a port, a session or a sequence number, except ` + "`peer`" + ` of ` + "`oneway_path_info`" + `.
- Histograms have native buckets (schema 3, a bucket is 9 % wide) and, where listed, classic buckets. This query works with both:
  ` + "`histogram_quantile(0.95, sum by (path, direction, le) (rate(oneway_delay_seconds_bucket[5m]))) or histogram_quantile(0.95, sum by (path, direction) (rate(oneway_delay_seconds[5m])))`" + `
- The ` + "`profile`" + ` of a probe in the configuration selects its series. ` + "`full`" + ` has all families, at most MAXFULL series per path and
  probe without faults and with the default voice options, and one more for each reason of a fault that occurs, at most MAXFAULTS. ` + "`slim`" + `, for thousands of paths, has the families marked below, at most MAXSLIM series: its histograms have no classic
  buckets, and scrapes that accept no native histograms (text) get the quantile 0.95 of ` + "`oneway_delay_quantile_seconds`" + ` instead;
  the quantile 0.5 is always exported. The numbers hold for probe ` + "`stamp`" + `; ` + "`saturation`" + ` in mode ` + "`fixed`" + ` has at most MAXFULL in ` + "`full`" + `, besides the
  working delay, and MAXSLIM in ` + "`slim`" + `; ` + "`size_sweep`" + ` and ` + "`tcp_sweep`" + ` have
  one series per cell and quantity.
- Classic buckets are few. A server that accepts native histograms gets the full distribution.
- All series of a path in one scrape are of one instant: sent = received + lost + host_dropped + undecided + outstanding holds in every scrape.
- Histograms and counters start at 0 when their path starts, except counters that are absent until their first event, which
  start with it: ` + "`increase`" + ` misses that event if the server ignores created timestamps. All series of a path end when it is
  removed from the configuration.
- Source names the definition: an RFC, an ITU-T recommendation, a manual, or a paper: Woo 2010 (KAIST: performance of
  commercial WiBro), WPI EvDO report (capacity of 1xEV-DO by packet trains), Halepovic 2008 (TCP over WiMAX, MASCOTS), D-ITG report
  (throughput by packet size and rate). ` + "`design`" + ` is a definition of this project: ARCHITECTURE.md has its invariants, exporter/doc/decisions
  its decisions.
- Values of labels with a fixed set are listed; a later version may add values, but changes the meaning of none.
- The name, labels and meaning of a stable family change only in a major version, after a version that exports both the old and
  the new family; those of an experimental family may change in any version. CHANGELOG.md lists both as [CHANGE].
`)
}

func document(groups []metric.Group) string {
	var b strings.Builder
	b.WriteString(introduction())
	having := map[string]int{} // number of families by label
	for _, g := range groups {
		fmt.Fprintf(&b, "\n## %s\n", g.Title)
		for _, d := range g.Descs {
			family(&b, d, g.Experimental)
			for _, l := range d.Labels {
				having[l]++
			}
		}
	}
	b.WriteString(states())
	b.WriteString("\n## Labels\n\n| label | families |\n|---|---|\n")
	for _, l := range slices.Sorted(maps.Keys(having)) {
		fmt.Fprintf(&b, "| `%s` | %d |\n", l, having[l])
	}
	return b.String()
}

// states is the section of what oneway_path_state and its reason mean.
func states() string {
	var b strings.Builder
	fmt.Fprintf(&b, `
## States of paths

The agent decides the state of each path once a second (`+"`%s`"+`: %s). A state is said if it holds for all
values that the measured ones permit; otherwise the path is unknown:

- Down: no reply for as long as `+"`%s`"+` waits. A path is also down if this host sends nothing.
- Degraded by loss: the 95 %% interval (Clopper-Pearson, as if losses were independent) of the loss ratio of %.0f minutes is above `+"`max_loss`"+`, or the one of
  an hour while the loss goes on. Up to %d lost packets of an hour are no loss. Packets that a receiving host dropped do not count.
- Degraded by delay: the same of the packets above `+"`max_delay`"+`, and above the smallest delay of the last hour by `+"`max_delay_rise`"+`, with their whole
  error bounds; the limit is %s of the packets, so that the p95 is above it.
- A probe with fewer than 20 packets in 5 minutes has longer times, in proportion.
- What is measured beside a load test on a link of the path, and %.0f s after it, does not count.
- A worse state is said at once, a better one, or another reason, when the last one has not applied for %.0f s. The end of an outage is said at once.

The limits are options of the probe `+"`stamp`"+`, with the defaults of the alerts in `+"`deploy/prometheus/rules/oneway-thresholds.yml`"+`: a path for which
OnewayLossHigh or OnewayRoundTripLoss fires is not up. Change both for a path that needs others. The state has no baseline: OnewayDelayBlowUp also fires
for a path that is up, with a delay that is short and longer than on other days, and a path that is always above the limit is degraded and has no alert
once it has a baseline.

| number | state | reason | meaning | alert, and its runbook |
|---|---|---|---|---|
`, metric.PathState.Name, pathstate.StateNumbers(), metric.ProbeUp.Name, pathstate.Recent.Minutes(), pathstate.FewFaults, unit.Ratio.Format(pathstate.SlowShare), pathstate.AfterTest.Seconds(), pathstate.Hold.Seconds())
	for _, e := range pathstate.Entries() {
		fmt.Fprintf(&b, "| %d | %s | `%s` | %s | %s |\n", e.Reason, e.Reason.State(), e.Word, e.Sentence, rules.PathStateAlert(e.Reason))
	}
	return b.String()
}

func family(b *strings.Builder, d *metric.Desc, experimental bool) {
	stability := "stable"
	if experimental {
		stability = "experimental"
	}
	fmt.Fprintf(b, "\n### %s\n\n%s\n\n- Type: %s, %s\n", d.Name, d.Help, d.Kind, stability)
	if len(d.Labels) > 0 {
		more := ""
		if d.More {
			more = ", and those that the configuration chooses"
		}
		fmt.Fprintf(b, "- Labels: `%s`%s\n", strings.Join(d.Labels, "`, `"), more)
	}
	for _, l := range d.Labels {
		if len(d.Values[l]) > 0 {
			fmt.Fprintf(b, "- Values of `%s`: %s\n", l, values(d.Values[l]))
		}
	}
	if d.Absent != "" {
		fmt.Fprintf(b, "- Absent: %s\n", strings.ToLower(d.Absent[:1])+d.Absent[1:])
	}
	if d.In(metric.Slim) != nil {
		b.WriteString("- Profiles: full, slim\n")
	}
	if len(d.Buckets) > 0 {
		bounds := strings.Trim(fmt.Sprintf("%g", d.Buckets), "[]")
		fmt.Fprintf(b, "- Classic buckets: %s\n", strings.ReplaceAll(bounds, " ", ", "))
	}
	fmt.Fprintf(b, "- Source: %s\n", d.Source)
}

// values lists the values of a label, each with its meaning in parentheses.
func values(list []string) string {
	words := make([]string, len(list))
	for i, entry := range list {
		value, meaning, explained := strings.Cut(entry, ": ")
		words[i] = "`" + value + "`"
		if explained {
			words[i] += " (" + meaning + ")"
		}
	}
	return strings.Join(words, ", ")
}
