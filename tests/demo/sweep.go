package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/probes/tcpsweep"
	"oneway.example/tests/lab"
	"oneway.example/tests/tcplog"
)

// tcpSweepProbe measures each buffer of the thesis once, down.
const tcpSweepProbe = `      - type: tcp_sweep
        every: %[1]s
        token_file: %[2]s
        pin: %[3]s
        directions: [reverse]
        congestion_control: [cubic]
        send_buffer_bytes: [17KiB, 32KiB, 64KiB, 128KiB, 256KiB, 512KiB, 1MiB]
        cell_duration: 7s
        omit: 2s
        repetitions: 1
        max_wait: 10m
`

// The part of each transfer that the probe evaluates.
const (
	sweptFrom = 2 * time.Second
	sweptTo   = 7 * time.Second
)

// sweptProfile is the path of the thesis' TCP experiments: that of profile wibro with a longer uplink.
const sweptProfile = "wibro-tcp"

// sweptCell is a cell of the sweep, and the truth by the link's log; nil: the log cannot be told apart.
type sweptCell struct {
	tcpsweep.MeasuredCell
	truth *tcplog.Truth
}

// sweep measures TCP by its buffers on the path of the thesis, if the demo's link is one of the thesis': for this time the
// link is changed. On other links it would take as long and have nothing beside it.
func (s *stack) sweep(ctx context.Context, profile lab.Profile) (rows []row, err error) {
	if profile.Name != "wibro" && profile.Name != sweptProfile {
		return nil, nil
	}
	path, err := lab.LoadProfile(sweptProfile)
	if err != nil {
		return nil, err
	}
	set := func(p lab.Profile) {
		for i, link := range []lab.Link{p.Forward, p.Reverse} {
			s.failed(s.network.SetLink(sample.Direction(i), link))
		}
	}
	step("the link is %q meanwhile: forward %s, reverse %s", path.Name, describe(path.Forward), describe(path.Reverse))
	set(path)
	defer set(profile)
	return s.repeated(ctx, path, loadTest{"tcp_sweep", tcpSweepProbe, s.sweepRows})
}

// sweepRows are the cells of the last run against the link's log of the same connections.
func (s *stack) sweepRows(ctx context.Context, path lab.Profile, after time.Time) (rows []row) {
	const d = sample.Reverse
	s.swept = nil
	r := s.lastRun(ctx, "tcp_sweep", after)
	if r == nil || len(r.Results.Cells) == 0 {
		return s.reported(ctx, "tcp_sweep", r, d, []row{{Name: "tcp_sweep_throughput_bytes_per_second", Direction: d.String(), Unit: "bytes/s"}})
	}
	s.swept = join(r.Results.Cells, r.Results.Seed, s.connections(d, r))
	for _, c := range s.swept {
		rows = append(rows, c.rows(path)...)
	}
	return rows
}

// connections are those that sent payload in a direction during a run, by the link's log.
func (s *stack) connections(d sample.Direction, r *run) []tcplog.Connection {
	during := func(log []lab.Record) []lab.Record {
		return slices.DeleteFunc(log, func(p lab.Record) bool { return !r.sent(p.Entry) })
	}
	return tcplog.Connections(during(s.network.Log(d)), during(s.network.Log(1-d)))
}

// join gives each cell its connection: both are in the order of the run, which the seed determines. A refused cell has no
// connection, so that none can be joined.
func join(cells []tcpsweep.MeasuredCell, seed uint64, connections []tcplog.Connection) []sweptCell {
	all := make([]sweptCell, len(cells))
	for i := range cells {
		all[i].MeasuredCell = cells[i]
	}
	turns := loadtest.Turns(len(cells), 1, seed)
	for i, cell := range turns {
		if len(connections) == len(turns) {
			truth := connections[i].Between(sweptFrom, sweptTo)
			all[cell].truth = &truth
		}
	}
	return all
}

func kib(bytes int64) string { return fmt.Sprintf("%d KiB", bytes>>10) }

