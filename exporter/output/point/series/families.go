package series

import (
	"slices"

	dto "github.com/prometheus/client_model/go"

	"oneway.example/exporter/core/metric"
)

// Families are scraped families. Those that are not asked for are ignored, as are series whose labels differ from
// those of their family.
type Families []*dto.MetricFamily

// Read reads the families; see Source.
func (all Families) Read(families []*metric.Desc, visit func(*metric.Desc, *metric.Reading)) error {
	byName := make(map[string]*dto.MetricFamily, len(all))
	for _, f := range all {
		byName[f.GetName()] = f
	}
	var r metric.Reading
	for _, d := range families {
		for _, m := range byName[d.Name].GetMetric() {
			if reading(d, m, &r) {
				visit(d, &r)
			}
		}
	}
	return nil
}

// reading converts a series, and reports whether it is one of the family.
func reading(d *metric.Desc, m *dto.Metric, r *metric.Reading) bool {
	r.Labels = append(r.Labels[:0], make([]string, len(d.Labels))...)
	for _, l := range m.GetLabel() {
		i := slices.Index(d.Labels, l.GetName())
		if i < 0 {
			return false
		}
		r.Labels[i] = l.GetValue()
	}
	switch {
	case d.Kind == metric.Counter && m.Counter != nil:
		r.Number = m.Counter.GetValue()
	case d.Kind == metric.Gauge && m.Gauge != nil:
		r.Number = m.Gauge.GetValue()
	case d.Kind == metric.Histogram && m.Histogram != nil:
		h := m.Histogram
		r.Count, r.Sum, r.Buckets = h.GetSampleCount(), h.GetSampleSum(), r.Buckets[:0]
		for _, b := range h.GetBucket() {
			if len(r.Buckets) < len(d.Buckets) && b.GetUpperBound() == d.Buckets[len(r.Buckets)] {
				r.Buckets = append(r.Buckets, b.GetCumulativeCount())
			}
		}
		if len(r.Buckets) < len(d.Buckets) {
			r.Buckets = r.Buckets[:0] // a scrape without classic buckets, or of another version
		}
	default:
		return false
	}
	return true
}
