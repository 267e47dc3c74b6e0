package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"oneway.example/exporter/estimate/voice"
	"oneway.example/exporter/sample"
	"oneway.example/tests/lab"
)

// row is one line of the table: what the link was configured to do and what
// the agents measured, as Prometheus scraped it.
type row struct {
	// Name is the quantity, as the metric names it; unit is at its end.
	Name      string `json:"name"`
	Direction string `json:"direction"`
	// Configured is the profile's value, or what follows from it.
	Configured float64 `json:"configured"`
	Measured   float64 `json:"measured"`
	// Bound is the error bound that oneway states for its value; 0 where it has none.
	Bound float64 `json:"bound"`
	Unit  string  `json:"unit"`
	// Tolerance is how far the two may be apart; Why it is that much.
	Tolerance float64 `json:"tolerance"`
	Why       string  `json:"tolerance_reason"`
}

func (r row) within() bool {
	return math.Abs(r.Measured-r.Configured) <= r.Tolerance+r.Bound
}

// collect asks Prometheus for everything the table shows.
func (s *stack) collect(ctx context.Context, profile lab.Profile) ([]row, error) {
	var rows []row
	trip := time.Duration(0)
	for _, d := range []struct {
		direction sample.Direction
		link      lab.Link
	}{{sample.Forward, profile.Forward}, {sample.Reverse, profile.Reverse}} {
		found, err := s.direction(ctx, d.direction, d.link)
		if err != nil {
			return nil, err
		}
		rows = append(rows, found...)
		trip += d.link.Delay
	}
	rtt, err := s.one(ctx, fmt.Sprintf(`min_over_time(oneway_round_trip_time_min_seconds{%s}[1m])`, selector))
	if err != nil {
		return nil, err
	}
	return append(rows, row{
		Name: "round_trip_time_min_seconds", Direction: "both", Configured: trip.Seconds(), Measured: rtt, Unit: "seconds",
		Tolerance: 2*delayTolerance.Seconds() + s.jitterLeft(profile), Why: "twice that of a one-way delay; that both directions have no jitter at once is rare",
	}), nil
}

// jitterLeft is how far above the least round trip the least of a minute is with four times
// the luck that it takes: the sum of two uniform jitters is below x with x^2/(2 J1 J2).
func (s *stack) jitterLeft(p lab.Profile) float64 {
	n := time.Minute.Seconds() / s.pace.Seconds()
	a, b := p.Forward.Jitter.Seconds(), p.Reverse.Jitter.Seconds()
	if a == 0 || b == 0 {
		return 4 * (a + b) / n
	}
	return 4 * math.Sqrt(2*a*b/n)
}

const selector = `job="oneway",path="client-to-server"`

// delayTolerance is the lab's own precision, not ours: its wake-ups on a busy
// host. The truth of single packets is compared in tests/grid.
const delayTolerance = 300 * time.Microsecond

func (s *stack) direction(ctx context.Context, dir sample.Direction, link lab.Link) ([]row, error) {
	labels := fmt.Sprintf(`{%s,direction=%q}`, selector, dir)
	v := map[string]float64{}
	for name, query := range map[string]string{
		"min":    `min_over_time(oneway_delay_min_seconds` + labels + `[1m])`,
		"median": `quantile_over_time(0.5, oneway_delay_quantile_seconds` + strings.Replace(labels, `}`, `,q="0.5"}`, 1) + `[1m])`,
		"bound":  `max_over_time(oneway_delay_error_bound_seconds` + labels + `[1m])`,
		"recv":   `oneway_packets_received_total` + labels,
		"lost":   `oneway_packets_lost_total` + labels,
		// In one query: a scrape between two would tell them apart.
		"unaccounted": strings.ReplaceAll(`oneway_packets_sent_total@ - oneway_packets_received_total@ - oneway_packets_lost_total@ - oneway_packets_in_flight@`, "@", labels),
		"dup":         `oneway_packets_duplicated_total` + labels,
		"corr":        `oneway_packets_corrupted_total` + labels,
		"r":           `quantile_over_time(0.5, oneway_voice_r_factor{` + selector + fmt.Sprintf(`,direction=%q,codec="G.711-PLC",model="g107",buffer="adaptive"}[1m])`, dir),
	} {
		value, err := s.one(ctx, query)
		if err != nil {
			return nil, err
		}
		v[name] = value
	}
	stamped, err := s.coverage(ctx)
	if err != nil {
		return nil, err
	}
	tol, name := delayTolerance.Seconds(), dir.String()
	decided := v["recv"] + v["lost"]
	lossConfigured := 1 - (1-link.Loss)*(1-link.Corrupt)
	rating, err := expectedR(link, lossConfigured)
	if err != nil {
		return nil, err
	}
	return []row{
		{
			Name: "delay_min_seconds", Direction: name, Configured: link.Delay.Seconds(), Measured: v["min"], Bound: v["bound"], Unit: "seconds",
			Tolerance: tol, Why: "precision of the emulated link",
		},
		{
			Name: "delay_median_seconds", Direction: name, Configured: (link.Delay + link.Jitter/2).Seconds(), Measured: v["median"], Bound: v["bound"], Unit: "seconds",
			Tolerance: tol + 0.15*link.Jitter.Seconds(), Why: "precision of the emulated link; with jitter, its spread and order",
		},
		{
			Name: "loss_ratio", Direction: name, Configured: lossConfigured, Measured: v["lost"] / decided, Unit: "ratio",
			Tolerance: chance(lossConfigured, decided), Why: "four standard deviations of chance, and one packet",
		},
		{
			Name: "duplicated_ratio", Direction: name, Configured: link.Duplicate, Measured: v["dup"] / v["recv"], Unit: "ratio",
			Tolerance: chance(link.Duplicate, decided), Why: "four standard deviations of chance, and one packet",
		},
		{
			Name: "corrupted_ratio", Direction: name, Configured: link.Corrupt, Measured: v["corr"] / (v["recv"] + v["corr"]), Unit: "ratio",
			Tolerance: chance(link.Corrupt, decided) + link.Corrupt*link.Duplicate, Why: "four standard deviations of chance, and one packet",
		},
		{
			Name: "packets_unaccounted", Direction: name, Configured: 0, Measured: v["unaccounted"], Unit: "packets",
			Why: "sent = received + lost + in flight, exactly",
		},
		{
			Name: "stamp_coverage_ratio", Direction: name, Configured: 1, Measured: stamped[dir], Unit: "ratio",
			Tolerance: 0.001 + link.Loss, Why: "kernel stamps at both ends of 99.9 % of packets; lost answers may lose one",
		},
		{
			Name: "voice_r_factor", Direction: name, Configured: rating, Measured: v["r"], Unit: "R",
			Tolerance: 2 + 400*chance(lossConfigured, 250), Why: "a window of 5 s, the playout buffer",
		},
	}, nil
}

