package bench

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	streams "oneway.example/exporter/stream"
	"oneway.example/tests/lab"
	"oneway.example/tests/tap"
)

// punctual is what a packet socket at the sender says of a paced stream.
type punctual struct {
	haul
	rateError float64         // of the mean rate, in parts of one, whatever its sign
	behind    []time.Duration // after the schedule that the most punctual packet sets, sorted
}

// watched looks at the packets of one length to a port that leave the client while f sends
// them, and compares them with a packet every interval.
func watched(b *testing.B, network *lab.Lab, port uint16, interval time.Duration, f func() haul) (p punctual) {
	b.Helper()
	var t *tap.Tap
	if err := network.Client.Do(func() (err error) { t, err = tap.Open("lan0"); return err }); err != nil {
		b.Fatal(err)
	}
	p.haul = f()
	packets, err := t.Stop()
	if err != nil {
		b.Fatal(err)
	}
	packets = slices.DeleteFunc(packets, func(k tap.Packet) bool {
		return !k.Outgoing || k.Destination != port || k.Bytes != p.bytes
	})
	if len(packets) < 2 {
		b.Fatalf("port %d: %d packets left", port, len(packets))
	}
	least := time.Duration(math.MaxInt64)
	for i := range packets {
		off := packets[i].At.Sub(packets[0].At) - time.Duration(i)*interval
		p.behind = append(p.behind, off)
		least = min(least, off)
	}
	for i := range p.behind {
		p.behind[i] -= least
	}
	slices.Sort(p.behind)
	planned := float64(len(packets)-1) * float64(interval)
	p.rateError = math.Abs(planned/float64(packets[len(packets)-1].At.Sub(packets[0].At)) - 1)
	return p
}

// mostPunctual is the best attempt: what a busy machine adds says nothing of a program.
func mostPunctual(f func() punctual) (best punctual) {
	for i := range attempts {
		if p := f(); i == 0 || p.rateError < best.rateError {
			best = p
		}
	}
	return best
}

// BenchmarkPacing holds streams of 12 Mb/s and 1 Gb/s of UDP payload against their
// schedule: the mean rate, and each single departure.
func BenchmarkPacing(b *testing.B) {
	network := newLab(b)
	for _, c := range []struct {
		name           string
		bits           float64
		bytes, packets int
	}{
		{"12Mbit", 12e6, 1382, 3000}, // 2.8 s
		{"1Gbit", 1e9, 1472, 40_000}, // 0.5 s, as many packets as the tap holds
	} {
		b.Run(c.name, func(b *testing.B) {
			interval := time.Duration(math.Round(float64(c.bytes) * 8 / c.bits * 1e9))
			for b.Loop() {
				plan := streams.Plan{Segments: []streams.Segment{{PayloadBytes: c.bytes, Interval: interval, Burst: 1, Bursts: c.packets}}}
				mine := mostPunctual(func() punctual {
					return watched(b, network, streamPort, interval, func() haul { return haulOurs(b, network, plan) })
				})
				o := mine.out
				b.Logf("oneway, %s, by its own stamps (%d of %d packets): rate %+.4f %%, behind their time 50 %% %v, 99 %% %v, 99.9 %% %v; %d late, %d lost (%d by the receiver's socket)",
					c.name, o.Stamped, o.Sent, 100*o.RateError, o.Behind[0], o.Behind[1], o.Behind[2], o.Late, mine.lost, mine.in.SocketDropped)
				all := []punctual{mine}
				if path, ok := have(b, "iperf3"); ok {
					all = append(all, mostPunctual(func() punctual {
						return watched(b, network, iperfPort, interval, func() haul { return haulIperf(b, network, path, c.bytes, c.bits, c.packets) })
					}))
				}
				what := fmt.Sprintf("paced, %s: ", c.name)
				judge := func(of, unit string, f func(punctual) float64) {
					r := row{what: what + of, unit: unit, ours: f(all[0]), lower: true}
					for _, p := range all[1:] {
						r.peers = append(r.peers, peer{"iperf3", f(p)})
					}
					comparison.add(b, r)
				}
				judge("mean rate is off by", "%rate", func(p punctual) float64 { return 100 * p.rateError })
				judge("packet is late by, median", "us-late-p50", func(p punctual) float64 { return quantile(p.behind, 0.5) })
				judge("packet is late by, 99 %", "us-late-p99", func(p punctual) float64 { return quantile(p.behind, 0.99) })
				judge("packet is late by, 99.9 %", "us-late-p999", func(p punctual) float64 { return quantile(p.behind, 0.999) })
				judge("lost", "%lost", func(p punctual) float64 { return 100 * float64(p.lost) / float64(max(p.packets, 1)) })
				judge("sender's CPU", "CPU-s/Mpacket-sent", func(p punctual) float64 { return perMillion(p.near, p.packets) })
			}
		})
	}
}

const iperfPort = 5201
