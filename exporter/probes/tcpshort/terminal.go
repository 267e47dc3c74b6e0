package tcpshort

import (
	"fmt"

	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/probe/report"
)

// help is the help text of the command.
const help = `Measure how long short TCP flows take.

Each flow has a new connection, as flows of web pages often have.

The completion time begins with the handshake and ends with the last byte, by this host's clock. In
reverse direction the load server sends when it has read this host's first bytes, as an HTTP server
does; in forward direction the end is the reply of the load server that it has all, half a round trip
after the arrival. Flows of all sizes and directions are measured one after the other, in random
order. A flow that does not end within --flow-timeout is unfinished: longer than all others. The
intervals have a confidence of about 95 %; an upper end of "-" is unknown: it is among unfinished
flows, or needs more of them.

Examples:
  oneway test tcp-short server.example.net --token-file token --pin sha256:...
  oneway test tcp-short 192.0.2.7 --token-file token --flow-bytes 10kB --repetitions 100 --direction reverse
  oneway test tcp-short 192.0.2.7 --token-file token --json > tcp-short.json

Exit status: 0 completed, 1 not completed (prints the reason and partial results), 2 wrong usage.`

// Tables returns a table of the sizes.
func (r *Result) Tables() []report.Table {
	t := report.Table{Columns: []string{"direction", "size", "median", "interval", "95 %", "interval", "least", "handshake", "retransmitted", "unfinished"}}
	for _, z := range r.Sizes {
		row := []string{z.Direction, z.Words()}
		row = append(row, completionQuantile(z.Completion.Median)...)
		row = append(row, completionQuantile(z.Completion.Tail)...)
		t.Row(append(row, unit.MillisecondsOrDash(z.Completion.Least), unit.MillisecondsOrDash(z.Connect), unit.Ratio.OrDash(z.Retransmitted), fmt.Sprintf("%d of %d", z.Unfinished, len(z.Flows)))...)
	}
	return []report.Table{t}
}

// completionQuantile is the value and its interval.
func completionQuantile(q *Quantile) []string {
	if q == nil {
		return []string{"-", "-"}
	}
	return []string{unit.Milliseconds(q.Value), unit.Milliseconds(q.Lower) + " to " + unit.MillisecondsOrDash(q.Upper)}
}
