package promsink

import (
	"fmt"
	"io"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"google.golang.org/protobuf/proto"
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
	families, scrape := s.begin()
	defer s.scraping.Store(0)
	e, _ := s.encoders.Get().(*encoder)
	if e == nil {
		e = new(encoder)
	}
	defer s.encoders.Put(e)
	for _, all := range families {
		e.data = e.data[:0]
		e.family(all[0].desc)
		before := len(e.data)
		for _, one := range all {
			e.series(one, scrape, native)
		}
		if len(e.data) == before {
			continue
		}
		if err := write(e.data); err != nil {
			return fmt.Errorf("promsink: expose %s: %w", all[0].name, err)
		}
	}
	return nil
}

// begin starts a scrape at an instant in which no Update is half done, and returns the series of each family that has any, in
// the order of the exposition; later writes put the previous state aside. The time for which it stops writers depends on the
// number of families, not on the number of series.
func (s *Sink) begin() (families [][]*series, scrape uint32) {
	s.gate.Lock()
	defer s.gate.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.families {
		if len(f.series) > 0 {
			f.shared = true
			families = append(families, f.series)
		}
	}
	s.last++
	s.scraping.Store(s.last)
	return families, s.last
}
