package stamp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/core/document"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/report"
)

const probeHelp = `Measure both directions of the path to a reflector.

The reflector is one of STAMP (RFC 8762) or TWAMP-Light.

One-way delay needs the error bound of this host's clock: by default the command asks
chronyd; for hosts that share one clock use --clock=static --clock-bound=50us. Without
a bound, round-trip time, loss and delay variation are still measured.

Examples:
  oneway probe reflector.example.net
  oneway probe 192.0.2.7 --count 500 --interval 20ms --payload-bytes 172 --dscp 46
  oneway probe [2001:db8::7]:9000 --key-file /etc/oneway/key --json > result.json

Exit status: 0 measured, 1 no reply, 2 wrong usage.`

// measurement is a measurement from the terminal.
type measurement struct {
	kind           *Type
	options, agent Options
}

// Terminal implements probe.Terminal.
func (t *Type) Terminal() probe.Measurement {
	m := &measurement{kind: t, options: DefaultOptions(), agent: DefaultOptions()}
	m.options.Interval = onceInterval
	return m
}

// Command implements probe.Measurement.
func (*measurement) Command() probe.Command {
	return probe.Command{
		Name: "probe", Help: probeHelp, Host: "Reflector: name or address, with an optional :port.", Port: fmt.Sprintf("UDP port of the reflector (default %d).", stampfmt.Port),
		Letters: map[string]rune{"interval": 'i', "payload_bytes": 's'}, Document: document.Probe, Values: Document{},
	}
}

// Options implements probe.Measurement.
func (m *measurement) Options() (own, agent option.Described) { return &m.options, &m.agent }

// Measure implements probe.Measurement.
func (m *measurement) Measure(ctx context.Context, env probe.Env, target probe.Target, count uint64, progress func(line string)) (out probe.Measured, err error) {
	prober, err := m.kind.NewProber(env, target, m.options)
	if err != nil {
		return out, err
	}
	m.options = prober.Options()
	found, err := prober.Measure(ctx, count, func(r Report) { progress(r.Progress(count, m.options.Interval)) })
	var warnings []string
	if why := clock.Explain(env.Clock); why != "" && !found.SharedClock {
		warnings = []string{"note: one-way delays have no error bound: " + why}
	}
	if err != nil && !errors.Is(err, probe.ErrNoReply) {
		return probe.Measured{Warnings: warnings}, err
	}
	out = found.Printed()
	out.Warnings = warnings
	return out, err
}

// Printed returns the report as the terminal shows it. Without a reply there is no table.
func (r *Report) Printed() probe.Measured {
	out := probe.Measured{Received: r.RoundTrip.Received, Failure: r.Failure, Values: r.Document()}
	if r.Forward.Sent != nil {
		out.Sent = *r.Forward.Sent
	}
	if r.Failure == "" { // also if all replies are late
		out.Table = report.Table{Heading: fmt.Sprintf("%s (%s reflector)\n", r.Peer, r.Reflector), Rows: r.rows()}
		out.Notes = r.notes()
	}
	return out
}

