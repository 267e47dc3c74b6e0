package historyreport

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/textfile"
	"oneway.example/exporter/estimate/history"
)

// CSV reads a file with a header. A row has a time (RFC 3339, or seconds since 1970), a value and, if the file has these columns, the
// error bound, the local hour (0..23) and the kind of day (weekday, weekend, holiday). All other columns are labels.
type CSV struct {
	File string
	// Time and Value are the names of columns; empty: time and value. The file of `oneway report --by=day` has from and
	// delay_forward_p50_seconds.
	Time, Value string
}

// boundColumn is the column of the error bound.
const boundColumn = "error_bound"

// Read implements Source.
func (f CSV) Read(_ context.Context, q Query) ([]Series, error) {
	file := io.NopCloser(os.Stdin)
	if f.File != "-" {
		var err error
		if file, err = os.Open(f.File); err != nil {
			return nil, fmt.Errorf("historyreport: --csv: %w", err)
		}
	}
	defer file.Close()
	return f.parse(file, q)
}

func (f CSV) parse(in io.Reader, q Query) ([]Series, error) {
	text, err := textfile.Decoded(in)
	if err != nil {
		return nil, fmt.Errorf("historyreport: --csv: %w", err)
	}
	r := csv.NewReader(text)
	header, err := r.Read()
	if err != nil {
		return nil, fmt.Errorf("historyreport: --csv: the header: %w", err)
	}
	header = slices.Clone(header)
	if f.Time == "" {
		f.Time = "time"
	}
	if f.Value == "" {
		f.Value = "value"
	}
	for _, name := range []string{f.Time, f.Value} {
		if !slices.Contains(header, name) {
			return nil, fmt.Errorf("historyreport: --csv: the file has no column %q; it has %s", name, joined(header))
		}
	}
	all, times := collect{}, span{}
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("historyreport: --csv: %w", err)
		}
		if err := f.row(header, row, q, all, &times); err != nil {
			line, _ := r.FieldPos(0)
			return nil, fmt.Errorf("historyreport: --csv: line %d: %w", line, err)
		}
	}
	found := all.sorted()
	switch {
	case len(found) > 0:
	case times.first.IsZero():
		return nil, notFound("historyreport: --csv: the file has no value%s", selection(q.Labels))
	default:
		return nil, notFound("historyreport: --csv: no row%s is from %s; the rows are from %s to %s: set --from and --to", selection(q.Labels), q.time(),
			times.first.In(q.Zone).Format(clockTime), times.last.In(q.Zone).Format(clockTime))
	}
	return found, nil
}

func joined(header []string) string { return strings.Join(header, ", ") }

// span has the times of the first and the last row that the labels select; zero: no row.
type span struct{ first, last time.Time }

func (s *span) add(t time.Time) {
	if s.first.IsZero() || t.Before(s.first) {
		s.first = t
	}
	if t.After(s.last) {
		s.last = t
	}
}

// row adds a row; an empty value is unknown.
func (f CSV) row(header, row []string, q Query, all collect, times *span) error {
	labels := map[string]string{}
	var s history.Sample
	var hour, kind, value, bound string
	var at time.Time
	for i, name := range header {
		switch name {
		case f.Time:
			var err error
			if at, err = parseTime(row[i], q.Zone); err != nil {
				return err
			}
		case f.Value:
			value = row[i]
		case boundColumn:
			bound = row[i]
		case hourLabel:
			hour = row[i]
		case kindLabel:
			kind = row[i]
		default:
			if f.Value == "value" { // other columns of a table of figures are no labels
				labels[name] = row[i]
			} else if slices.Contains([]string{metric.Path, metric.Probe, model.InstanceLabel, metric.SiteL}, name) {
				labels[name] = row[i]
			}
		}
	}
	if value == "" || !fits(labels, q.Labels) {
		return nil
	}
	times.add(at)
	if at.Before(q.From) || !at.Before(q.To) {
		return nil
	}
	v, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return fmt.Errorf("the value is %q; it must be a number", value)
	}
	s = history.At(at.In(q.Zone), v)
	setLabels(&s, hour, kind)
	if bound != "" {
		if s.Bound, err = strconv.ParseFloat(bound, 64); err != nil || s.Bound < 0 {
			return fmt.Errorf("the error bound is %q; it must be a number of at least 0", bound)
		}
	}
	one := all.series(labels)
	one.Samples = append(one.Samples, s)
	return nil
}

func parseTime(text string, zone *time.Location) (time.Time, error) {
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		return time.UnixMilli(int64(seconds * 1000)).In(zone), nil
	}
	for _, form := range []string{time.RFC3339, time.DateTime, time.DateOnly, "2006-01-02 15:04"} {
		if t, err := time.ParseInLocation(form, text, zone); err == nil {
			return t.In(zone), nil
		}
	}
	return time.Time{}, fmt.Errorf("the time is %q; it must be like 2026-10-01T06:00:00Z, or seconds since 1970", text)
}
