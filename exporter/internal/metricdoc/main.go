// Command metricdoc writes exporter/doc/METRICS.md from the table in package
// metric.
package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"oneway.example/exporter/metric"
)

//go:generate go run . ../../doc/METRICS.md

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "metricdoc:", err)
		os.Exit(1)
	}
}

// run writes to the file that is named, or to out.
func run(args []string, out io.Writer) error {
	if len(args) > 1 {
		return fmt.Errorf("usage: metricdoc [FILE]")
	}
	text := document(metric.Groups())
	if len(args) == 1 {
		return os.WriteFile(args[0], []byte(text), 0o644)
	}
	_, err := io.WriteString(out, text)
	return err
}

const introduction = `# Metrics

Generated from ` + "`exporter/metric`" + ` by ` + "`make generate`" + `; do not edit.

- A series that is absent is a value that is not known. Nothing is ever exported as 0, -1 or NaN for that.
- ` + "`path`" + ` and ` + "`probe`" + ` are names from the configuration. ` + "`direction`" + ` is ` + "`forward`" + ` (from this agent to the peer) or
  ` + "`reverse`" + `. No label is an address, a port, a session or a sequence number, but for ` + "`peer`" + ` of ` + "`oneway_path_info`" + `.
- Histograms are native (schema 3, a bucket is 9 % wide) and classic at once. This query works with either:
  ` + "`histogram_quantile(0.95, sum by (path, direction, le) (rate(oneway_delay_seconds_bucket[5m]))) or histogram_quantile(0.95, sum by (path, direction) (rate(oneway_delay_seconds[5m])))`" + `
- What one scrape shows of a path is of one instant: sent = received + lost + host_dropped + in flight holds in every scrape.
- Histograms, and counters of what is known from the beginning, begin at 0 when their path starts; a counter that says that it is
  absent until its first begins with it: ` + "`increase`" + ` does not see that one where the server takes no created timestamps. All
  vanish when the path is removed from the configuration.
`

func document(groups []metric.Group) string {
	var b strings.Builder
	b.WriteString(introduction)
	for _, g := range groups {
		fmt.Fprintf(&b, "\n## %s\n", g.Title)
		for _, d := range g.Descs {
			family(&b, d)
		}
	}
	fmt.Fprintf(&b, "\n## Labels\n\n%s", labels(groups))
	return b.String()
}

func family(b *strings.Builder, d *metric.Desc) {
	fmt.Fprintf(b, "\n### %s\n\n%s\n\n", d.Name, d.Help)
	fmt.Fprintf(b, "- Type: %s\n", d.Kind)
	if len(d.Labels) > 0 {
		fmt.Fprintf(b, "- Labels: `%s`\n", strings.Join(d.Labels, "`, `"))
	}
	if d.Absent != "" {
		fmt.Fprintf(b, "- Absent: %s\n", lowerFirst(d.Absent))
	}
	if len(d.Buckets) > 0 {
		var bounds []string
		for _, v := range d.Buckets {
			bounds = append(bounds, strconv.FormatFloat(v, 'g', -1, 64))
		}
		fmt.Fprintf(b, "- Classic buckets: %s\n", strings.Join(bounds, ", "))
	}
	fmt.Fprintf(b, "- Source: %s\n", d.Source)
}

// lowerFirst makes a sentence go on after a colon.
func lowerFirst(s string) string { return strings.ToLower(s[:1]) + s[1:] }

// labels lists for each label the families that have it.
func labels(groups []metric.Group) string {
	having := map[string]int{}
	for _, g := range groups {
		for _, d := range g.Descs {
			for _, l := range d.Labels {
				having[l]++
			}
		}
	}
	var names []string
	for l := range having {
		names = append(names, l)
	}
	slices.Sort(names)
	var b strings.Builder
	b.WriteString("| label | families |\n|---|---|\n")
	for _, l := range names {
		fmt.Fprintf(&b, "| `%s` | %d |\n", l, having[l])
	}
	return b.String()
}