// rows are a table with a column per direction.
func (r *Report) rows() (rows [][]string) {
	row := func(cells ...string) { rows = append(rows, cells) }
	number := func(n *uint64) string {
		return unit.OrDash(n, func(n uint64) string { return strconv.FormatUint(n, 10) })
	}
	row("", sample.Forward.String(), sample.Reverse.String(), "round trip")
	count := func(name string, get func(*DirectionReport) *uint64, trip string) {
		row(name, number(get(&r.Forward)), number(get(&r.Reverse)), trip)
	}
	count("sent", func(d *DirectionReport) *uint64 { return d.Sent }, "")
	count("received", func(d *DirectionReport) *uint64 { return d.Received }, strconv.FormatUint(r.RoundTrip.Received, 10))
	count("lost", func(d *DirectionReport) *uint64 { return d.Lost }, strconv.FormatUint(r.RoundTrip.Lost, 10))
	for _, one := range []struct {
		name string
		get  func(*DirectionReport) *uint64
	}{
		{"dropped by host", func(d *DirectionReport) *uint64 { return d.HostDropped }},
		{"undecided", func(d *DirectionReport) *uint64 { return d.Undecided }},
	} {
		if anyOf(one.get(&r.Forward)) || anyOf(one.get(&r.Reverse)) {
			count(one.name, one.get, "")
		}
	}
	count("outstanding", func(d *DirectionReport) *uint64 { return d.Outstanding }, "")
	count("duplicated", func(d *DirectionReport) *uint64 { return d.Duplicated }, "")
	count("reordered", func(d *DirectionReport) *uint64 { return d.Reordered }, "")
	count("late", func(d *DirectionReport) *uint64 { return d.Late }, "")
	count("corrupted", func(d *DirectionReport) *uint64 { return d.Corrupted }, "")
	row("")
	fwd, rev, rtt := orEmpty(r.Forward.Delay), orEmpty(r.Reverse.Delay), orEmpty(r.RoundTrip.Time)
	for _, one := range []struct {
		name string
		get  func(Distribution) *float64
	}{
		{"delay min", func(d Distribution) *float64 { return d.Min }},
		{"delay p50", func(d Distribution) *float64 { return d.P50 }},
		{"delay p95", func(d Distribution) *float64 { return d.P95 }},
		{"delay p99", func(d Distribution) *float64 { return d.P99 }},
		{"delay max", func(d Distribution) *float64 { return d.Max }},
	} {
		row(one.name, unit.MillisecondsOrDash(one.get(fwd)), unit.MillisecondsOrDash(one.get(rev)), unit.MillisecondsOrDash(one.get(rtt)))
	}
	limit := func(d Distribution) string { return unit.OrDash(d.ErrorBound, unit.MillisecondsLimit) }
	row("error bound", limit(fwd), limit(rev), limit(rtt))
	row("PDV p95", unit.MillisecondsOrDash(orEmpty(r.Forward.PDV).P95), unit.MillisecondsOrDash(orEmpty(r.Reverse.PDV).P95))
	row("jitter (RFC 3550)", unit.MillisecondsOrDash(r.Forward.Jitter), unit.MillisecondsOrDash(r.Reverse.Jitter))
	return append(rows, r.ratings()...)
}

// anyOf reports whether a number is known and not zero.
func anyOf(n *uint64) bool { return n != nil && *n > 0 }

// ratings are a row for each call that is rated in a direction.
func (r *Report) ratings() (rows [][]string) {
	cell := func(all []VoiceReport, of *VoiceReport) string {
		for _, v := range all {
			if v.Codec == of.Codec && v.Buffer == of.Buffer && v.Model == of.Model {
				return rating(&v).Text()
			}
		}
		return "-"
	}
	for _, v := range slices.Concat(r.Forward.Voice, r.Reverse.Voice) {
		row := []string{fmt.Sprintf("R %s, %s", v.Codec, v.Model), cell(r.Forward.Voice, &v), cell(r.Reverse.Voice, &v)}
		if !slices.ContainsFunc(rows, func(other []string) bool { return slices.Equal(other, row) }) {
			rows = append(rows, row)
		}
	}
	return rows
}

