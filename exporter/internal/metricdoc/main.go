// Command metricdoc writes exporter/doc/METRICS.md from the table in package
// metric.
package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"oneway.example/exporter/metric"
)

//go:generate go run . ../../doc/METRICS.md

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "metricdoc:", err)
		os.Exit(1)
	}
}

// run writes to the file that is named.
func run(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: metricdoc FILE")
	}
	return os.WriteFile(args[0], []byte(document(metric.Groups())), 0o644)
}

const introduction = `# Metrics

Generated from ` + "`exporter/metric`" + ` by ` + "`make generate`" + `; do not edit.

- A series that is absent is a value that is not known. Nothing is ever exported as 0, -1 or NaN for that.
- ` + "`path`" + ` and ` + "`probe`" + ` are names from the configuration. ` + "`direction`" + ` is ` + "`forward`" + ` (from this agent to the peer) or
  ` + "`reverse`" + `. No label is an address, a port, a session or a sequence number, but for ` + "`peer`" + ` of ` + "`oneway_path_info`" + `.
- Histograms are native (schema 3, a bucket is 9 % wide) and classic at once, where classic buckets are listed. This query works with either:
  ` + "`histogram_quantile(0.95, sum by (path, direction, le) (rate(oneway_delay_seconds_bucket[5m]))) or histogram_quantile(0.95, sum by (path, direction) (rate(oneway_delay_seconds[5m])))`" + `
- A probe has the series of its profile (` + "`profile`" + ` in the configuration). ` + "`full`" + ` is all families, 150 series of a path and
  probe at the most. ` + "`slim`" + `, for a thousand paths, is those of which it is said below, 14 at the most: histograms without classic
  buckets, and in their place the quantile 0.95 of ` + "`oneway_delay_quantile_seconds`" + ` for scrapes that take no native histograms (text);
  the quantile 0.5 is always there. The counts are those of the probe ` + "`stamp`" + ` and of ` + "`saturation`" + ` in mode ` + "`fixed`" + `; ` + "`size_sweep`" + ` has one series for each
  cell and quantity.
- Classic buckets are few. A server that takes native histograms has all of the distribution.
- What one scrape shows of a path is of one instant: sent = received + lost + host_dropped + outstanding holds in every scrape.
- Histograms, and counters of what is known from the beginning, begin at 0 when their path starts; a counter that says that it is
  absent until its first begins with it: ` + "`increase`" + ` does not see that one where the server takes no created timestamps. All
  vanish when the path is removed from the configuration.
- The name, labels and meaning of a stable family change in a major version alone, after one in which the old and the new are
  exported; those of an experimental one may change in any version. CHANGELOG.md tells of both as [CHANGE].
`

func document(groups []metric.Group) string {
	var b strings.Builder
	b.WriteString(introduction)
	having := map[string]int{} // families with a label
	for _, g := range groups {
		fmt.Fprintf(&b, "\n## %s\n", g.Title)
		for _, d := range g.Descs {
			family(&b, d, g.Experimental)
			for _, l := range d.Labels {
				having[l]++
			}
		}
	}
	b.WriteString("\n## Labels\n\n| label | families |\n|---|---|\n")
	for _, l := range slices.Sorted(maps.Keys(having)) {
		fmt.Fprintf(&b, "| `%s` | %d |\n", l, having[l])
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
		fmt.Fprintf(b, "- Labels: `%s`\n", strings.Join(d.Labels, "`, `"))
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
