//go:build !slim

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	_ "time/tzdata" // --timezone works on a host without zone files

	"github.com/alecthomas/kingpin/v2"

	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/serve/slareport"
)

const reportHelp = `Print availability, loss and delay of paths as CSV.

One row for each path and month, week or day, for service agreements, from the series that Prometheus has scraped
from the agent.

Availability is the share of the measured intervals (--interval) with a reply. Intervals without data count
neither as up nor as down: no_data_seconds has them. The times at which load tests affected the path are left out:
load_test_seconds has them; --with-load-tests includes them. Planned work ("oneway maintenance") is left out
always: maintenance_seconds has it. A quantile of delays has the limits of its error,
those of its histogram bucket, in the columns lower and upper; native histograms have the narrowest ones.
The page exporter/doc/report.md of the source defines each column, with its query for Grafana.

Default: the last full month. --to is exclusive.

Examples:
  oneway report --path=berlin
  oneway report --path=berlin --from=2026-01-01 --to=2027-01-01 > berlin.csv
  oneway report --path=berlin --from=2026-10-01 --to=2026-11-01 --by=day --timezone=Europe/Berlin
  oneway report --all --from=2026-10-01 --to=2026-11-01 > october.csv   (with target, site and labels)
  oneway report --path=berlin --prometheus.url=https://prometheus.example.net --prometheus.bearer-file=token

Exit status: 0 printed, 1 failure (Prometheus not reached, no such path, no data), 2 wrong usage.`

type reportFlags struct {
	path, probe, instance, from, to, by, zone string
	all, withLoadTests                        bool
	interval                                  time.Duration
	server                                    prometheusFlags
}

// Limits of --interval.
const leastInterval, mostInterval = 10 * time.Second, time.Hour

func reportCommand(app *kingpin.Application) {
	f := &reportFlags{}
	cmd := app.Command("report", reportHelp)
	cmd.Flag("path", "Path, by its name in the agent's configuration.").PlaceHolder("NAME").StringVar(&f.path)
	cmd.Flag("all", "All paths that Prometheus knows, with each of their light probes.").BoolVar(&f.all)
	cmd.Flag("with-load-tests", "Include the times at which load tests affected the path.").BoolVar(&f.withLoadTests)
	cmd.Flag("from", "Begin: a date in --timezone, or a time of RFC 3339.").PlaceHolder("2026-10-01").StringVar(&f.from)
	cmd.Flag("to", "End, not included: a date in --timezone, or a time of RFC 3339; default: one month after --from.").PlaceHolder("2026-11-01").StringVar(&f.to)
	cmd.Flag("by", "Period of a row: month, week (from Monday) or day.").Default(string(slareport.Month)).EnumVar(&f.by, slareport.Units()...)
	cmd.Flag("timezone", "Time zone of dates and periods, such as Europe/Berlin or UTC; default: the zone of this host.").PlaceHolder("ZONE").StringVar(&f.zone)
	cmd.Flag("interval", fmt.Sprintf("Interval of availability, %s to %s; at least the scrape interval.", option.String(leastInterval), option.String(mostInterval))).Default("1m").DurationVar(&f.interval)
	cmd.Flag("probe", "Light probe of the path, if it has several.").PlaceHolder("NAME").StringVar(&f.probe)
	cmd.Flag("instance", "Agent that measures the path, by its label instance, if several do.").PlaceHolder("NAME").StringVar(&f.instance)
	f.server.register(cmd, localPrometheus)
	cmd.Action(interruptible(func(ctx context.Context) error { return f.run(ctx, os.Stdout, time.Now()) }))
}

func (f *reportFlags) run(ctx context.Context, out io.Writer, now time.Time) error {
	if f.all == (f.path != "") {
		return usageError{errors.New("--path or --all is required, and not both")}
	}
	o, err := f.options(now)
	if err != nil {
		return usageError{err}
	}
	server, err := f.server.connect()
	if err != nil {
		return err
	}
	live := newReading(os.Stderr)
	o.Progress = live.step("reading Prometheus")
	rows, err := slareport.Make(ctx, server, o, now)
	live.end()
	if unknown, ok := errors.AsType[*slareport.PathError](err); ok && len(unknown.Known) > 0 {
		return f.suggest(unknown)
	}
	if err != nil {
		return err
	}
	return slareport.WriteCSV(out, rows)
}

// suggest adds the most similar path, or all of them if they are few.
func (f *reportFlags) suggest(err *slareport.PathError) error {
	if suggestion := option.Suggestion(f.path, err.Known); suggestion != "" {
		return fmt.Errorf("%w; %s", err, suggestion)
	}
	const most = 10
	more := ""
	if len(err.Known) > most {
		more = " and " + unit.Counted(len(err.Known)-most, "other", "others")
	}
	return fmt.Errorf("%w; it has %s%s", err, strings.Join(err.Known[:min(most, len(err.Known))], ", "), more)
}

func (f *reportFlags) options(now time.Time) (o slareport.Options, err error) {
	zone := time.Local
	if f.zone != "" {
		if zone, err = time.LoadLocation(f.zone); err != nil {
			return o, fmt.Errorf("--timezone is %q; it must be a name such as Europe/Berlin or UTC", f.zone)
		}
	}
	if f.interval < leastInterval || f.interval > mostInterval || (24*time.Hour)%f.interval != 0 || f.interval%time.Second != 0 {
		return o, fmt.Errorf("--interval is %v; it must be between %s and %s, and a day a multiple of it", f.interval, option.String(leastInterval), option.String(mostInterval))
	}
	o = slareport.Options{Path: f.path, Probe: f.probe, Instance: f.instance, By: slareport.By(f.by), Interval: f.interval, WithLoadTests: f.withLoadTests}
	o.From, o.To = slareport.PreviousMonth(now.In(zone))
	if f.from != "" {
		if o.From, err = slareport.ParseTime(f.from, zone); err != nil {
			return o, fmt.Errorf("--from %w", err)
		}
		o.To = slareport.AddMonths(o.From, 1)
	}
	if f.to != "" {
		if o.To, err = slareport.ParseTime(f.to, zone); err != nil {
			return o, fmt.Errorf("--to %w", err)
		}
		if f.from == "" {
			o.From = slareport.AddMonths(o.To, -1)
		}
	}
	if !o.From.Before(o.To) {
		return o, fmt.Errorf("--from is %s; it must be before --to, %s", o.From.Format(time.RFC3339), o.To.Format(time.RFC3339))
	}
	return o, nil
}