// notes are what a reader must know to interpret the table.
func (r *Report) notes() (notes []string) {
	if r.RoundTrip.Received == 0 && r.RoundTrip.Lost > 0 {
		notes = append(notes, "all replies came after the waiting time (--loss-timeout): every round trip is lost")
	}
	if r.SharedClock {
		notes = append(notes, "both ends run on one kernel and read the same clock; these delays need no clock synchronization")
	}
	if r.Forward.Invalid[sample.NoClock.String()]+r.Reverse.Invalid[sample.NoClock.String()] > 0 {
		notes = append(notes, "one-way delays are not measured: --clock is none. Round trips, loss and delay variation are")
	}
	for _, d := range []struct {
		name string
		of   DirectionReport
	}{{sample.Forward.String(), r.Forward}, {sample.Reverse.String(), r.Reverse}} {
		for _, reason := range slices.Sorted(maps.Keys(d.of.Invalid)) {
			if reason != sample.NoClock.String() {
				notes = append(notes, d.name+": "+whyInvalid(reason, d.of.Invalid[reason]))
			}
		}
		if n := d.of.HostDropped; n != nil && *n > 0 {
			notes = append(notes, d.name+": "+unit.Counted(*n, "packet was", "packets were")+" dropped by the receiving host, not by the path: it is overloaded, or its socket buffer is too small (net.core.rmem_max)")
		}
		if l := d.of.LossLimits; l != nil {
			notes = append(notes, fmt.Sprintf("%s: %s no outcome: neither a later reply nor the reflector, which may have restarted, tells the direction of a loss. Loss is between %s and %s",
				d.name, unit.Counted(l.Undecided, "packet has", "packets have"), unit.Ratio.Format(l.Low), unit.Ratio.Format(l.High)))
		}
		if n := d.of.UnknownDelays; n > 0 && d.of.Delay != nil {
			cause := "a reply was lost"
			if d.name == sample.Reverse.String() {
				cause = "a reply is that to a copy of a request, which the path made"
			}
			notes = append(notes, fmt.Sprintf("%s: %s not known: %s, a clock was not trusted, or a packet has no outcome. What this can change is within the error bounds; a quantile or R that it could change more is not reported",
				d.name, unit.Counted(n, "delay is", "delays are"), cause))
		}
		if d.of.LowConfidence > 0 {
			notes = append(notes, d.name+": "+unit.Counted(d.of.LowConfidence, "delay is smaller than its", "delays are smaller than their")+" own error bound: not even the sign is known")
		}
		if d.of.Negative > 0 {
			notes = append(notes, d.name+": "+unit.Counted(d.of.Negative, "delay is negative by more than its", "delays are negative by more than their")+" error bound: one of the clocks is wrong, and neither direction has an error bound or R")
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(r.Skipped)) {
		notes = append(notes, unit.Counted(r.Skipped[reason], "test packet was", "test packets were")+" not sent: "+metric.Words(reason))
	}
	for _, reason := range slices.Sorted(maps.Keys(r.Discarded)) {
		notes = append(notes, unit.Counted(r.Discarded[reason], "received packet was", "received packets were")+" discarded: "+metric.Words(reason))
	}
	if q := r.HostQueue; queued(q) {
		notes = append(notes, fmt.Sprintf("test packets waited in a queue of this host before they were sent (p50 %s, p95 %s): it is in no delay and no round trip, while ping has it. `tc -s qdisc` shows the queue",
			unit.MillisecondsOrDash(q.P50), unit.MillisecondsOrDash(q.P95)))
	}
	if r.RepliesFrom != "" {
		notes = append(notes, fmt.Sprintf("replies came from udp %s too, not from udp %s: they count as lost in reverse", r.RepliesFrom, r.Peer))
	}
	if r.Undirected != "" {
		notes = append(notes, r.Undirected)
	}
	return notes
}

// leastQueued is the least time in this host that is told: more than system calls and the processor take.
const leastQueued = 0.001

// queued reports whether test packets waited in this host. A median that is not known is infinite.
func queued(q *Distribution) bool {
	return q != nil && (q.P50 == nil || *q.P50 >= leastQueued)
}

// whyInvalid states why delays are not reported.
func whyInvalid(reason string, n uint64) string {
	if reason != sample.BoundTooLarge.String() {
		return unit.Counted(n, "delay has", "delays have") + " no error bound: " + sample.InWords(reason)
	}
	return unit.Counted(n, "delay is", "delays are") + " not reported: one end reports an error bound above one hour or below zero"
}

func orEmpty(d *Distribution) Distribution {
	if d == nil {
		return Distribution{}
	}
	return *d
}

// Progress is "20 sent  20 replies  forward 1.234 ms  reverse 1.200 ms  3s left".
func (r *Report) Progress(count uint64, interval time.Duration) string {
	if r.Forward.Sent == nil {
		return ""
	}
	sent, left := *r.Forward.Sent, ""
	if count > sent {
		left = fmt.Sprintf("  %v left", (time.Duration(count-sent) * interval).Round(time.Second))
	}
	return fmt.Sprintf("%d sent  %s  forward %s  reverse %s%s", sent, replies(r.RoundTrip.Received),
		unit.MillisecondsOrDash(orEmpty(r.Forward.Delay).P50), unit.MillisecondsOrDash(orEmpty(r.Reverse.Delay).P50), left)
}
