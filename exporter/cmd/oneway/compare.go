//go:build !slim

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"oneway.example/exporter/core/document"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/serve/historyreport"
)

const compareHelp = `Compare two conditions: labels of paths, or two times.

A condition is a set of labels of paths (--a, --b), or a time (--a-from, --a-to, --b-from, --b-to). It prints the
difference of the medians (Hodges and Lehmann) with its interval of 95 %, the probability that A is better, and the
number of samples. The interval knows that neighboring hours and days are alike, and includes the error bounds of the
clocks of both. Where both conditions have the same hours, they are compared hour by hour.

--by=LABEL compares each value of a label with each other one. Of several comparisons, also of both directions, the
limits for all together are printed as well: a difference is shown by these.
The page exporter/doc/trends.md of the source has the methods. --labels selects paths for both conditions.

Examples:
  oneway compare --a=access=umts --b=access=wifi --measure=throughput
  oneway compare --labels=path=berlin --a-from=2026-09-01 --a-to=2026-10-01 --b-from=2026-10-01 --b-to=2026-11-01
  oneway compare --by=access --from=2026-10-01 --to=2026-11-01 --json
  oneway compare --csv=runs.csv --by=device

Exit status: 0 printed, whatever the verdicts are; 1 failure (store not reached, no data), 2 wrong usage.`

type compareFlags struct {
	historyFlags
	a, b, by, labels, direction string
	aFrom, aTo, bFrom, bTo      string

	times map[string]time.Time // of both conditions, by the name of the setting
}

func compareCommand(app *kingpin.Application) {
	f := &compareFlags{}
	cmd := app.Command("compare", compareHelp)
	cmd.Flag("a", "Labels of condition A, such as access=umts,site=paris.").PlaceHolder("NAME=VALUE").StringVar(&f.a)
	cmd.Flag("b", "Labels of condition B.").PlaceHolder("NAME=VALUE").StringVar(&f.b)
	cmd.Flag("by", "Label whose values are compared with each other.").PlaceHolder("LABEL").StringVar(&f.by)
	cmd.Flag("a-from", "Begin of the time of condition A.").PlaceHolder("2026-09-01").StringVar(&f.aFrom)
	cmd.Flag("a-to", "End of the time of condition A, not included.").PlaceHolder("2026-10-01").StringVar(&f.aTo)
	cmd.Flag("b-from", "Begin of the time of condition B.").PlaceHolder("2026-10-01").StringVar(&f.bFrom)
	cmd.Flag("b-to", "End of the time of condition B, not included.").PlaceHolder("2026-11-01").StringVar(&f.bTo)
	cmd.Flag("labels", "Labels that the paths of both conditions must have.").PlaceHolder("NAME=VALUE").StringVar(&f.labels)
	cmd.Flag("direction", "Direction: forward or reverse; default: each of both.").PlaceHolder("forward").EnumVar(&f.direction, "forward", "reverse")
	f.register(cmd)
	cmd.Action(interruptible(func(ctx context.Context) error { return f.run(ctx, os.Stdout, time.Now()) }))
}

// compareDocument is the output of `oneway compare --json`.
type compareDocument struct {
	document.Envelope
	// Settings are the flags in use.
	Settings document.Settings `json:"settings"`
	document.Outcome
	// ReadFrom is where InfluxDB has the samples, and why there; absent: of another store.
	ReadFrom string `json:"read_from,omitempty"`
	// Comparisons are the pairs of conditions, by direction.
	Comparisons []historyreport.Comparison `json:"comparisons"`
}

func (f *compareFlags) run(ctx context.Context, out io.Writer, now time.Time) error {
	f.live = newReading(os.Stderr)
	all, err := f.compare(ctx, now)
	f.live.end()
	unwritten := f.expose(err, func() ([]byte, error) { return historyreport.CompareMetrics(f.measured, all, now) })
	if f.json.wanted() && f.location != nil {
		d := compareDocument{Envelope: document.New(document.Compare), Settings: f.settings(), Outcome: historyOutcome(ctx, cmp.Or(err, unwritten)), ReadFrom: f.readFrom(), Comparisons: all}
		addGiven(d.Settings, map[string]string{"a": f.a, "b": f.b, "by": f.by, "labels": f.labels, "direction": f.direction})
		if f.periods() { // in place of one time for both
			delete(d.Settings, "from")
			delete(d.Settings, "to")
			for name, at := range f.times {
				d.Settings[name] = at.UTC()
			}
		}
		if all == nil {
			d.Comparisons = []historyreport.Comparison{}
		}
		return f.json.printed(out, d, cmp.Or(err, unwritten))
	}
	if err != nil {
		return err
	}
	width := widthOf(out)
	for _, c := range all {
		line := f.measured.Words + ", " + c.Text
		if c.Adjusted != nil {
			line += fmt.Sprintf("; chance %.2g, of all comparisons %.2g", c.P, *c.Adjusted)
		}
		if err := printWrapped(out, line, false, width); err != nil {
			return err
		}
	}
	return cmp.Or(f.printFrom(out), unwritten)
}

