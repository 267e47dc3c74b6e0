// Package blocks writes blocks of Prometheus, with native histograms.
package blocks

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
)

// mostPending is the number of samples of a commit.
const mostPending = 20_000

// Writer writes one block after the other. Make one with New.
type Writer struct {
	dir     string
	writer  *tsdb.BlockWriter // nil: no block is open
	app     storage.Appender
	pending int
	number  int
	samples int
	inBlock int     // samples of the present block
	end     int64   // of the block, in ms
	later   []later // samples of the next block
}

// later is a sample of the next block.
type later struct {
	ref *Ref
	l   labels.Labels
	t   int64
	v   float64
	h   *histogram.Histogram
	fh  *histogram.FloatHistogram
}

// New makes a Writer of blocks in a directory.
func New(dir string) *Writer { return &Writer{dir: dir} }

// Ref is the reference of a series, for the samples that follow. The zero value is a series that the Writer does not know yet.
type Ref struct {
	ref   storage.SeriesRef
	block int
}

// Begin begins the block from begin until before end. The samples of each series follow in the order of time; those from end on are of
// the next block, so that no blocks overlap.
func (w *Writer) Begin(begin, end time.Time) error {
	length := end.Sub(begin)
	// An appender takes samples that are at most half of this older than the newest.
	writer, err := tsdb.NewBlockWriter(slog.New(slog.DiscardHandler), w.dir, 2*length.Milliseconds())
	if err != nil {
		return fmt.Errorf("blocks: %w", err)
	}
	w.writer, w.app = writer, writer.Appender(context.Background())
	w.number++
	w.end = end.UnixMilli()
	before := w.later
	w.later = nil
	for _, one := range before {
		if err := w.Append(one.ref, one.l, one.t, one.v, one.h, one.fh); err != nil {
			return err
		}
	}
	return nil
}

// Append appends a sample, at t in ms: of a native histogram where h or fh is given.
func (w *Writer) Append(r *Ref, l labels.Labels, t int64, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram) error {
	if t >= w.end {
		w.later = append(w.later, later{r, l, t, v, h, fh})
		return nil
	}
	if r.block != w.number {
		*r = Ref{block: w.number}
	}
	var err error
	if h != nil || fh != nil {
		r.ref, err = w.app.AppendHistogram(r.ref, l, t, h, fh)
	} else {
		r.ref, err = w.app.Append(r.ref, l, t, v)
	}
	if err != nil {
		return fmt.Errorf("blocks: %s at %v: %w", l, time.UnixMilli(t).UTC(), err)
	}
	w.samples++
	w.inBlock++
	if w.pending++; w.pending < mostPending {
		return nil
	}
	return w.commit()
}

func (w *Writer) commit() error {
	if err := w.app.Commit(); err != nil {
		return fmt.Errorf("blocks: %w", err)
	}
	w.app, w.pending = w.writer.Appender(context.Background()), 0
	return nil
}

// End writes the block.
func (w *Writer) End() error {
	if err := w.app.Commit(); err != nil {
		return fmt.Errorf("blocks: %w", err)
	}
	id, err := w.writer.Flush(context.Background())
	if err != nil {
		return fmt.Errorf("blocks: %w", err)
	}
	if err := w.check(id.String()); err != nil {
		return err
	}
	if err := w.writer.Close(); err != nil {
		return fmt.Errorf("blocks: %w", err)
	}
	w.writer, w.app, w.pending = nil, nil, 0
	return nil
}

// check compares the samples of a block with those that were appended: a commit drops those that are out of order without an error.
func (w *Writer) check(id string) error {
	b, err := os.ReadFile(filepath.Join(w.dir, id, "meta.json"))
	if err != nil {
		return fmt.Errorf("blocks: %w", err)
	}
	var meta tsdb.BlockMeta
	if err := json.Unmarshal(b, &meta); err != nil {
		return fmt.Errorf("blocks: meta.json of %s: %w", id, err)
	}
	if got := int(meta.Stats.NumSamples); got != w.inBlock {
		return fmt.Errorf("blocks: block %s has %d samples, and %d were appended", id, got, w.inBlock)
	}
	w.inBlock = 0
	return nil
}

// Samples is the number of samples so far.
func (w *Writer) Samples() int { return w.samples }
