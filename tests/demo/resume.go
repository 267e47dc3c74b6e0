package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"oneway.example/tests/lab"
)

// resumedEvery is longer than all probes take one after the other, so that the link is idle in between.
const resumedEvery = "10m"

// resumedProbes run only after the table, if the demo keeps running: with those of the table they fill every page of
// Grafana. They are short, and sized for a person who watches.
const resumedProbes = `      - type: size_sweep
        every: %[1]s
        token_file: %[2]s
        pin: %[3]s
        packet_bytes: [64, 512, 1500]
        packet_rates: [20, 100, 500]
        cell_duration: 2s
        max_wait: 10m
      - type: tcp_sweep
        every: %[1]s
        token_file: %[2]s
        pin: %[3]s
        congestion_control: [cubic]
        send_buffer_bytes: [17KiB, 64KiB, 256KiB, auto]
        cell_duration: 2s
        omit: 500ms
        max_wait: 10m
      - type: tcp
        name: tcp-4-flows
        every: %[1]s
        token_file: %[2]s
        pin: %[3]s
        duration: 6s
        flows: 4
        congestion_control: [cubic, reno]
        max_wait: 10m
      - type: tcp
        name: tcp-two-way
        every: %[1]s
        token_file: %[2]s
        pin: %[3]s
        directions: [reverse, forward]
        duration: 20s
        overlap_start: 5s
        overlap_duration: 10s
        congestion_control: [cubic]
        max_wait: 10m
      - type: tcp_short
        every: %[1]s
        token_file: %[2]s
        pin: %[3]s
        flow_bytes: [10kB, 100kB]
        repetitions: 8
        congestion_control: cubic
        max_wait: 10m
      - type: message
        every: %[1]s
        token_file: %[2]s
        pin: %[3]s
        duration: 3s
        congestion_control: cubic
        max_wait: 10m
`

// resume runs all probes concurrently, while the demo keeps running.
func (s *stack) resume(ctx context.Context, profile lab.Profile) error {
	probes, err := s.loadTestProbes(ctx, profile, saturationProbe+trainProbe+tcpProbe+resumedProbes, resumedEvery)
	if err != nil {
		return err
	}
	bare, _, _ := strings.Cut(s.configs["client"], "      - type: stamp")
	light := fmt.Sprintf(stampProbe, s.pace, lossTimeout, lookWindow)
	return errors.Join(s.reload(ctx, "server", s.configs["server"]), s.reload(ctx, "client", bare+light+probes))
}
