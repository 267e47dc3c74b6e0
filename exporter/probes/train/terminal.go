package train

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/estimate/capacity"
	"oneway.example/exporter/probe/report"
)

// help is the help text of the command.
const help = `Measure the capacity of the path by packet trains.

The slowest link of the path disperses a train. A shaper that passes a burst before it
limits the rate is reported with both: the rate after the burst, and its size.

A train whose packet spacing has another cause is discarded and sent again; with too few
clean trains there is no capacity, and the reason is printed. The path's MTU is measured
first, and trains of larger packets are marked as fragmented.

Examples:
  oneway test train server.example.net --token-file token --pin sha256:...
  oneway test train 192.0.2.7 --token-file token --payload-bytes 1472 --payload-bytes 800 --trains 10 --train-interval 200ms
  oneway test train 192.0.2.7 --token-file token --json > trains.json

Exit status: 0 completed, 1 not completed, or neither a capacity nor a shaper was measured
(prints the reason and partial results), 2 wrong usage.`

// Tables returns a table of the sizes.
func (r *Result) Tables() []report.Table {
	t := report.Table{Columns: []string{"direction", "payload", "IP bytes", "capacity", "5th percentile", "95th", "dispersion", "trains", ""}}
	for _, d := range r.Directions {
		for _, z := range d.Sizes {
			dispersion := unit.Seconds.OrDash(z.Dispersion)
			mark := "" // the notes have the reason of a missing capacity
			if z.Fragmented != nil && *z.Fragmented {
				mark = "fragmented"
			}
			t.Row(d.DirectionName, strconv.Itoa(z.PayloadBytes), strconv.Itoa(z.PacketBytes), unit.BytesPerSecond.BoundOrDash(z.Median, z.Bound), unit.BytesPerSecond.OrDash(z.P5), unit.BytesPerSecond.OrDash(z.P95),
				dispersion, trainCounts(z.Trains), mark)
		}
	}
	return []report.Table{t}
}

// trainCounts is "30 clean, 2 with lost packets".
func trainCounts(m map[string]int) string {
	var words []string
	for _, result := range capacity.Results() {
		if n := m[result.String()]; n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, result.Words()))
		}
	}
	return strings.Join(words, ", ")
}

// terminalOptions are the defaults of the command: trains in a shorter time.
func terminalOptions() Options {
	o := DefaultOptions()
	o.TrainInterval, o.GroupPause = 200*time.Millisecond, time.Second
	return o
}
