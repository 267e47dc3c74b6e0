// Package alerting holds the alert rules that we ship against what the guests of the VM
// lab exported: promtool, which others wrote, evaluates them over those very series.
package alerting

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"oneway.example/exporter/families"
	"oneway.example/tests/vmlab/record"
	"oneway.example/tests/vmlab/truth"
)

// Host is one agent: what a scrape of it would have given, and when.
type Host struct {
	// Name is the label instance of its series.
	Name    string
	Metrics []record.Metrics
}

// Clock relates the seconds of the evaluation to the lab's counter.
type Clock struct {
	Line truth.Line
	// Start is the counter at second 0.
	Start uint64
}

// Second is the first whole second at which the counter stood at counter or later.
func (c Clock) Second(counter uint64) int {
	d := c.Line.At(counter).Sub(c.Line.At(c.Start))
	return int((d + time.Second - 1) / time.Second)
}

// series is a time series in promtool's notation: one value a second, "_" for none,
// "stale" where it ends.
type series struct {
	Series string `yaml:"series"`
	Values string `yaml:"values"`
}

// sampled makes the series of a host, of so many seconds.
func (c Clock) sampled(h Host, seconds int) ([]series, error) {
	columns := map[string][]string{}
	now := map[string]float64{}
	rest := h.Metrics
	for s := range seconds {
		gone := map[string]bool{}
		for len(rest) > 0 && c.Second(rest[0].Counter) <= s {
			for key, v := range rest[0].Values {
				if gone[key] = v == nil; v == nil {
					delete(now, key)
					continue
				}
				now[key] = *v
			}
			rest = rest[1:]
		}
		for key := range now {
			if columns[key] == nil {
				columns[key] = slices.Repeat([]string{"_"}, s)
			}
		}
		for key, column := range columns {
			value, there := now[key]
			text := "_"
			switch {
			case there:
				text = strconv.FormatFloat(value, 'g', -1, 64)
			case gone[key]:
				text = "stale"
			}
			columns[key] = append(column, text)
		}
	}
	up := series{fmt.Sprintf(`up{job="oneway",instance=%q}`, h.Name), fmt.Sprintf("1x%d", seconds-1)} // as Prometheus has it
	all := []series{up}
	for _, key := range slices.Sorted(maps.Keys(columns)) {
		name, err := labeled(key, h.Name)
		if err != nil {
			return nil, err
		}
		all = append(all, series{name, strings.Join(columns[key], " ")})
	}
	return all, nil
}

// labeled gives name{value,value} the names of its labels, and those of a scrape.
func labeled(key, instance string) (string, error) {
	name, rest, braced := strings.Cut(key, "{")
	for _, g := range families.All() {
		for _, d := range g.Descs {
			if d.Name != name || !braced {
				continue
			}
			labels := []string{`job="oneway"`, fmt.Sprintf("instance=%q", instance)}
			values := strings.Split(strings.TrimSuffix(rest, "}"), ",")
			if len(d.Labels) == 0 {
				values = nil
			}
			if len(values) != len(d.Labels) {
				return "", fmt.Errorf("alerting: %s: %d values of the labels %v", key, len(values), d.Labels)
			}
			for i, v := range values {
				labels = append(labels, fmt.Sprintf("%s=%q", d.Labels[i], v))
			}
			return name + "{" + strings.Join(labels, ",") + "}", nil
		}
	}
	return "", fmt.Errorf("alerting: %s: no such metric", key)
}
