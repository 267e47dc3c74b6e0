package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"oneway.example/exporter/core/bound"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadserver"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/net/tcpsocket"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/calibration"
	"oneway.example/exporter/probe/report"
	"oneway.example/exporter/probes/message"
	"oneway.example/exporter/probes/saturation"
	"oneway.example/exporter/probes/sizesweep"
	"oneway.example/exporter/probes/stamp"
	"oneway.example/exporter/probes/tcp"
	"oneway.example/exporter/probes/tcpshort"
	"oneway.example/exporter/probes/tcpsweep"
	"oneway.example/exporter/probes/train"
	"oneway.example/exporter/reflector"
)

// terminal opens a pseudo terminal of a width; text ends it and returns what was written to it.
func terminal(t *testing.T, columns int) (out *os.File, text func() string) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no pseudo terminal: %v", err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: uint16(columns)})
	}
	if err == nil {
		out, err = os.OpenFile(filepath.Join("/dev/pts", fmt.Sprint(n)), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	var read bytes.Buffer
	done := make(chan struct{})
	go func() {
		_, _ = io.Copy(&read, master) // ends with EIO when the last writer closes
		close(done)
	}()
	return out, func() string {
		out.Close()
		<-done
		master.Close()
		return strings.ReplaceAll(read.String(), "\r\n", "\n")
	}
}

// longResults has a value in each cell of each table, of usual length or longer.
func longResults() map[string]func(io.Writer) error {
	rate, ratio, delay, some := 123_456_789.0, 0.1234, 1.234567, report.Seconds(1234567890)
	three, durations := [3]float64{rate, rate, rate}, [3]report.Seconds{some, some, some}
	count, mtu := uint64(123_456), true
	load := &saturation.Load{
		State: "filled", Evidence: "packets were dropped above a backlog of 108570 to 109980 bytes, and admitted below", Offered: rate, Throughput: rate,
		Rates: &three, Varies: true, Idle: &some, IdleBound: &some, Full: &some, FullBound: &some, Queue: &durations, QueueBound: &durations,
		SizeBytes: &rate, SizeBound: &rate, AtLeastBytes: &rate, ClocksReason: "remote_unsynchronized",
	}
	step := saturation.Step{Offered: rate, Sent: rate, Received: rate, Loss: ratio, Lossless: true, Variation: &some}
	buffer := tcpsocket.Buffer{Asked: 12_345_678, Effective: 24_691_356, Clipped: true}
	flow := tcp.Flow{
		SenderEnd:   &tcp.SenderEnd{Sent: 123_456_789, CongestionControl: "bbr", MSS: 1448, SendBuffer: buffer, Sender: "canceled"},
		ReceiverEnd: &tcp.ReceiverEnd{Payload: 123_456_789, ReceiveBuffer: buffer}, Throughput: &rate,
	}
	distribution := &stamp.Distribution{Min: &delay, P50: &delay, P95: &delay, P99: &delay, Max: &delay, ErrorBound: &delay}
	way := stamp.DirectionReport{Sent: &count, Received: &count, Lost: &count, Delay: distribution, PDV: distribution, Jitter: &delay, LowConfidence: count, Negative: count}
	quantile := &tcpshort.Quantile{Value: delay, Lower: delay, Upper: &delay}
	outcome := &loadtest.Outcome{Run: &loadtest.Run{ID: "20261123t165813z-3063a6f0", Kind: "tcp_sweep", Remote: "[2001:db8:1234:5678:9abc:def0:1234:5678]:8620", Directions: sample.Directions(), Summary: []probe.Result{
		{Quantity: "sufficient receive buffer", Direction: "forward", Value: "unknown: " + strings.Repeat("because ", 20)}, {Quantity: "cells", Value: "1 of 36, order by seed 2369357916"},
	}}, Result: loadtest.Incomplete}
	end := calibration.Direction{Count: 5000, Systematic: 123456 * time.Nanosecond, Random: 12345 * time.Nanosecond, Largest: time.Second}
	voice := &voiceFlags{codec: "G.711-PLC", model: "g107", delay: "1234.567ms", loss: "1.2345%", burst: "1.234"}
	return map[string]func(io.Writer) error{
		"summary": func(out io.Writer) error { return printSummary(out, outcome) },
		"notes":   func(out io.Writer) error { return printLines(out, []string{strings.Repeat("a note, ", 30)}) },
		"saturation": func(out io.Writer) error {
			return printTables(out, &saturation.Result{Directions: []*saturation.Direction{{Direction: "forward", Load: load, Steps: []saturation.Step{step, step}, StepsDescription: "bursts of 2s, each from an idle link: its queue is empty then, and a token bucket full"}}})
		},
		"size-sweep": func(out io.Writer) error {
			m := sizesweep.CellValues{Sent: &rate, Received: &rate, Loss: &ratio, Delay: &delay, Bound: &delay, IPDV: &delay, Underrun: &ratio}
			one := sizesweep.MeasuredCell{DirectionName: "forward", Median: m}
			return printTables(out, &sizesweep.Result{Cells: []sizesweep.MeasuredCell{one, one, one}})
		},
		"train": func(out io.Writer) error {
			z := &train.Size{PayloadBytes: 1472, PacketBytes: 1500, Median: &rate, Bound: &rate, P5: &rate, P95: &rate, Dispersion: &delay, Fragmented: &mtu, Trains: map[string]int{"clean": 300, "sender_pace": 200, "lost": 100}}
			return printTables(out, &train.Result{Directions: []*train.Direction{{DirectionName: "forward", Sizes: []*train.Size{z, z}}}})
		},
		"tcp": func(out io.Writer) error {
			d := &tcp.Direction{Direction: "forward", Flows: []tcp.Flow{flow, flow, flow}, PerSecond: make([]float64, 100)}
			return printTables(out, &tcp.Result{Directions: []*tcp.Direction{d}})
		},
		"tcp-sweep": func(out io.Writer) error {
			c := tcpsweep.MeasuredCell{DirectionName: "forward", Used: "cubic", Send: buffer, Receive: buffer, Throughput: &three, RTT: &three, RTTMin: &delay, Retransmitted: &ratio}
			return printTables(out, &tcpsweep.Result{Cells: []tcpsweep.MeasuredCell{c, c, c, c, c}})
		},
		"tcp-short": func(out io.Writer) error {
			z := tcpshort.Size{Direction: "forward", Connect: &delay, Retransmitted: &ratio}
			z.Completion.Median, z.Completion.Tail, z.Completion.Least = quantile, quantile, &delay
			return printTables(out, &tcpshort.Result{Sizes: []tcpshort.Size{z, z}})
		},
		"message": func(out io.Writer) error {
			p := message.Part{Direction: "forward", Transport: message.TCPNoDelay, Sent: new(int64(123_456)), Offered: &rate, Throughput: &rate, Loss: &ratio, Retransmitted: &ratio, RTT: &three}
			return printTables(out, &message.Result{Parts: []message.Part{p, p, p}})
		},
		"probe": func(out io.Writer) error {
			r := stamp.Report{Peer: "[2001:db8:1234:5678:9abc:def0:1234:5678]:8620", Reflector: "stateless", Forward: way, Reverse: way, SharedClock: true}
			r.RoundTrip.Received, r.RoundTrip.Lost, r.RoundTrip.Time = count, count, distribution
			found := r.Printed()
			return (&probeFlags{}).print(context.Background(), out, &found)
		},
		"calibrate": func(out io.Writer) error {
			f := &calibrateFlags{output: "/etc/oneway/calibration.json"}
			return f.printTable(out, calibration.Record{Interface: "enp0s31f6np0", Setup: calibration.Loopback, Forward: end, Reverse: end}, bound.Calibration{Trusted: true, Largest: time.Second}, stamp.Report{})
		},
		"voice":       voice.run,
		"load-server": func(out io.Writer) error { return printLoadServer(out, loadserver.Status{Opened: 12}) },
		"reflect":     func(out io.Writer) error { return printReplies(out, reflector.Stats{SocketDrops: 12}) },
		"progress": func(out io.Writer) error {
			l := newLiveLine(out)
			l.show(progressLine(loadtest.Progress{Phase: "forward: trains of 1500 B, 10 of 30 clean", Share: 0.5, Bytes: 12e6}, time.Minute, l.width))
			l.say("%s", strings.Repeat("word ", 40))
			return nil
		},
	}
}

func TestNothingIsWiderThanTheTerminalAndNothingIsCut(t *testing.T) {
	for _, columns := range []int{60, 80, 200} {
		for name, print := range longResults() {
			out, text := terminal(t, columns)
			if err := print(out); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			got := text()
			for line := range strings.SplitSeq(strings.ReplaceAll(got, "\r", "\n"), "\n") {
				if n := utf8.RuneCountInString(line); n > columns {
					t.Errorf("%s, %d columns: %d in %q", name, columns, n, line)
				}
			}
			if strings.Contains(got, "…") {
				t.Errorf("%s, %d columns: cut:\n%s", name, columns, got)
			}
			if columns == 60 && testing.Verbose() {
				t.Logf("%s:\n%s", name, got)
			}
		}
	}
}

// A file or pipe has a line for each record, unless COLUMNS is set: for grep and awk.
func TestTableInAPipeHasALinePerRecordUnlessColumnsIsSet(t *testing.T) {
	print := longResults()["tcp-sweep"]
	for columns, want := range map[string]int{"": 7, "80": 0} {
		t.Setenv("COLUMNS", columns)
		var out bytes.Buffer
		if err := print(&out); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(out.String(), "\n")
		widest := 0
		for _, line := range lines {
			widest = max(widest, utf8.RuneCountInString(line))
		}
		if want > 0 && (len(lines)-1 != want || widest < 150) || want == 0 && widest > 80 {
			t.Errorf("COLUMNS=%s: %d lines of at most %d characters:\n%s", columns, len(lines)-1, widest, out.String())
		}
	}
}
