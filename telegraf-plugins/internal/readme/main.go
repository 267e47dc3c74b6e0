// Command readme writes the generated parts of a plugin's README.md: the sample configuration, and the measurements of the
// schema (package point).
//
//	readme DIRECTORY             all measurements
//	readme DIRECTORY GROUP...    those of groups, and of raw samples the track
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/influxdata/line-protocol/v2/lineprotocol"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/families"
	"oneway.example/exporter/output/point"
)

func main() {
	if err := write(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintf(os.Stderr, "readme: %v\n", err)
		os.Exit(1)
	}
}

func write(dir string, groups []string) error {
	file := filepath.Join(dir, "README.md")
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	sample, err := os.ReadFile(filepath.Join(dir, "sample.conf"))
	if err != nil {
		return err
	}
	text, err := between(string(old), "```toml @sample.conf\n", "```\n", string(sample))
	if err != nil {
		return err
	}
	for _, title := range groups {
		if !slices.ContainsFunc(metric.Groups(families.All()...), func(g metric.Group) bool { return g.Title == title }) {
			return fmt.Errorf("no group has the title %q", title)
		}
	}
	if text, err = between(text, "<!-- begin of the generated list -->\n", "<!-- end of the generated list -->\n", metrics(groups)); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text), 0o644)
}

// between replaces what is between two lines.
func between(text, begin, end, with string) (string, error) {
	before, rest, found := strings.Cut(text, begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		return "", fmt.Errorf("no line %q before a line %q", strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return before + begin + with + end + after, nil
}

// metrics lists measurements as the READMEs of Telegraf's plugins do.
func metrics(groups []string) string {
	var b strings.Builder
	for _, m := range point.Measurements(families.All(), families.Tables()) {
		if len(groups) > 0 && !slices.Contains(groups, m.Group) && m.Name != record.Track.Name {
			continue
		}
		fmt.Fprintf(&b, "\n- %s\n", m.Name)
		if len(m.Tags) > 0 {
			fmt.Fprint(&b, "  - tags:\n")
			for _, t := range m.Tags {
				fmt.Fprintf(&b, "    - %s\n", t)
			}
		}
		fmt.Fprint(&b, "  - fields:\n")
		for _, c := range m.Columns {
			fmt.Fprintf(&b, "    - %s\n", field(c))
		}
	}
	return b.String() + "\n"
}

func field(c point.Column) string {
	kind := map[lineprotocol.ValueKind]string{
		lineprotocol.Int: "integer", lineprotocol.Float: "float", lineprotocol.String: "string", lineprotocol.Bool: "boolean",
	}[c.Kind]
	switch {
	case c.Ranked:
		return fmt.Sprintf("%s (%s) and other quantiles", point.Ranked(c.Key, "0.5"), kind)
	case c.Help != "":
		return fmt.Sprintf("%s (%s): %s", c.Key, kind, c.Help)
	}
	return fmt.Sprintf("%s (%s)", c.Key, kind)
}
