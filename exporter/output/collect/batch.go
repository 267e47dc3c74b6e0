package collect

import (
	"cmp"
	"slices"

	"oneway.example/exporter/output/point"
)

// batchPoints is the largest number of points of a call of emit.
const batchPoints = 1000

// batch gathers copies of points, with the tags of all points.
type batch struct {
	tags   []point.Tag // sorted
	emit   func([]point.Point)
	points []point.Point
	used   int
	hold   bool // emit is called by flush only
}

func newBatch(tags []point.Tag, emit func([]point.Point)) batch {
	tags = slices.Clone(tags)
	slices.SortFunc(tags, func(a, b point.Tag) int { return cmp.Compare(a.Key, b.Key) })
	return batch{tags: tags, emit: emit}
}

// add adds a copy of p.
func (b *batch) add(p *point.Point) {
	if b.used == len(b.points) {
		b.points = append(b.points, point.Point{})
	}
	to := &b.points[b.used]
	b.used++
	to.Measurement, to.At = p.Measurement, p.At
	to.Tags = merge(to.Tags[:0], p.Tags, b.tags)
	to.Fields = append(to.Fields[:0], p.Fields...)
	if b.used == batchPoints && !b.hold {
		b.flush()
	}
}

// merge appends both lists of tags in the order of keys.
func merge(to, some, others []point.Tag) []point.Tag {
	for _, t := range some {
		for len(others) > 0 && others[0].Key < t.Key {
			to, others = append(to, others[0]), others[1:]
		}
		to = append(to, t)
	}
	return append(to, others...)
}

func (b *batch) flush() {
	for some := range slices.Chunk(b.points[:b.used], batchPoints) {
		b.emit(some)
	}
	b.used = 0
}
