package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/term"

	"oneway.example/exporter/probes/stamp"
	"oneway.example/exporter/sample"
)

// printReport writes the table for people: one column a direction.
func printReport(out io.Writer, r stamp.Report) error {
	if r.RoundTrip.Received == 0 {
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "%s (%s reflector)\tforward\treverse\tround trip\t\n", r.Peer, r.Reflector)
	count := func(name string, get func(*stamp.DirectionReport) *uint64, trip string) {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t\n", name, number(get(&r.Forward)), number(get(&r.Reverse)), trip)
	}
	count("sent", func(d *stamp.DirectionReport) *uint64 { return d.Sent }, "")
	count("received", func(d *stamp.DirectionReport) *uint64 { return d.Received }, strconv.FormatUint(r.RoundTrip.Received, 10))
	count("lost", func(d *stamp.DirectionReport) *uint64 { return d.Lost }, strconv.FormatUint(r.RoundTrip.Lost, 10))
	count("in flight", func(d *stamp.DirectionReport) *uint64 { return d.InFlight }, "")
	count("duplicated", func(d *stamp.DirectionReport) *uint64 { return d.Duplicated }, "")
	count("reordered", func(d *stamp.DirectionReport) *uint64 { return d.Reordered }, "")
	count("late", func(d *stamp.DirectionReport) *uint64 { return d.Late }, "")
	count("corrupted", func(d *stamp.DirectionReport) *uint64 { return d.Corrupted }, "")
	fmt.Fprintln(w, "\t\t\t\t")
	fwd, rev, rtt := orEmpty(r.Forward.Delay), orEmpty(r.Reverse.Delay), orEmpty(r.RoundTrip.Time)
	for _, row := range []struct {
		name string
		get  func(stamp.Distribution) *float64
	}{
		{"delay min", func(d stamp.Distribution) *float64 { return d.Min }},
		{"delay p50", func(d stamp.Distribution) *float64 { return d.P50 }},
		{"delay p95", func(d stamp.Distribution) *float64 { return d.P95 }},
		{"delay p99", func(d stamp.Distribution) *float64 { return d.P99 }},
		{"delay max", func(d stamp.Distribution) *float64 { return d.Max }},
		{"error bound ±", func(d stamp.Distribution) *float64 { return d.ErrorBound }},
	} {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t\n", row.name, seconds(row.get(fwd)), seconds(row.get(rev)), seconds(row.get(rtt)))
	}
	fmt.Fprintf(w, "PDV p95\t%s\t%s\t\t\n", seconds(orEmpty(r.Forward.PDV).P95), seconds(orEmpty(r.Reverse.PDV).P95))
	fmt.Fprintf(w, "jitter (RFC 3550)\t%s\t%s\t\t\n", seconds(r.Forward.Jitter), seconds(r.Reverse.Jitter))
	for i, v := range r.Forward.Voice {
		if i < len(r.Reverse.Voice) {
			fmt.Fprintf(w, "R %s, %s\t%.1f\t%.1f\t\t\n", v.Codec, v.Model, v.R, r.Reverse.Voice[i].R)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return printNotes(out, r)
}

// printNotes says what a person must know to read the table right.
func printNotes(out io.Writer, r stamp.Report) error {
	var notes []string
	if r.SharedClock {
		notes = append(notes, "both ends run on one kernel and read one clock; no clock need be disciplined for these delays")
	}
	for _, d := range []struct {
		name   string
		report stamp.DirectionReport
	}{{"forward", r.Forward}, {"reverse", r.Reverse}} {
		for _, reason := range sortedKeys(d.report.Invalid) {
			notes = append(notes, d.name+": "+whyInvalid(reason, d.report.Invalid[reason]))
		}
		if n := d.report.HostDropped; n != nil && *n > 0 {
			notes = append(notes, fmt.Sprintf("%s: %d packets were dropped by the receiving host itself, not by the path: it is too busy, or its buffer too small (net.core.rmem_max)", d.name, *n))
		}
		if d.report.LowConfidence > 0 {
			notes = append(notes, fmt.Sprintf("%s: %d delays are smaller than their own error bound: not even their sign is known", d.name, d.report.LowConfidence))
		}
		if d.report.Negative > 0 {
			notes = append(notes, fmt.Sprintf("%s: %d negative delays: beyond the error bound, one of the clocks is wrong", d.name, d.report.Negative))
		}
	}
	for _, reason := range sortedKeys(r.Skipped) {
		notes = append(notes, fmt.Sprintf("%d test packets not sent: %s", r.Skipped[reason], strings.ReplaceAll(reason, "_", " ")))
	}
	for _, reason := range sortedKeys(r.Discarded) {
		notes = append(notes, fmt.Sprintf("%d arrivals discarded: %s", r.Discarded[reason], strings.ReplaceAll(reason, "_", " ")))
	}
	if r.Reflector == "stateless" && r.RoundTrip.Lost > 0 {
		notes = append(notes, "the reflector does not number its answers: losses cannot be told by direction")
	}
	for _, n := range notes {
		if _, err := fmt.Fprintln(out, "note:", n); err != nil {
			return err
		}
	}
	return nil
}

// whyInvalid says why delays are not reported, and what can be done.
func whyInvalid(reason string, n uint64) string {
	if reason != sample.BoundTooLarge.String() {
		return fmt.Sprintf("%d delays without a bound: %s", n, strings.ReplaceAll(reason, "_", " "))
	}
	return fmt.Sprintf("%d delays are not reported: an end claims an error bound above an hour, or below zero", n)
}

func sortedKeys(m map[string]uint64) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func orEmpty(d *stamp.Distribution) stamp.Distribution {
	if d == nil {
		return stamp.Distribution{}
	}
	return *d
}

func number(n *uint64) string {
	if n == nil {
		return "-"
	}
	return strconv.FormatUint(*n, 10)
}

// seconds prints a value of seconds in milliseconds, or "-" where there is none.
func seconds(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.3f ms", *v*1e3)
}

// liveLine is the one line that a terminal shows while a run goes on; nothing
// is shown where standard error is no terminal.
type liveLine struct {
	out      io.Writer
	terminal bool
	count    uint64
	interval time.Duration
	width    int
}

func newLiveLine(out io.Writer, count uint64, interval time.Duration) *liveLine {
	f, ok := out.(*os.File)
	return &liveLine{out: out, terminal: ok && term.IsTerminal(int(f.Fd())), count: count, interval: interval}
}

func (l *liveLine) show(r stamp.Report) {
	if !l.terminal || r.Forward.Sent == nil {
		return
	}
	sent := *r.Forward.Sent
	left := ""
	if l.count > sent {
		left = fmt.Sprintf("  %v left", (time.Duration(l.count-sent) * l.interval).Round(time.Second))
	}
	line := fmt.Sprintf("%d sent  %d answered  forward %s  reverse %s%s", sent, r.RoundTrip.Received,
		seconds(orEmpty(r.Forward.Delay).P50), seconds(orEmpty(r.Reverse.Delay).P50), left)
	fmt.Fprintf(l.out, "\r%-*s", l.width, line)
	l.width = len(line)
}

func (l *liveLine) clear() {
	if l.terminal && l.width > 0 {
		fmt.Fprintf(l.out, "\r%-*s\r", l.width, "")
	}
}

// peerWithPort joins a host and the --port flag.
func peerWithPort(host string, port uint16) string {
	if port == 0 {
		return host
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), strconv.Itoa(int(port)))
}