// chance is how far a ratio p among n may be off by luck.
func chance(p, n float64) float64 { return 4*math.Sqrt(p*(1-p)/n) + 1.5/n }

// coverage is, by direction, the share of samples whose two stamps are the
// kernel's own (T1 and T2; T3 and T4).
func (s *stack) coverage(ctx context.Context) (map[sample.Direction]float64, error) {
	at := func(event, origins string) (float64, error) {
		return s.one(ctx, fmt.Sprintf(`sum(oneway_timestamps_total{%s,event=%q,origin=~%q}) / (sum(oneway_timestamps_total{%[1]s,event=%[2]q}) + (sum(oneway_timestamps_missing_total{%[1]s,event=%[2]q}) or vector(0)))`, selector, event, origins))
	}
	out := map[sample.Direction]float64{}
	for d, events := range map[sample.Direction][2]string{sample.Forward: {"t1", "t2"}, sample.Reverse: {"t3", "t4"}} {
		out[d] = 1
		for _, e := range events {
			v, err := at(e, "kernel|hardware|follow_up")
			if err != nil {
				return nil, err
			}
			out[d] = min(out[d], v)
		}
	}
	return out, nil
}

// expectedR is what G.107 says of the configured path with a G.711 call and an
// adaptive playout buffer, which holds 10 ms at the least.
func expectedR(link lab.Link, lossRatio float64) (float64, error) {
	codec, err := voice.CodecByName("G.711-PLC")
	if err != nil {
		return 0, err
	}
	model, err := voice.ModelByName("g107")
	if err != nil {
		return 0, err
	}
	const decided = 1e6
	path := voice.Path{Delay: link.Delay, Decided: decided, Lost: uint64(lossRatio * decided), Bursts: uint64(lossRatio * (1 - lossRatio) * decided)}
	buffer := voice.Buffered{Played: decided - path.Lost, Delay: max(10*time.Millisecond, link.Jitter)}
	a, _ := path.Assess(codec, buffer, voice.Defaults(), model)
	return a.R, nil
}

// printTable writes the table for people.
func printTable(out io.Writer, profile string, rows []row) error {
	fmt.Fprintf(out, "\n%s: configured and measured\n\n", profile)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "quantity\tdirection\tconfigured\tmeasured\tbound\terror\t\t")
	for _, r := range rows {
		verdict := "ok"
		if !r.within() {
			verdict = "OUTSIDE"
		}
		bound := "-"
		if r.Bound > 0 {
			bound = "± " + figure(r.Bound, r.Unit)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", r.Name, r.Direction, figure(r.Configured, r.Unit), figure(r.Measured, r.Unit), bound, figure(r.Measured-r.Configured, r.Unit), verdict)
	}
	fmt.Fprintln(w)
	return w.Flush()
}

func figure(v float64, unit string) string {
	switch unit {
	case "seconds":
		return fmt.Sprintf("%.3f ms", 1e3*v)
	case "ratio":
		return fmt.Sprintf("%.3f %%", 100*v)
	case "packets":
		return fmt.Sprintf("%.0f", v)
	case "bytes":
		return fmt.Sprintf("%.1f kB", v/1e3)
	case "bytes/s":
		return fmt.Sprintf("%.1f kB/s", v/1e3)
	}
	return fmt.Sprintf("%.1f", math.Round(10*v)/10+0)
}

func writeReport(file string, rows []row) error {
	text, err := json.MarshalIndent(rows, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

// outside names the rows that are not within their tolerance.
func outside(rows []row) (names []string) {
	for _, r := range rows {
		if !r.within() {
			names = append(names, r.Name+" "+r.Direction)
		}
	}
	return names
}
