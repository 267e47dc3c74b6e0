package main

import (
	"slices"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/prometheus"

	"oneway.example/exporter/metric"
)

// Names recorded by deploy/prometheus/rules; tests/rules checks that each is.
const (
	recDelay        = "oneway:delay_seconds:quantile5m"
	recBaseline     = "oneway:delay_seconds:quantile_baseline7d"
	recVariation    = "oneway:delay_variation_seconds:quantile5m"
	recRTT          = "oneway:round_trip_time_seconds:quantile5m"
	recLoss         = "oneway:packets_lost:ratio5m"
	recLossHour     = "oneway:packets_lost:ratio1h"
	recRoundLoss    = "oneway:round_trips_lost:ratio5m"
	recExcess       = "oneway:delay_excess_seconds"
	recExcessCause  = "oneway:delay_excess:cause"
	recLowConfident = "oneway:delay_low_confidence:ratio5m"
	recSkipped      = "oneway:schedule_skipped:ratio5m"
	recLate         = "oneway:schedule_late:ratio5m"
	forward         = `direction="forward"`
	reverse         = `direction="reverse"`
	thisAgent       = `job=~"$job",instance=~"$instance"`
	thisPath        = thisAgent + `,path="$path",probe="$probe"`
	rateInterval    = "[$__rate_interval]"
	dashboardRange  = "[$__range]"
	datasourceInUse = "${datasource}"
)

// of selects the series of a family that the dashboard's variables name: by path
// if it has paths, else by the agent.
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

// call selects the ratings of a call with the codec that is chosen: by G.107, since
// other models rate otherwise, and with an adaptive playout buffer if there is one.
func call(d *metric.Desc) string {
	as := []string{metric.CodecL + `="$codec"`, metric.ModelL + `="g107"`}
	best := func(matchers []string) string {
		return "max by (" + metric.Direction + ") (" + of(d, matchers...) + ")"
	}
	return best(append(as, metric.BufferL+`="adaptive"`)) + " or " + best(as)
}

// quantile is the q-quantile by the labels given, from a native histogram (to 9 %), or from
// classic buckets, which are few, where the server has no native one. Prefer a recorded
// quantile where there is one.
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

// occupied names (by label le) the buckets that hold anything in the dashboard's
// time range and the empty one below them, so that a plot of a few decades is not
// mostly empty. PromQL cannot compare labels, but histogram_quantile finds both
// ends and count_values turns what it found back into a label: the quantile 1 is
// the upper end of the last bucket, and one just above 0 the lower end of the
// first. All bounds are multiples of a microsecond.
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

// here keeps those of an agent's series whose agent has the chosen path: with
// $instance at All, other agents' clocks are none of this page's business.
func here(expr string) string {
	return expr + " and on (job, instance) " + of(metric.PacketsSent)
}

// minutely is a counter's rate a minute: of rare events, Grafana would write a
// rate a second in thousandths.
func minutely(series string) string { return "60 * rate(" + series + rateInterval + ")" }

// ranged is a query over time, instant one for the end of the time range.
func ranged(expr, legend string) *prometheus.DataqueryBuilder {
	return prometheus.NewDataqueryBuilder().Expr(expr).LegendFormat(legend).Range().
		EditorMode(prometheus.QueryEditorModeCode)
}

func instant(expr, legend string) *prometheus.DataqueryBuilder {
	return prometheus.NewDataqueryBuilder().Expr(expr).LegendFormat(legend).Instant().
		EditorMode(prometheus.QueryEditorModeCode)
}

// table is an instant query as one table rather than a frame for each series.
func table(expr string) *prometheus.DataqueryBuilder {
	return instant(expr, "").Format(prometheus.PromQueryFormatTable)
}

// heat is a query for a heatmap: one row for each bucket.
func heat(expr string) *prometheus.DataqueryBuilder {
	return ranged(expr, "{{le}}").Format(prometheus.PromQueryFormatHeatmap)
}
