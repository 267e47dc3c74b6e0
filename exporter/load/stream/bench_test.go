package stream

import (
	"math/rand/v2"
	"net/netip"
	"testing"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/tstamp"
)

// BenchmarkTake measures the handling of a received packet: of a stream, and of an unknown session, with
// a thousand joined sessions.
func BenchmarkTake(b *testing.B) {
	for _, c := range []struct {
		name    string
		session uint64
	}{{"data", testSession}, {"unknown", testSession + 1}} {
		b.Run(c.name, func(b *testing.B) {
			e, err := Open(Options{Local: netip.MustParseAddrPort("127.0.0.1:0")})
			if err != nil {
				b.Fatal(err)
			}
			defer e.Close()
			for i := range uint64(1000) {
				e.Join(i)
			}
			r, err := e.Join(testSession).Expect(1, Plan{Segments: []Segment{{PayloadBytes: 1472, Burst: 1, Bursts: MaxPackets}}})
			if err != nil {
				b.Fatal(err)
			}
			rx := newReceiver(e)
			in := tstamp.In{Peer: netip.MustParseAddrPort("192.0.2.1:9"), Stamp: sample.Stamp{At: 1, Origin: sample.Kernel}}
			for i := range uint32(receiveBatch) {
				in.Payload = dataPacket(c.session, 1, i, 1472)
				rx.batch.In = append(rx.batch.In, in)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for n := 0; n < b.N; n += receiveBatch {
				rx.take()
				r.received.Packets = r.received.Packets[:0]
			}
			b.SetBytes(1472)
		})
	}
}

func BenchmarkRecords(b *testing.B) {
	const seed, n = 5, 100_000
	b.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	sent, received := someSent(rng, n), someReceived(rng, n)
	s, r := sent.AppendTo(nil), received.AppendTo(nil)
	for name, f := range map[string]func(){
		"append sent":     func() { s = sent.AppendTo(s[:0]) },
		"append received": func() { r = received.AppendTo(r[:0]) },
		"parse sent":      func() { _, _ = ParseSent(s, MaxPackets) },
		"parse received":  func() { _, _ = ParseReceived(r, MaxPackets) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/packet")
		})
	}
}
