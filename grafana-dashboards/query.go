package main

import (
	"slices"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/prometheus"

	"oneway.example/exporter/core/metric"
)

// Parts of selectors.
const (
	forward         = `direction="forward"`
	reverse         = `direction="reverse"`
	thisAgent       = `job=~"$job",instance=~"$instance"`
	thisPath        = thisAgent + `,path="$path",probe="$probe"`
	rateInterval    = "[$__rate_interval]"
	dashboardRange  = "[$__range]"
	datasourceInUse = "${datasource}"
)

// of selects the series of a family by the dashboard's variables: by path if the family has that label, else by agent.
func of(d *metric.Desc, matchers ...string) string { return suffixed(d, "", matchers...) }

// bucket, sum and count select a histogram's classic series.
func bucket(d *metric.Desc, matchers ...string) string { return suffixed(d, "_bucket", matchers...) }
func sum(d *metric.Desc, matchers ...string) string    { return suffixed(d, "_sum", matchers...) }
func count(d *metric.Desc, matchers ...string) string  { return suffixed(d, "_count", matchers...) }

func suffixed(d *metric.Desc, suffix string, matchers ...string) string {
	base := thisAgent
	if slices.Contains(d.Labels, metric.Path) {
		base = thisPath
	}
	return recFrom(base, d.Name+suffix, matchers...)
}

// from selects the series of a family, recFrom those of a name, by a selector.
func from(base string, d *metric.Desc, matchers ...string) string {
	return recFrom(base, d.Name, matchers...)
}

func recFrom(base, name string, matchers ...string) string {
	return name + "{" + strings.Join(append([]string{base}, matchers...), ",") + "}"
}

// rec selects recorded series of the path.
func rec(name string, matchers ...string) string {
	return recFrom(thisPath, name, matchers...)
}

// Matchers of ratings of calls: of the selected codec, and by the model of G.107.
const (
	selectedCodec = metric.CodecL + `="$codec"`
	g107          = metric.ModelL + `="g107"`
)

// ofBuffer selects what stands for a call, by matchers: with an adaptive playout buffer if it is configured, else with any.
func ofBuffer(selects func(matchers ...string) string, matchers ...string) string {
	return selects(append(slices.Clone(matchers), metric.BufferL+`="adaptive"`)...) + " or " + selects(matchers...)
}

// call selects the G.107 ratings of the selected codec.
func call(d *metric.Desc) string {
	return ofBuffer(func(matchers ...string) string {
		return "max by (" + metric.Direction + ") (" + of(d, matchers...) + ")"
	}, selectedCodec, g107)
}

// quantile is the q-quantile by the given labels, from a native histogram (resolution 9 %), or from classic buckets if the
// server has no native histogram. Use a recorded quantile if it exists.
func quantile(q string, d *metric.Desc, by string) string {
	classic, native := "le", ""
	if by != "" {
		classic, native = by+", le", "by ("+by+") "
	}
	found := "histogram_quantile(" + q + ", sum " + native + "(rate(" + of(d) + rateInterval + ")))"
	if d.NativeOnly {
		return found
	}
	return found + " or histogram_quantile(" + q + ", sum by (" + classic + ") (rate(" + bucket(d) + rateInterval + ")))"
}

// occupied selects (by label le) the buckets from the empty one below the first observation to the one of the last
// observation in the dashboard's time range, so that a heatmap does not show empty decades. PromQL cannot compare labels;
// histogram_quantile finds both ends and count_values converts them to labels: quantile 1 is the upper bound of the last
// bucket, a quantile just above 0 the lower bound of the first. All bounds are multiples of a microsecond.
func occupied(d *metric.Desc, matchers ...string) string {
	return occupiedIn(bucket(d, matchers...), count(d, matchers...))
}

func occupiedIn(buckets, count string) string {
	within := "sum by (le) (increase(" + buckets + dashboardRange + " @ end()))"
	total := "sum(increase(" + count + dashboardRange + " @ end()))"
	lowest := `count_values("le", round(histogram_quantile(1e-15, ` + within + `), 1e-6))`
	highest := `count_values("le", histogram_quantile(1, ` + within + `))`
	return "((" + within + " > 0 < on () group_left () " + total + ") or on (le) " + lowest + " or on (le) " + highest + ")"
}

// here keeps the series of agents that have the selected path: with $instance at All the expression also matches agents
// without it.
func here(expr string) string {
	return expr + " and on (job, instance) " + of(metric.PacketsSent)
}

// minutely is the rate of a counter per minute: Grafana shows the rate per second of rare events in thousandths.
func minutely(series string) string { return "60 * rate(" + series + rateInterval + ")" }

// ranged is a range query, instant an instant query at the end of the time range.
func ranged(expr, legend string) *prometheus.DataqueryBuilder {
	return prometheus.NewDataqueryBuilder().Expr(expr).LegendFormat(legend).Range().
		EditorMode(prometheus.QueryEditorModeCode)
}

func instant(expr, legend string) *prometheus.DataqueryBuilder {
	return prometheus.NewDataqueryBuilder().Expr(expr).LegendFormat(legend).Instant().
		EditorMode(prometheus.QueryEditorModeCode)
}

// table is an instant query in table format: one table instead of a frame per series.
func table(expr string) *prometheus.DataqueryBuilder {
	return instant(expr, "").Format(prometheus.PromQueryFormatTable)
}

// heat is a query for a heatmap: one row per bucket.
func heat(expr string) *prometheus.DataqueryBuilder {
	return ranged(expr, "{{le}}").Format(prometheus.PromQueryFormatHeatmap)
}
