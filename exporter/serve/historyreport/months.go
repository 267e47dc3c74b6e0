package historyreport

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
	"oneway.example/exporter/serve/promapi"
)

// monthLabel is the label that the local date of an hour gives.
const monthLabel = "month"

// Month is a calendar month in the local time of the agent, as far as the history has it: the sums of its hours.
type Month struct {
	// Month is the month, such as 2026-11.
	Month string `json:"month"`
	// Delays is the number of known delays.
	Delays float64 `json:"delays"`
	// P50 is their median, in seconds; absent: there are none.
	P50 *float64 `json:"p50_seconds,omitempty"`
	// P95 is their 95th percentile, in seconds.
	P95 *float64 `json:"p95_seconds,omitempty"`
	// P50Bound is how much the median may differ from it, without the clocks: InfluxDB has 7 buckets, extremes and sums; absent: of Prometheus.
	P50Bound *float64 `json:"p50_bound_seconds,omitempty"`
	// P95Bound is the same of the 95th percentile.
	P95Bound *float64 `json:"p95_bound_seconds,omitempty"`
}

// pathLabelsOfHours are the labels of the distribution of a path.
const pathLabelsOfHours = "job, instance, path, probe, direction"

// distribution is the sum of the hours of a series by month and path, as the table of months of the dashboard Trends has it. agents selects the
// agents of the path, by is a further label; each may be empty.
func (q *Query) distribution(name, matcher, agents, by string) string {
	within := "[1h] offset -" + strconv.Itoa(int(rules.RecordedWithin.Seconds())) + "s"
	agent := map[string]string{}
	for _, l := range []string{model.InstanceLabel, model.JobLabel} {
		agent[l] = q.Labels[l]
	}
	length := ceilHour(q.To).Sub(ceilHour(q.From)) - time.Second // Prometheus 2 has both ends of a range
	return rules.HoursByDate(monthLabel, pathLabelsOfHours+by, "sum_over_time("+selector(name, matcher, q.Labels)+within+")", selector(rules.LongMonth.Name, agents, agent)+within,
		strconv.Itoa(int(length.Seconds()))+"s")
}

// agents selects the agents of the histories that are found, which measure the path: dates of all agents of a large mesh would take a minute.
func (c collect) agents() string {
	found := map[string]bool{}
	for _, s := range c {
		if one := s.Labels[model.InstanceLabel]; one != "" {
			found[regexp.QuoteMeta(one)] = true
		}
	}
	if len(found) == 0 {
		return ""
	}
	return model.InstanceLabel + "=~" + strconv.Quote(strings.Join(slices.Sorted(maps.Keys(found)), "|"))
}

// ceilHour is the full hour of UTC at or after a time: the hours of zones with half-hours are recorded before it.
func ceilHour(t time.Time) time.Time {
	if full := t.Truncate(time.Hour); full.Before(t) {
		return full.Add(time.Hour)
	}
	return t
}

// months adds the months to the histories of a path. All paths at once would be too much for a server.
func (p Prometheus) months(ctx context.Context, c *promapi.Client, q Query, names map[[2]string]map[string]string, all collect) error {
	if q.Measure.distribution == nil || q.Labels[metric.Path] == "" {
		return nil
	}
	agents := all.agents()
	native := q.distribution(rules.LongIncrease(q.Measure.distribution), "", agents, "")
	classic := func(matcher, by string) string {
		return q.distribution(rules.LongBuckets(q.Measure.distribution), matcher, agents, by)
	}
	figures := map[string]map[string]*Month{} // by history and month
	for i, query := range []string{
		"histogram_count(" + native + ") or " + classic(`le="+Inf"`, ""),
		"histogram_quantile(0.5, " + native + ") or histogram_quantile(0.5, " + classic("", ", le") + ")",
		"histogram_quantile(0.95, " + native + ") or histogram_quantile(0.95, " + classic("", ", le") + ")",
	} {
		values, err := c.At(ctx, query, ceilHour(q.To))
		if err != nil && i == 0 && ctx.Err() == nil { // VictoriaMetrics refuses histogram_count, and has classic buckets alone
			values, err = c.At(ctx, classic(`le="+Inf"`, ""), ceilHour(q.To))
		}
		if err != nil {
			return err
		}
		for _, one := range values {
			month := string(one.Metric[monthLabel])
			if one.Histogram != nil || len(month) != len("202611") {
				continue
			}
			own := one.Metric.Clone()
			delete(own, monthLabel)
			key := fmt.Sprint(labelsOf(own, names))
			if figures[key] == nil {
				figures[key] = map[string]*Month{}
			}
			m := figures[key][month]
			if m == nil {
				m = &Month{Month: month[:4] + "-" + month[4:]}
				figures[key][month] = m
			}
			switch v := float64(one.Value); i {
			case 0:
				m.Delays = v
			case 1:
				m.P50 = finite(v)
			default:
				m.P95 = finite(v)
			}
		}
	}
	for key, some := range figures {
		if s := all[key]; s != nil {
			for _, month := range slices.Sorted(maps.Keys(some)) {
				s.Months = append(s.Months, *some[month])
			}
		}
	}
	return nil
}

// monthLines are the months in words.
func (h *History) monthLines(m Measure) (lines []string) {
	for _, one := range h.Months {
		parts := []string{fmt.Sprintf("%s: n = %.0f delays", one.Month, one.Delays)}
		if one.P50 != nil && one.P95 != nil {
			parts = append(parts, "p50 "+m.Unit.BoundOrDash(one.P50, one.P50Bound), "p95 "+m.Unit.BoundOrDash(one.P95, one.P95Bound))
		}
		lines = append(lines, strings.Join(parts, ", "))
	}
	return lines
}
