package historyreport

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/estimate/history"
)

// outcomes are the values of metric.Verdicts.Outcome.
var outcomes = map[history.Outcome]float64{history.Equal: 0, history.Differs: 1, history.Unknown: 2}

// exposition collects series for a file in the text format of Prometheus.
type exposition struct {
	metric.Verdicts
	now    time.Time
	byName map[string]*dto.MetricFamily
	seen   map[string]bool // results
}

func newExposition(of metric.Verdicts, now time.Time) *exposition {
	return &exposition{Verdicts: of, now: now, byName: map[string]*dto.MetricFamily{}, seen: map[string]bool{}}
}

// add adds a result with the values of the labels of its families, unless there is one with them.
func (e *exposition) add(v Verdict, difference *Interval, labels ...string) {
	key := strings.Join(labels, "\x00")
	if e.seen[key] {
		return
	}
	e.seen[key] = true
	e.set(e.Outcome, outcomes[history.Outcome(v.Outcome)], labels)
	e.set(e.Time, float64(e.now.Unix()), labels)
	if v.MoreDays > 0 {
		e.set(e.Needed, float64(v.MoreDays)*86400, labels)
	}
	if difference == nil {
		return
	}
	e.set(e.Difference, difference.Value, labels)
	if difference.Low != nil {
		e.set(e.Low, *difference.Low, labels)
	}
	if difference.High != nil {
		e.set(e.High, *difference.High, labels)
	}
}

func (e *exposition) set(d *metric.Desc, value float64, labels []string) {
	f := e.byName[d.Name]
	if f == nil {
		f = &dto.MetricFamily{Name: &d.Name, Help: &d.Help, Type: dto.MetricType_GAUGE.Enum()}
		e.byName[d.Name] = f
	}
	m := &dto.Metric{Gauge: &dto.Gauge{Value: &value}}
	for i, name := range d.Labels {
		if labels[i] != "" {
			m.Label = append(m.Label, &dto.LabelPair{Name: &name, Value: &labels[i]})
		}
	}
	f.Metric = append(f.Metric, m)
}

// text is the content of the file.
func (e *exposition) text() ([]byte, error) {
	var b bytes.Buffer
	for _, d := range e.All() {
		if f := e.byName[d.Name]; f != nil {
			if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
				return nil, fmt.Errorf("historyreport: %w", err)
			}
		}
	}
	return b.Bytes(), nil
}

// TrendsMetrics are the verdicts about histories in the text format of Prometheus, for the textfile collector of node_exporter. A path whose other
// labels changed has two histories: the later one counts.
func TrendsMetrics(all []History, now time.Time) ([]byte, error) {
	e := newExposition(metric.Trend, now)
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b History) int { return b.Last.Compare(a.Last) })
	for i := range all {
		e.history(&all[i])
	}
	return e.text()
}

func (e *exposition) history(h *History) {
	agent := h.Labels["instance"]
	if agent == "" {
		agent = h.Labels["host"] // of InfluxDB
	}
	add := func(about string, v Verdict, difference *Interval) {
		e.add(v, difference, agent, h.Labels[metric.Path], h.Labels[metric.Probe], h.Labels[metric.Direction],
			h.Labels[metric.CodecL], h.Labels[metric.ModelL], h.Labels[metric.BufferL], h.Measure, about)
	}
	if h.HoursOfDay != nil {
		add("hours", h.HoursOfDay.Verdict, &h.HoursOfDay.Largest)
	}
	for i := range h.Comparisons {
		add(h.Comparisons[i].about, h.Comparisons[i].Verdict, h.Comparisons[i].shown())
	}
	if h.Trend != nil {
		add("trend", h.Trend.Verdict, &h.Trend.Total)
	}
}

// shown is the difference that the verdict is about, with the limits that it needs.
func (c *Comparison) shown() *Interval {
	switch {
	case c.Corrected != nil:
		return c.Corrected
	case c.Relative != nil:
		return c.Relative
	case c.share:
		return &c.Difference
	}
	return nil
}

// CompareMetrics are the verdicts about conditions in the text format of Prometheus.
func CompareMetrics(m Measure, all []Comparison, now time.Time) ([]byte, error) {
	e := newExposition(metric.Compare, now)
	for i := range all {
		e.add(all[i].Verdict, all[i].shown(), all[i].Name, m.Name)
	}
	return e.text()
}
