package plot

import (
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/probe/report"
	"oneway.example/tests/testseed"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// example has all forms.
func example() *report.Drawing {
	return &report.Drawing{
		Title: "forward: congestion window", X: report.Axis{Name: "time", Unit: unit.Seconds}, Y: report.Axis{Name: "bytes", Unit: unit.Bytes},
		Series: []report.Series{
			{Name: "cwnd", Form: report.AsLine, X: []float64{0, 0.5, 1, 2.97}, Y: []float64{14480, 28960, 57920, 1.2e6}},
			{Name: "ssthresh", Form: report.AsSteps, X: []float64{1, 2, 2.97}, Y: []float64{40000, 600000, 650000}},
			{Name: "retransmitted (8.69 kB)", Form: report.AsMarks, X: []float64{1, 2}, Y: []float64{57920, 900000}},
			{Name: "cells", Form: report.AsPoints, X: []float64{0.25, 2.5}, Y: []float64{1e5, 2e5}},
			{Name: "nothing", Form: report.AsLine},
		},
	}
}

func TestFigureMatchesTheGoldenFile(t *testing.T) {
	for name, d := range map[string]*report.Drawing{"linear": example(), "logarithmic": {
		Title: "throughput by buffer", X: report.Axis{Name: "buffer", Unit: unit.Bytes, Log: true}, Y: report.Axis{Name: "throughput", Unit: unit.BytesPerSecond},
		Series: []report.Series{{Name: "cubic", Form: report.AsPoints, X: []float64{17408, 65536, 131072, 8e6}, Y: []float64{1.9e5, 6e5, 1.4e6, 1.45e6}}},
	}} {
		got, file := string(Figure(nil, "d0", d)), "testdata/"+name+".svg"
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (-want +got); -update rewrites it:\n%s", file, diff)
		}
	}
}

// wellFormed checks nesting, attributes and characters; XML is stricter than HTML.
func wellFormed(t *testing.T, figure []byte) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(string(figure))); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%v:\n%.2000s", err, figure)
		}
	}
}

// badRE is an element of a text, or a path with other characters than commands and decimal numbers.
var badRE = regexp.MustCompile(`<(script|img)| d="[^"]*[^-"MLHVhvlm0-9. ][^"]*"`)

// Any texts and values, also such as no kind writes, give a well-formed figure of bounded size whose positions lie in it.
func TestFigureOfAnyDrawingIsWellFormed(t *testing.T) {
	rng := rand.New(rand.NewPCG(testseed.Of(t), 1))
	texts := []string{"", "<script>alert(1)</script>", `"><img src=x onerror=alert(1)>`, "a\ufffd", "]]></svg>", "&amp;", strings.Repeat("long ", 50)}
	some := []float64{0, math.Copysign(0, -1), 1, -1, 1e-300, 1e21, -1e21, 1e300, math.MaxFloat64, math.NaN(), math.Inf(1), math.Inf(-1), 9.2e18, 1e-9, 0.1, 7200, 1e-13}
	pick := func() string { return texts[rng.IntN(len(texts))] }
	axis := func() report.Axis {
		units := []unit.Unit{unit.Seconds, unit.Bytes, unit.BytesPerSecond, unit.Ratio, unit.Count, unit.Unit(pick())}
		return report.Axis{Name: pick(), Unit: units[rng.IntN(len(units))], Log: rng.IntN(3) == 0}
	}
	for range 3000 {
		d := &report.Drawing{Title: pick(), X: axis(), Y: axis()}
		for range rng.IntN(10) {
			s := report.Series{Name: pick(), Form: []report.Form{report.AsLine, report.AsMarks, report.AsPoints, report.AsSteps, "<x"}[rng.IntN(5)]}
			for range rng.IntN(8) {
				s.Add(some[rng.IntN(len(some))]*rng.Float64(), some[rng.IntN(len(some))])
			}
			if s.X = append(s.X, 5); rng.IntN(2) == 0 {
				s.Y = nil
			}
			d.Series = append(d.Series, s)
		}
		got := Figure(nil, "d1", d)
		wellFormed(t, got)
		if len(got) > 20_000 {
			t.Fatalf("%d bytes of %+v", len(got), d)
		}
		if bad := badRE.Find(got); bad != nil {
			t.Fatalf("%s in a figure of %+v:\n%s", bad, d, got)
		}
	}
}

func TestTicksAreRoundAndEncloseTheValues(t *testing.T) {
	rng := rand.New(rand.NewPCG(testseed.Of(t), 2))
	for range 3000 {
		high := math.Pow(10, -9+25*rng.Float64())
		s := newScale(report.Axis{Unit: unit.Seconds}, bottom, top)
		s.include(high)
		s.close(true)
		if n := len(s.ticks); n < 3 || n > 8 || s.low != 0 || s.high < high*(1-1e-9) || s.high > 2.1*high {
			t.Fatalf("ticks %v of a range up to %v", s.ticks, high)
		}
		if at := s.at(high); at < top-0.01 || at > bottom {
			t.Fatalf("%v is at %v", high, at)
		}
		for i, v := range s.ticks {
			if i > 0 && s.label(v) == s.label(s.ticks[i-1]) {
				t.Fatalf("two ticks are %s, of %v", s.label(v), s.ticks)
			}
		}
	}
}

func BenchmarkFigure(b *testing.B) {
	d := example()
	for i := range d.Series {
		s := &d.Series[i]
		s.X, s.Y = nil, nil
		for k := range 400 {
			s.Add(float64(k)/40, float64(k*7919%1009))
		}
	}
	var out []byte
	for b.Loop() {
		out = Figure(out[:0], "d0", d)
	}
	b.ReportMetric(float64(len(out)), "bytes")
}
