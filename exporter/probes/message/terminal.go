package message

import (
	"fmt"
	"strconv"

	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/probe/report"
)

// help is the help text of the command.
const help = `Send messages at one rate over UDP and over TCP.

All messages have one size. TCP is measured with and without Nagle's algorithm.
One transport after the other, in each direction. UDP sends each message in a packet of its own. TCP
writes it at its time, and a socket that cannot take it holds back the later ones: less is offered.
Nagle's algorithm joins messages in fewer packets while another is not acknowledged. "lost" is the
share of UDP's packets that did not arrive, "retransmitted" that of TCP's payload that was sent again.
The RTT is that of TCP's sender; the one-way delay of UDP needs synchronized clocks.

Examples:
  oneway test message server.example.net --token-file token --pin sha256:...
  oneway test message 192.0.2.7 --token-file token --message-bytes 64 --message-rate 1000
  oneway test message 192.0.2.7 --token-file token --direction forward --duration 1m --json > message.json

Exit status: 0 completed, 1 not completed (prints the reason and partial results), 2 wrong usage.`

// Tables returns a table of the transports.
func (r *Result) Tables() []report.Table {
	t := report.Table{Columns: []string{"direction", "transport", "messages", "packets per message", "offered", "throughput", "lost", "retransmitted", "RTT", "25 %", "75 %", "delay", "95 %"}}
	for _, p := range r.Parts {
		row := []string{p.Direction, p.Transport.Words(), unit.OrDash(p.Sent, func(n int64) string { return strconv.FormatInt(n, 10) }), unit.OrDash(p.PerMessage, func(n float64) string { return fmt.Sprintf("%.2f", n) })}
		row = append(row, unit.BytesPerSecond.OrDash(p.Offered), unit.BytesPerSecond.OrDash(p.Throughput), unit.Ratio.OrDash(p.Loss), unit.Ratio.OrDash(p.Retransmitted))
		row = append(row, unit.Seconds.Quartiles(p.RTT)...)
		if p.Delay == nil {
			row = append(row, "-", "-")
		} else {
			row = append(row, unit.Seconds.BoundOrDash(p.Delay.Median, &p.Delay.Bound), unit.Seconds.BoundOrDash(p.Delay.Tail, &p.Delay.Bound))
		}
		t.Row(row...)
	}
	return []report.Table{t}
}
