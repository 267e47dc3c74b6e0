package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"oneway.example/exporter/core/record"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/core/unit"
)

const (
	// packetLinesEvery is the time between two looks at the recorded packets.
	packetLinesEvery = 100 * time.Millisecond
	// packetLinesQueue is the number of packets that may be recorded meanwhile.
	packetLinesQueue = 1 << 14
)

// printPackets prints a line for each packet whose outcome is known, as it becomes known, until stop is called.
func printPackets(out io.Writer, packets *record.Stream[record.Packet]) (stop func()) {
	listener := packets.Listen(packetLinesQueue)
	stopped, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(packetLinesEvery)
		defer tick.Stop()
		some := make([]record.Packet, 100)
		for more := true; more; {
			select {
			case <-tick.C:
			case <-stopped:
				more = false
			}
			for n, missed := len(some), uint64(0); n == len(some); {
				n, missed = listener.Take(some)
				for i := range some[:n] {
					fmt.Fprintln(out, packetLine(&some[i]))
				}
				if missed > 0 {
					fmt.Fprintln(out, unit.Counted(missed, "packet is", "packets are")+" not listed: this output is too slow for all of them")
				}
			}
		}
	}()
	return func() {
		listener.Close()
		close(stopped)
		<-ended
	}
}

// packetLine is "seq 3  forward 1.234 ms ± 0.056 ms  reverse 1.200 ms ± 0.056 ms  round trip 2.434 ms".
func packetLine(p *record.Packet) string {
	if p.Outcome == record.Lost {
		return fmt.Sprintf("seq %d  lost", p.Seq)
	}
	parts := []string{fmt.Sprintf("seq %d", p.Seq)}
	if p.Outcome == record.Late {
		parts = append(parts, "late, counted as lost")
	}
	for i, d := range []sample.Delay{p.Forward, p.Reverse} {
		if d.OK() {
			parts = append(parts, fmt.Sprintf("%s %s %s", sample.Direction(i), unit.Milliseconds(d.Value.Seconds()), unit.MillisecondsLimit(d.Bound.Seconds())))
		}
	}
	if trip, known := p.RoundTrip(); known {
		parts = append(parts, "round trip "+unit.Milliseconds(trip.Seconds()))
	}
	return strings.Join(parts, "  ")
}