// compare reads the histories and compares them.
func (f *compareFlags) compare(ctx context.Context, now time.Time) ([]historyreport.Comparison, error) {
	if err := f.check(now); err != nil {
		return nil, err
	}
	shared, err := selected(f.labels, map[string]string{metric.Direction: f.direction})
	if err != nil {
		return nil, err
	}
	periods := f.periods()
	switch {
	case f.by != "" && (periods || f.a != "" || f.b != ""), periods && f.a+f.b != "", f.by == "" && !periods && (f.a == "" || f.b == ""):
		return nil, usageError{errors.New("one of these is required: --a and --b; --by; or --a-from, --a-to, --b-from and --b-to")}
	case periods && f.from+f.to != "":
		return nil, usageError{errors.New("--from and --to are of --a and --b, or --by; they and --a-from, --a-to, --b-from and --b-to exclude each other")}
	}
	if f.a != "" && f.a == f.b {
		return nil, usageError{fmt.Errorf("--a and --b are both %s; they must differ", f.a)}
	}
	source, err := f.source()
	if err != nil {
		return nil, err
	}
	var pairs [][2]historyreport.Side
	switch {
	case f.by != "":
		pairs, err = f.byLabel(ctx, source, shared)
	case periods:
		pairs, err = f.byPeriod(ctx, source, shared, now)
	default:
		pairs, err = f.byCondition(ctx, source, shared)
	}
	if err != nil {
		return nil, err
	}
	return historyreport.Compare(pairs, f.measured, f.options()), nil
}

// periods reports whether the conditions are two times.
func (f *compareFlags) periods() bool { return f.aFrom+f.aTo+f.bFrom+f.bTo != "" }

func (f *compareFlags) byLabel(ctx context.Context, source historyreport.Source, shared map[string]string) (pairs [][2]historyreport.Side, err error) {
	all, err := f.read(ctx, source, f.query(shared))
	if err != nil {
		return nil, err
	}
	for _, d := range directions(all) {
		for _, p := range historyreport.ByLabel(historyreport.Select(all, d), f.by) {
			pairs = append(pairs, named(p, d))
		}
	}
	if len(pairs) == 0 {
		return nil, historyreport.NoPairs(all, f.by)
	}
	return pairs, nil
}

func (f *compareFlags) byPeriod(ctx context.Context, source historyreport.Source, shared map[string]string, now time.Time) (pairs [][2]historyreport.Side, err error) {
	var both [2][]historyreport.Series
	var names [2]string
	f.times = map[string]time.Time{}
	for i, texts := range [2][2]string{{f.aFrom, f.aTo}, {f.bFrom, f.bTo}} {
		side := [2]string{"a", "b"}[i]
		if texts[0] == "" || texts[1] == "" {
			return nil, usageError{fmt.Errorf("--%s-from and --%s-to are required together", side, side)}
		}
		q := f.query(shared)
		if q.From, q.To, err = f.period("--"+side+"-from", "--"+side+"-to", texts[0], texts[1], now); err != nil {
			return nil, usageError{err}
		}
		f.times[side+"_from"], f.times[side+"_to"] = q.From, q.To
		names[i] = q.From.Format(time.DateOnly) + ".." + q.To.Format(time.DateOnly)
		if both[i], err = f.read(ctx, source, q); err != nil {
			return nil, err
		}
	}
	return sides(both, names), nil
}

func (f *compareFlags) byCondition(ctx context.Context, source historyreport.Source, shared map[string]string) (pairs [][2]historyreport.Side, err error) {
	var both [2][]historyreport.Series
	for i, text := range [2]string{f.a, f.b} {
		wanted, err := historyreport.ParseLabels(text)
		if err != nil {
			return nil, usageError{fmt.Errorf("--%s: %w", [2]string{"a", "b"}[i], err)}
		}
		for name, value := range shared {
			if have, is := wanted[name]; is && have != value {
				return nil, usageError{fmt.Errorf("--%s has %s=%s, and both conditions must have %s=%s", [2]string{"a", "b"}[i], name, have, name, value)}
			}
		}
		maps.Copy(wanted, shared)
		if both[i], err = f.read(ctx, source, f.query(wanted)); err != nil {
			return nil, err
		}
	}
	return sides(both, [2]string{f.a, f.b}), nil
}

// sides pairs conditions in each direction that both have.
func sides(both [2][]historyreport.Series, names [2]string) (pairs [][2]historyreport.Side) {
	for _, d := range directions(both[0]) {
		pairs = append(pairs, named([2]historyreport.Side{
			historyreport.SideOf(names[0], historyreport.Select(both[0], d)), historyreport.SideOf(names[1], historyreport.Select(both[1], d)),
		}, d))
	}
	return pairs
}

// named adds the direction to the names.
func named(pair [2]historyreport.Side, direction string) [2]historyreport.Side {
	if direction != "" {
		pair[0].Name = direction + ": " + pair[0].Name
	}
	return pair
}

// directions are those that histories have; "" is a history without one.
func directions(all []historyreport.Series) (found []string) {
	seen := map[string]bool{}
	for _, s := range all {
		if d := s.Labels[metric.Direction]; !seen[d] {
			seen[d] = true
			found = append(found, d)
		}
	}
	return found
}
