package historyreport

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/rules"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/estimate/history"
	"oneway.example/exporter/serve/promapi"
)

// Prometheus reads the long-term series of the recording rules.
type Prometheus struct{ Server *promapi.Server }

// chunk is the time of one request: some thousand samples of a path.
const chunk = 31 * 24 * time.Hour

// Labels of the long-term series that are of a sample, not of a path.
const hourLabel, kindLabel, zoneLabel = metric.HourL, metric.DayTypeL, metric.Zone

// Read implements Source. The labels of the paths (oneway_path_labels_info) are labels of the histories.
func (p Prometheus) Read(ctx context.Context, q Query) ([]Series, error) {
	if q.Measure.recorded == "" {
		return nil, fmt.Errorf("historyreport: Prometheus has no hourly %s: the recording rules record p50 and p95 of an hour; --influxdb.url reads it from InfluxDB", q.Measure.Words)
	}
	c := p.Server.Connect()
	names, err := pathLabels(ctx, c, q)
	if err != nil {
		return nil, err
	}
	all := collect{}
	for from := q.From; from.Before(q.To); from = from.Add(chunk) {
		to := from.Add(chunk)
		if to.After(q.To) {
			to = q.To
		}
		if err := p.part(ctx, c, q.bothWays(), from.Add(rules.RecordedWithin), to.Add(rules.RecordedWithin), names, all); err != nil {
			return nil, err
		}
		q.advance(to)
	}
	if err := p.months(ctx, c, q, names, all); err != nil {
		return nil, err
	}
	found := all.selected(q.Labels).sorted()
	if len(found) == 0 {
		return nil, q.missing(ctx, c, names)
	}
	return found, nil
}

// missing is why there is no history: it names the first thing that the server does not know.
func (q *Query) missing(ctx context.Context, c *promapi.Client, names map[[2]string]map[string]string) error {
	recorded, err := c.Values(ctx, metric.Path, q.Measure.recorded)
	if err != nil {
		return err
	}
	scraped, err := c.Values(ctx, metric.Path, metric.ProbeUp.Name)
	if err != nil {
		return err
	}
	known := slices.Compact(slices.Sorted(slices.Values(slices.Concat(recorded, scraped))))
	path, of := q.Labels[metric.Path], ""
	if path != "" {
		of = fmt.Sprintf(" of path %q", path)
	}
	label := q.unknownLabel(names)
	switch {
	case len(known) == 0:
		return notFound("historyreport: Prometheus at %s has no path; is the agent one of its targets, and are the recording rules loaded?", c.Name())
	case path != "" && !slices.Contains(known, path):
		return notFound("historyreport: Prometheus at %s has no path %q; %s", c.Name(), path, suggestion(path, known))
	case label != "" && len(names) == 0:
		return notFound("historyreport: Prometheus at %s has no %s from %s, so that no label %q of a path is known; a second store needs this series, too", c.Name(), metric.PathLabels.Name, q.time(), label)
	case label != "":
		return notFound("historyreport: no path in Prometheus at %s has the label %q; %s", c.Name(), label, suggestion(label, labelNames(names)))
	case q.unknownValue(names) != "":
		return notFound("historyreport: no path in Prometheus at %s has %s from %s", c.Name(), q.unknownValue(names), q.time())
	case path == "" && len(recorded) == 0 || path != "" && !slices.Contains(recorded, path):
		return notFound("historyreport: Prometheus at %s has no %s%s: %s", c.Name(), q.Measure.recorded, of, q.Measure.unrecorded())
	}
	others := maps.Clone(q.Labels)
	delete(others, metric.Path)
	name, why := q.Measure.recorded, "the time may be before its retention (--storage.tsdb.retention.time)"
	if q.Measure.matcher != "" {
		name += "{" + q.Measure.matcher + "}"
		why += ", or " + q.Measure.fewKnown()
	}
	return notFound("historyreport: Prometheus at %s has %s%s, but none%s from %s; %s", c.Name(), name, of, selection(others), q.time(), why)
}

// unrecorded is why a series of the measure is not recorded.
func (m *Measure) unrecorded() string {
	if m.OfRuns() {
		return "no run of the probe tcp completed, or the recording rules are not loaded"
	}
	return "the recording rules write it once an hour; are they loaded, and does the path have it (profile, clocks)?"
}

// time is the time of the query, for a message.
func (q *Query) time() string {
	return q.From.Format(time.DateOnly) + " to " + q.To.Format(time.DateOnly)
}

// unknownLabel is a wanted label that no path has; empty: there is none.
func (q *Query) unknownLabel(names map[[2]string]map[string]string) string {
	known := append(labelNames(names), metric.Path, metric.Probe, metric.Direction, model.InstanceLabel, model.JobLabel)
	for _, name := range slices.Sorted(maps.Keys(q.Labels)) {
		if !slices.Contains(known, name) {
			return name
		}
	}
	return ""
}

// unknownValue is a wanted label of paths with a value that none has, and the values that paths have; empty: there is none.
func (q *Query) unknownValue(names map[[2]string]map[string]string) string {
	for _, name := range slices.Sorted(maps.Keys(q.Labels)) {
		if !slices.Contains(labelNames(names), name) {
			continue
		}
		values := map[string]bool{}
		for _, labels := range names {
			values[labels[name]] = true
		}
		delete(values, "")
		if wanted := q.Labels[name]; !values[wanted] {
			return fmt.Sprintf("%s=%s (%s)", name, wanted, suggestion(wanted, slices.Sorted(maps.Keys(values))))
		}
	}
	return ""
}

