package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"oneway.example/exporter/clocks/static"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/reflector"
	"oneway.example/tests/lab"
)

// reflect ADDRESS runs the oneway reflector without a rate limit.
func reflect(args []string) (any, error) {
	monitor := static.New(time.Millisecond, metric.Discard{})
	r, err := reflector.New(reflector.Options{
		Listen: []netip.AddrPort{netip.MustParseAddrPort(args[0])}, RatePackets: -1,
	}, reflector.Env{Log: slog.New(slog.DiscardHandler), Sink: metric.Discard{}, Clock: monitor})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 2)
	go func() { done <- monitor.Run(ctx) }()
	go func() { done <- r.Run(ctx) }()
	select {
	case <-r.Started():
	case err := <-done:
		cancel()
		return nil, err
	}
	untilStdinEnds()
	cancel()
	return struct{}{}, errors.Join(<-done, <-done)
}

// BenchmarkReflector is the highest rate of requests at which a reflector replies without loss, with the same generator
// for all, and the CPU time per reply. Its reciprocal is the rate of one core. irtt's server supports only irtt's
// protocol: its own client sends the requests, at the best rate that it finds.
func BenchmarkReflector(b *testing.B) {
	network := newLab(b)
	address := fmt.Sprintf("%s:862", network.Server.LAN4)
	rates := []int{2_000, 5_000, 10_000, 20_000, 40_000, 60_000, 80_000, 100_000, 120_000, 140_000, 160_000}
	for b.Loop() {
		best := climb(rates, func(rate int) step {
			return requestAll(b, network, address, rate, func() func() time.Duration {
				p := ours(b, network.Server, "reflect", address)
				p.ready(b)
				return func() time.Duration { return p.finish(b, nil) }
			})
		})
		answered := row{what: "replies, no loss", unit: "replies/s", ours: best.rate}
		cost := row{what: "reflector's CPU (oneway: with all timestamps)", unit: "CPU-s/Mreply", ours: perMillion(best.remote, best.packets), lower: true}
		core := row{what: "replies on one core (1/CPU)", unit: "replies/s/core"}
		core.ours = 1e6 / max(cost.ours, 1e-9)
		add := func(name string, s step) {
			each := perMillion(s.remote, s.packets)
			answered.peers = append(answered.peers, peer{name, s.rate})
			cost.peers = append(cost.peers, peer{name, each})
			core.peers = append(core.peers, peer{name, 1e6 / max(each, 1e-9)})
		}
		if path, ok := have(b, "stamp-suite"); ok {
			add("stamp-suite", climb(rates, func(rate int) step {
				return requestAll(b, network, address, rate, func() func() time.Duration {
					p := start(b, network.Server.Command(path, "-i", "-S", network.Server.LAN4.String(), "-o", "862", "--stateful-reflector"))
					time.Sleep(300 * time.Millisecond) // it reports only to its log that it listens
					return func() time.Duration { return p.stop(b) }
				})
			}))
		}
		if path, ok := have(b, "irtt"); ok {
			add("irtt", climb([]int{500, 1_000, 2_000, 5_000, 10_000, 20_000}, func(rate int) step {
				r, _, server := irtt(b, network, path, time.Second/time.Duration(rate), time.Second)
				return step{
					rate: float64(r.Stats.Received) / r.Stats.Duration.Seconds(), packets: r.Stats.Received,
					lost: r.Stats.Sent - r.Stats.Received, remote: server,
				}
			}))
		}
		comparison.add(b, answered)
		comparison.add(b, cost)
		comparison.add(b, core)
	}
}

func requestAll(b *testing.B, network *lab.Lab, address string, rate int, serve func() func() time.Duration) step {
	b.Helper()
	stop := serve()
	var s sent
	local := ours(b, network.Client, "ask", address, strconv.Itoa(rate), "1").wait(b, &s)
	return step{
		rate: float64(s.Answered) / s.Seconds, packets: s.Answered, lost: s.Sent - min(s.Sent, s.Answered), local: local, remote: stop(),
	}
}
