package point

import (
	"hash/maphash"
	"slices"
	"strconv"
	"strings"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/record"
)

// Wide makes points of readings: one point with the fields of all families that share measurement and labels. Add the families
// in the order of Table.Order. It uses the memory of the largest measurement, and allocates nothing once it has that. It is not
// safe for concurrent use. Make one with NewWide.
type Wide struct {
	table *Table
	// emit receives the points, which are valid during the call.
	emit func(*Point)
	at   instant.Time
	run  []Field // of a run: its id; else none

	measurement string
	points      []Point
	used        int
	index       map[uint64]int // of points, by hash of their tags
	next        int            // the point after the last one found
	seed        maphash.Seed
	bucket      Point // reused
}

// NewWide makes a Wide.
func NewWide(t *Table) *Wide {
	return &Wide{table: t, index: map[uint64]int{}, seed: maphash.MakeSeed()}
}

// Begin starts the points of one instant; call End after the last reading.
func (w *Wide) Begin(at instant.Time, emit func(*Point)) { w.at, w.emit, w.run = at, emit, w.run[:0] }

// BeginRun is Begin with the values of a run: its measurements, its id as a field, and its hour and kind of day as tags.
func (w *Wide) BeginRun(run *record.Result, emit func(*Point)) {
	more := []Tag{{DayTypeTag, orNone(string(run.DayType))}, {LocalHourTag, strconv.Itoa(run.LocalHour)}}
	w.Begin(run.Begin, func(p *Point) {
		p.Tags = append(p.Tags, more...)
		slices.SortFunc(p.Tags, func(a, b Tag) int { return strings.Compare(a.Key, b.Key) })
		emit(p)
	})
	w.run = append(w.run, Field{RunField, Text(run.Run)})
}

// End emits the last points.
func (w *Wide) End() {
	w.flush()
	w.emit, w.measurement = nil, ""
}

// flush emits the points of the measurement.
func (w *Wide) flush() {
	for i := range w.points[:w.used] {
		if p := &w.points[i]; len(p.Fields) > len(w.run) {
			w.emit(p)
		}
	}
	w.used, w.next = 0, 0
	clear(w.index)
}

// Add adds a reading. A family that is not in the schema, a quantile without a field and a value that is not finite add nothing.
func (w *Wide) Add(d *metric.Desc, r *metric.Reading) {
	f := w.table.Family(d.Name)
	if f == nil || len(r.Labels) != len(f.Desc.Labels) {
		return
	}
	measurement, buckets := f.Measurement, f.buckets
	if len(w.run) > 0 {
		measurement, buckets = f.Run, f.runBuckets
	}
	if measurement != w.measurement {
		w.flush()
		w.measurement = measurement
	}
	p := w.point(f, r.Labels)
	if len(f.facts) > 0 && len(p.Fields) > len(w.run) {
		return // facts that change have two series for a moment; a point has each field once
	}
	switch d.Kind {
	case metric.Counter:
		p.Fields = Int(p.Fields, f.number, CountOf(r.Number))
	case metric.Gauge:
		if key := f.field(r.Labels); key != "" {
			p.Fields = Float(p.Fields, key, r.Number)
		}
	case metric.Histogram:
		p.Fields = Float(Int(p.Fields, f.count, int64(r.Count)), f.sum, r.Sum)
		if len(r.Buckets) > 0 && f.buckets != "" {
			w.buckets(f, buckets, r)
		}
	}
	for i := range f.facts {
		p.Fields = w.table.fact(p.Fields, &f.facts[i], r.Labels[f.facts[i].label])
	}
}

// buckets emits the classic buckets of a histogram at once: no other family has their measurement.
func (w *Wide) buckets(f *Family, measurement string, r *metric.Reading) {
	p := &w.bucket
	p.Measurement, p.At = measurement, w.at
	for i, bound := range f.bounds {
		count := r.Count
		if i < len(r.Buckets) {
			count = r.Buckets[i]
		}
		p.Tags = tagsOf(p.Tags[:0], f.bucketTags, r.Labels, bound)
		p.Fields = Int(append(p.Fields[:0], w.run...), f.bucket, int64(count))
		w.emit(p)
	}
}

// tagsOf appends the tags of a series; bound is the value of le.
func tagsOf(to []Tag, all []tagOf, labels []string, bound string) []Tag {
	for _, t := range all {
		value := bound
		if t.label >= 0 {
			value = labels[t.label]
		}
		to = append(to, Tag{t.key, orNone(value)})
	}
	return to
}

func orNone(value string) string {
	if value == "" {
		return NoLabel
	}
	return value
}

// point is the point with these labels.
func (w *Wide) point(f *Family, labels []string) *Point {
	// Most families have the same series in the same order.
	if w.next < w.used && same(&w.points[w.next], f.tags, labels) {
		w.next++
		return &w.points[w.next-1]
	}
	var h maphash.Hash
	h.SetSeed(w.seed)
	for _, t := range f.tags {
		_, _ = h.WriteString(orNone(labels[t.label]))
		_ = h.WriteByte(0)
	}
	for hash := h.Sum64(); ; hash++ {
		i, known := w.index[hash]
		if !known {
			i = w.add(f, labels)
			w.index[hash] = i
		}
		if p := &w.points[i]; !known || same(p, f.tags, labels) {
			w.next = i + 1
			return p
		}
	}
}

// add adds a point.
func (w *Wide) add(f *Family, labels []string) int {
	if w.used == len(w.points) {
		w.points = append(w.points, Point{})
	}
	p := &w.points[w.used]
	w.used++
	p.Measurement, p.At = w.measurement, w.at
	p.Tags = tagsOf(p.Tags[:0], f.tags, labels, "")
	p.Fields = append(p.Fields[:0], w.run...)
	return w.used - 1
}

func same(p *Point, tags []tagOf, labels []string) bool {
	for i, t := range tags {
		if p.Tags[i].Value != orNone(labels[t.label]) {
			return false
		}
	}
	return true
}
