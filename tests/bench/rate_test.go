package bench

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"oneway.example/tests/lab"
)

// step is the result of one rate of a series.
type step struct {
	rate                float64 // packets/s as sent
	packets             uint64
	lost                uint64
	local, remote       time.Duration // CPU of sender and receiver
	localCov, remoteCov float64       // share of the packets with kernel timestamps
}

// climb tests increasing rates, for a second each, and returns the fastest without loss. The result of a rate that a
// program does not reach is the rate it sent at. It ends after two rates with loss, each tried twice, because other
// load spoils single steps.
func climb(rates []int, offer func(rate int) step) (best step) {
	failed := 0
	for _, rate := range rates {
		s := offer(rate)
		if s.lost > 0 {
			s = offer(rate)
		}
		if s.lost > 0 {
			if failed++; failed == 2 {
				break
			}
			continue
		}
		failed = 0
		if s.rate > best.rate {
			best = s
		}
	}
	return best
}

// BenchmarkSmallPackets is the highest rate of 64-byte packets without loss, and the CPU time at it: oneway with kernel
// timestamps of all packets at both ends, iperf3 and irtt without.
func BenchmarkSmallPackets(b *testing.B) {
	network := newLab(b)
	for b.Loop() {
		mine := climb([]int{20_000, 50_000, 80_000, 110_000, 130_000, 150_000, 170_000, 190_000, 220_000, 250_000}, func(rate int) step {
			return stream(b, network, rate)
		})
		b.ReportMetric(mine.localCov, "oneway:tx_stamped")
		b.ReportMetric(mine.remoteCov, "oneway:rx_stamped")
		rates := row{what: "64 bytes one way, no loss", unit: "packets/s", ours: mine.rate}
		local := row{what: "sender's CPU (oneway: with TX timestamps)", unit: "CPU-s/Mpacket-sent", ours: perMillion(mine.local, mine.packets), lower: true}
		remote := row{what: "receiver's CPU (oneway: with RX timestamps)", unit: "CPU-s/Mpacket-received", ours: perMillion(mine.remote, mine.packets), lower: true}
		add := func(name string, s step) {
			rates.peers = append(rates.peers, peer{name, s.rate})
			local.peers = append(local.peers, peer{name, perMillion(s.local, s.packets)})
			remote.peers = append(remote.peers, peer{name, perMillion(s.remote, s.packets)})
		}
		if path, ok := have(b, "iperf3"); ok {
			add("iperf3", climb([]int{2_000, 5_000, 10_000, 20_000, 40_000, 80_000, 110_000, 150_000, 200_000, 250_000}, func(rate int) step {
				return iperf(b, network, path, rate)
			}))
		}
		if path, ok := have(b, "irtt"); ok {
			add("irtt", climb([]int{500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000}, func(rate int) step {
				r, client, server := irtt(b, network, path, time.Second/time.Duration(rate), time.Second)
				return step{
					rate: float64(r.Stats.Sent) / r.Stats.Duration.Seconds(), packets: r.Stats.Sent,
					lost: r.Stats.Sent - r.Stats.Received, local: client, remote: server,
				}
			}))
		}
		comparison.add(b, rates)
		comparison.add(b, local)
		comparison.add(b, remote)
	}
}

// stream sends for a second with oneway's sockets.
func stream(b *testing.B, network *lab.Lab, rate int) step {
	b.Helper()
	address := fmt.Sprintf("%s:9000", network.Server.LAN4)
	remote := ours(b, network.Server, "receive", address)
	remote.ready(b)
	var s sent
	local := ours(b, network.Client, "send", address, strconv.Itoa(rate), "1").wait(b, &s)
	var r received
	remoteCPU := remote.finish(b, &r)
	return step{
		rate: float64(s.Sent) / s.Seconds, packets: s.Sent, lost: s.Sent - min(s.Sent, r.Received), local: local, remote: remoteCPU,
		localCov: float64(s.Stamped) / float64(s.Sent), remoteCov: float64(r.Stamped) / float64(max(r.Received, 1)),
	}
}

// iperfReport is the part of iperf3's JSON used here.
type iperfReport struct {
	End struct {
		Sum struct {
			Packets uint64  `json:"packets"`
			Lost    int64   `json:"lost_packets"`
			Seconds float64 `json:"seconds"`
		} `json:"sum"`
	} `json:"end"`
}

// iperf sends for a second with iperf3.
func iperf(b *testing.B, network *lab.Lab, path string, rate int) step {
	b.Helper()
	server := start(b, network.Server.Command(path, "-s", "-1", "--forceflush"))
	server.await(b, "listening on")
	client := start(b, network.Client.Command(path, "-c", network.Server.LAN4.String(), "-u", "-l", strconv.Itoa(packetBytes),
		"-b", strconv.Itoa(rate*packetBytes*8), "-t", "1", "-J"))
	var r iperfReport
	local := client.wait(b, &r)
	remote := server.wait(b, nil)
	sum := r.End.Sum
	return step{
		rate: float64(sum.Packets) / sum.Seconds, packets: sum.Packets, lost: uint64(max(sum.Lost, 0)), local: local, remote: remote,
	}
}

// irttReport is the part of irtt's JSON used here.
type irttReport struct {
	Stats struct {
		Sent     uint64        `json:"packets_sent"`
		Received uint64        `json:"packets_received"`
		Duration time.Duration `json:"duration"`
		Misses   uint64        `json:"timer_misses"`
	} `json:"stats"`
	Trips []struct {
		Lost  string `json:"lost"`
		Delay struct {
			Send    time.Duration `json:"send"`
			Receive time.Duration `json:"receive"`
		} `json:"delay"`
	} `json:"round_trips"`
}

const irttPort = 2112

// irtt measures over the link with irtt's server and client.
func irtt(b *testing.B, network *lab.Lab, path string, interval, lasts time.Duration) (r irttReport, client, server time.Duration) {
	b.Helper()
	address := fmt.Sprintf("%s:%d", network.Server.LAN4, irttPort)
	remote := start(b, network.Server.Command(path, "server", "-b", address, "-i", "0"))
	remote.await(b, "ListenerStart")
	local := start(b, network.Client.Command(path, "client", "-i", interval.String(), "-d", lasts.String(), "-l", strconv.Itoa(packetBytes),
		"--timeouts=200ms,200ms,500ms,1s,2s", "--wait=300ms", "-Q", "-o", "-", address))
	client = local.wait(b, &r)
	return r, client, remote.stop(b)
}
