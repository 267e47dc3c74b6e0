package bench

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"oneway.example/exporter/clocks/static"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/net/sched"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes/stamp"
)

type crowd struct {
	// CPU is the share of one core; the packets are those of the same time.
	CPU                  float64
	Received, Lost, Late float64
	// HostDropped are the packets that one of the two hosts reports as dropped by itself.
	HostDropped float64
	// LostAtStart and HostDroppedAtStart are the same during the settling time.
	LostAtStart, HostDroppedAtStart float64
	Seconds                         float64
	// ResidentBytes is the peak memory of the process.
	ResidentBytes float64
}

// settling exceeds the time that a session takes to open plus the timeout of a reply; startGap is the time between
// session starts.
const (
	settling = 5 * time.Second
	startGap = time.Millisecond
)

// sessions ADDRESS COUNT SECONDS runs this many paths at one packet per second.
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
	kind := stamp.NewType()
	for i := range count {
		p, err := kind.NewProber(env, probe.Target{Path: fmt.Sprint("p", i), Probe: "stamp", Peer: args[0]}, stamp.DefaultOptions())
		if err != nil {
			cancel()
			return nil, err
		}
		run(p.Run)
	}
	// Until all sessions are open and their timeouts have passed, so that all losses of the start are counted.
	time.Sleep(settling + time.Duration(count)*startGap)
	before, cpu, start := counts.read(), cpuTime(), time.Now()
	time.Sleep(time.Duration(seconds) * time.Second) // the time under measurement
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

// cpuTime is the CPU time of this process so far, in user space and kernel.
func cpuTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// tally is a sink that sums the relevant counters of all sessions.
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

// Series returns one counter for all paths for each relevant family.
func (t *tally) Series(d *metric.Desc, labels ...string) metric.Series {
	switch d {
	case metric.PacketsReceived, metric.PacketsLost, metric.PacketsHostDropped, metric.ProbeSkipped:
		return t.sums.Series(d, append([]string{"all"}, labels[1:]...)...)
	}
	return t.Discard.Series(d, labels...)
}

// BenchmarkSessions runs many sessions at one packet per second from one process: its share of a core, and its losses,
// on a link that has none. ONEWAY_SESSION_SECONDS is the time under measurement, 5 by default: 10,000 sessions exchange
// a million packets in 50 s.
func BenchmarkSessions(b *testing.B) {
	seconds := cmp.Or(os.Getenv("ONEWAY_SESSION_SECONDS"), "5")
	network := newLab(b)
	address := fmt.Sprintf("%s:862", network.Server.LAN4)
	for _, count := range []int{1000, 10_000} {
		b.Run(strconv.Itoa(count), func(b *testing.B) {
			for b.Loop() {
				remote := ours(b, network.Server, "reflect", address)
				remote.ready(b)
				var c crowd
				ours(b, network.Client, "sessions", address, strconv.Itoa(count), seconds).wait(b, &c)
				remote.finish(b, nil)
				what := fmt.Sprintf("%d sessions at 1/s: ", count)
				comparison.add(b, row{what: what + "share of a core", unit: "%core", ours: 100 * c.CPU, lower: true})
				comparison.add(b, row{what: what + "both directions received", unit: "packets/s", ours: c.Received / c.Seconds})
				comparison.add(b, row{what: what + "false losses", unit: "lost", ours: c.Lost, lower: true})
				comparison.add(b, row{what: what + "false losses while they start", unit: "lost-at-start", ours: c.LostAtStart, lower: true})
				comparison.add(b, row{what: what + "dropped by a host, and reported", unit: "host-dropped", ours: c.HostDropped + c.HostDroppedAtStart, lower: true})
				comparison.add(b, row{what: what + "slots missed", unit: "missed", ours: c.Late, lower: true})
				comparison.add(b, row{what: what + "memory of the process", unit: "bytes/session", ours: c.ResidentBytes / float64(count), lower: true})
			}
		})
	}
}

// spin SECONDS keeps a processor busy.
func spin(args []string) (any, error) {
	seconds, err := strconv.Atoi(args[0])
	if err != nil {
		return nil, err
	}
	turns := 0
	for end := time.Now().Add(time.Duration(seconds) * time.Second); time.Now().Before(end); {
		turns++
	}
	return turns, nil
}

// BenchmarkSessionsOnABusyHost runs 10,000 sessions while other processes use the host's processors, or one end stands
// still: what the hosts drop must be reported as theirs.
func BenchmarkSessionsOnABusyHost(b *testing.B) {
	const count, seconds = 10_000, 20
	network := newLab(b)
	address := fmt.Sprintf("%s:862", network.Server.LAN4)
	for _, c := range []struct {
		name         string
		spinning     int
		sender, peer bool // is stopped
	}{{name: "8 other processes", spinning: 8}, {name: "sender stopped", sender: true}, {name: "reflector stopped", peer: true}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				remote := ours(b, network.Server, "reflect", address)
				remote.ready(b)
				local := ours(b, network.Client, "sessions", address, strconv.Itoa(count), strconv.Itoa(seconds))
				var others []*process
				for range c.spinning {
					others = append(others, ours(b, network.Client, "spin", "35"))
				}
				// Until all sessions are open and measured: one second into the time under measurement.
				time.Sleep(settling + count*startGap + time.Second)
				for p, stopped := range map[*process]bool{local: c.sender, remote: c.peer} {
					if stopped {
						_ = p.cmd.Process.Signal(syscall.SIGSTOP)
						time.Sleep(5 * time.Second) // the process stands still
						_ = p.cmd.Process.Signal(syscall.SIGCONT)
					}
				}
				var got crowd
				local.wait(b, &got)
				remote.finish(b, nil)
				for _, p := range others {
					p.wait(b, nil)
				}
				what := fmt.Sprintf("%d sessions at 1/s, %s: ", count, c.name)
				comparison.add(b, row{what: what + "both directions received", unit: "packets/s", ours: got.Received / got.Seconds})
				comparison.add(b, row{what: what + "false losses", unit: "lost", ours: got.Lost + got.LostAtStart, lower: true})
				comparison.add(b, row{what: what + "dropped by a host, and reported", unit: "host-dropped", ours: got.HostDropped + got.HostDroppedAtStart, lower: true})
				comparison.add(b, row{what: what + "slots missed", unit: "missed", ours: got.Late, lower: true})
			}
		})
	}
}
