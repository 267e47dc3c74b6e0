package reflector

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/net/tstamp"
	"oneway.example/exporter/net/wire/stampfmt"
)

// outstanding is the number of outstanding requests of the loopback benchmark: enough to keep the reflector busy, and
// not more than its socket's buffer holds.
const outstanding = 256

// BenchmarkLoopback sends requests over a real socket at the maximum rate, from 64 sessions, and reports replies per
// second and requests without a reply. The sender runs in the same process: on two cores one of them is the
// reflector's.
func BenchmarkLoopback(b *testing.B) {
	for _, c := range benchCases() {
		b.Run(c.name, func(b *testing.B) {
			key := newKey(b, "k")
			o := Options{RatePackets: -1}
			if c.keys {
				o.Keys, o.RequireKey = append(o.Keys, key), true
			}
			r := running(b, o, metric.Discard{})
			conn, err := tstamp.Open(netip.MustParseAddrPort("127.0.0.1:0"), tstamp.Options{UserTimestamps: true})
			if err != nil {
				b.Fatal(err)
			}
			defer conn.Close()
			l := newLab(b, nil)
			packets := make([]tstamp.Out, cycle)
			for i := range packets {
				k := l.poller("127.0.0.1:1", uint32(i%64))
				k.ssid = uint16(i % 64)
				if c.keys {
					k.key = key
				}
				packets[i] = tstamp.Out{Payload: c.make(k, uint32(i/64)), Peer: r.Addrs()[0]}
			}
			renew := func(int) {}
			if c.keys {
				renew = func(number int) { // copies get no reply
					p := packets[number%cycle].Payload
					binary.BigEndian.PutUint32(p, uint32(number/64))
					stampfmt.SealCRC(p, true)
					stampfmt.PutTLVHMAC(p, stampfmt.AuthenticatedBytes, key)
					stampfmt.PutHMAC(p, key)
				}
			}
			b.ReportAllocs()
			b.ResetTimer()
			lost := exchangeAndCount(b, conn, packets, renew)
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "replies/s")
			b.ReportMetric(float64(lost), "lost")
		})
	}
}

// exchangeAndCount sends b.N requests, which renew prepares by their numbers, and returns the number without a reply.
func exchangeAndCount(b *testing.B, conn *tstamp.Conn, packets []tstamp.Out, renew func(number int)) (lost int) {
	batch := tstamp.NewBatch(64, 512)
	answered := make(chan int, 1024)
	go func() {
		defer close(answered)
		for conn.Receive(batch) == nil {
			answered <- len(batch.In)
		}
	}()
	sent, got := 0, 0
	timeout := time.NewTimer(time.Hour)
	for got+lost < b.N {
		if space := min(outstanding-(sent-got-lost), b.N-sent, 64); space >= min(64, b.N-sent) && space > 0 {
			from := sent % cycle
			space = min(space, cycle-from)
			for i := range space {
				renew(sent + i)
			}
			n, err := conn.Send(packets[from : from+space])
			if err != nil {
				b.Fatal(err)
			}
			sent += n
			continue
		}
		timeout.Reset(time.Second)
		select {
		case n := <-answered:
			got += n
		case <-timeout.C:
			lost = sent - got
		}
	}
	return lost
}
