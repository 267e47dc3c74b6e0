// Command history makes a long history of a mesh of 20 paths between five sites, for tests and for dashboards: blocks of
// Prometheus with native histograms, and line protocol of InfluxDB.
//
//	go run -C tests/history . --out=/tmp/history --days=400
//	prometheus --storage.tsdb.path=/tmp/history --storage.tsdb.retention.time=500d
//
// What happens to the paths is in package scene, and, with its times, in scene.json beside the blocks. A seed decides all of it. Values go
// through the program's own estimators, series and rules:
//
//   - Packets pass through stamp.Replay (a packet in 10 s; on the named days one a second), runs through loadtest.Values, and pathstate.Judge decides after each packet. Prometheus'
//     parser reads the exposition of promsink, at each local full hour and, on the named days, each 15 s.
//   - On other days a window lasts an hour, so that minima, quantiles, bounds and R are of the hour, exactly.
//   - The long-term series (oneway:long:...) follow from these scrapes, by the expressions of exporter/core/rules in the query engine of
//     Prometheus, at each local full hour. The rules that count minutes need a scrape a minute: for hours without, measured_minutes and
//     up_minutes are minutes of the simulation in which the agent ran, and in which a path had a reply; the minutes with R below a limit
//     are 60 where R of the hour is, else 0. rate() and increase() need two values of a counter in an hour: the rules, not the blocks, have
//     each value again 1 ms after the full hour.
//   - The blocks have no series of other rules, and no classic buckets; line protocol has a point of each measurement an hour, and the rows of
//     hours, with the minutes of the simulation as well, and the points of each run, with the hour and the kind of day of its end.
//
// On one core of a PC, 400 days of 20 paths take 4 minutes and 330 MB, in profile slim 3 minutes and 100 MB; each named day adds 30 s and
// 55 MB. A series has 8,760 samples a year, less the hours in which its agent did not run.
//
// The command copy makes the blocks of a thousand paths from a few, for load tests of queries.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"oneway.example/exporter/core/metric"
	"oneway.example/tests/history/blocks"
	"oneway.example/tests/history/copies"
	"oneway.example/tests/history/cost"
	"oneway.example/tests/history/opening"
	"oneway.example/tests/history/scene"
)

func main() {
	app := kingpin.New("history", "Makes a history of a mesh of paths: blocks of Prometheus, and line protocol of InfluxDB.").UsageWriter(os.Stdout)
	makes := makeCommand(app)
	copiesOf := copyCommand(app)
	opens := openCommand(app)
	costs := costCommand(app)
	switch kingpin.MustParse(app.Parse(os.Args[1:])) {
	case "copy":
		app.FatalIfError(copiesOf(), "")
	case "open":
		app.FatalIfError(opens(), "")
	case "rules":
		app.FatalIfError(costs(), "")
	default:
		app.FatalIfError(makes(), "")
	}
}

// makeCommand adds the command that makes a history, which is the default.
func makeCommand(app *kingpin.Application) func() error {
	c := app.Command("make", "Make a history.").Default()
	out := c.Flag("out", "Directory of the blocks, for --storage.tsdb.path of Prometheus.").Default("build/history").String()
	days := c.Flag("days", "Days of history.").Default("400").Int()
	paths := c.Flag("paths", "Paths of the mesh, at most 20; each five more are one more of each site.").Default("20").Int()
	seed := c.Flag("seed", "Seed of all random numbers.").Default("1").Uint64()
	end := c.Flag("end", "UTC day at whose begin the history ends, such as 2026-11-30. Default: the present day.").PlaceHolder("DAY").String()
	named := c.Flag("named", "Days with a packet a second and a scrape each 15 s: the last one, the days of daylight saving, and others.").Default("14").Int()
	profile := c.Flag("profile", "Profile of the series of paths: full or slim.").Default("full").Enum("full", "slim")
	influx := c.Flag("influx", "File of the line protocol. Default: none.").PlaceHolder("FILE").String()
	return func() error {
		last := time.Now().UTC()
		if *end != "" {
			day, err := time.Parse(time.DateOnly, *end)
			if err != nil {
				return fmt.Errorf("history: --end is %q; it must be a day such as 2026-11-30", *end)
			}
			last = day
		}
		p, err := metric.ProfileByName(*profile)
		if err != nil {
			return fmt.Errorf("history: --profile %w", err)
		}
		return run(scene.New(*seed, *paths, *days, *named, last), p, *out, *influx)
	}
}

// copyCommand adds the command that makes many paths from few.
func copyCommand(app *kingpin.Application) func() error {
	c := app.Command("copy", "Copy the paths of a history many times, under other names of paths, agents and sites.")
	from := c.Flag("from", "Directory of the blocks of a history.").Required().ExistingDir()
	out := c.Flag("out", "Directory of the blocks of the copies.").Required().String()
	times := c.Flag("copies", "Copies of each path: 50 of 20 paths are 1,000 paths.").Default("50").Int()
	names := c.Flag("series", "Regular expression of the names of the series.").Default("^oneway:long:").Regexp()
	since := c.Flag("since", "Copy no chunks before this time, such as 2026-11-29T20:00:00Z. Default: all.").PlaceHolder("TIME").String()
	return func() error {
		o := copies.Options{From: *from, To: *out, Copies: *times, Names: *names}
		if *since != "" {
			t, err := time.Parse(time.RFC3339, *since)
			if err != nil {
				return fmt.Errorf("history: --since is %q; it must be a time such as 2026-11-29T20:00:00Z", *since)
			}
			o.Since = t
		}
		began := time.Now()
		r, err := copies.Make(o)
		if err != nil {
			return fmt.Errorf("history: %w", err)
		}
		fmt.Printf("%d blocks, %d series in blocks, %d samples, %.1f MB, %.0f s\n", r.Blocks, r.Series, r.Samples, float64(r.Bytes)/1e6, time.Since(began).Seconds())
		return nil
	}
}

