package slareport

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"oneway.example/exporter/agent/pathlabel"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/sample"
)

// column is a column of the table: an unknown value is empty.
type column struct {
	name string
	cell func(*Row) string
}

// columns have their units in their names.
func columns() []column {
	all := []column{
		{"path", func(r *Row) string { return r.Path }},
		{"probe", func(r *Row) string { return r.Probe }},
		{"instance", func(r *Row) string { return r.Instance }},
		{"target", func(r *Row) string { return r.Target }},
		{"site", func(r *Row) string { return r.Labels[metric.SiteL] }},
		{"labels", func(r *Row) string { return pathlabel.Text(r.Labels) }},
		{"from", func(r *Row) string { return r.From.Format(time.RFC3339) }},
		{"to", func(r *Row) string { return r.To.Format(time.RFC3339) }},
		{"partial", func(r *Row) string { return strconv.FormatBool(r.Partial) }},
		{"period_seconds", func(r *Row) string { return number(r.To.Sub(r.From).Seconds()) }},
		{"measured_seconds", func(r *Row) string { return number(r.Measured.Seconds()) }},
		{"no_data_seconds", func(r *Row) string { return number(r.NoData.Seconds()) }},
		{"load_test_seconds", func(r *Row) string { return number(r.LoadTest.Seconds()) }},
		{"maintenance_seconds", func(r *Row) string { return number(r.Maintenance.Seconds()) }},
		{"up_seconds", func(r *Row) string { return number(r.Up.Seconds()) }},
		{"availability_ratio", func(r *Row) string { return known(r.Availability) }},
		{"outages", func(r *Row) string { return strconv.Itoa(r.Outages) }},
		{"longest_outage_seconds", func(r *Row) string { return number(r.Longest.Seconds()) }},
		{"round_trip_loss_ratio", func(r *Row) string { return known(r.RoundTrip) }},
	}
	quantiles := []struct {
		name string
		of   func(*Way) *Quantile
	}{
		{"p50", func(w *Way) *Quantile { return w.P50 }},
		{"p95", func(w *Way) *Quantile { return w.P95 }},
		{"p99", func(w *Way) *Quantile { return w.P99 }},
	}
	limits := []struct { // of the error of a quantile
		ending string
		of     func(*Quantile) float64
	}{
		{"", func(q *Quantile) float64 { return q.Value }},
		{"_lower", func(q *Quantile) float64 { return q.Lower }},
		{"_upper", func(q *Quantile) float64 { return q.Upper }},
	}
	for _, d := range sample.Directions() {
		way := func(name string, cell func(*Way) string) {
			all = append(all, column{fmt.Sprintf(name, d), func(r *Row) string { return cell(&r.Ways[d]) }})
		}
		way("loss_%s_ratio", func(w *Way) string { return known(w.Loss) })
		way("loss_%s_highest_ratio", func(w *Way) string { return known(w.LossHighest) })
		for _, q := range quantiles {
			for _, limit := range limits {
				way("delay_%s_"+q.name+limit.ending+"_seconds", func(w *Way) string {
					if v := q.of(w); v != nil {
						return number(limit.of(v))
					}
					return ""
				})
			}
		}
		way("delay_%s_max_seconds", func(w *Way) string { return known(w.Max) })
		way("delays_%s_withheld_ratio", func(w *Way) string { return known(w.Withheld) })
		way("delays_%s_low_confidence_ratio", func(w *Way) string { return known(w.LowConfidence) })
		way("delays_%s_negative_ratio", func(w *Way) string { return known(w.Negative) })
	}
	return all
}

func known(v *float64) string {
	if v == nil {
		return ""
	}
	return number(*v)
}

// number is empty for an infinite value: a limit that is not known.
func number(v float64) string {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return ""
	}
	return strconv.FormatFloat(v, 'g', 9, 64)
}

// WriteCSV writes a header and a line for each row (RFC 4180).
func WriteCSV(out io.Writer, rows []Row) error {
	w := csv.NewWriter(out)
	all := columns()
	line := make([]string, len(all))
	for i, c := range all {
		line[i] = c.name
	}
	_ = w.Write(line) // Error has it
	for i := range rows {
		for j, c := range all {
			line[j] = c.cell(&rows[i])
		}
		_ = w.Write(line)
	}
	w.Flush()
	if err := w.Error(); err != nil {
		return fmt.Errorf("slareport: write the table: %w", err)
	}
	return nil
}
