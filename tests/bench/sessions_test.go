package bench

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"oneway.example/exporter/clock/static"
	"oneway.example/exporter/metric"
	"oneway.example/exporter/metric/metrictest"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes/stamp"
	"oneway.example/exporter/sched"
)

type crowd struct {
	// CPU is the share of one core; the packets are those of the same time.
	CPU                  float64
	Received, Lost, Late float64
	// HostDropped are the packets that one of the two hosts says it has dropped itself.
	HostDropped float64
	// LostAtStart and HostDroppedAtStart are those of the settling time before.
	LostAtStart, HostDroppedAtStart float64
	Seconds                         float64
	// ResidentBytes is the most that the whole process held.
	ResidentBytes float64
}

// settling is longer than a session takes to open and the time that it waits for a reply
// together; startGap is how far apart sessions start.
const (
	settling = 5 * time.Second
	startGap = time.Millisecond
)

// sessions ADDRESS COUNT SECONDS runs so many paths at a packet a second.
func sessions(args []string) (any, error) {
	count, err := strconv.Atoi(args[1])
	if err != nil {
		return nil, err
	}
	seconds, err := strconv.Atoi(args[2])
	if err != nil {
		return nil, err
	}
	pacer, err := sched.NewPacer()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	counts := &tally{}
	env := probe.Env{Log: slog.New(slog.DiscardHandler), Sink: counts, Clock: static.New(time.Millisecond, metric.Discard{}), Pacer: pacer}
	var running sync.WaitGroup
	failed := make(chan error, count+1)
	run := func(f func(context.Context) error) {
		running.Go(func() {
			if err := f(ctx); err != nil {
				failed <- err
			}
		})
	}
	run(pacer.Run)
	kind := stamp.New()
	for i := range count {
		p, err := kind.NewProber(env, probe.Target{Path: fmt.Sprint("p", i), Probe: "stamp", Peer: args[0]}, stamp.DefaultOptions())
		if err != nil {
			cancel()
			return nil, err
		}
		run(p.Run)
	}
	// They open; what is lost meanwhile is known when the time to wait is over.
	time.Sleep(settling + time.Duration(count)*startGap)
	before, cpu, start := counts.read(), cpuTime(), time.Now()
	time.Sleep(time.Duration(seconds) * time.Second) // what is measured
	c, used := counts.read(), cpuTime()-cpu
	c.Seconds = time.Since(start).Seconds()
	c.CPU = used.Seconds() / c.Seconds
	c.Received, c.Lost, c.Late = c.Received-before.Received, c.Lost-before.Lost, c.Late-before.Late
	c.HostDropped -= before.HostDropped
	c.LostAtStart, c.HostDroppedAtStart = before.Lost, before.HostDropped
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err == nil {
		c.ResidentBytes = float64(u.Maxrss) * 1024
	}
	cancel()
	running.Wait()
	select {
	case err := <-failed:
		return nil, err
	default:
		return c, nil
	}
}

// cpuTime is what this process has used, in user space and kernel.
func cpuTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// tally is a sink that adds up the counters of all sessions that matter here.
type tally struct {
	metric.Discard
	sums metrictest.Sink
}

func (t *tally) read() crowd {
	sum := func(d *metric.Desc) (sum float64) {
		for _, v := range t.sums.All(d) {
			sum += v
		}
		return sum
	}
	return crowd{
		Received: sum(metric.PacketsReceived), Lost: sum(metric.PacketsLost), Late: sum(metric.ProbeSkipped),
		HostDropped: sum(metric.PacketsHostDropped),
	}
}

// Series of the counters that matter are kept: one for all paths.
func (t *tally) Series(d *metric.Desc, labels ...string) metric.Series {
	switch d {
	case metric.PacketsReceived, metric.PacketsLost, metric.PacketsHostDropped, metric.ProbeSkipped:
		return t.sums.Series(d, append([]string{"all"}, labels[1:]...)...)
	}
	return t.Discard.Series(d, labels...)
}

// BenchmarkSessions runs many sessions at a packet a second from one process: its
// share of a core, and the losses, of which the cable has none.
func BenchmarkSessions(b *testing.B) {
	network := newLab(b)
	address := fmt.Sprintf("%s:862", network.Server.LAN4)
	for _, count := range []int{1000, 10_000} {
		b.Run(strconv.Itoa(count), func(b *testing.B) {
			for b.Loop() {
				remote := ours(b, network.Server, "reflect", address)
				remote.ready(b)
				var c crowd
				ours(b, network.Client, "sessions", address, strconv.Itoa(count), "5").wait(b, &c)
				remote.finish(b, nil)
				what := fmt.Sprintf("%d sessions at 1/s: ", count)
				comparison.add(b, row{what: what + "share of a core", unit: "%core", ours: 100 * c.CPU, lower: true})
				comparison.add(b, row{what: what + "both directions received", unit: "packets/s", ours: c.Received / c.Seconds})
				comparison.add(b, row{what: what + "false losses", unit: "lost", ours: c.Lost, lower: true})
				comparison.add(b, row{what: what + "false losses while they start", unit: "lost-at-start", ours: c.LostAtStart, lower: true})
				comparison.add(b, row{what: what + "dropped by a host, and told so", unit: "host-dropped", ours: c.HostDropped + c.HostDroppedAtStart, lower: true})
				comparison.add(b, row{what: what + "slots missed", unit: "missed", ours: c.Late, lower: true})
				comparison.add(b, row{what: what + "memory of the process", unit: "bytes/session", ours: c.ResidentBytes / float64(count), lower: true})
			}
		})
	}
}
