package bench

import (
	"encoding/json"
	"fmt"
	"strconv"
	"testing"
	"time"

	streams "oneway.example/exporter/load/stream"
	"oneway.example/tests/lab"
)

// bulkResult is the result of a stream at the maximum rate, or at a set rate.
type bulkResult struct {
	step
	bytes int             // UDP payload of a packet
	out   streamOutReport // oneway only
	in    streamInReport
}

// bits is the sender's rate in Gb/s of UDP payload.
func (h bulkResult) bits() float64 { return h.rate * float64(h.bytes) * 8 / 1e9 }

// loss is the share of the packets that the receiver did not read.
func (h bulkResult) loss() float64 { return float64(h.lost) / float64(max(h.packets, 1)) }

// bulkResultOurs sends one stream between two processes, each with an Endpoint.
func bulkResultOurs(b *testing.B, network *lab.Lab, p streams.Plan) bulkResult {
	b.Helper()
	plan, err := json.Marshal(p)
	if err != nil {
		b.Fatal(err)
	}
	at := fmt.Sprintf("%s:%d", network.Server.LAN4, streamPort)
	remote := ours(b, network.Server, "stream-in", at, string(plan))
	remote.ready(b)
	h := bulkResult{bytes: p.Segments[0].PayloadBytes}
	h.local = ours(b, network.Client, "stream-out", fmt.Sprintf("%s:0", network.Client.LAN4), at, string(plan)).wait(b, &h.out)
	h.remote = remote.finish(b, &h.in)
	h.packets = uint64(h.out.Sent)
	h.lost = h.packets - min(h.packets, uint64(h.in.Received))
	h.rate = float64(h.out.Sent) / h.out.Seconds
	return h
}

// bulkResultIperf is the same with iperf3, whose rate is in bits of UDP payload; 0: the maximum rate.
func bulkResultIperf(b *testing.B, network *lab.Lab, path string, bytes int, rate float64, packets int, more ...string) bulkResult {
	b.Helper()
	server := start(b, network.Server.Command(path, "-s", "-1", "--forceflush"))
	server.await(b, "listening on")
	args := append([]string{
		"-c", network.Server.LAN4.String(), "-u", "-J",
		"-l", strconv.Itoa(bytes), "-b", strconv.FormatFloat(rate, 'f', 0, 64),
	}, more...)
	if packets > 0 {
		args = append(args, "-k", strconv.Itoa(packets))
	} else {
		args = append(args, "-t", "2")
	}
	client := start(b, network.Client.Command(path, args...))
	var r iperfReport
	h := bulkResult{bytes: bytes}
	h.local = client.wait(b, &r)
	h.remote = server.wait(b, nil)
	sum := r.End.Sum
	h.rate, h.packets, h.lost = float64(sum.Packets)/sum.Seconds, sum.Packets, uint64(max(sum.Lost, 0))
	return h
}

// attempts is the number of runs at the maximum rate: the best counts, of every program, because other load may slow a
// run.
const attempts = 3

func best(of int, f func() bulkResult) (best bulkResult) {
	for range of {
		if h := f(); h.rate > best.rate {
			best = h
		}
	}
	return best
}

// BenchmarkBulk sends at each program's maximum rate, without timestamps: oneway with segmentation offload, iperf3 with
// its defaults. Packets that the receiver drops are reported separately from the sender's results.
func BenchmarkBulk(b *testing.B) {
	network := newLab(b)
	for _, c := range []struct{ bytes, packets int }{{packetBytes, 4_000_000}, {1472, 2_000_000}} {
		b.Run(strconv.Itoa(c.bytes), func(b *testing.B) {
			for b.Loop() {
				p := streams.Plan{Unstamped: true, Segments: []streams.Segment{{PayloadBytes: c.bytes, Burst: 1, Bursts: c.packets}}}
				mine := best(attempts, func() bulkResult { return bulkResultOurs(b, network, p) })
				b.Logf("oneway, %d bytes: %.0f of %d packets dropped by the receiver's socket, %d by its backlog", c.bytes,
					float64(mine.in.SocketDropped), mine.packets, mine.in.BacklogDropped)
				all := []rival{{"oneway", mine}}
				path, ok := have(b, "iperf3")
				if ok {
					all = append(all, rival{"iperf3", best(attempts, func() bulkResult { return bulkResultIperf(b, network, path, c.bytes, 0, 0) })})
				}
				what := fmt.Sprintf("bulk, %d bytes, unstamped: ", c.bytes)
				contest(b, what+"sent", "packets/s", false, all, func(h bulkResult) float64 { return h.rate })
				contest(b, what+"received", "packets/s-received", false, all, func(h bulkResult) float64 { return h.rate * (1 - h.loss()) })
				contest(b, what+"receiver's loss", "%lost", true, all, func(h bulkResult) float64 { return 100 * h.loss() })
				contest(b, what+"sender's CPU", "CPU-s/Mpacket-sent", true, all, func(h bulkResult) float64 { return perMillion(h.local, h.packets) })
				contest(b, what+"receiver's CPU", "CPU-s/Mpacket-received", true, all, func(h bulkResult) float64 { return perMillion(h.remote, h.packets-h.lost) })
				if ok && c.bytes > packetBytes {
					// Its own best: datagrams that its kernel fragments.
					all = append(all, rival{"iperf3:-l65507", best(attempts, func() bulkResult { return bulkResultIperf(b, network, path, streams.MaxPayloadBytes, 0, 0) })})
				}
				contest(b, what+"sent", "Gb/s", false, all, bulkResult.bits)
			}
		})
	}
}

// BenchmarkStampedStream is the fastest stream of 64-byte packets with kernel timestamps of all at both ends and
// without loss.
func BenchmarkStampedStream(b *testing.B) {
	network := newLab(b)
	for b.Loop() {
		var top bulkResult
		climb([]int{25_000, 50_000, 75_000, 100_000, 125_000, 150_000, 175_000, 200_000}, func(rate int) step {
			h := bulkResultOurs(b, network, streams.Plan{Segments: []streams.Segment{{PayloadBytes: packetBytes, Interval: time.Second / time.Duration(rate), Burst: 1, Bursts: rate}}})
			if h.lost == 0 && h.rate > top.rate {
				top = h
			}
			return h.step
		})
		all := []rival{{"oneway", top}}
		contest(b, "stamped stream of 64 bytes, no loss", "packets/s", false, all, func(h bulkResult) float64 { return h.rate })
		contest(b, "its TX timestamps", "%tx-stamped", false, all, func(h bulkResult) float64 { return 100 * float64(h.out.Stamped) / float64(max(h.out.Sent, 1)) })
		contest(b, "its RX timestamps", "%rx-stamped", false, all, func(h bulkResult) float64 { return 100 * float64(h.in.Stamped) / float64(max(h.in.Received, 1)) })
		contest(b, "its sender's CPU", "CPU-s/Mpacket-sent", true, all, func(h bulkResult) float64 { return perMillion(h.local, h.packets) })
		contest(b, "its receiver's CPU", "CPU-s/Mpacket-received", true, all, func(h bulkResult) float64 { return perMillion(h.remote, h.packets) })
	}
}

type rival struct {
	name string
	bulkResult
}

func contest(b *testing.B, what, unit string, lower bool, all []rival, f func(bulkResult) float64) {
	b.Helper()
	r := row{what: what, unit: unit, ours: f(all[0].bulkResult), lower: lower}
	for _, n := range all[1:] {
		r.peers = append(r.peers, peer{n.name, f(n.bulkResult)})
	}
	comparison.add(b, r)
}
