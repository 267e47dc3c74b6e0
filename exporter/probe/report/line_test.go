package report

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneway.example/exporter/core/unit"
)

func TestLinesHaveOneUnitForEachQuantity(t *testing.T) {
	rate := func(label string, v float64) Number {
		return Number{Label: label, Value: &v, Unit: unit.BytesPerSecond}
	}
	for _, c := range []struct {
		line Line
		want string
	}{
		{Line{Value: "4 of 4"}, "4 of 4"},
		{Line{Unknown: "too few trains"}, "unknown: too few trains"},
		{Line{Numbers: []Number{{Value: new(110_700.0), Bound: new(778.8), Unit: unit.Bytes}, {Value: new(0.203), Unit: unit.Seconds}}}, "110.70 kB ± 0.78 kB, 203 ms"},
		{Line{Numbers: []Number{rate("", 120_000), rate("of", 125_000)}}, "0.96 Mb/s of 1 Mb/s"},
		{Line{Numbers: []Number{{Text: "unknown"}, {Label: "up to", Value: new(125_000.0), Unit: unit.BytesPerSecond, Text: "in a second"}}}, "unknown, up to 1 Mb/s in a second"},
		{Line{Numbers: []Number{{Label: "R", Before: new(92.0), Value: new(25.4), Unit: unit.RFactor}}}, "R 92 -> 25"},
		{Line{Numbers: []Number{{Value: new(0.208), Range: &[2]float64{0.044, 1.2}, Unit: unit.Seconds}}}, "0.208 s (0.044 s to 1.2 s)"},
		{Line{Numbers: []Number{{Label: "varies:", Range: &[2]float64{500_000, 625_000}, Unit: unit.BytesPerSecond}}}, "varies: 4 Mb/s to 5 Mb/s"},
	} {
		if got := c.line.Text(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	page := Line{Numbers: []Number{{Before: new(92.0), Value: new(25.0), Unit: unit.RFactor}, {Value: new(0.03), Bound: new(2e-3), Unit: unit.Seconds}}}.Page()
	if want := strings.ReplaceAll("92_→_25, 30.0_ms ±_2.0_ms", "_", "\u00a0"); page != want {
		t.Errorf("on a page: %q, want %q", page, want)
	}
	value, bound := Line{Numbers: []Number{{Value: new(0.0812), Bound: new(310e-6), Unit: unit.Seconds}}}.Cell()
	if value != "81.20 ms" || bound != "± 0.31 ms" {
		t.Errorf("in a cell: %q and %q", value, bound)
	}
}

// A reader that knows no numbers has the text; one that does has both, and a line without numbers stays a text.
func TestLineOfADocumentHasItsTextAndItsNumbers(t *testing.T) {
	l := Line{Quantity: "queue", Direction: "forward", Numbers: []Number{{Value: new(110_700.0), Bound: new(778.8), Unit: unit.Bytes}}}
	text, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"quantity":"queue","direction":"forward","value":"110.70 kB ± 0.78 kB","numbers":[{"value":110700,"error_bound":778.8,"unit":"bytes"}]}`; string(text) != want {
		t.Errorf("\n got %s\nwant %s", text, want)
	}
	var again Line
	if err := json.Unmarshal(text, &again); err != nil || again.Text() != l.Text() {
		t.Errorf("decoded: %+v, %v", again, err)
	}
	var plain Line
	if err := json.Unmarshal([]byte(`{"quantity":"queue","value":"4 of 4"}`), &plain); err != nil || plain.Text() != "4 of 4" {
		t.Errorf("decoded: %+v, %v", plain, err)
	}
}

func TestNumbersThatCannotBeEncodedAreLeftOut(t *testing.T) {
	nan := math.NaN()
	l := Line{Numbers: []Number{{Value: &nan, Bound: new(math.Inf(1)), Range: &[2]float64{0, nan}, Text: "kept"}}}.bounded()
	if diff := cmp.Diff(few[Number]{{Text: "kept"}}, l.Numbers); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	many := Line{Numbers: make([]Number, 1000)}.bounded()
	if len(many.Numbers) != maxItems {
		t.Errorf("%d numbers", len(many.Numbers))
	}
}
