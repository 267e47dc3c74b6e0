package influxdb

import (
	"bytes"
	"compress/gzip"
	"sync"

	"oneway.example/exporter/output/point"
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
	zip     compressor
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
	b.put(b.zip.compress(b.lines), b.points)
	b.lines, b.points = b.lines[:0], 0
}

// compressor compresses lines. The zero value is ready.
type compressor struct {
	writer *gzip.Writer
	to     bytes.Buffer
}

// compress returns lines compressed, until the next call. It is fast: they become a tenth or less at any level.
func (c *compressor) compress(lines []byte) []byte {
	c.to.Reset()
	if c.writer == nil {
		c.writer, _ = gzip.NewWriterLevel(&c.to, gzip.BestSpeed) // the level is valid
	} else {
		c.writer.Reset(&c.to)
	}
	_, _ = c.writer.Write(lines) // a buffer has no errors
	_ = c.writer.Close()
	return c.to.Bytes()
}
