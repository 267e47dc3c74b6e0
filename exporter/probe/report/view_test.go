package report

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"oneway.example/exporter/core/unit"
)

// drawn is a body with a view.
type drawn struct {
	Raw  string `json:"raw"`
	view View
}

func (d drawn) View() View { return d.view }

func sample() View {
	return View{Notes: []string{"one"}, Drawings: []Drawing{{
		Title: "bytes", X: Axis{Name: "time", Unit: unit.Seconds}, Y: Axis{Name: "sent", Unit: unit.Bytes, Log: true},
		Series: []Series{{Name: "sent", Form: AsSteps, X: []float64{0, 0.01, 1e6}, Y: []float64{1, 1448, 1e12}}},
	}, {Title: "nothing"}}}
}

func TestViewIsReadWithoutTheBody(t *testing.T) {
	dir := t.TempDir()
	s := Open(Options{Dir: dir})
	h := Header{ID: NewID(time.Now(), nil), Path: "a", Result: Completed}
	if err := s.Write(h, drawn{"body", sample()}); err != nil {
		t.Fatal(err)
	}
	got, v, err := s.View(h.ID)
	if err != nil || got.Path != "a" {
		t.Fatalf("%+v, %v", got, err)
	}
	if diff := cmp.Diff(sample(), v); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, _, err := s.View("absent"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	plain := Header{ID: NewID(time.Now(), nil), Path: "b"}
	if err := s.Write(plain, map[string]string{"raw": "x"}); err != nil {
		t.Fatal(err)
	}
	if got, v, err := s.View(plain.ID); err != nil || got.Path != "b" || len(v.Drawings) != 0 {
		t.Errorf("%+v, %+v, %v", got, v, err)
	}
	// The body may be of any size: it is not read.
	rewrite(t, dir, plain.ID, `{"header":{"id":"`+plain.ID+`"},"view":{"notes":["n"]},"body":!`)
	if _, v, err := s.View(plain.ID); err != nil || len(v.Notes) != 1 {
		t.Errorf("%+v, %v", v, err)
	}
}

func rewrite(t *testing.T, dir, id, text string) {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write([]byte(text))
	if err := errors.Join(err, z.Close(), os.WriteFile(filepath.Join(dir, id+suffix), b.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// A view beyond the limits, with values that JSON does not have, is stored and within them.
func TestViewIsBounded(t *testing.T) {
	var v View
	s := Series{Name: "\xff\x00"}
	for i := range 2000 {
		s.Add(float64(i), float64(i%7))
	}
	s.Add(math.NaN(), 1)
	s.Add(1, math.Inf(-1))
	for range 100 {
		d := Drawing{Title: strings.Repeat("<", 1000)}
		for range 100 {
			d.Series = append(d.Series, s)
		}
		v.Notes, v.Drawings = append(v.Notes, "note"), append(v.Drawings, d)
	}
	store := Open(Options{Dir: t.TempDir()})
	h := Header{ID: NewID(time.Now(), nil)}
	if err := store.Write(h, drawn{"", v}); err != nil {
		t.Fatal(err)
	}
	_, got, err := store.View(h.ID)
	if err != nil {
		t.Fatal(err)
	}
	points := 0
	for _, d := range got.Drawings {
		for _, s := range d.Series {
			points += len(s.X)
			if len(s.X) > maxPoints || len(s.X) < maxPoints/2 {
				t.Fatalf("%d points of a series", len(s.X))
			}
		}
		if len(d.Series) != maxItems || len(d.Title) > maxText {
			t.Fatalf("%d series, %q", len(d.Series), d.Title)
		}
	}
	if len(got.Notes) != maxItems || points > maxAll || points < maxAll/2 {
		t.Errorf("%d notes, %d points", len(got.Notes), points)
	}
	if text, err := json.Marshal(got); err != nil || len(text) > maxViewBytes {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

// A damaged or crafted view is an error with the header, in limited memory and time.
func TestDamagedViewIsAnError(t *testing.T) {
	dir := t.TempDir()
	s := Open(Options{Dir: dir})
	h := Header{ID: NewID(time.Now(), nil), Path: "a"}
	if err := s.Write(h, drawn{"", sample()}); err != nil {
		t.Fatal(err)
	}
	head := `{"header":{"id":"` + h.ID + `","path":"a"},`
	many := func(one string) string { return "[" + strings.Repeat(one+",", 6<<20/len(one)) + one + "]" }
	for name, rest := range map[string]string{
		"cut":      `"view":{"drawings":[{"title":"`,
		"ends":     ``,
		"type":     `"view":{"drawings":7},"body":{}}`,
		"number":   `"view":{"drawings":[{"series":[{"x":["1"]}]}]},"body":{}}`,
		"range":    `"view":{"drawings":[{"series":[{"x":[1e999]}]}]},"body":{}}`,
		"drawings": `"view":{"drawings":` + many("{}") + `},"body":{}}`,
		"series":   `"view":{"drawings":[{"series":` + many("null") + `}]},"body":{}}`,
		"points":   `"view":{"drawings":[{"series":[{"x":` + many("0") + `}]}]},"body":{}}`,
		"401":      `"view":{"drawings":[{"series":[{"x":[` + strings.Repeat("0,", 400) + `0]}]}]},"body":{}}`,
		"65":       `"view":{"drawings":[` + strings.Repeat("{},", 64) + `{}]},"body":{}}`,
		"deep":     `"view":` + strings.Repeat("[", 1<<20),
	} {
		rewrite(t, dir, h.ID, head+rest)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, v, err := s.View(h.ID)
		runtime.ReadMemStats(&after)
		if err == nil || errors.Is(err, fs.ErrNotExist) || got.Path != "a" || len(v.Drawings)+len(v.Notes) != 0 {
			t.Errorf("%s: %+v, %+v, %v", name, got, v, err)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 20*maxViewBytes {
			t.Errorf("%s: %d bytes were allocated", name, used)
		}
	}
	for _, text := range []string{"", "{", `{"header":{"id":"other"}`, `{"view":{}}`} {
		rewrite(t, dir, h.ID, text)
		if got, _, err := s.View(h.ID); err == nil || got.ID != "" {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, h.ID+suffix), []byte("not gzip"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, _, err := s.View(h.ID); err == nil || got.ID != "" {
		t.Errorf("%+v, %v", got, err)
	}
}

// FuzzDecodeView: any content gives a view within the limits, or an error.
func FuzzDecodeView(f *testing.F) {
	text, err := json.Marshal(sample())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(append(text, `,"body":{}}`...))
	f.Add([]byte(`{"notes":null,"drawings":[{"series":[{"x":[1,2],"y":[1]},null]}]}`))
	f.Add([]byte(`{"drawings":[{"title":"\u202e\u0000","series":[{"name":7}]}]}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		h, v, err := decodeView(io.MultiReader(strings.NewReader(`{"header":{"id":"a"},"view":`), bytes.NewReader(content)), "a")
		if h.ID != "a" || err != nil && len(v.Notes)+len(v.Drawings) > 0 || len(v.Notes) > maxItems || len(v.Drawings) > maxItems {
			t.Fatalf("%+v, %+v, %v", h, v, err)
		}
		for _, d := range v.Drawings {
			if len(d.Series) > maxItems || len(d.Title) > maxText || !utf8.ValidString(d.Title) {
				t.Fatalf("%+v", d)
			}
			for _, s := range d.Series {
				if len(s.X) != len(s.Y) || len(s.X) > maxPoints {
					t.Fatalf("%d and %d values", len(s.X), len(s.Y))
				}
			}
		}
	})
}

func BenchmarkView(b *testing.B) {
	v := sample()
	d := &v.Drawings[0]
	for len(d.Series) < 4 {
		s := Series{Name: "s"}
		for i := range maxPoints {
			s.Add(float64(i)/7, float64(i*7919%1009)*1448)
		}
		d.Series = append(d.Series, s)
	}
	for len(v.Drawings) < 20 {
		v.Drawings = append(v.Drawings, *d)
	}
	s := Open(Options{Dir: b.TempDir()})
	h := Header{ID: NewID(time.Now(), nil)}
	if err := s.Write(h, drawn{"", v}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, _, err := s.View(h.ID); err != nil {
			b.Fatal(err)
		}
	}
}
