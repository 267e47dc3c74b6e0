package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/tests/lab"
)

// reported sets the reasons of a run's rows without a value: from its report, or from the agent if there is none.
func (s *stack) reported(ctx context.Context, probe string, r *run, d sample.Direction, rows []row) []row {
	for i := range rows {
		if rows[i].Measured != nil {
			continue
		}
		if r != nil && rows[i].Reason == "" {
			rows[i].Reason = r.why(d)
		}
		if rows[i].Reason == "" {
			rows[i].Reason = s.probeSays(ctx, probe)
		}
	}
	return rows
}

// saturationRows are the results of the last run of probe saturation. All count IP bytes, header included and no link
// layer, like the profile's rate and queue and the link's log.
func (s *stack) saturationRows(ctx context.Context, profile lab.Profile, after time.Time) (rows []row) {
	r := s.lastRun(ctx, "saturation", after)
	for i, link := range []lab.Link{profile.Forward, profile.Reverse} {
		d := sample.Direction(i)
		v := map[string]*float64{}
		for _, name := range []string{"udp_throughput_bytes_per_second", "queue_size_bytes", "queue_size_error_bound_bytes"} {
			v[name] = s.value(ctx, "oneway_"+name+of(d))
		}
		for _, name := range []string{"queue_delay_seconds", "queue_delay_error_bound_seconds"} {
			v[name] = s.value(ctx, fmt.Sprintf(`oneway_%s{%s,direction=%q,quantile_rank="0.5"}`, name, selector, d))
		}
		rows = append(rows, s.reported(ctx, "saturation", r, d, loadRows(d, link, v, newLoadLog(s.network.Log(d), d, r)))...)
	}
	return rows
}

// loadRows compares one direction with the link's log.
func loadRows(d sample.Direction, link lab.Link, v map[string]*float64, truth *loadLog) []row {
	rate, queue := float64(link.MeanRate())/8, float64(link.Queue)
	if queue == 0 {
		queue = lab.DefaultQueue
	}
	throughput := row{
		Name: "udp_throughput_bytes_per_second", Configured: rate * (1 - link.Loss) * (1 - link.Corrupt), Measured: v["udp_throughput_bytes_per_second"], Unit: "bytes/s",
		Tolerance: 0.02 * rate, Why: "2 %; IP bytes",
	}
	delay := row{
		Name: "queue_delay_seconds", Configured: queue / rate, Measured: v["queue_delay_seconds"], Bound: orZero(v["queue_delay_error_bound_seconds"]), Unit: "seconds",
		Tolerance: 0.05*queue/rate + 1.5*loadBytes/rate, Why: "5 %, and a packet and a half: what is let in leaves space for less than one",
	}
	size := row{
		Name: "queue_size_bytes", Configured: queue, Measured: v["queue_size_bytes"], Bound: orZero(v["queue_size_error_bound_bytes"]), Unit: "bytes",
		Tolerance: 0.05 * queue, Why: "5 %; IP bytes",
	}
	if truth != nil {
		if throughput.Truth = truth.throughput(); throughput.Truth != nil && 2*loadBytes < throughput.Tolerance {
			throughput.Tolerance, throughput.Why = 2*loadBytes, "of a second two packets, one at each end"
		}
		if delay.Truth = truth.queueDelay(); delay.Truth != nil {
			delay.Tolerance, delay.Why = loadBytes/rate, "a packet, by which a queue that is called full may have drained; the median"
		}
		if size.Truth = truth.queueSize(); size.Truth != nil {
			size.Tolerance, size.Why = 0, "the bound is all that the size may be off"
		}
	}
	rows := []row{throughput, delay, size}
	for i := range rows {
		rows[i].Direction = d.String()
	}
	return rows
}

