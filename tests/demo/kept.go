package main

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/tests/lab"
)

// linkSummary is a direction's summary of the link's log, to explain rows.
type linkSummary struct {
	Direction string     `json:"direction"`
	Logged    lab.Counts `json:"logged_packets"`
	Others    lab.Counts `json:"other_packets"`
	// Late is the lateness of departures: the median, 99 % and the maximum. This machine causes it; it is part of the
	// true delay, and so of the truth of all rows.
	Late [3]time.Duration `json:"late_ns"`
	// Stalls are the times of the largest lateness, in descending order.
	Stalls []stall `json:"stalls"`
}

type stall struct {
	At   time.Time     `json:"at"`
	Late time.Duration `json:"late_ns"`
}

// keep writes files for later inspection: the link's log, complete and summarized, and the agents' final status.
// Agents' logs and the runs' reports exist already.
func (s *stack) keep(ctx context.Context) error {
	var all []linkSummary
	var errs []error
	for _, d := range sample.Directions() {
		log := s.network.Log(d)
		all = append(all, summarize(s.network, d, log))
		errs = append(errs, writeLog(filepath.Join(s.dir, "link-"+d.String()+".csv.gz"), log))
	}
	text, err := json.MarshalIndent(all, "", "  ")
	errs = append(errs, err, os.WriteFile(filepath.Join(s.dir, "link.json"), append(text, '\n'), 0o644))
	for name, at := range s.agents {
		for file, path := range map[string]string{name + "-status.json": "/api/v1/status", name + "-metrics.txt": "/metrics"} {
			if body, err := get(ctx, at+path); err == nil { // an agent that has ended does not reply
				errs = append(errs, os.WriteFile(filepath.Join(s.dir, file), body, 0o644))
			}
		}
	}
	return errors.Join(errs...)
}

func summarize(network *lab.Lab, d sample.Direction, log []lab.Record) linkSummary {
	out := linkSummary{Direction: d.String()}
	out.Logged, out.Others = network.Counts(d)
	var late []time.Duration
	for i := range log {
		r := &log[i]
		if r.Outcome != lab.Delivered {
			continue
		}
		late = append(late, r.Late())
		// One stall delays many packets: those within a second of another are omitted.
		at := r.Exit.After.Time()
		k := slices.IndexFunc(out.Stalls, func(s stall) bool { return at.Sub(s.At).Abs() < time.Second })
		switch {
		case r.Late() < time.Millisecond:
		case k < 0:
			out.Stalls = append(out.Stalls, stall{at, r.Late()})
		case out.Stalls[k].Late < r.Late():
			out.Stalls[k] = stall{at, r.Late()}
		}
	}
	slices.SortFunc(out.Stalls, func(a, b stall) int { return int(b.Late - a.Late) })
	out.Stalls = out.Stalls[:min(len(out.Stalls), 20)]
	slices.Sort(late)
	if n := len(late); n > 0 {
		out.Late = [3]time.Duration{late[n/2], late[n*99/100], late[n-1]}
	}
	return out
}

// writeLog writes the log, one line per packet, times in ns.
func writeLog(file string, log []lab.Record) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	packed := gzip.NewWriter(f)
	w := bufio.NewWriter(packed)
	fmt.Fprintln(w, "key,size,queued,entry_ns,departure_ns,due_ns,exit_after_ns,exit_before_ns,copy_before_ns,outcome,corrupted,overtaken")
	for i := range log {
		r := &log[i]
		fmt.Fprintf(w, "%#x,%d,%d,%d,%d,%d,%d,%d,%d,%v,%t,%d\n", r.Key, r.Size, r.Queued, int64(r.Entry), int64(r.Departure), int64(r.Due),
			int64(r.Exit.After), int64(r.Exit.Before), int64(r.Copy.Before), r.Outcome, r.Corrupted, r.Overtaken)
	}
	return errors.Join(w.Flush(), packed.Close(), f.Close())
}

// where prints the locations of the files.
func (s *stack) where(out io.Writer, report string) {
	fmt.Fprintf(out, "  kept in %s: the table (%s), the runs' reports (runs/), the link's log (link.json, link-*.csv.gz),\n"+
		"  the agents' final status (*-status.json, *-metrics.txt), and the logs of all programs (*.log)\n\n", s.shown, filepath.Base(report))
}
