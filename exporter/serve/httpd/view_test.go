package httpd

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/probe/report"
)

// drawnBody is a body of a report with a view.
type drawnBody struct{ view report.View }

func (b drawnBody) View() report.View { return b.view }

// viewOf is the page of a stored report.
func viewOf(t testing.TB, header report.Header, v report.View) (h http.Handler, path, file string) {
	t.Helper()
	dir := t.TempDir()
	store := report.Open(report.Options{Dir: dir})
	header.ID = report.NewID(sampleNow, nil)
	if err := store.Write(header, drawnBody{v}); err != nil {
		t.Fatal(err)
	}
	h = Handler(Options{Source: &fakeSource{reports: store}, Registry: NewRegistry(), Now: func() time.Time { return sampleNow }})
	return h, "/runs/" + header.ID + "/view", filepath.Join(dir, header.ID+".json.gz")
}

// checkPage checks nesting, characters, identifiers and resources; XML is stricter than HTML.
func checkPage(t *testing.T, page string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(page))
	d.Entity = xml.HTMLEntity
	ids := map[string]bool{}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("%v:\n%.3000s", err, page)
		}
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		if e.Name.Local == "script" || e.Name.Local == "img" || e.Name.Local == "style" || e.Name.Local == "iframe" {
			t.Errorf("the page has an element %s", e.Name.Local)
		}
		for _, a := range e.Attr {
			switch {
			case a.Name.Local == "id" && ids[a.Value]:
				t.Errorf("two elements have the id %s", a.Value)
			case a.Name.Local == "id":
				ids[a.Value] = true
			case strings.HasPrefix(a.Name.Local, "on"), a.Name.Local == "style", strings.Contains(a.Value, "://"), strings.HasPrefix(a.Value, "javascript:"):
				t.Errorf("%s has %s=%q", e.Name.Local, a.Name.Local, a.Value)
			}
		}
	}
}

func TestPageOfARunShowsItsFactsItsResultsAndItsDrawings(t *testing.T) {
	header := report.Header{
		Path: "a-to-b", Probe: "nightly", Kind: "tcp", Peer: "b.example", Begin: sampleNow, End: sampleNow.Add(21 * time.Second), Result: "incomplete", Reason: "session_lost",
		Summary: []report.Line{
			{Quantity: "throughput", Direction: "forward", Value: "2.4 Mb/s"},
			{Quantity: "throughput", Direction: "reverse", Value: "9.6 Mb/s"},
			{Quantity: "path MTU", Direction: "reverse", Value: "1500 B"},
			{Quantity: "throughput", Direction: "reverse", Value: "second line"},
		},
	}
	d := report.Drawing{Title: "bytes", X: report.Axis{Name: "time", Unit: unit.Seconds}, Y: report.Axis{Name: "sent", Unit: unit.Bytes}}
	d.Series = []report.Series{{Name: "flow", Form: report.AsLine, X: []float64{0, 1, 2}, Y: []float64{0, 5e6, 7e6}}}
	h, path, _ := viewOf(t, header, report.View{Notes: []string{"the receive buffer was limited"}, Drawings: []report.Drawing{d, d}})
	w := get(t, h, http.MethodGet, path)
	page := w.Body.String()
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "text/html; charset=utf-8" || !strings.Contains(w.Header().Get("Content-Security-Policy"), "default-src 'none'") {
		t.Fatalf("%d, %v", w.Code, w.Header())
	}
	checkPage(t, page)
	id := strings.Split(path, "/")[2]
	for _, want := range []string{
		"a-<wbr/>to-<wbr/>b", "nightly", "b.<wbr/>example", "2026-03-01 12:00:21 UTC (took 21s)", "incomplete", "session_lost", "the receive buffer was limited", `href="../` + id + `"`,
		`href="../../style.css"`, `href="../../runs"`, ">flow<", "sent, MB",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	if n := strings.Count(page, "<figure>"); n != 2 {
		t.Errorf("%d figures", n)
	}
	// One row for a quantity, with a column for each direction.
	rows := regexp.MustCompile(`(?s)<th scope="row">(.*?)</th>(.*?)</tr>`).FindAllStringSubmatch(page, -1)
	var got []string
	for _, r := range rows {
		var values []string
		for _, v := range regexp.MustCompile(`<span class="value">(.*?)</span>`).FindAllStringSubmatch(r[2], -1) {
			values = append(values, strings.ReplaceAll(v[1], "\u00a0", " "))
		}
		got = append(got, fmt.Sprintf("%s: %s", r[1], strings.Join(values, "|")))
	}
	if want := "throughput: 2.4 Mb/s|9.6 Mb/s, path MTU: |1500 B, throughput: |second line"; strings.Join(got, ", ") != want {
		t.Errorf("\n got %s\nwant %s", strings.Join(got, ", "), want)
	}
	if w := get(t, h, http.MethodHead, path); w.Code != http.StatusOK || w.Body.Len() != 0 {
		t.Errorf("HEAD: %d with %d bytes", w.Code, w.Body.Len())
	}
	if w := get(t, h, http.MethodGet, strings.TrimSuffix(path, "/view"), "Accept", "text/html,*/*;q=0.1"); w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("the report itself is %s for a browser", w.Header().Get("Content-Type"))
	}
}

