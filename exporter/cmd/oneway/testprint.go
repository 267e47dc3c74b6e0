package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/probe/report"
	"oneway.example/exporter/probes/saturation"
	"oneway.example/exporter/probes/sizesweep"
	"oneway.example/exporter/probes/train"
)

// printSaturation writes a table per direction, and the steps of a sweep or search.
func printSaturation(out io.Writer, body any) error {
	r := body.(*saturation.Result)
	for _, d := range r.Directions {
		if d.Load != nil {
			if err := printLoad(out, d); err != nil {
				return err
			}
		}
		if len(d.Steps) > 0 {
			if err := printSteps(out, d); err != nil {
				return err
			}
		}
	}
	return nil
}

func printLoad(out io.Writer, d *saturation.Direction) error {
	l := d.Load
	t := newTable(out, "%s: %s; %s\n", d.Direction, l.State, l.Evidence)
	rate := unit.BytesPerSecond.Format
	t.row("offered", rate(l.Offered))
	t.row("received", rate(l.Throughput))
	if l.Rates != nil {
		words := quantiles(rate(l.Rates[0]), rate(l.Rates[1]), rate(l.Rates[2]))
		if l.Varies {
			words += " (varies)"
		}
		t.row("rate per second", words)
	}
	t.row("lost", unit.Ratio.Format(l.Loss))
	t.row("not sent (sender underrun)", unit.Ratio.Format(l.Underrun))
	t.interval("idle delay", l.Idle, l.IdleBound)
	t.interval("full delay", l.Full, l.FullBound)
	if l.Queue != nil && l.QueueBound != nil {
		add := func(i int) string {
			return unit.Seconds.FormatBound(l.Queue[i].Seconds(), l.QueueBound[i].Seconds())
		}
		t.row("queueing delay", quantiles(add(0), add(1), add(2)))
	}
	if l.SizeBytes != nil && l.SizeBound != nil {
		t.row("queue size", unit.Bytes.FormatBound(*l.SizeBytes, *l.SizeBound))
	}
	if l.AtLeastBytes != nil {
		t.row("queue size", "at least "+unit.Bytes.Format(*l.AtLeastBytes))
	}
	if !l.Trusted {
		t.row("one-way delays", "not known: "+l.ClocksReason)
	}
	return t.end()
}

// variation is a step's delay variation, or "-" for nil.
func variation(v *report.Seconds) string {
	return orDash(v, func(s report.Seconds) string { return s.Duration().Round(10 * time.Microsecond).String() })
}

// quantiles are the published quantiles of a quantity.
func quantiles(low, median, high string) string {
	return fmt.Sprintf("5 %%: %s, median: %s, 95 %%: %s", low, median, high)
}

func printSteps(out io.Writer, d *saturation.Direction) error {
	t := newTable(out, "%s: %s\n", d.Direction, d.StepsDescription)
	t.names("offered", "sent", "received", "lost", "delay variation", "")
	for _, s := range d.Steps {
		mark := ""
		if s.Lossless {
			mark = "lossless"
		}
		t.row(unit.BytesPerSecond.Format(s.Offered), unit.BytesPerSecond.Format(s.Sent), unit.BytesPerSecond.Format(s.Received), unit.Ratio.Format(s.Loss), variation(s.Variation), mark)
	}
	return t.end()
}

func printSizeSweep(out io.Writer, body any) error {
	r := body.(*sizesweep.Result)
	t := newTable(out, "")
	t.names("direction", "bytes", "packets/s", "sent", "received", "lost", "delay", "±", "mean |IPDV|", "not sent")
	for _, c := range r.Cells {
		m := c.Median
		t.row(c.DirectionName, strconv.Itoa(c.PacketBytes), strconv.Itoa(c.PacketRate), rateOf(m.Sent), rateOf(m.Received), ratioOf(m.Loss),
			seconds(m.Delay), seconds(m.Bound), seconds(m.IPDV), ratioOf(m.Underrun))
	}
	return t.end()
}

func printTrain(out io.Writer, body any) error {
	r := body.(*train.Result)
	t := newTable(out, "")
	t.names("direction", "payload", "IP bytes", "capacity", "±", "5th percentile", "95th", "dispersion", "trains", "")
	for _, d := range r.Directions {
		for _, z := range d.Sizes {
			dispersion := orDash(z.Dispersion, func(s float64) string { return time.Duration(s * 1e9).Round(time.Microsecond).String() })
			mark := "" // the notes have the reason of a missing capacity
			if z.Fragmented != nil && *z.Fragmented {
				mark = "fragmented"
			}
			t.row(d.DirectionName, strconv.Itoa(z.PayloadBytes), strconv.Itoa(z.PacketBytes), rateOf(z.Median), rateOf(z.Bound), rateOf(z.P5), rateOf(z.P95),
				dispersion, trainCounts(z.Trains), mark)
		}
	}
	return t.end()
}

// trainCounts is "30 clean, 2 lost".
func trainCounts(m map[string]int) string {
	var words []string
	for _, result := range slices.Sorted(maps.Keys(m)) {
		if n := m[result]; n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, strings.ReplaceAll(result, "_", " ")))
		}
	}
	return strings.Join(words, ", ")
}
