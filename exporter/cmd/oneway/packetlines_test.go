package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/core/sample"
)

func TestPacketHasALineWithWhatIsKnown(t *testing.T) {
	at := func(ms int64) sample.Stamp {
		return sample.Stamp{At: instant.FromUnix(1_780_000_000, 0).Add(time.Duration(ms) * time.Millisecond), Origin: sample.Kernel}
	}
	answered := record.Packet{Packet: sample.Packet{Seq: 3, T1: at(0), T2: at(10), T3: at(11), T4: at(31)}}
	answered.Forward = sample.Delay{Value: 10 * time.Millisecond, Bound: 250 * time.Microsecond, Reason: sample.OK}
	answered.Reverse = sample.Delay{Value: 20 * time.Millisecond, Bound: 250 * time.Microsecond, Reason: sample.OK}
	withoutClock, late := answered, answered
	withoutClock.Forward.Reason, withoutClock.Reverse.Reason = sample.NoClock, sample.NoClock
	late.Outcome = record.Late
	for want, p := range map[string]record.Packet{
		"seq 3  forward 10.000 ms ± 0.251 ms  reverse 20.000 ms ± 0.251 ms  round trip 30.000 ms": answered,
		"seq 3  round trip 30.000 ms": withoutClock,
		"seq 3  late, counted as lost  forward 10.000 ms ± 0.251 ms  reverse 20.000 ms ± 0.251 ms  round trip 30.000 ms": late,
		"seq 7  lost": {Outcome: record.Lost, Packet: sample.Packet{Seq: 7, T1: at(0)}},
	} {
		if got := packetLine(&p); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestVerbosePrintsEachPacketAndThenTheTable: also when the lines go beside a document.
func TestVerbosePrintsEachPacketAndThenTheTable(t *testing.T) {
	for _, json := range []bool{false, true} {
		var out, progress bytes.Buffer
		f := stampFlags(probeFlags{host: startReflector(t), count: 5, json: json, verbose: true, clock: clockFlags{source: "none"}})
		if err := f.run(t.Context(), &out, &progress); err != nil {
			t.Fatalf("%v: %s", err, &progress)
		}
		lines, other := &out, &progress
		if json {
			lines, other = other, lines
		}
		if n := strings.Count(lines.String(), "  round trip "); n < 5 || strings.Contains(other.String(), "seq 0") {
			t.Errorf("json %v: %d lines of 5 packets in\n%s", json, n, lines)
		}
		if table := strings.Index(out.String(), "sent"); !json && table < strings.LastIndex(out.String(), "seq ") {
			t.Errorf("the table is not below the packets\n%s", &out)
		}
	}
}
