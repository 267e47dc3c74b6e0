package tcpsweep

import (
	"fmt"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/probe/report"
)

// help is the help text of the command.
const help = `Measure TCP with each size of its buffers.

The result has the smallest buffer that is enough.

A cell is a send buffer, a receive buffer and a congestion control in one direction. Cells are
measured one after the other, repeatedly, in random order. A sufficient buffer reaches 95 % of the
best throughput; if the repetitions vary too much to tell, its limits are printed. The kernel doubles
each size, and limits it by net.core.wmem_max and rmem_max; the size in effect is in parentheses.
The models have the conditions of the same cell: 0.75 W/RTT, and those of Mathis (after losses)
and of Padhye, for which each retransmission is a loss.

Examples:
  oneway test tcp-sweep server.example.net --token-file token --pin sha256:... --direction reverse
  oneway test tcp-sweep 192.0.2.7 --token-file token --congestion-control cubic --congestion-control bbr
  oneway test tcp-sweep 192.0.2.7 --token-file token --send-buffer-bytes auto --receive-buffer-bytes 64KiB --receive-buffer-bytes 256KiB
  oneway test tcp-sweep 192.0.2.7 --token-file token --repetitions 10 --json > tcp-sweep.json

Exit status: 0 completed, 1 not completed (prints the reason and partial results), 2 wrong usage.`

// Tables returns a table of the cells.
func (r *Result) Tables() []report.Table {
	t := report.Table{Columns: []string{"direction", "congestion control", "send (in effect)", "receive (in effect)", "throughput", "25 %", "75 %", "RTT", "25 %", "75 %", "least", "retransmitted", "limited by", "0.75 W/RTT", "Mathis", "Padhye", "measured"}}
	for _, m := range r.Cells {
		limit := metric.Words(string(m.Limit))
		if limit == "" {
			limit = "-"
		}
		row := []string{m.DirectionName, m.name(), m.Send.String(), m.Receive.String()}
		row = append(row, unit.BytesPerSecond.Quartiles(m.Throughput)...)
		row = append(row, unit.Seconds.Quartiles(m.RTT)...)
		row = append(row, unit.MillisecondsOrDash(m.RTTMin), unit.Ratio.OrDash(m.Retransmitted), limit)
		for _, name := range []string{"sawtooth", "mathis", "padhye"} {
			row = append(row, unit.BytesPerSecond.OrDash(m.Model(name)))
		}
		t.Row(append(row, fmt.Sprint(len(m.Repetitions)))...)
	}
	return []report.Table{t}
}
