package tcp

import (
	"fmt"
	"slices"
	"strconv"

	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/probe/report"
)

// help is the help text of the command.
const help = `Measure the throughput of TCP and what limits it.

The round-trip time is measured too. One direction follows the other.
Several flows are also compared: Jain's index (1: all are equal), and the share of each congestion control.

Throughput is the payload that arrived, without the first second (--omit). The other values are those
of the sending end's kernel. A buffer of 0 leaves auto-tuning on; the kernel doubles the others and
limits them by net.core.wmem_max and rmem_max, which is printed. The client opens all connections.

A two-way run (--overlap-duration) is one direction for the whole --duration, the first of --direction, and the other in the
middle of it: throughput before, during and after the overlap, and the correlation of both in it. The
overlap begins when its connections are set up, which takes some round trips of the full link.

Examples:
  oneway test tcp server.example.net --token-file token --pin sha256:...
  oneway test tcp 192.0.2.7 --token-file token --direction reverse --receive-buffer-bytes 64KiB
  oneway test tcp 192.0.2.7 --token-file token --flows 10 --congestion-control cubic --link-rate-forward 20Mbit
  oneway test tcp 192.0.2.7 --token-file token --flows 4 --congestion-control cubic --congestion-control bbr
  oneway test tcp 192.0.2.7 --token-file token --direction reverse-forward --duration 5m --overlap-start 1m --overlap-duration 3m
  oneway test tcp 192.0.2.7 --token-file token --bytes 20MB --duration 10m --json > tcp.json

Exit status: 0 completed, 1 not completed (prints the reason and partial results), 2 wrong usage.`

// Tables returns a table of the flows, and one of the throughput by second.
func (r *Result) Tables() []report.Table {
	if len(r.Directions) == 0 {
		return nil
	}
	flows := report.Table{Columns: []string{"direction", "flow", "received", "throughput", "sent", "retransmitted", "congestion control", "MSS", "send buffer", "receive buffer", "ended"}}
	seconds := report.Table{Columns: []string{"direction", "second", "throughput"}}
	for _, d := range r.Directions {
		for i, f := range d.Flows {
			rate := f.Throughput
			if len(d.Flows) == 1 {
				rate = d.Throughput
			}
			row := slices.Repeat([]string{"-"}, len(flows.Columns)) // of unknown values
			row[0], row[1], row[3] = d.Direction, strconv.Itoa(i+1), unit.BytesPerSecond.OrDash(rate)
			if to := f.ReceiverEnd; to != nil {
				row[2], row[9] = unit.Bytes.Format(float64(to.Payload)), to.ReceiveBuffer.String()
			}
			if from := f.SenderEnd; from != nil {
				row[4], row[5] = unit.Bytes.Format(float64(from.Sent)), unit.Ratio.Format(float64(from.Retransmitted)/float64(max(1, from.Sent)))
				row[6], row[7], row[8], row[10] = from.CongestionControl, strconv.FormatInt(from.MSS, 10), from.SendBuffer.String(), string(from.Sender)
			}
			flows.Row(row...)
		}
		for _, s := range spans(len(d.PerSecond)) {
			seconds.Row(d.Direction, s.String(), s.mean(d.PerSecond))
		}
	}
	if r.TwoWay != nil {
		return []report.Table{flows, r.TwoWay.table()}
	}
	return []report.Table{flows, seconds}
}

// mostSpans is the most rows of a direction: the summary before them stays on the screen.
const mostSpans = 30

// span is some seconds of a run, from is the first one.
type span struct{ from, to int }

// spans divides n seconds into spans of equal length; the last one may be shorter.
func spans(n int) (all []span) {
	length := (n + mostSpans - 1) / mostSpans
	for from := 0; from < n; from += length {
		all = append(all, span{from, min(from+length, n)})
	}
	return all
}

func (s span) String() string {
	if s.to-s.from == 1 {
		return strconv.Itoa(s.to)
	}
	return fmt.Sprintf("%d to %d", s.from+1, s.to)
}

// mean is that of the rates in the span.
func (s span) mean(rates []float64) string {
	sum := 0.0
	for _, r := range rates[s.from:s.to] {
		sum += r
	}
	return unit.BytesPerSecond.Format(sum / float64(s.to-s.from))
}

// table has both directions on one time axis.
func (x *TwoWay) table() report.Table {
	long, other := &x.Directions[0], &x.Directions[1]
	t := report.Table{
		Heading: fmt.Sprintf("%s sent from %s to %s of %s", other.Direction, unit.Seconds.FormatBound(x.Begin, x.Bound), unit.Seconds.FormatBound(x.End, x.Bound), long.Direction),
		Columns: []string{"second", long.Direction, other.Direction},
	}
	for _, s := range spans(len(long.PerSecond)) {
		t.Row(s.String(), s.mean(long.PerSecond), s.mean(other.PerSecond))
	}
	return t
}