// rows are judged with all others, and printed in the sweep's own table.
func (c *sweptCell) rows(path lab.Profile) []row {
	rate := float64(path.Reverse.Rate) / 8 * segment / lab.MTU
	idle := (path.Forward.Delay + path.Reverse.Delay).Seconds()
	window := float64(c.SendBuffer)
	throughput := row{
		Name: "tcp_sweep_throughput_bytes_per_second", Configured: min(rate, window/idle), Unit: "bytes/s",
		Tolerance: 0.25 * rate, Why: "25 %: the link's log could not be joined; payload",
	}
	rtt := row{
		Name: "tcp_sweep_rtt_seconds", Configured: max(idle, window/rate), Unit: "seconds",
		Tolerance: idle + window/rate, Why: "twice: the link's log could not be joined",
	}
	if c.truth != nil {
		throughput.Truth, throughput.Tolerance, throughput.Why = exactly(c.truth.Throughput), 0.02*rate, "2 % of the rate: the receiver's samples are 100 ms apart; payload"
		median := c.truth.RTT[1].Seconds()
		rtt.Truth, rtt.Tolerance, rtt.Why = exactly(median), 0.05*median+0.01, "5 %, as the sender's is smoothed, and 10 ms of both hosts"
	}
	law := row{Name: "tcp_sweep_window_by_rtt_bytes_per_second", Unit: "bytes/s"}
	if c.Throughput != nil {
		throughput.Measured, law.Measured = &c.Throughput[1], &c.Throughput[1]
	}
	if c.RTT != nil {
		rtt.Measured = &c.RTT[1]
	}
	if model := c.Model("window"); model != nil {
		law.Configured, law.Truth, law.Tolerance, law.Why = *model, exactly(*model), 0.1**model, "10 % of the mean outstanding bytes by the mean round trip, both measured"
	}
	rows := []row{throughput, rtt, law}
	for i := range rows {
		r := &rows[i]
		r.Name, r.Direction, r.Apart = r.Name+" "+kib(c.SendBuffer), sample.Reverse.String(), true
		if r.Measured == nil && len(c.Repetitions) > 0 {
			r.Reason = c.Repetitions[0].Partial
		}
	}
	return rows
}

// thesisSweep is what the thesis' text has of figure 6.7(a) by KB; of the others the bars are in a plot only.
var thesisSweep = map[int64]string{17: "1 to 1.5 Mb/s", 64: "5 Mb/s", 128: "about 10 Mb/s", 512: "above it own queue and loss", 1024: "less; own loss"}

// printSweep prints the sweep beside the thesis' figures 6.5 and 6.7.
func (s *stack) printSweep(out io.Writer, rows []row) error {
	if len(s.swept) == 0 {
		return nil
	}
	verdicts := map[string]string{}
	for _, r := range rows {
		if _, cell, ok := strings.Cut(r.Name, " "); ok && r.Apart {
			words := string(r.Status)
			if r.Reason != "" {
				words += ": " + r.Reason
			}
			if old := verdicts[cell]; old == "" || old == string(statusOK) {
				verdicts[cell] = words
			}
		}
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "TCP by buffer, cubic, reverse\tthroughput\tlink's log\toutstanding / RTT\tRTT 25 %\tmedian\tlink's log\t75 %\tsent again\tlink's log\tdropped\tthesis, Figure 6.7\t")
	for i := range s.swept {
		c := &s.swept[i]
		cells := []string{kib(c.SendBuffer), mbit(throughputOf(c)), "-", mbit(c.Model("window")), "-", "-", "-", "-", "-", "-", "-", "plot only"}
		if c.Send.Clipped || c.Receive.Clipped {
			cells[0] += fmt.Sprintf(" (limited to %s)", kib(int64(min(c.Send.Effective, c.Receive.Effective)/2)))
		}
		if c.RTT != nil {
			cells[4], cells[5], cells[7] = figure(c.RTT[0], "seconds"), figure(c.RTT[1], "seconds"), figure(c.RTT[2], "seconds")
		}
		if c.Retransmitted != nil {
			cells[8] = figure(*c.Retransmitted, "ratio")
		}
		if t := c.truth; t != nil {
			cells[2], cells[6] = mbit(&t.Throughput), figure(t.RTT[1].Seconds(), "seconds")
			cells[9], cells[10] = figure(float64(t.Again)/float64(t.Segments), "ratio"), fmt.Sprint(t.Dropped)
		}
		if words := thesisSweep[c.SendBuffer>>10]; words != "" {
			cells[11] = words
		}
		fmt.Fprintf(w, "%s\t  %s\n", strings.Join(cells, "\t"), verdicts[kib(c.SendBuffer)])
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, `  the link then: profile %s, 94 ms, %s of payload at most. The thesis has no idle round trip of its TCP: 17 KB at 1 to
  1.5 Mb/s are 93 to 139 ms, 64 KB at 5 Mb/s 105 ms. Its transfers took 5 minutes, over a radio, with Windows XP; these take 7 s, of
  which Cubic needs more to fill a megabyte. Path and queue hold 1217 kB, so that 1 MiB induces no loss here.
`, sweptProfile, mbit(new(10e6/8*float64(segment)/lab.MTU)))
	return nil
}

func throughputOf(c *sweptCell) *float64 {
	if c.Throughput == nil {
		return nil
	}
	return &c.Throughput[1]
}

func mbit(bytesPerSecond *float64) string {
	if bytesPerSecond == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f Mb/s", *bytesPerSecond*8/1e6)
}
