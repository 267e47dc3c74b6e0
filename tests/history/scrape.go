package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/output/promsink"
	"oneway.example/tests/history/blocks"
	"oneway.example/tests/history/recorded"
	"oneway.example/tests/history/scene"
	"oneway.example/tests/history/simagent"
)

// job is the label job of the agents.
const job = "oneway"

// scraper scrapes an agent into blocks, and for the rules.
type scraper struct {
	instance string
	to       *blocks.Writer
	rules    *recorded.Evaluator
	lines    *lines // nil: no line protocol
	buffer   bytes.Buffer
	symbols  *labels.SymbolTable
	series   map[string]*scraped // by their bytes in an exposition
	own      map[string]*scraped // not of an exposition, by labels
	recorded map[string]*blocks.Ref
	last     time.Time
}

// scraped is a series that is scraped.
type scraped struct {
	labels labels.Labels
	ref    blocks.Ref
	memory *recorded.Series // nil: no rule reads it
}

func newScraper(site scene.Site, to *blocks.Writer, out *lines) (*scraper, error) {
	s := &scraper{
		instance: simagent.Instance(site), to: to, lines: out, symbols: labels.NewSymbolTable(),
		series: map[string]*scraped{}, own: map[string]*scraped{}, recorded: map[string]*blocks.Ref{},
	}
	rules, err := recorded.New(s.take, false) // the blocks have no classic buckets
	s.rules = rules
	return s, err
}

// take stores the samples of a recorded series.
func (s *scraper) take(l labels.Labels, floats []promql.FPoint, histograms []promql.HPoint) error {
	key := l.String()
	ref := s.recorded[key]
	if ref == nil {
		ref = new(blocks.Ref)
		s.recorded[key] = ref
	}
	for _, p := range floats {
		if err := s.to.Append(ref, l, p.T, p.F, nil, nil); err != nil {
			return err
		}
	}
	for _, p := range histograms {
		h := p.H.Copy()
		h.CounterResetHint = histogram.GaugeType // as a rule stores it
		if err := s.to.Append(ref, l, p.T, 0, nil, h); err != nil {
			return err
		}
	}
	return nil
}

// Started implements simagent.Watcher.
func (s *scraper) Started() {
	if s.lines != nil {
		s.lines.started(s.instance)
	}
}

// Scrape implements simagent.Watcher. It reads what Prometheus reads, with its parser.
func (s *scraper) Scrape(at time.Time, sink *promsink.Sink, full bool) error {
	if !at.After(s.last) {
		return nil
	}
	s.last = at
	if s.lines != nil {
		if err := s.lines.scrape(s.instance, at, sink, full); err != nil {
			return err
		}
	}
	return s.scrape(at, sink, full, nil)
}

// Calendar implements simagent.Watcher.
func (s *scraper) Calendar(at time.Time, sink *promsink.Sink) error {
	return s.scrape(at, sink, false, map[string]bool{metric.UTCOffset.Name: true, metric.Holiday.Name: true, metric.HolidaysEnd.Name: true})
}

// Run implements simagent.Watcher.
func (s *scraper) Run(result *record.Result) error {
	if s.lines == nil {
		return nil
	}
	return s.lines.run(s.instance, result)
}

// Minutes implements simagent.Watcher.
func (s *scraper) Minutes(at time.Time, measured int, up map[string]int) error {
	if s.lines != nil {
		s.lines.minutes(s.instance, at, measured, up)
	}
	for path, n := range up {
		for name, v := range map[string]int{recorded.MeasuredMinutes: measured, recorded.UpMinutes: n} {
			one := s.ownSeries(name, metric.Path, path, metric.Probe, "stamp")
			one.memory.Append(at.UnixMilli(), float64(v), nil, nil)
		}
	}
	return nil
}

// ownSeries is a series that is not of an exposition.
func (s *scraper) ownSeries(name string, more ...string) *scraped {
	l := labels.FromStrings(append([]string{model.MetricNameLabel, name, "job", job, "instance", s.instance}, more...)...)
	one := s.own[l.String()]
	if one == nil {
		one = s.open(l)
		s.own[l.String()] = one
	}
	return one
}

func (s *scraper) open(l labels.Labels) *scraped {
	one := &scraped{labels: l}
	if s.rules.Wants(l.Get(model.MetricNameLabel)) {
		one.memory = s.rules.Open(l)
	}
	return one
}

// scrape appends the series, or only some families, if only has any. twice: counters and histograms have their value again 1 ms
// later, for the rules.
func (s *scraper) scrape(at time.Time, sink *promsink.Sink, twice bool, only map[string]bool) error {
	s.buffer.Reset()
	if err := sink.Expose(&s.buffer, expfmt.NewFormat(expfmt.TypeProtoDelim)); err != nil {
		return fmt.Errorf("history: %w", err)
	}
	up := s.ownSeries("up")
	t := at.UnixMilli()
	if err := s.to.Append(&up.ref, up.labels, t, 1, nil, nil); err != nil {
		return err
	}
	p := textparse.NewProtobufParser(s.buffer.Bytes(), false, false, false, false, s.symbols)
	wanted, counts := true, false
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("history: scrape of %s: %w", s.instance, err)
		}
		var key []byte
		var v float64
		var h *histogram.Histogram
		switch entry {
		case textparse.EntryType:
			name, kind := p.Type()
			wanted, counts = only == nil || only[string(name)], kind != model.MetricTypeGauge
			continue
		case textparse.EntrySeries:
			key, _, v = p.Series()
		case textparse.EntryHistogram:
			key, _, h, _ = p.Histogram()
		default:
			continue
		}
		if !wanted {
			continue
		}
		one := s.series[string(key)]
		if one == nil {
			var l labels.Labels
			p.Labels(&l)
			one = s.open(labels.NewBuilder(l).Set("job", job).Set("instance", s.instance).Labels())
			s.series[string(key)] = one
		}
		if err := s.to.Append(&one.ref, one.labels, t, v, h, nil); err != nil {
			return err
		}
		if one.memory != nil {
			one.memory.Append(t, v, h, nil)
			if twice && counts {
				one.memory.Append(t+1, v, h, nil)
			}
		}
	}
}