// trainRows are the capacities of the last run of probe train.
func (s *stack) trainRows(ctx context.Context, profile lab.Profile, after time.Time) (rows []row) {
	r := s.lastRun(ctx, "train", after)
	for i, link := range []lab.Link{profile.Forward, profile.Reverse} {
		d, rate := sample.Direction(i), float64(link.MeanRate())/8
		one := row{
			Name: "capacity_bytes_per_second", Direction: d.String(), Configured: rate, Unit: "bytes/s",
			Tolerance: 0.05 * rate, Why: "5 %; IP bytes of packet trains",
		}
		if link.Trace != nil {
			one.Undefined = "the link's rate moves: it has no one capacity"
		}
		for _, payload := range payloads { // the largest with clean trains
			t := s.trains(ctx, d, payload)
			if t == nil {
				continue
			}
			of := fmt.Sprintf("{%s,direction=%q}", selector, d)
			one.Measured = s.value(ctx, "oneway_path_capacity_bytes_per_second"+of)
			one.Bound = orZero(s.value(ctx, "oneway_path_capacity_error_bound_bytes_per_second"+of))
			if one.Truth = trainCapacity(s.network.Log(d), d, r, payload); one.Truth != nil {
				one.Tolerance, one.Why = 0.01*rate, "1 %: the timestamps at both ends of a train, and first packets omitted after a pause"
			}
			break
		}
		rows = append(rows, s.reported(ctx, "train", r, d, []row{one})...)
	}
	s.trainTable.Reset()
	s.printTrains(ctx, &s.trainTable, profile)
	return rows
}

// paperTrains are those of the WPI report's figure 15 (EvDO, downlink): by UDP payload the median capacity, its 5th
// percentile in kb/s, and the mean dispersion in ms.
var paperTrains = map[int][3]float64{1472: {500, 500, 24}, 1200: {517, 491, 19}, 1000: {514, 484, 16}, 800: {510, 510, 13}}

// printTrains prints the trains of each size, with the paper's values if the link is the paper's.
func (s *stack) printTrains(ctx context.Context, out io.Writer, profile lab.Profile) {
	beside := ""
	if profile.Name == "evdo" {
		beside = "Figure 15: median\t5th percentile\tdispersion\t"
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "trains\tdirection\tmedian\t5th percentile\tdispersion\t%s\n", beside)
	for _, dir := range sample.Directions() {
		for _, payload := range payloads {
			t := s.trains(ctx, dir, payload)
			if t == nil {
				fmt.Fprintf(w, "%d B\t%s\tuntold\t\t\t\n", payload, dir)
				continue
			}
			fmt.Fprintf(w, "%d B\t%s\t%.0f kb/s\t%.0f kb/s\t%.1f ms\t", payload, dir, 8*t[0]/1e3, 8*t[1]/1e3, 1e3*t[2])
			if p := paperTrains[payload]; beside != "" && dir == sample.Reverse {
				fmt.Fprintf(w, "%.0f kb/s\t%.0f kb/s\t%.1f ms\t", p[0], p[1], p[2])
			}
			fmt.Fprintln(w)
		}
	}
	fmt.Fprintln(w)
	s.failed(w.Flush())
}

// payloads are the trains' sizes, the largest first.
var payloads = [...]int{1472, 1200, 1000, 800}

// headers are those of UDP and IPv4.
const headers = 28

// trains are median, 5th percentile and mean dispersion of a size; nil if the probe refused a result.
func (s *stack) trains(ctx context.Context, dir sample.Direction, payload int) *[3]float64 {
	labels := fmt.Sprintf(`%s,direction=%q,packet_bytes="%d"`, selector, dir, payload+headers)
	var v [3]float64
	for i, q := range []string{
		`oneway_capacity_bytes_per_second{` + labels + `,quantile_rank="0.5"}`, `oneway_capacity_bytes_per_second{` + labels + `,quantile_rank="0.05"}`,
		`oneway_train_dispersion_seconds{` + labels + `}`,
	} {
		one := s.value(ctx, q)
		if one == nil {
			return nil
		}
		v[i] = *one
	}
	return &v
}
