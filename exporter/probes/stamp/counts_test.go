package stamp

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/probes/stamp/ledger"
)

// A count of the packets of a direction is in the series, the document and the table, in each direction.
func TestEachCountOfADirectionIsShown(t *testing.T) {
	v := snapshot{window: &window{}, opts: &Options{}}
	names := map[uint64]string{}
	for dir := range v.directions {
		counts := reflect.ValueOf(&v.directions[dir].DirectionCounts).Elem()
		for i := range counts.NumField() {
			n := uint64(70_000 + 100*dir + i)
			counts.Field(i).Set(reflect.ValueOf(ledger.OptionalOf(n, true)))
			names[n] = fmt.Sprintf("%s of direction %d", counts.Type().Field(i).Name, dir)
		}
	}
	sink := &metrictest.Sink{}
	newSeries(sink, "p", "stamp").publish(&v)
	shown := slices.Collect(maps.Values(sink.Present("")))
	r := reportOf(v)
	document, err := json.Marshal(r.Document())
	if err != nil {
		t.Fatal(err)
	}
	table := fmt.Sprint(r.rows())
	for n, name := range names {
		text := strconv.FormatUint(n, 10)
		if !slices.Contains(shown, float64(n)) || !strings.Contains(string(document), text) || !strings.Contains(table, text) {
			t.Errorf("%s: in the series %v, in the document %v, in the table %v", name, slices.Contains(shown, float64(n)), strings.Contains(string(document), text), strings.Contains(table, text))
		}
	}
}
