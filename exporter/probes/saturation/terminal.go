package saturation

import (
	"fmt"
	"time"

	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/estimate/queue"
	"oneway.example/exporter/probe/report"
)

// help is the help text of the command.
const help = `Fill the link with UDP and measure its rate and queue.

One direction follows the other.

Each tested direction needs its rate: --rate-forward, --rate-reverse.

Mode fixed offers one rate, which must exceed the rate of the link. The received rate is
the rate of the link, and the delay of the full queue minus that of the idle link is the
queueing delay; the queue size is estimated from the levels that delivered and dropped
packets met. Mode sweep raises the rate step by step and finds the rate at which loss
begins; each step starts on an idle link, so that a refilled token bucket passes more than
its sustained rate. Mode search adjusts the rate of one uninterrupted stream by delay and
loss (RFC 9097) and finds the sustained rate of the full link.

Rates and sizes count IP packets, header included, without the link layer. The throughput is the median of the
seconds. What was offered and received is the mean of the load but its begin and end, the loss is of all packets.

Examples:
  oneway test saturation server.example.net --token-file token --pin sha256:... --rate-forward 5Mbit --rate-reverse 12Mbit
  oneway test saturation 192.0.2.7 --token-file token --rate-forward 5Mbit --rate-reverse 12Mbit --duration 5m
  oneway test saturation 192.0.2.7 --token-file token --mode sweep --direction reverse --rate-reverse 3Mbit
  oneway test saturation 192.0.2.7 --token-file token --rate-forward 5Mbit --rate-reverse 12Mbit --json > run.json

Exit status: 0 completed, 1 not completed (prints the reason and partial results), 2 wrong usage.`

// Tables returns a table per direction, and the steps of a sweep or search.
func (r *Result) Tables() (all []report.Table) {
	for _, d := range r.Directions {
		if d.Load != nil {
			all = append(all, d.loadTable())
		}
		if len(d.Steps) > 0 {
			all = append(all, d.stepsTable())
		}
	}
	return all
}

// loadTable has the values of the load.
func (d *Direction) loadTable() report.Table {
	l := d.Load
	t := report.Table{Heading: d.Direction} // the notes have other states than filled
	if l.State == queue.Filled.String() {
		t.Heading += fmt.Sprintf(": %s; %s", l.State, l.Evidence)
	}
	rate := unit.BytesPerSecond.Format
	if l.To > 0 {
		t.Row("offered", rate(l.Offered))
		t.Row("received", rate(l.mean))
	}
	if l.To > 0 && rate(l.Throughput) != rate(l.mean) {
		t.Row("received, median second", rate(l.Throughput))
	}
	if l.Rates != nil {
		words := quantiles(rate(l.Rates[0]), rate(l.Rates[1]), rate(l.Rates[2]))
		if l.Varies {
			words += " (varies)"
		}
		t.Row("rate per second", words)
	}
	t.Row("lost", unit.Ratio.Format(l.Loss))
	t.Row("not sent (sender underrun)", unit.Ratio.Format(l.Underrun))
	if l.Withheld > 0 {
		t.Row("not sent (path interrupted)", unit.Ratio.Format(l.Withheld))
	}
	interval(&t, "idle delay", l.Idle, l.IdleBound)
	interval(&t, "full delay", l.Full, l.FullBound)
	if l.Queue != nil && l.QueueBound != nil {
		add := func(i int) string {
			return unit.Seconds.FormatBound(l.Queue[i].Seconds(), l.QueueBound[i].Seconds())
		}
		t.Row("queueing delay", quantiles(add(0), add(1), add(2)))
	}
	if l.SizeBytes != nil && l.SizeBound != nil {
		t.Row("queue size", unit.Bytes.FormatBound(*l.SizeBytes, *l.SizeBound))
	}
	if l.SizeRange != nil {
		t.Row("queue size", unit.Bytes.Format(l.SizeRange[0])+" to "+unit.Bytes.Format(l.SizeRange[1]))
	}
	if l.AtLeastBytes != nil && l.SizeBytes == nil {
		t.Row("queue size", "at least "+unit.Bytes.Format(*l.AtLeastBytes))
	}
	return t
}

// interval adds a row with a value and its bound, if there is a value.
func interval(t *report.Table, name string, value, bound *report.Seconds) {
	if value != nil {
		words := unit.Seconds.Format(value.Seconds())
		if bound != nil {
			words = unit.Seconds.FormatBound(value.Seconds(), bound.Seconds())
		}
		t.Row(name, words)
	}
}

// variation is a step's delay variation, or "-" for nil.
func variation(v *report.Seconds) string {
	return unit.OrDash(v, func(s report.Seconds) string { return s.Duration().Round(10 * time.Microsecond).String() })
}

// quantiles are the published quantiles of a quantity.
func quantiles(low, median, high string) string {
	return fmt.Sprintf("5 %%: %s, median: %s, 95 %%: %s", low, median, high)
}

// stepsTable has the steps of a sweep or search.
func (d *Direction) stepsTable() report.Table {
	t := report.Table{
		Heading: fmt.Sprintf("%s: %s", d.Direction, d.StepsDescription),
		Columns: []string{"offered", "sent", "received", "lost", "delay variation", ""},
	}
	for _, s := range d.Steps {
		mark := ""
		if s.Lossless {
			mark = "lossless"
		}
		t.Row(unit.BytesPerSecond.Format(s.Offered), unit.BytesPerSecond.Format(s.Sent), unit.BytesPerSecond.Format(s.Received), unit.Ratio.Format(s.Loss), variation(s.Variation), mark)
	}
	return t
}