// openCommand adds the command that measures how long a page takes.
func openCommand(app *kingpin.Application) func() error {
	c := app.Command("open", "Send a server the queries that Grafana sends to show a dashboard, six at once, and print the time until all have a result.")
	address := c.Flag("url", "Address of Prometheus or VictoriaMetrics.").Default("http://127.0.0.1:9090").String()
	dashboard := c.Flag("dashboard", "JSON of the dashboard.").Required().ExistingFile()
	variables := c.Flag("var", "Value of a variable, such as path=berlin-to-seoul. Others match everything.").StringMap()
	to := c.Flag("to", "End of the time range, such as 2026-11-30T00:00:00Z. Default: now.").String()
	days := c.Flag("days", "Days of the time range; 0: an hour.").Default("365").Int()
	drop := c.Flag("drop-caches", "Make the kernel forget what it has read of the disk before (root).").Bool()
	return func() error {
		text, err := os.ReadFile(*dashboard)
		if err != nil {
			return fmt.Errorf("history: %w", err)
		}
		end := time.Now()
		if *to != "" {
			if end, err = time.Parse(time.RFC3339, *to); err != nil {
				return fmt.Errorf("history: --to is %q; it must be a time such as 2026-11-30T00:00:00Z", *to)
			}
		}
		begin := end.AddDate(0, 0, -*days)
		if *days == 0 {
			begin = end.Add(-time.Hour)
		}
		if *drop {
			if err := opening.DropPageCache(); err != nil {
				return err
			}
		}
		results, took, err := opening.Page{Dashboard: text, Variables: *variables, From: begin, To: end}.Open(context.Background(), *address)
		if err != nil {
			return err
		}
		slices.SortFunc(results, func(a, b opening.Result) int { return int(b.Took - a.Took) })
		empty := 0
		for i, r := range results {
			if r.Series == 0 {
				empty++
			}
			if i < 5 {
				fmt.Printf("%8d ms  %6d series  %s\n", r.Took.Milliseconds(), r.Series, r.Panel)
			}
		}
		fmt.Printf("%8d ms  %d queries, %d without a result\n", took.Milliseconds(), len(results), empty)
		return nil
	}
}

// costCommand adds the command that measures what the rules cost.
func costCommand(app *kingpin.Application) func() error {
	c := app.Command("rules", "Evaluate all rules once over blocks, and print what each group takes of a processor.")
	from := c.Flag("from", "Directory of the blocks.").Required().ExistingDir()
	at := c.Flag("at", "Time of the evaluation, such as 2026-11-29T23:00:30Z: in a named day.").Required().String()
	each := c.Flag("each", "Print each rule, not the most expensive one of a group only.").Bool()
	return func() error {
		t, err := time.Parse(time.RFC3339, *at)
		if err != nil {
			return fmt.Errorf("history: --at is %q; it must be a time such as 2026-11-29T23:00:30Z", *at)
		}
		groups, err := cost.Evaluate(*from, t, func(n int) { fmt.Fprintf(os.Stderr, "\r%d series in memory", n) })
		if err != nil {
			return err
		}
		fmt.Fprintln(os.Stderr)
		fmt.Printf("%-32s %8s %8s %7s %8s  %s\n", "group", "interval", "CPU", "share", "series", "most expensive rule")
		for _, g := range groups {
			fmt.Printf("%-32s %8v %6.2f s %5.1f %% %8d  %.2f s %s\n", g.Name, g.Interval, g.CPU.Seconds(), 100*g.Share(), g.Series, g.Dearest().CPU.Seconds(), g.Dearest().Name)
			for _, r := range g.Rules {
				if *each {
					fmt.Printf("%-41s %6.2f s %16d  %s\n", "", r.CPU.Seconds(), r.Series, r.Name)
				}
			}
		}
		return nil
	}
}

// run makes the history of a scene.
func run(s *scene.Scene, profile metric.Profile, out, influx string) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return fmt.Errorf("history: %w", err)
	}
	text, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	if err := os.WriteFile(filepath.Join(out, "scene.json"), text, 0o644); err != nil {
		return fmt.Errorf("history: %w", err)
	}
	h := &history{scene: s, profile: profile, to: blocks.New(out), progress: os.Stderr}
	if influx == "" {
		return h.make()
	}
	f, err := os.Create(influx)
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	defer f.Close()
	h.lines = newLines(f, s.Paths)
	if err := h.make(); err != nil {
		return err
	}
	return h.lines.flush()
}
