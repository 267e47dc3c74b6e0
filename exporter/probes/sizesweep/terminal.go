package sizesweep

import (
	"strconv"
	"time"

	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/probe/report"
)

// help is the help text of the command.
const help = `Measure combinations of packet sizes and packet rates.

The default sizes and rates are those of the D-ITG report.

A cell is one size at one rate in one direction. Packets that the sender could not send are
counted separately from packets that the path lost. mean |IPDV| is the mean absolute
difference in delay of consecutive packets (RFC 5481). Cells beyond the token's limits are left out.

Examples:
  oneway test size-sweep server.example.net --token-file token --pin sha256:...
  oneway test size-sweep 192.0.2.7 --token-file token --packet-bytes 64 --packet-bytes 1500 --packet-rates 100 --packet-rates 1000
  oneway test size-sweep 192.0.2.7 --token-file token --cell-duration 10s --repetitions 20 --json > size-sweep.json

Exit status: 0 completed, 1 not completed (prints the reason and partial results), 2 wrong usage.`

// Tables returns a table of the cells.
func (r *Result) Tables() []report.Table {
	t := report.Table{Columns: []string{"direction", "bytes", "packets/s", "sent", "received", "lost", "delay", "mean |IPDV|", "not sent"}}
	for _, c := range r.Cells {
		m := c.Median
		t.Row(c.DirectionName, strconv.Itoa(c.PacketBytes), strconv.Itoa(c.PacketRate), unit.BytesPerSecond.OrDash(m.Sent), unit.BytesPerSecond.OrDash(m.Received), unit.Ratio.OrDash(m.Loss),
			unit.Seconds.BoundOrDash(m.Delay, m.Bound), unit.MillisecondsOrDash(m.IPDV), unit.Ratio.OrDash(m.Underrun))
	}
	return []report.Table{t}
}

// terminalOptions are the defaults of the command: shorter cells.
func terminalOptions() Options {
	o := DefaultOptions()
	o.CellDuration = 2 * time.Second
	return o
}
