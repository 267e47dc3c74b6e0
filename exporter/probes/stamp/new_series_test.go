package stamp

import "oneway.example/exporter/core/metric"

// newSeries opens the series of a path in profile full.
func newSeries(sink metric.Sink, path, probe string) *series {
	return seriesOf(metric.NewScope(sink, path, probe))
}
