package promsink

import (
	"fmt"
	"io"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"google.golang.org/protobuf/proto"

	"oneway.example/exporter/metric"
)

// Expose writes every series as of one instant, one family after the other, and uses the memory of one family. The
// caller writes the end marker of formats that have one (expfmt.Closer).
func (s *Sink) Expose(to io.Writer, format expfmt.Format) error {
	binary := format.FormatType() == expfmt.TypeProtoDelim
	text := expfmt.NewEncoder(to, format)
	return s.each(binary && !s.options.NoNative, func(family []byte) error {
		if binary {
			return writeDelimited(to, family)
		}
		var f dto.MetricFamily
		if err := proto.Unmarshal(family, &f); err != nil {
			return err
		}
		return text.Encode(&f)
	})
}

// Gather returns all families that Expose writes with native histograms.
func (s *Sink) Gather() (all []*dto.MetricFamily, err error) {
	err = s.each(!s.options.NoNative, func(family []byte) error {
		f := new(dto.MetricFamily)
		all = append(all, f)
		return proto.Unmarshal(family, f)
	})
	return all, err
}

func writeDelimited(to io.Writer, message []byte) error {
	var e encoder
	e.length(len(message))
	for _, part := range [][]byte{e.data, message} {
		if _, err := to.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// each calls write with each family that has an exported series, in the order of names, as an encoded protobuf message.
// native reports whether native histograms are accepted. The next family overwrites the bytes.
func (s *Sink) each(native bool, write func(family []byte) error) error {
	s.scrape.Lock()
	defer s.scrape.Unlock()
	listings, scrape := s.begin()
	defer s.scraping.Store(0)
	e, _ := s.encoders.Get().(*encoder)
	if e == nil {
		e = new(encoder)
	}
	defer s.encoders.Put(e)
	for _, l := range listings {
		l.sort()
		e.data = e.data[:0]
		e.family(l.desc)
		before := len(e.data)
		for _, one := range l.series {
			e.series(one, scrape, native)
		}
		if len(e.data) == before {
			continue
		}
		if err := write(e.data); err != nil {
			return fmt.Errorf("promsink: expose %s: %w", l.desc.Name, err)
		}
	}
	return nil
}

// listing is the series of a family, valid until one is opened or closed. Only scrapes use it.
type listing struct {
	desc   *metric.Desc
	series []*series
	sorted bool
}

// begin starts a scrape at an instant in which no Update is half done; later writes put the previous state aside. The time
// for which it stops writers depends on the number of families that have changed, not on the number of series.
func (s *Sink) begin() (listings []*listing, scrape uint64) {
	s.gate.Lock()
	defer s.gate.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.families {
		if f.listing == nil {
			f.listing = &listing{desc: f.desc, series: make([]*series, 0, len(f.series))}
			for _, one := range f.series {
				f.listing.series = append(f.listing.series, one)
			}
		}
		listings = append(listings, f.listing)
	}
	slices.SortFunc(listings, func(a, b *listing) int { return strings.Compare(a.desc.Name, b.desc.Name) })
	s.last++
	s.scraping.Store(s.last)
	return listings, s.last
}

// sort sorts a listing in the order of the exposition.
func (l *listing) sort() {
	if !l.sorted {
		slices.SortFunc(l.series, func(a, b *series) int { return strings.Compare(a.key, b.key) })
		l.sorted = true
	}
}