// Texts of a remote end and values that no drawing can have neither change the page's structure nor its size.
func TestPageOfAHostileReportIsValidAndBounded(t *testing.T) {
	hostile := "\"><script>alert(1)</script><img src=x onerror=alert(1)>\x00\x1b\u202e</svg></title>"
	header := report.Header{Path: hostile, Probe: hostile, Kind: hostile, Peer: hostile, Result: hostile, Reason: hostile}
	for range 100 {
		header.Summary = append(header.Summary, report.Line{Quantity: hostile, Direction: hostile, Value: hostile})
	}
	v := report.View{}
	for range 100 {
		v.Notes = append(v.Notes, hostile)
		d := report.Drawing{Title: hostile, X: report.Axis{Name: hostile, Unit: unit.Unit(hostile)}, Y: report.Axis{Name: hostile, Unit: unit.Bytes, Log: true}}
		for range 64 {
			s := report.Series{Name: hostile, Form: report.Form(hostile)}
			for i := range 300 {
				s.Add(float64(i), []float64{math.NaN(), math.Inf(1), math.MaxFloat64, -math.MaxFloat64, 9.2e18, float64(1 + i%7)}[i%6])
			}
			d.Series = append(d.Series, s)
		}
		v.Drawings = append(v.Drawings, d)
	}
	h, path, _ := viewOf(t, header, v)
	begin := time.Now()
	w := get(t, h, http.MethodGet, path)
	if w.Code != http.StatusOK || w.Body.Len() > 4<<20 {
		t.Fatalf("%d, %d bytes", w.Code, w.Body.Len())
	}
	t.Logf("%d bytes in %v", w.Body.Len(), time.Since(begin))
	checkPage(t, w.Body.String())
}

func TestDamagedReportHasNoPageOrOneWithoutDrawings(t *testing.T) {
	h, path, file := viewOf(t, report.Header{Path: "a-to-b", Result: "completed"}, report.View{Drawings: make([]report.Drawing, 60)})
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, kept := range []int{0, 1, 12, len(whole) / 2, len(whole) - 12} {
		if err := os.WriteFile(file, whole[:kept], 0o600); err != nil {
			t.Fatal(err)
		}
		w := get(t, h, http.MethodGet, path)
		readable := w.Code == http.StatusOK && strings.Contains(w.Body.String(), "a-<wbr/>to-<wbr/>b")
		if !readable && (w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "damaged")) {
			t.Errorf("%d of %d bytes: %d, %.300s", kept, len(whole), w.Code, w.Body)
		}
		if readable {
			checkPage(t, w.Body.String())
		}
	}
	for _, path := range []string{"/runs/absent/view", "/runs/..%2Fsecret/view", "/runs/ABC/view", path + "/more"} {
		if w := get(t, h, http.MethodGet, path); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

// BenchmarkPageOfARun is of 20 drawings, as those of a TCP run in both directions.
func BenchmarkPageOfARun(b *testing.B) {
	var v report.View
	for range 20 {
		d := report.Drawing{Title: "bytes", X: report.Axis{Unit: unit.Seconds}, Y: report.Axis{Unit: unit.Bytes}}
		for range 4 {
			s := report.Series{Form: report.AsLine}
			for i := range 400 {
				s.Add(float64(i)/40, float64(i*7919%1009)*1448)
			}
			d.Series = append(d.Series, s)
		}
		v.Drawings = append(v.Drawings, d)
	}
	h, path, _ := viewOf(b, report.Header{Path: "a"}, v)
	for b.Loop() {
		b.ReportMetric(float64(get(b, h, http.MethodGet, path).Body.Len()), "bytes")
	}
}
