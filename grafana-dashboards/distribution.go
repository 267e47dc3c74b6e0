package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/trend"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/unit"
)

// readOff describes the resolution of a CDF.
const readOff = "From 16 quantiles of a native histogram (resolution 9 %), connected by lines; without native histograms from the bounds of the few classic buckets, as points that are not connected."

// ofBuckets is the suffix of the name of a curve from classic buckets.
const ofBuckets = ", classic buckets"

// distribution is the distribution of a histogram over the dashboard's time range, by a label.
type distribution struct {
	of       *metric.Desc
	base     string
	matchers []string
	by       string
	// interpolated: classic buckets are as narrow as needed to interpolate quantiles in them. The bounds of buckets from
	// 1e6 on cannot be selected by number: their labels have an exponent, which count_values does not write.
	interpolated bool
}

func (c distribution) series(suffix string, matchers ...string) string {
	return recFrom(c.base, c.of.Name+suffix, append(matchers, c.matchers...)...) + dashboardRange
}

// curves are the points of the distribution function, with the value as label le.
func (c distribution) curves() string {
	return c.named(c.native(), "") + " or " + c.named(c.classic(), ofBuckets)
}

// scaled are the curves multiplied by a factor with the same label; suffix extends their names.
func (c distribution) scaled(factor, suffix string) string {
	times := " * on (" + c.by + ") group_left () " + factor
	return c.named(c.native()+times, suffix) + " or " + c.named(c.classic()+times, suffix+ofBuckets)
}

// count is the number of values by the label.
func (c distribution) count() string {
	return "sum by (" + c.by + ") (histogram_count(increase(" + c.series("") + "))) or sum by (" + c.by + ") (increase(" + c.series("_count") + "))"
}

// named adds a suffix to the names of the curves, except to packet sizes, which are numbers.
func (c distribution) named(expr, suffix string) string {
	if suffix == "" || c.by == metric.PacketBytesL {
		return expr
	}
	return "label_replace(" + expr + `, "` + c.by + `", "$1` + suffix + `", "` + c.by + `", "(.*)")`
}

// native are quantiles of a native histogram.
func (c distribution) native() string {
	return c.quantiles("sum by (" + c.by + ") (increase(" + c.series("") + "))")
}

// quantiles is the inverse of the distribution function: count_values converts each quantile to a label. If several shares
// have the same quantile, the largest share is kept, since it is first. The last point is the decade below the smallest
// value: a logarithmic axis has round numbers only if it begins with one.
func (c distribution) quantiles(histogram string) string {
	var out []string
	value := func(expr, share string) {
		out = append(out, "count_values by ("+c.by+") (\"le\", "+expr+") * 0 + "+share)
	}
	for _, share := range []string{"1", "0.999", "0.99", "0.95", "0.9", "0.8", "0.7", "0.6", "0.5", "0.4", "0.3", "0.2", "0.1", "0.05", "0.01", "0"} {
		value("histogram_quantile("+share+", "+histogram+") > -Inf", share)
	}
	value("10 ^ floor(log10(histogram_quantile(0, "+histogram+") > 0))", "0")
	return "(" + strings.Join(out, " or ") + ")"
}

// classic has no series if there is a native histogram.
func (c distribution) classic() string {
	none := " unless on (" + c.by + ") count_over_time(" + c.series("") + "))"
	if c.interpolated {
		return "(" + c.quantiles("sum by ("+c.by+", le) (increase("+c.series("_bucket")+"))") + none
	}
	reached := "sum by (" + c.by + ", le) (increase(" + c.series("_bucket", `le!="+Inf"`) + "))"
	all := "sum by (" + c.by + ") (increase(" + c.series("_count") + "))"
	return "(" + reached + " / on (" + c.by + ") group_left () (" + all + " > 0) and on (le) " +
		occupiedIn(strings.TrimSuffix(c.series("_bucket"), dashboardRange), strings.TrimSuffix(c.series("_count"), dashboardRange)) +
		none
}

// cdf is a panel of distributions of delays.
func cdf(t text, query string) *trend.PanelBuilder {
	return curve(t, axis{label: "le", column: metric.Direction, unit: "s", log: 10}, query).Min(0).Max(1).
		OverrideByRegexp("/^forward/", props{color(blue)}).
		OverrideByRegexp("/^reverse/", props{color(orange)}).
		OverrideByRegexp("/"+ofBuckets+"$/", notConnected)
}

// notConnected draws the bounds of classic buckets.
var notConnected = props{prop("custom.drawStyle", "points"), prop("custom.pointSize", 6)}

// bins is a histogram over the dashboard's time range that is not cumulative, by a label.
type bins struct {
	of   *metric.Desc
	base string
	by   string
}

// shares are the shares of the observations in each classic bucket, with its upper bound as label le: PromQL does not
// subtract neighboring buckets, so each has its own term. The first point is where the lowest bin begins on a logarithmic axis,
// a decade below its bound.
func (b bins) shares() string {
	in := func(suffix string, matchers ...string) string {
		return "sum by (" + b.by + ") (increase(" + recFrom(b.base, b.of.Name+suffix, matchers...) + dashboardRange + "))"
	}
	bucket := func(bound float64) string { return in("_bucket", `le="`+shortest(bound)+`"`) }
	at := func(expr string, bound float64) string {
		return "label_replace(" + expr + `, "le", "` + shortest(bound) + `", "", "")`
	}
	begin := math.Pow10(int(math.Floor(math.Log10(b.of.Buckets[0]))) - 1)
	native := []string{at("0 * (histogram_count("+in("")+") > 0)", begin)}
	classic := []string{at("0 * ("+in("_count")+" > 0)", begin)}
	for i, bound := range b.of.Buckets {
		lower, below := "-Inf", ""
		if i > 0 {
			lower, below = shortest(b.of.Buckets[i-1]), " - "+bucket(b.of.Buckets[i-1])
		}
		native = append(native, at("histogram_fraction("+lower+", "+shortest(bound)+", "+in("")+") >= 0", bound))
		classic = append(classic, at("("+bucket(bound)+below+") / ("+in("_count")+" > 0)", bound))
	}
	return "(" + strings.Join(native, " or ") + ") or ((" + strings.Join(classic, " or ") +
		") unless on (" + b.by + ") count_over_time(" + recFrom(b.base, b.of.Name) + dashboardRange + "))"
}

// shortest is the label le of a bucket.
func shortest(bound float64) string { return strconv.FormatFloat(bound, 'g', -1, 64) }

// resolution is how exactly quantiles of a histogram in seconds are known.
func resolution(d *metric.Desc) string {
	if d.NativeOnly {
		return "Resolution: 9 %; a server without native histograms has no values."
	}
	var bounds []string
	for _, b := range d.Buckets {
		bounds = append(bounds, fmt.Sprintf("%g", b*1e3))
	}
	return "Resolution: 9 % with native histograms, else classic buckets at " + unit.List("and", bounds...) + " ms."
}
