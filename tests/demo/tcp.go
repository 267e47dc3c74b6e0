package main

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/tests/lab"
	"oneway.example/tests/tcplog"
)

// tcpProbe has a fixed receive buffer, so that the window keeps the link busy and does not overflow its queue, and names
// the congestion control, whose default differs between hosts.
const tcpProbe = `      - type: tcp
        every: %[1]s
        token_file: %[2]s
        pin: %[3]s
        duration: 8s
        omit: 1s
        congestion_control: [cubic]
        receive_buffer_bytes: %[7]d
        max_wait: 10m
`

// The part of a transfer that the probe evaluates.
const (
	tcpFrom = 1 * time.Second
	tcpTo   = 8 * time.Second
)

// segment is the payload of a full packet of 1500 bytes: headers of IPv4 and TCP, with timestamps.
const segment = lab.MTU - 20 - 20 - 12

// tcpWindow is a window, in bytes, of one and a half times what fills the faster direction, if both queues hold that;
// 0, for auto-tuning, if not.
func tcpWindow(p lab.Profile) int {
	window, most := 0.0, 0.0
	for i, l := range []lab.Link{p.Forward, p.Reverse} {
		rate := float64(l.MeanRate()) / 8
		path := rate * (p.Forward.Delay + p.Reverse.Delay + p.Forward.Jitter + p.Reverse.Jitter).Seconds()
		window = max(window, 1.5*path)
		if room := path + float64(l.Queue); i == 0 || room < most {
			most = room
		}
	}
	if window > most {
		return 0
	}
	return max(int(window), 4*lab.MTU)
}

// steady reports whether TCP with that window can use the whole rate: a link with a queue and no faults.
func steady(p lab.Profile) bool {
	plain := func(l lab.Link) bool {
		return l.Queue > 0 && reflect.DeepEqual(l, lab.Link{Rate: l.Rate, Delay: l.Delay, Jitter: l.Jitter, Queue: l.Queue})
	}
	return plain(p.Forward) && plain(p.Reverse) && tcpWindow(p) > 0
}

// requestECN makes the client's connections negotiate ECN, where the host permits it.
func (s *stack) requestECN() {
	err := s.network.Client.Do(func() error { return os.WriteFile("/proc/sys/net/ipv4/tcp_ecn", []byte("1"), 0) })
	if err != nil {
		step("TCP does not negotiate ECN here: %v", err)
	}
}

// tcpRows are the throughput, the delay of the data, and the verdict about split TCP of the last run of probe tcp. On a link
// with faults they depend on the congestion control, and there is no row.
func (s *stack) tcpRows(ctx context.Context, profile lab.Profile, after time.Time) (rows []row) {
	if !steady(profile) {
		return nil
	}
	r := s.lastRun(ctx, "tcp", after)
	for i, link := range []lab.Link{profile.Forward, profile.Reverse} {
		d, rate := sample.Direction(i), float64(link.MeanRate())/8*segment/lab.MTU
		ends := 2 * segment / (tcpTo - tcpFrom).Seconds()
		one := row{
			Name: "tcp_throughput_bytes_per_second", Direction: d.String(), Configured: rate, Unit: "bytes/s",
			Measured:  s.value(ctx, fmt.Sprintf(`oneway_tcp_throughput_bytes_per_second{%s,direction=%q}`, selector, d)),
			Tolerance: 0.03*rate + ends, Why: "3 %, and a segment at each end; payload",
		}
		var logged *tcplog.Connection
		if r != nil {
			if all := s.connections(d, r); len(all) == 1 {
				logged = &all[0]
				one.Truth = exactly(all[0].Between(tcpFrom, tcpTo).Throughput)
				one.Tolerance, one.Why = 0.02*rate+ends, "2 %, as the receiver's samples are 100 ms apart, and a segment at each end; payload"
			}
		}
		rows = append(rows, s.reported(ctx, "tcp", r, d, append([]row{one}, s.tcpDataRows(ctx, profile, d, link, logged)...))...)
	}
	return rows
}
