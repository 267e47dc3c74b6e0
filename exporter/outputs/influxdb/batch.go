package influxdb

import (
	"bytes"
	"compress/gzip"
	"io"
	"sync"

	"oneway.example/exporter/point"
)

// batcher makes records of points: their lines, compressed. It is safe for concurrent use.
type batcher struct {
	maxPoints, maxBytes int
	// put receives a record, which is valid during the call.
	put func(record []byte, points int)

	mu      sync.Mutex // guards the fields below
	encoder point.Encoder
	lines   []byte
	points  int
	bad     uint64 // points that could not be encoded
	zip     *gzip.Writer
	zipped  bytes.Buffer
}

// add adds points, and puts each batch that is complete.
func (b *batcher) add(points []point.Point) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range points {
		before := len(b.lines)
		lines, err := b.encoder.Append(b.lines, &points[i])
		if err != nil {
			b.bad++
			continue
		}
		b.lines = lines
		if b.points > 0 && len(b.lines) > b.maxBytes {
			// The point that is too much begins the next batch.
			line := b.lines[before:]
			b.lines = b.lines[:before]
			b.seal()
			b.lines = append(b.lines, line...)
		}
		if b.points++; b.points == b.maxPoints {
			b.seal()
		}
	}
}

// flush puts what is not yet a complete batch, and returns the number of points that could not be encoded since the last time.
func (b *batcher) flush() (bad uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.points > 0 {
		b.seal()
	}
	bad, b.bad = b.bad, 0
	return bad
}

func (b *batcher) seal() {
	b.zipped.Reset()
	if b.zip == nil {
		b.zip = newZip(&b.zipped)
	} else {
		b.zip.Reset(&b.zipped)
	}
	_, _ = b.zip.Write(b.lines) // a buffer has no errors
	_ = b.zip.Close()
	b.put(b.zipped.Bytes(), b.points)
	b.lines, b.points = b.lines[:0], 0
}

// newZip compresses fast: lines become a tenth or less at any level.
func newZip(to io.Writer) *gzip.Writer {
	w, _ := gzip.NewWriterLevel(to, gzip.BestSpeed) // the level is valid
	return w
}
