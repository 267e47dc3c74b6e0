package historyreport

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"oneway.example/exporter/core/localday"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/estimate/history"
)

// Query selects histories.
type Query struct {
	Measure Measure
	// Labels are those that a history must have; empty: all histories.
	Labels   map[string]string
	From, To time.Time // without To
	// Zone is of the hours of samples that have no zone of their own.
	Zone *time.Location
	// Progress takes the number of requests that are done, of all; nil: nobody wants it.
	Progress func(done, all int)
}

// advance says how much of the time is read.
func (q *Query) advance(to time.Time) {
	if q.Progress != nil {
		parts := func(d time.Duration) int { return int((d + chunk - 1) / chunk) }
		q.Progress(parts(to.Sub(q.From)), parts(q.To.Sub(q.From)))
	}
}

// Series is the history of a path in a direction.
type Series struct {
	// Labels are the path, its direction and other labels, without hour, day_type and zone.
	Labels  map[string]string
	Samples []history.Sample
	// Counted are the samples of a share, such as loss.
	Counted []history.Counted
	// Withheld are the hours whose quantile has no upper limit, without a value.
	Withheld []history.Sample
	// Months are the months of a delay, of one path in Prometheus or InfluxDB.
	Months []Month
	// From is where InfluxDB has it, and Why is why there, if it is not where it is sought first; empty: a store with one place.
	From, Why string
}

// Source is a store of histories.
type Source interface {
	// Read returns the histories with at least one sample, in the order of their labels.
	Read(ctx context.Context, q Query) ([]Series, error)
}

// Name is what a text calls the history: path and direction, or all labels without these.
func (s *Series) Name() string {
	if s.Labels[metric.Path] != "" {
		return strings.TrimSpace(s.Labels[metric.Path] + " " + s.Labels[metric.Direction])
	}
	return labelText(s.Labels)
}

// labelText is "access=umts, site=paris".
func labelText(labels map[string]string) string {
	var words []string
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		words = append(words, k+"="+labels[k])
	}
	return strings.Join(words, ", ")
}

// fits reports whether labels have all of the wanted ones.
func fits(labels, wanted map[string]string) bool {
	for k, v := range wanted {
		if labels[k] != v {
			return false
		}
	}
	return true
}

// Values of metric.Direction.
const (
	forwardWay = "forward" // its packets arrive at another host
	reverseWay = "reverse"
)

// collect has series by their labels.
type collect map[string]*Series

func (c collect) series(labels map[string]string) *Series {
	key := fmt.Sprint(labels) // maps are printed in the order of their keys
	if c[key] == nil {
		c[key] = &Series{Labels: labels}
	}
	return c[key]
}

// bothWays is the query of a share without its direction: the reverse one needs the forward one.
func (q Query) bothWays() Query {
	if q.Measure.Share() {
		q.Labels = maps.Clone(q.Labels)
		delete(q.Labels, metric.Direction)
	}
	return q
}

// selected are the series with the wanted labels. Packets that are undecided forward may have reached the reflector, and their replies be lost:
// in reverse they are undecided, too. Hours without a packet are left out.
func (c collect) selected(wanted map[string]string) collect {
	for _, s := range c {
		if s.Labels[metric.Direction] != reverseWay {
			continue
		}
		labels := maps.Clone(s.Labels)
		labels[metric.Direction] = forwardWay
		forward := c[fmt.Sprint(labels)]
		if forward == nil {
			continue
		}
		unheard := map[int64]float64{}
		for i := range forward.Counted {
			unheard[forward.Counted[i].Time.Unix()] = forward.Counted[i].Undecided
		}
		for i := range s.Counted {
			n := unheard[s.Counted[i].Time.Unix()]
			s.Counted[i].Whole += n
			s.Counted[i].Undecided += n
		}
	}
	maps.DeleteFunc(c, func(_ string, s *Series) bool {
		s.Counted = slices.DeleteFunc(s.Counted, func(one history.Counted) bool { return one.Whole <= 0 })
		return !fits(s.Labels, wanted)
	})
	return c
}

// withheld reports whether an hour has no upper limit of its quantile.
func (c collect) withheld() bool {
	for _, s := range c {
		if len(s.Withheld) > 0 {
			return true
		}
	}
	return false
}

// sorted are the series with samples.
func (c collect) sorted() (all []Series) {
	for _, key := range slices.Sorted(maps.Keys(c)) {
		if s := c[key]; len(s.Samples)+len(s.Counted) > 0 {
			all = append(all, *s)
		}
	}
	return all
}

// ParseLabels parses "access=umts,site=paris".
func ParseLabels(text string) (map[string]string, error) {
	labels := map[string]string{}
	for word := range strings.SplitSeq(text, ",") {
		name, value, found := strings.Cut(strings.TrimSpace(word), "=")
		if !found || name == "" || value == "" {
			return nil, fmt.Errorf("%q is no condition; want labels such as access=umts or site=paris,device=laptop", text)
		}
		labels[name] = strings.Trim(value, `"`)
	}
	return labels, nil
}

// sampleAt is a sample of the hour that ends at t, in the zone, with the hour and the kind of day that the store has.
func sampleAt(end time.Time, zone *time.Location, value float64, hour, kind string) history.Sample {
	s := history.At(end.Add(-30*time.Minute).In(zone), value)
	setLabels(&s, hour, kind)
	return s
}

// setLabels sets the hour of the day and the kind of the day from texts; others than the known ones change nothing.
func setLabels(s *history.Sample, hour, kind string) {
	var h int
	if n, err := fmt.Sscanf(hour, "%d", &h); n == 1 && err == nil && h >= 0 && h < 24 {
		s.Hour = h
	}
	switch k := localday.DayType(kind); k {
	case localday.Weekday, localday.Weekend, localday.Holiday:
		s.Kind = k
	}
}

// Select are the histories of a direction; "" selects those without one.
func Select(all []Series, direction string) (some []Series) {
	for _, s := range all {
		if s.Labels[metric.Direction] == direction {
			some = append(some, s)
		}
	}
	return some
}

// NotFoundError is an error of a store that was read, and has no such path, label or value, or no sample of it in the time.
type NotFoundError struct{ problem string }

// Error is the problem, with what the store has.
func (e *NotFoundError) Error() string { return e.problem }

func notFound(format string, args ...any) error { return &NotFoundError{fmt.Sprintf(format, args...)} }
