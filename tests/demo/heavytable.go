package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"oneway.example/exporter/sample"
	"oneway.example/tests/lab"
)

// collectHeavy asks Prometheus for what the runs of both directions have found.
func (s *stack) collectHeavy(ctx context.Context, profile lab.Profile) (rows []row, err error) {
	for _, d := range []struct {
		direction sample.Direction
		link      lab.Link
	}{{sample.Forward, profile.Forward}, {sample.Reverse, profile.Reverse}} {
		found, err := s.heavyRows(ctx, d.direction, d.link)
		if err != nil {
			return nil, err
		}
		rows = append(rows, found...)
	}
	return rows, nil
}

// paperTrains are those of the WPI report's figure 15 (EvDO, downlink): by UDP payload the
// median capacity, its 5th percentile in kb/s, and the mean dispersion in ms.
var paperTrains = map[int][3]float64{1472: {500, 500, 24}, 1200: {517, 491, 19}, 1000: {514, 484, 16}, 800: {510, 510, 13}}

// printTrains writes the trains of each size, beside the paper's if the link is its own.
func (s *stack) printTrains(ctx context.Context, out io.Writer, profile lab.Profile) error {
	beside := ""
	if profile.Name == "evdo" {
		beside = "Figure 15: median\t5th percentile\tdispersion\t"
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "trains\tdirection\tmedian\t5th percentile\tdispersion\t%s\n", beside)
	for _, dir := range sample.Directions() {
		for _, payload := range payloads {
			t, err := s.trains(ctx, dir, payload)
			if err != nil {
				return err
			}
			if t == nil {
				fmt.Fprintf(w, "%d B\t%s\trefused\t\t\t\n", payload, dir)
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
	return w.Flush()
}

// payloads are the trains' sizes, the largest first.
var payloads = [...]int{1472, 1200, 1000, 800}

// trains are median, 5th percentile and mean dispersion of a size; nil where the probe
// refused to answer.
func (s *stack) trains(ctx context.Context, dir sample.Direction, payload int) (*[3]float64, error) {
	labels := fmt.Sprintf(`%s,direction=%q,packet_bytes="%d"`, selector, dir, payload+28)
	var v [3]float64
	for i, q := range []string{
		`oneway_capacity_bytes_per_second{` + labels + `,q="0.5"}`, `oneway_capacity_bytes_per_second{` + labels + `,q="0.05"}`,
		`oneway_train_dispersion_seconds{` + labels + `}`,
	} {
		all, err := s.query(ctx, q)
		if err != nil || len(all) == 0 {
			return nil, err
		}
		if v[i], err = all[0].number(); err != nil {
			return nil, err
		}
	}
	return &v, nil
}

// capacity is that by the largest packets whose trains were clean.
func (s *stack) capacity(ctx context.Context, dir sample.Direction) (float64, error) {
	for _, payload := range payloads {
		t, err := s.trains(ctx, dir, payload)
		if err != nil {
			return 0, err
		}
		if t != nil {
			return t[0], nil
		}
	}
	return 0, fmt.Errorf("%s: no trains were clean; the run's report at /runs of the client's agent says why", dir)
}

// heavyRows are what the runs found of one direction. All count IP octets, header
// included and no link layer, as the profile's rate and queue do.
func (s *stack) heavyRows(ctx context.Context, dir sample.Direction, link lab.Link) ([]row, error) {
	labels := fmt.Sprintf(`{%s,direction=%q}`, selector, dir)
	v := map[string]float64{}
	for name, query := range map[string]string{
		"rate":  `oneway_udp_throughput_bytes_per_second` + labels,
		"delay": `oneway_queue_delay_seconds` + labels,
		"size":  `oneway_queue_size_bytes` + labels,
		"bound": `oneway_queue_size_error_bound_bytes` + labels,
	} {
		value, err := s.one(ctx, query)
		if err != nil {
			return nil, err
		}
		v[name] = value
	}
	capacity, err := s.capacity(ctx, dir)
	if err != nil {
		return nil, err
	}
	rate, queue := float64(link.Rate)/8, float64(link.Queue)
	if queue == 0 {
		queue = lab.DefaultQueue
	}
	name, packet := dir.String(), 1410/rate
	return []row{
		{
			Name: "udp_throughput_bytes_per_second", Direction: name, Configured: rate * (1 - link.Loss) * (1 - link.Corrupt), Measured: v["rate"], Unit: "bytes/s",
			Tolerance: 0.02 * rate, Why: "2 %; IP octets",
		},
		{
			Name: "queue_delay_seconds", Direction: name, Configured: queue / rate, Measured: v["delay"], Unit: "seconds",
			Tolerance: 0.05*queue/rate + 1.5*packet, Why: "5 %, and a packet and a half: what is let in leaves room for less than one",
		},
		{
			Name: "queue_size_bytes", Direction: name, Configured: queue, Measured: v["size"], Bound: v["bound"], Unit: "bytes",
			Tolerance: 0.05 * queue, Why: "5 %; IP octets",
		},
		{
			Name: "capacity_bytes_per_second", Direction: name, Configured: rate, Measured: capacity, Unit: "bytes/s",
			Tolerance: 0.05 * rate, Why: "5 %; IP octets of packet trains",
		},
	}, nil
}
