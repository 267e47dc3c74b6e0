// Package copies makes blocks of many paths from the blocks of few, for load tests of queries: chunks are copied as they are, under
// other names of paths, agents and sites. Nothing is simulated or computed.
package copies

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/tsdb/index"
	"github.com/prometheus/prometheus/tsdb/tombstones"
)

// Copies of a path that share an agent, and sites of each made one.
const (
	perAgent     = 12
	sitesPerSite = 10
)

// Options of the copies.
type Options struct {
	// From is the directory of the blocks, To the one of the copies.
	From, To string
	// Copies is the number of copies of each path.
	Copies int
	// Names selects the series by their names; the zero value selects all.
	Names *regexp.Regexp
	// Since leaves out chunks that end before it; the zero value leaves out none.
	Since time.Time
}

// Result are the sums of the blocks that were written.
type Result struct {
	Blocks          int
	Series, Samples uint64
	Bytes           int64
}

// Make copies all blocks.
func Make(o Options) (r Result, err error) {
	found, err := filepath.Glob(filepath.Join(o.From, "*", "meta.json"))
	if err != nil {
		return r, fmt.Errorf("copies: %w", err)
	}
	for _, meta := range found {
		if err := o.block(filepath.Dir(meta), &r); err != nil {
			return r, fmt.Errorf("copies: block %s: %w", filepath.Base(filepath.Dir(meta)), err)
		}
	}
	return r, nil
}

// source is a series of the block that is read.
type source struct {
	labels labels.Labels
	chunks []chunks.Meta
}

// target is a series of the block that is written.
type target struct {
	labels labels.Labels
	of     int // the source
}

// block copies one block.
func (o *Options) block(dir string, r *Result) error {
	b, err := tsdb.OpenBlock(slog.New(slog.DiscardHandler), dir, nil, nil)
	if err != nil {
		return err
	}
	defer func() { _ = b.Close() }()
	sources, err := o.read(b)
	if err != nil || len(sources) == 0 {
		return err
	}
	var all []target
	symbols := map[string]bool{"": true}
	for i, s := range sources {
		for k := range o.Copies {
			if l, ok := copied(s.labels, k); ok {
				all = append(all, target{l, i})
				l.Range(func(one labels.Label) { symbols[one.Name], symbols[one.Value] = true, true })
			}
		}
	}
	slices.SortFunc(all, func(a, b target) int { return labels.Compare(a.labels, b.labels) })
	return o.write(b, sources, all, symbols, r)
}

// read reads the series that are copied, with their chunks.
func (o *Options) read(b *tsdb.Block) (all []source, err error) {
	ir, err := b.Index()
	if err != nil {
		return nil, err
	}
	defer func() { _ = ir.Close() }()
	cr, err := b.Chunks()
	if err != nil {
		return nil, err
	}
	defer func() { _ = cr.Close() }()
	name, value := index.AllPostingsKey()
	postings, err := ir.Postings(context.Background(), name, value)
	if err != nil {
		return nil, err
	}
	var builder labels.ScratchBuilder
	for postings.Next() {
		var metas []chunks.Meta
		if err := ir.Series(postings.At(), &builder, &metas); err != nil {
			return nil, err
		}
		l := builder.Labels()
		if o.Names != nil && !o.Names.MatchString(l.Get(model.MetricNameLabel)) {
			continue
		}
		metas = slices.DeleteFunc(metas, func(m chunks.Meta) bool { return m.MaxTime < o.Since.UnixMilli() })
		for i := range metas {
			if metas[i].Chunk, _, err = cr.ChunkOrIterable(metas[i]); err != nil {
				return nil, err
			}
		}
		if len(metas) > 0 {
			all = append(all, source{l.Copy(), metas})
		}
	}
	return all, postings.Err()
}

// copied are the labels of copy k of a series; false if another copy has the same ones.
func copied(l labels.Labels, k int) (labels.Labels, bool) {
	path := l.Get("path")
	if path == "" && k%perAgent != 0 {
		return l, false
	}
	b := labels.NewBuilder(l)
	if host, port, found := strings.Cut(l.Get("instance"), ":"); found {
		b.Set("instance", fmt.Sprintf("%s-%03d:%s", host, k/perAgent, port))
	}
	if path != "" {
		b.Set("path", fmt.Sprintf("%s-%04d", path, k))
	}
	if site := l.Get("site"); site != "" {
		b.Set("site", fmt.Sprintf("%s-%d", site, k%sitesPerSite))
	}
	return b.Labels(), true
}

// write writes a block.
func (o *Options) write(b *tsdb.Block, sources []source, all []target, symbols map[string]bool, r *Result) (err error) {
	meta := tsdb.BlockMeta{MinTime: b.Meta().MinTime, MaxTime: b.Meta().MaxTime, Version: 1}
	meta.ULID, err = ulid.New(uint64(meta.MinTime), rand.Reader)
	if err != nil {
		return err
	}
	meta.Compaction = tsdb.BlockMetaCompaction{Level: 1, Sources: []ulid.ULID{meta.ULID}}
	dir := filepath.Join(o.To, meta.ULID.String())
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	cw, err := chunks.NewWriter(filepath.Join(dir, "chunks"))
	if err != nil {
		return err
	}
	iw, err := index.NewWriter(context.Background(), filepath.Join(dir, "index"))
	if err != nil {
		return err
	}
	for _, s := range sorted(symbols) {
		if err := iw.AddSymbol(s); err != nil {
			return err
		}
	}
	for i, t := range all {
		own := slices.Clone(sources[t.of].chunks)
		if err := cw.WriteChunks(own...); err != nil {
			return err
		}
		if err := iw.AddSeries(storage.SeriesRef(i), t.labels, own...); err != nil {
			return err
		}
		meta.Stats.NumSeries++
		for _, c := range own {
			meta.Stats.NumChunks++
			meta.Stats.NumSamples += uint64(c.Chunk.NumSamples())
		}
	}
	if err := errors.Join(cw.Close(), iw.Close()); err != nil {
		return err
	}
	if _, err := tombstones.WriteFile(slog.New(slog.DiscardHandler), dir, tombstones.NewMemTombstones()); err != nil {
		return err
	}
	text, err := json.MarshalIndent(meta, "", "\t")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "meta.json"), text, 0o644); err != nil {
		return err
	}
	r.Blocks++
	r.Series += meta.Stats.NumSeries
	r.Samples += meta.Stats.NumSamples
	return filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			r.Bytes += info.Size()
		}
		return err
	})
}

func sorted(set map[string]bool) (all []string) {
	for s := range set {
		all = append(all, s)
	}
	slices.Sort(all)
	return all
}
