package report

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Reports of earlier versions begin with the header, which has the summary.
func TestReportOfAnEarlierVersionIsListedAndShown(t *testing.T) {
	dir, id := t.TempDir(), "20261121t172532z-3f9a2b07"
	file := fmt.Sprintf(`{"header":{"id":%q,"path":"office","probe":"tcp","kind":"tcp","peer":"h","begin":"2026-11-21T17:25:32Z","end":"2026-11-21T17:26:32Z",
		"result":"completed","summary":[{"quantity":"throughput","direction":"forward","value":"4.98 Mb/s"}]},"view":{"notes":["a note"]},"body":{}}`, id)
	if err := os.WriteFile(filepath.Join(dir, id+suffix), zip(t, file), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, Options{Dir: dir})
	want := []Line{{Quantity: "throughput", Direction: "forward", Value: "4.98 Mb/s"}}
	list := s.List()
	if len(list) != 1 || list[0].Result != Completed || list[0].Path != "office" {
		t.Fatalf("listed %+v", list)
	}
	if diff := cmp.Diff(want, list[0].Summary); diff != "" {
		t.Errorf("summary in the list (-want +got):\n%s", diff)
	}
	h, v, err := s.View(id)
	if err != nil || cmp.Diff(want, h.Summary) != "" || len(v.Notes) != 1 {
		t.Errorf("shown %+v, %+v, %v", h, v, err)
	}
}

func TestValuesOfADamagedFileAreLimited(t *testing.T) {
	deep, many := Values{}, Values{}
	deep.Set(1, "a", "b", "c", "d", "e")
	for n := range maxNumbers + 1 {
		many.Set(1, fmt.Sprint(n), "forward")
	}
	fits := Values{}
	fits.Set(0.031, "queue_delay_seconds", "forward", "0.5")
	fits.Set(2.5e6, "udp_throughput_bytes_per_second", "reverse")
	for name, c := range map[string]struct{ v, want Values }{
		"deep": {deep, nil}, "many": {many, nil}, "none": {nil, nil},
		"fits": {fits, Values{"queue_delay_seconds": map[string]any{"forward": map[string]any{"p50": 0.031}}, "udp_throughput_bytes_per_second": map[string]any{"reverse": 2.5e6}}},
	} {
		if diff := cmp.Diff(c.want, c.v.bounded()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
