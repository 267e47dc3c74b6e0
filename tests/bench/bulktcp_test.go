package bench

import (
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"oneway.example/tests/lab"
)

// tcpPairs is the number of interleaved runs of each program, and tcpSeconds the duration of each.
const (
	tcpPairs   = 10
	tcpSeconds = "3"
)

// bulkTCP is one TCP transfer: bytes a second, and CPU seconds of both ends per GB.
type bulkTCP struct{ rate, sender, receiver float64 }

// perGB sets the CPU times of a transfer.
func (r *bulkTCP) perGB(local, remote time.Duration, bytes float64) {
	r.sender, r.receiver = local.Seconds()/bytes*1e9, remote.Seconds()/bytes*1e9
}

// tcpServer is a directory with a token for the load server, whose key stays the same.
type tcpServer struct{ dir, token, tokens string }

func newTCPServer(b *testing.B) tcpServer {
	b.Helper()
	s := tcpServer{dir: b.TempDir()}
	s.token, s.tokens = filepath.Join(s.dir, "token"), filepath.Join(s.dir, "tokens")
	out, err := exec.Command(binary, "token", "new", "--name=bench", "--file="+s.tokens).Output()
	if err != nil {
		b.Fatal(err)
	}
	text, _, _ := strings.Cut(string(out), "\n")
	if err := os.WriteFile(s.token, []byte(text+"\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	return s
}

// ours performs a transfer between the real programs: the CPU time includes start, handshake and report.
func (s tcpServer) ours(b *testing.B, network *lab.Lab, more ...string) (r bulkTCP) {
	b.Helper()
	at := netip.AddrPortFrom(network.Server.LAN4, streamPort).String()
	server := start(b, network.Server.Command(binary, "load-server", "--tokens-file="+s.tokens, "--state-dir="+s.dir, "--listen="+at, "--clock=none"))
	pin := ""
	for pin == "" {
		line, err := server.stdout.ReadString('\n')
		if err != nil {
			b.Fatalf("no pin: %v\n%s", err, &server.stderr)
		}
		if text, ok := strings.CutPrefix(line, "pin "); ok {
			pin = strings.TrimSpace(text)
		}
	}
	args := []string{
		"test", "tcp", at, "--token-file=" + s.token, "--pin=" + pin, "--clock=none", "--no-agent", "--json", "--direction=forward",
		"--congestion-control=cubic", "--omit=0s", "--duration=" + tcpSeconds + "s", "--max-bytes=100GB",
	}
	var out struct {
		Result struct {
			Directions []struct {
				Payload    float64 `json:"payload_bytes"`
				Throughput float64 `json:"throughput_bytes_per_second"`
			} `json:"directions"`
		} `json:"results"`
	}
	local := start(b, network.Client.Command(binary, append(args, more...)...)).wait(b, &out)
	if len(out.Result.Directions) != 1 {
		b.Fatalf("%d directions", len(out.Result.Directions))
	}
	d := out.Result.Directions[0]
	r.rate = d.Throughput
	r.perGB(local, server.stop(b), d.Payload)
	return r
}

func iperfTCP(b *testing.B, network *lab.Lab, path string, more ...string) (r bulkTCP) {
	b.Helper()
	server := start(b, network.Server.Command(path, "-s", "-1", "--forceflush"))
	server.await(b, "listening on")
	var out struct {
		End struct {
			Sum struct {
				Bytes float64 `json:"bytes"`
				Bits  float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		} `json:"end"`
	}
	args := []string{"-c", network.Server.LAN4.String(), "-J", "-C", "cubic", "-t", tcpSeconds}
	local := start(b, network.Client.Command(path, append(args, more...)...)).wait(b, &out)
	r.rate = out.End.Sum.Bits / 8
	r.perGB(local, server.wait(b, nil), out.End.Sum.Bytes)
	return r
}

// BenchmarkBulkTCP compares medians of interleaved runs of one flow with messages of 128 KiB.
func BenchmarkBulkTCP(b *testing.B) {
	network, server := newLab(b), newTCPServer(b)
	path, ok := have(b, "iperf3")
	for b.Loop() {
		var mine, unstamped, discarding, theirs []bulkTCP
		turns := []func(){
			func() { mine = append(mine, server.ours(b, network)) },
			func() { unstamped = append(unstamped, server.ours(b, network, "--no-stamps")) },
			func() { discarding = append(discarding, server.ours(b, network, "--discard")) },
		}
		if ok {
			turns = append(turns, func() { theirs = append(theirs, iperfTCP(b, network, path)) })
		}
		for range tcpPairs {
			for _, turn := range turns {
				turn()
			}
			slices.Reverse(turns) // so that neither is always the first
		}
		for i := range mine {
			b.Logf("pair %d: rate with stamps of sampled bytes %.3f of that without, CPU %.3f", i, mine[i].rate/unstamped[i].rate, (mine[i].sender+mine[i].receiver)/(unstamped[i].sender+unstamped[i].receiver))
		}
		for i := range theirs {
			b.Logf("pair %d: rate %.3f, CPU %.3f of iperf3's", i, mine[i].rate/theirs[i].rate, (mine[i].sender+mine[i].receiver)/(theirs[i].sender+theirs[i].receiver))
		}
		for _, q := range []struct {
			what, unit string
			lower      bool
			of         func(bulkTCP) float64
		}{
			{"rate", "Gb/s-tcp", false, func(r bulkTCP) float64 { return r.rate * 8 / 1e9 }},
			{"sender's CPU", "CPU-s/GB-sent", true, func(r bulkTCP) float64 { return r.sender }},
			{"receiver's CPU", "CPU-s/GB-received", true, func(r bulkTCP) float64 { return r.receiver }},
			{"CPU of both", "CPU-s/GB", true, func(r bulkTCP) float64 { return r.sender + r.receiver }},
		} {
			one := row{what: "bulk TCP: " + q.what, unit: q.unit, lower: q.lower, ours: medianOf(mine, q.of)}
			one.peers = append(one.peers, peer{"oneway:no-stamps", medianOf(unstamped, q.of)}, peer{"oneway:discard", medianOf(discarding, q.of)})
			if ok {
				one.peers = append(one.peers, peer{"iperf3", medianOf(theirs, q.of)})
			}
			comparison.add(b, one)
		}
	}
}

func medianOf(runs []bulkTCP, of func(bulkTCP) float64) float64 {
	var values []float64
	for _, r := range runs {
		values = append(values, of(r))
	}
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}
