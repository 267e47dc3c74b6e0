package main

import (
	"fmt"
	"io"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"oneway.example/exporter/heavy"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes/saturate"
)

const testSaturateHelp = `Fill the link with UDP, one direction after the other.

Mode fixed offers one rate, which must be more than the link carries: what comes
through is its rate, and what a full queue adds to the delay of the idle link is the
queue's delay; its size is between what the packets that came through and those that were
dropped met. sweep raises the rate step by step and finds where loss begins; each step is a
burst from an idle link, so that a token bucket, full again, lets more through than it
sustains. search adjusts the rate by delay and loss while one stream runs without a pause
(RFC 9097) and finds what the link sustains when it is full. With a far end that is too old
to report meanwhile its steps are bursts, too, and a note says so.
Rates and sizes count IP packets, header included, no link layer.

Examples:
  oneway test saturate responder.example.net --token-file token --pin sha256:...
  oneway test saturate 192.0.2.7 --token-file token --forward 5Mbit --reverse 12Mbit --duration 5m
  oneway test saturate 192.0.2.7 --token-file token --mode sweep --direction reverse --reverse 3Mbit
  oneway test saturate 192.0.2.7 --token-file token --json > run.json

Exit status: 0 completed, 1 not (the reason is printed, with what was found), 2 usage.`

// rateFlag is a rate on the command line.
type rateFlag struct {
	name string
	rate *heavy.Rate
}

// Set reads "5Mbit".
func (f rateFlag) Set(text string) error {
	if err := f.rate.UnmarshalText([]byte(text)); err != nil {
		return fmt.Errorf("--%s is %q; %w", f.name, text, err)
	}
	return nil
}

// String is what Set reads.
func (f rateFlag) String() string {
	if f.rate == nil {
		return ""
	}
	return f.rate.String()
}

func testSaturateCommand(parent *kingpin.CmdClause) {
	o := saturate.DefaultOptions()
	cmd := parent.Command("saturate", testSaturateHelp)
	cmd.Flag("mode", "fixed, sweep or search.").Default(o.Mode).EnumVar(&o.Mode, saturate.ModeFixed, saturate.ModeSweep, saturate.ModeSearch)
	cmd.Flag("forward", "Rate to offer to the responder, the most of a sweep or search.").Default(o.Rate.Forward.String()).SetValue(rateFlag{"forward", &o.Rate.Forward})
	cmd.Flag("reverse", "The same from it.").Default(o.Rate.Reverse.String()).SetValue(rateFlag{"reverse", &o.Rate.Reverse})
	cmd.Flag("packet-bytes", "Size of the IP packets.").Default(fmt.Sprint(o.PacketBytes)).IntVar(&o.PacketBytes)
	cmd.Flag("duration", "How long each direction is loaded (fixed, search).").Default(o.Duration.String()).DurationVar(&o.Duration)
	cmd.Flag("skip", "First and last part of the load that says nothing about a full queue.").Default(o.Skip.String()).DurationVar(&o.Skip)
	cmd.Flag("idle", "Time before the load, and again after it, in which single packets find the empty link's delay (fixed).").Default(o.Idle.Duration.String()).DurationVar(&o.Idle.Duration)
	cmd.Flag("step", "How long each rate of a sweep lasts.").Default(o.Sweep.Step.String()).DurationVar(&o.Sweep.Step)
	cmd.Flag("together", "Load both directions at the same time (fixed).").BoolVar(&o.Together)
	f := &testFlags{}
	f.register(cmd, testKind{
		word: "saturate",
		kind: func(_ probe.Env, _ probe.Target, shared heavy.Options) (heavy.Kind, error) {
			return saturate.NewKind(shared, o)
		},
		print: printSaturate,
	})
}

// printSaturate writes a column a direction, and the steps of a sweep or search.
func printSaturate(out io.Writer, body any) error {
	r, ok := body.(*saturate.Result)
	if !ok {
		return fmt.Errorf("a result of type %T", body)
	}
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

func printLoad(out io.Writer, d *saturate.Direction) error {
	l := d.Load
	t := newTable(out, "%s: %s; %s\n", d.Direction, l.State, l.Evidence)
	rate := func(v float64) string { return heavy.Rate(v).Words() }
	t.row("offered", rate(l.Offered))
	t.row("came through", rate(l.Throughput))
	if l.Rates != nil {
		t.row("rate by the second", quantiles(rate(l.Rates[0]), rate(l.Rates[1]), rate(l.Rates[2]))+varies(l.Varies))
	}
	t.row("lost", percentage(l.Loss))
	t.row("not sent by the sender itself", percentage(l.Shortfall))
	t.interval("idle delay", l.Idle, l.IdleBound)
	t.interval("full delay", l.Full, l.FullBound)
	if l.Queue != nil && l.QueueBound != nil {
		add := func(i int) string { return probe.Figures(l.Queue[i]) + " ± " + probe.Figures(l.QueueBound[i]) }
		t.row("a full queue adds", quantiles(add(0), add(1), add(2)))
	}
	if l.SizeBytes != nil && l.SizeBound != nil {
		t.row("queue size", fmt.Sprintf("%.1f ± %.1f kB", *l.SizeBytes/1e3, *l.SizeBound/1e3))
	}
	if l.AtLeastBytes != nil {
		t.row("queue size", fmt.Sprintf("%.1f kB at the least", *l.AtLeastBytes/1e3))
	}
	if !l.Trusted {
		t.row("one-way delays", "not known: "+l.ClocksReason)
	}
	return t.end()
}

// quantiles are those that are published.
func quantiles(low, median, high string) string {
	return fmt.Sprintf("5 %%: %s, median: %s, 95 %%: %s", low, median, high)
}

func varies(yes bool) string {
	if yes {
		return " (varies)"
	}
	return ""
}

func printSteps(out io.Writer, d *saturate.Direction) error {
	t := newTable(out, "%s: %s\n", d.Direction, d.StepsAre)
	t.row("offered", "sent", "came through", "lost", "delay variation", "")
	for _, s := range d.Steps {
		variation, mark := "-", ""
		if s.Variation >= 0 {
			variation = s.Variation.Round(10 * time.Microsecond).String()
		}
		if s.Lossless {
			mark = "lossless"
		}
		t.row(heavy.Rate(s.Offered).Words(), heavy.Rate(s.Sent).Words(), heavy.Rate(s.Received).Words(), percentage(s.Loss), variation, mark)
	}
	return t.end()
}

func percentage(ratio float64) string { return fmt.Sprintf("%.2f %%", 100*ratio) }
