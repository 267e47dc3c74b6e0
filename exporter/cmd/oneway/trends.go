//go:build !slim

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"oneway.example/exporter/core/document"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/serve/historyreport"
)

const trendsHelp = `Say how a path depends on the hour, and how it changed.

It reads months of hourly samples: the long-term series that the recording rules write to Prometheus, the rows of hours or
the points of InfluxDB, or a CSV file. For each history it prints a sentence about the hours of the day, weekdays and weekends, the last
week, busy hours, the trend a month, and each change of the level with its date and hour.

Each interval contains its value with a probability of 95 %. It knows that neighboring hours and days are alike, and
includes the error bound of the clocks. A verdict has three values: differs by at least so much; equal within --margin;
cannot tell, and needs about so many more days. The page exporter/doc/trends.md of the source has the methods.

Examples:
  oneway trends --path=berlin --from=2026-01-01 --to=2027-01-01
  oneway trends --path=berlin --measure=throughput --busy-hours=9-17 --prometheus.url=https://prometheus.example.net
  oneway trends --labels=access=umts --influxdb.url=http://127.0.0.1:8086 --influxdb.database=oneway
  oneway trends --csv=delays.csv --timezone=Asia/Seoul --json

Exit status: 0 printed, whatever the verdicts are; 1 failure (store not reached, no such path, no data), 2 wrong usage.`

// localPrometheus is the address of a server on this host.
const localPrometheus = "http://127.0.0.1:9090"

type trendsFlags struct {
	historyFlags
	path, direction, labels, busy string
}

func trendsCommand(app *kingpin.Application) {
	f := &trendsFlags{}
	cmd := app.Command("trends", trendsHelp)
	cmd.Flag("path", "Path, by its name in the agent's configuration; default: all paths.").PlaceHolder("NAME").StringVar(&f.path)
	cmd.Flag("direction", "Direction: forward or reverse; default: both.").PlaceHolder("forward").EnumVar(&f.direction, "forward", "reverse")
	cmd.Flag("labels", "Labels that a path must have, such as access=umts,site=paris.").PlaceHolder("NAME=VALUE").StringVar(&f.labels)
	cmd.Flag("busy-hours", "Local hours that are compared with the rest, such as 18-22 (18:00 to 22:00).").Default("18-22").StringVar(&f.busy)
	f.register(cmd)
	cmd.Action(interruptible(func(ctx context.Context) error { return f.run(ctx, os.Stdout, time.Now()) }))
}

// trendsDocument is the output of `oneway trends --json`.
type trendsDocument struct {
	document.Envelope
	// Settings are the flags in use.
	Settings document.Settings `json:"settings"`
	document.Outcome
	// ReadFrom is where InfluxDB has the samples, and why there; absent: of another store.
	ReadFrom string `json:"read_from,omitempty"`
	// Histories are the paths, by direction.
	Histories []historyreport.History `json:"histories"`
}

func (f *trendsFlags) run(ctx context.Context, out io.Writer, now time.Time) error {
	f.live = newReading(os.Stderr)
	all, names, err := f.analyze(ctx, now)
	f.live.end()
	unwritten := f.expose(err, func() ([]byte, error) { return historyreport.TrendsMetrics(all, now) })
	if f.json.wanted() && f.location != nil {
		d := trendsDocument{Envelope: document.New(document.Trends), Settings: f.settings(), Outcome: historyOutcome(ctx, cmp.Or(err, unwritten)), ReadFrom: f.readFrom(), Histories: all}
		addGiven(d.Settings, map[string]string{"busy_hours": f.busy, "path": f.path, "direction": f.direction, "labels": f.labels})
		if all == nil {
			d.Histories = []historyreport.History{}
		}
		return f.json.printed(out, d, cmp.Or(err, unwritten))
	}
	if err != nil {
		return err
	}
	width := widthOf(out)
	for i := range all {
		if i > 0 {
			fmt.Fprintln(out)
		}
		for j, line := range all[i].Lines(names[i], f.measured) {
			if err := printWrapped(out, line, j > 0, width); err != nil {
				return err
			}
		}
	}
	if _, err := fmt.Fprintln(out); err != nil {
		return err
	}
	if err := f.printFrom(out); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "Intervals of 95 %%; seed %d; %s. ?: the samples give no limit.\n", f.seed, f.zones())
	return cmp.Or(err, unwritten)
}

// printWrapped prints a line that is broken at the width, and indented if it belongs to the line before.
func printWrapped(out io.Writer, line string, below bool, width int) error {
	indent := ""
	if below {
		indent = "  "
	}
	_, err := fmt.Fprintln(out, indent+strings.Join(wrap(line, max(0, width-len(indent))), "\n"+indent+indent))
	return err
}

// analyze reads and analyzes the histories.
func (f *trendsFlags) analyze(ctx context.Context, now time.Time) (all []historyreport.History, names []string, err error) {
	if err := f.check(now); err != nil {
		return nil, nil, err
	}
	o := f.options()
	if o.Busy, err = parseHours(f.busy); err != nil {
		return nil, nil, usageError{err}
	}
	wanted, err := selected(f.labels, map[string]string{metric.Path: f.path, metric.Direction: f.direction})
	if err != nil {
		return nil, nil, err
	}
	source, err := f.source()
	if err != nil {
		return nil, nil, err
	}
	found, err := f.read(ctx, source, f.query(wanted))
	if err != nil {
		return nil, nil, err
	}
	for i, s := range found {
		f.step("analyzing histories")(i, len(found))
		if ctx.Err() != nil {
			return all, names, context.Cause(ctx)
		}
		name := s.Name()
		if name == "" {
			name = f.csv
		}
		all, names = append(all, historyreport.Analyze(s, f.measured, o)), append(names, name)
	}
	return all, names, nil
}

// parseHours parses "18-22".
func parseHours(text string) (busy [2]int, err error) {
	first, next, found := strings.Cut(text, "-")
	a, err1 := strconv.Atoi(first)
	b, err2 := strconv.Atoi(next)
	if !found || err1 != nil || err2 != nil || a < 0 || a > 23 || b < 1 || b > 24 || a == b {
		return busy, fmt.Errorf("--busy-hours is %q; it must be two different hours such as 18-22, or 22-6 past midnight", text)
	}
	return [2]int{a, b}, nil
}