// labelNames are the names of the labels of paths.
func labelNames(names map[[2]string]map[string]string) []string {
	all := map[string]bool{}
	for _, labels := range names {
		for name := range labels {
			if !slices.Contains([]string{metric.Path, model.InstanceLabel, model.JobLabel}, name) {
				all[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// suggestion is the known name that is most similar, or the first ones.
func suggestion(name string, known []string) string {
	if similar := option.Suggestion(name, known); similar != "" {
		return similar
	}
	if len(known) == 0 {
		return "there are none"
	}
	const most = 10
	more := ""
	if len(known) > most {
		more = " and " + unit.Counted(len(known)-most, "other", "others")
	}
	return "there are " + strings.Join(known[:min(most, len(known))], ", ") + more
}

func selection(labels map[string]string) string {
	if len(labels) == 0 {
		return ""
	}
	return " with " + labelText(labels)
}

// pathLabels are the labels of each path, by agent and path.
func pathLabels(ctx context.Context, c *promapi.Client, q Query) (map[[2]string]map[string]string, error) {
	all, err := c.Series(ctx, metric.PathLabels.Name, q.From, q.To)
	if err != nil {
		return nil, err
	}
	names := map[[2]string]map[string]string{}
	for _, one := range all {
		key := [2]string{one[model.InstanceLabel], one[metric.Path]}
		delete(one, model.MetricNameLabel)
		names[key] = one
	}
	return names, nil
}

// selector has what the server itself can select: a path, not the labels of paths.
func selector(name, matcher string, labels map[string]string) string {
	var matchers []string
	if matcher != "" {
		matchers = append(matchers, matcher)
	}
	for _, own := range []string{metric.Path, metric.Probe, metric.Direction, model.InstanceLabel, model.JobLabel} {
		if v := labels[own]; v != "" {
			matchers = append(matchers, own+"="+strconv.Quote(v))
		}
	}
	return name + "{" + strings.Join(matchers, ",") + "}"
}

// ranged asks for raw samples, with their own times.
func ranged(ctx context.Context, c *promapi.Client, selector string, from, to time.Time) (model.Matrix, error) {
	var data struct{ Result model.Matrix }
	length := strconv.FormatInt(int64(to.Sub(from).Seconds()), 10)
	err := c.Query(ctx, selector+"["+length+"s]", to, &data)
	return data.Result, err
}

// part reads a part of the time.
func (p Prometheus) part(ctx context.Context, c *promapi.Client, q Query, from, to time.Time, names map[[2]string]map[string]string, found collect) error {
	values, err := ranged(ctx, c, selector(q.Measure.recorded, q.Measure.matcher, q.Labels), from, to)
	if err != nil {
		return err
	}
	var more [2]map[string]float64 // what is undecided, and the error bound or the whole, by labels and time
	var others model.Matrix
	for i, name := range []string{q.Measure.undecided, q.Measure.bound + q.Measure.whole} {
		if name == "" {
			continue
		}
		if others, err = ranged(ctx, c, selector(name, "", q.Labels), from, to); err != nil {
			return err
		}
		more[i] = map[string]float64{}
		for _, one := range others {
			key := keyOf(one.Metric)
			for _, v := range one.Values {
				more[i][key+v.Timestamp.String()] = float64(v.Value)
			}
		}
	}
	each := func(all model.Matrix, take func(s *Series, at string, one history.Sample)) {
		for _, one := range all {
			labels := labelsOf(one.Metric, names)
			if !fits(labels, q.Labels) {
				continue
			}
			zone := q.Zone
			if z, err := time.LoadLocation(string(one.Metric[zoneLabel])); err == nil && one.Metric[zoneLabel] != "" {
				zone = z
			}
			s, key := found.series(labels), keyOf(one.Metric)
			for _, v := range one.Values {
				if end := v.Timestamp.Time(); end.After(from) { // a range has both ends
					take(s, key+v.Timestamp.String(), sampleAt(end, zone, float64(v.Value), string(one.Metric[hourLabel]), string(one.Metric[kindLabel])))
				}
			}
		}
	}
	recorded := map[string]bool{}
	each(values, func(s *Series, at string, one history.Sample) {
		recorded[at] = true
		other, known := more[1][at]
		s.add(q.Measure, one, other, more[0][at], known)
	})
	if q.Measure.bound != "" { // hours with delays
		each(others, func(s *Series, at string, one history.Sample) {
			if !recorded[at] {
				s.Withheld = append(s.Withheld, one)
			}
		})
	}
	return nil
}

// add adds a sample with its error bound or whole. Without a bound a delay is left out: its error is unknown.
func (s *Series) add(m Measure, one history.Sample, other, undecided float64, known bool) {
	switch {
	case (m.bound != "" || m.whole != "") && !known:
	case m.whole != "":
		events := one.Value
		one.Value = 0
		s.Counted = append(s.Counted, history.Counted{Sample: one, Events: events, Whole: other, Undecided: undecided})
	default:
		one.Bound = other
		s.Samples = append(s.Samples, one)
	}
}

// keyOf are the labels that both series have, as a text.
func keyOf(m model.Metric) string {
	m = m.Clone()
	delete(m, model.MetricNameLabel)
	delete(m, metric.QuantileL)
	return m.String()
}

// labelsOf are the labels of a history.
func labelsOf(m model.Metric, names map[[2]string]map[string]string) map[string]string {
	labels := maps.Clone(names[[2]string{string(m[model.InstanceLabel]), string(m[metric.Path])}])
	if labels == nil {
		labels = map[string]string{}
	}
	for name, value := range m {
		if !slices.Contains([]string{model.MetricNameLabel, metric.QuantileL, hourLabel, kindLabel, zoneLabel}, string(name)) {
			labels[string(name)] = promapi.Shown(string(value))
		}
	}
	return labels
}
