package main

import (
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/trend"

	"oneway.example/exporter/metric"
)

// readOff says how exact a CDF is.
const readOff = "Read off a native histogram at 16 shares, each to 9 % of the value, and joined by lines. Where the server has none: points at the bounds of the few classic buckets, not joined, since nothing is known between them."

// ofBuckets ends the name of a curve that is read off classic buckets.
const ofBuckets = ", classic buckets"

// distribution is that of a histogram over the dashboard's time range, by a label.
type distribution struct {
	of       *metric.Desc
	base     string
	matchers []string
	by       string
}

func (c distribution) series(suffix string, matchers ...string) string {
	return recFrom(c.base, c.of.Name+suffix, append(matchers, c.matchers...)...) + dashboardRange
}

// curves are the points of the distribution function, with the value as label le.
func (c distribution) curves() string {
	return c.named(c.native(), "") + " or " + c.named(c.classic(), ofBuckets)
}

// scaled are the same times a factor by the same label, with a suffix to their name.
func (c distribution) scaled(factor, suffix string) string {
	times := " * on (" + c.by + ") group_left () " + factor
	return c.named(c.native()+times, suffix) + " or " + c.named(c.classic()+times, suffix+ofBuckets)
}

// named adds to the name of the curves; packet sizes are numbers, and stay as they are.
func (c distribution) named(expr, suffix string) string {
	if suffix == "" || c.by != metric.Direction {
		return expr
	}
	return "label_replace(" + expr + `, "` + c.by + `", "$1` + suffix + `", "` + c.by + `", "(.*)")`
}

// native is the inverse of the distribution function: count_values makes a label of each
// quantile. Of shares with one value the largest, which stands first, is kept.
func (c distribution) native() string {
	var out []string
	for _, share := range []string{"1", "0.999", "0.99", "0.95", "0.9", "0.8", "0.7", "0.6", "0.5", "0.4", "0.3", "0.2", "0.1", "0.05", "0.01", "0"} {
		out = append(out, "count_values by ("+c.by+") (\"le\", histogram_quantile("+share+", sum by ("+c.by+") (increase("+c.series("")+"))) > -Inf) * 0 + "+share)
	}
	return "(" + strings.Join(out, " or ") + ")"
}

// classic has nothing where there is a native histogram.
func (c distribution) classic() string {
	reached := "sum by (" + c.by + ", le) (increase(" + c.series("_bucket", `le!="+Inf"`) + "))"
	all := "sum by (" + c.by + ") (increase(" + c.series("_count") + "))"
	return "(" + reached + " / on (" + c.by + ") group_left () (" + all + " > 0) and on (le) " +
		occupiedIn(strings.TrimSuffix(c.series("_bucket"), dashboardRange), strings.TrimSuffix(c.series("_count"), dashboardRange)) +
		" unless on (" + c.by + ") count_over_time(" + c.series("") + "))"
}

// cdf is a panel of distributions of delays.
func cdf(t text, query string) *trend.PanelBuilder {
	return curve(t, axis{label: "le", column: metric.Direction, unit: "s", log: 10}, query).Min(0).Max(1).
		OverrideByRegexp("/^forward/", props{color(blue)}).
		OverrideByRegexp("/^reverse/", props{color(orange)}).
		OverrideByRegexp("/"+ofBuckets+"$/", props{prop("custom.drawStyle", "points"), prop("custom.pointSize", 6)})
}
