package collect

import (
	"slices"

	"oneway.example/exporter/output/point"
)

// batchPoints is the largest number of points of a call of emit.
const batchPoints = 1000

// batch gathers copies of points, with the tags of the output and the labels of paths.
type batch struct {
	tags   point.Tagger
	emit   func([]point.Point)
	points []point.Point
	used   int
	hold   bool // emit is called by flush only
}

func newBatch(tags point.Tagger, emit func([]point.Point)) batch {
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
	to.Tags = b.tags.Append(to.Tags[:0], p.Tags)
	to.Fields = append(to.Fields[:0], p.Fields...)
	if b.used == batchPoints && !b.hold {
		b.flush()
	}
}

func (b *batch) flush() {
	for some := range slices.Chunk(b.points[:b.used], batchPoints) {
		b.emit(some)
	}
	b.used = 0
}
