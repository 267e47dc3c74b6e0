package main

import (
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/families"
)

// The values of counters are exact: their steps are the 2048th part.
const (
	interval = 15 * time.Second
	duration = 1024 * interval
)

// most is the largest number of series of a family and agent.
const most = 64

// end is the time of the last sample: an hour that is just full, for oneway:calendar:full_hour.
var end = time.Date(2026, 11, 18, 14, 3, 0, 0, time.UTC)

// sample is one value at a time in Unix milliseconds.
type sample struct {
	t int64
	v float64
}

// series is a series of the input.
type series struct {
	labels  labels.Labels
	samples []sample
}

// values are of the labels for which no family lists them. Labels that are not here have one value, which all families share, so
// that they meet.
var values = map[string][]string{
	metric.Direction: {"forward", "reverse"},
	metric.QuantileL: {"0", "0.05", "0.25", "0.5", "0.75", "0.95", "0.99", "1"},
	"buffer":         {"adaptive", "60ms"},
	"model":          {"g107", "cubic"},
	"zone":           {"Asia/Seoul"},
}

// numbers are labels whose values are numbers.
var numbers = []string{
	"elapsed_seconds", "flow_bytes", "message_bytes", "offered_bytes_per_second", "packet_bytes", "packet_rate", "payload_bytes", "send_buffer_bytes", "receive_buffer_bytes",
	"stratum", "flows",
}

// input makes series of all families of two agents.
//
// A counter grows evenly: the increase that Prometheus extrapolates is then the true one, and VictoriaMetrics, which does not
// extrapolate, has the same. A gauge swings by 5 %, all of a family together, so that quantiles keep their order, a time passes, and a
// state stays.
func input() (all []*series) {
	for i, instance := range []string{"a", "b"} {
		add := func(name string, l map[string]string, v float64, form form) {
			b := labels.NewScratchBuilder(len(l) + 3)
			for name, value := range l {
				b.Add(name, value)
			}
			for name, value := range map[string]string{model.MetricNameLabel: name, "job": "oneway", "instance": instance} {
				b.Add(name, value)
			}
			b.Sort()
			all = append(all, grow(b.Labels(), v*(1+0.1*float64(i)), form))
		}
		add("up", nil, 1, func(float64, time.Duration) float64 { return 1 })
		for _, g := range families.All() {
			for _, d := range g.Descs {
				if !strings.HasPrefix(d.Name, "oneway_") {
					continue // of probes on demand, which are other targets
				}
				family(d, instance, add)
			}
		}
	}
	return all
}

func family(d *metric.Desc, instance string, add func(name string, l map[string]string, v float64, form form)) {
	names := slices.Clone(d.Labels)
	if d == metric.PathLabels {
		names = append(names, "site", "peer_site")
	}
	combinations := combine(d, names, instance)
	for i, l := range combinations {
		v, form := value(d, float64(i)/float64(len(combinations)))
		switch d.Kind {
		case metric.Histogram:
			histogram(d, l, v, add)
		case metric.Counter:
			if d == metric.PacketsReceived && l[metric.Direction] == "reverse" {
				v -= 2048 * lost
			}
			add(d.Name, l, v, counts)
		default:
			add(d.Name, l, v, form)
		}
	}
}

// Packets of a path, in units of 2048.
const received, lost = 4000, 96

// histogram is a classic one with all received packets, fewer in each bucket than in the one before.
func histogram(d *metric.Desc, l map[string]string, v float64, add func(name string, l map[string]string, v float64, form form)) {
	if d.NativeOnly || len(d.Buckets) == 0 {
		return
	}
	n, ends := 0.0, append(slices.Clone(d.Buckets), math.Inf(1))
	for i, le := range ends {
		left := float64(len(ends) - i)
		n = 2048 * math.Round(received*(1-left*(left-1)/float64(len(ends)*(len(ends)+1))))
		one := map[string]string{"le": strconv.FormatFloat(le, 'g', -1, 64)}
		maps.Copy(one, l)
		add(d.Name+"_bucket", one, n, counts)
	}
	add(d.Name+"_count", l, n, counts)
	add(d.Name+"_sum", l, n*v, counts)
}

// value is one of a family, by its unit; share orders the series of the family.
func value(d *metric.Desc, share float64) (float64, form) {
	switch name := d.Name; {
	case strings.HasSuffix(name, "_timestamp_seconds"):
		return float64(end.Unix()) - 30, passes
	case d == metric.UTCOffset:
		return 9 * 3600, stays
	case strings.HasSuffix(name, "_info"), strings.Contains(name, "_up"), strings.Contains(name, "state"):
		return 1, stays
	case strings.Contains(name, "_sent_"):
		return 2048 * (received + lost), counts
	case strings.Contains(name, "_received_"):
		return 2048 * received, counts
	case d == metric.RoundTripLost:
		return 2048 * 2 * lost, counts
	case strings.Contains(name, "_lost_"):
		return 2048 * lost, counts
	case d.Kind == metric.Counter:
		return 2048 * (64 + math.Floor(64*share)), counts
	case strings.Contains(name, "r_factor"):
		return 60 + 30*share, swings
	case strings.HasSuffix(name, "_ratio"):
		return 0.1 + 0.5*share, swings
	case strings.HasSuffix(name, "_seconds"):
		return 0.02 + 0.05*share, swings
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(d.Name))
	return (1 + share) * float64(1000+h.Sum32()%1000), swings
}

// combine are label values of a family: all combinations, or some if they are too many.
func combine(d *metric.Desc, names []string, instance string) (all []map[string]string) {
	all = []map[string]string{{}}
	for _, name := range names {
		var more []map[string]string
		for _, l := range all {
			for _, value := range valuesOf(d, name, instance) {
				one := map[string]string{name: value}
				maps.Copy(one, l)
				more = append(more, one)
			}
		}
		all = more
	}
	for len(all) > most { // each second one, so that each label keeps values
		var fewer []map[string]string
		for i := 0; i < len(all); i += 2 + i%2 {
			fewer = append(fewer, all[i])
		}
		all = fewer
	}
	return all
}

func valuesOf(d *metric.Desc, name, instance string) []string {
	switch {
	case len(d.Values.Names(name)) > 0:
		return d.Values.Names(name)
	case name == metric.Path:
		return []string{"from-" + instance}
	case len(values[name]) > 0:
		return values[name]
	case slices.Contains(numbers, name):
		return []string{"64", "1472"}
	}
	return []string{"the-" + name}
}

// form is how a value changes: the value at a time before the end.
type form func(v float64, before time.Duration) float64

func passes(v float64, before time.Duration) float64 { return v - before.Seconds() }

func stays(v float64, _ time.Duration) float64 { return v }

func counts(v float64, before time.Duration) float64 {
	return v * (1 - before.Seconds()/(2*duration.Seconds()))
}

func swings(v float64, before time.Duration) float64 {
	at := math.Sin(before.Minutes() / 7)
	return v * (1 - 0.05*at*at)
}

func grow(l labels.Labels, v float64, form form) *series {
	s := &series{labels: l}
	for before := duration; before >= 0; before -= interval {
		s.samples = append(s.samples, sample{end.Add(-before).UnixMilli(), form(v, before)})
	}
	return s
}
