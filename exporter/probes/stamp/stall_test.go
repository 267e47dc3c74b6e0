package stamp

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/tstamp"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/reflector"
)

// TestRepliesThatWaitToBeReadAreInTime: the goroutine that reads the replies stalls for three loss timeouts, as on a
// busy host. The kernel received them in time.
func TestRepliesThatWaitToBeReadAreInTime(t *testing.T) {
	b, kind := newTestbed(t, reflector.Options{}), NewType()
	p, err := kind.NewProber(b.env, probe.Target{Path: "p", Probe: "stamp", Peer: b.peer}, quick())
	if err != nil {
		t.Fatal(err)
	}
	var stall sync.Once
	r, err := p.Measure(t.Context(), 500, func(Report) {
		stall.Do(func() {
			for _, h := range kind.hubs {
				h.mu.Lock() // delivering a packet needs it, sending does not
				defer h.mu.Unlock()
			}
			time.Sleep(3 * quick().LossTimeout) // the stall, in which the last packets are sent
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.RoundTrip.Lost != 0 || r.RoundTrip.Received != 500 || *r.Forward.Lost+*r.Reverse.Lost != 0 {
		t.Errorf("got %d round trips, %d lost; %d lost forward, %d in reverse; want 500 and none lost",
			r.RoundTrip.Received, r.RoundTrip.Lost, *r.Forward.Lost, *r.Reverse.Lost)
	}
}

// TestSocketHoldsTheRepliesOfAStall: 10,000 packets a second arrive for three seconds, and nobody reads them.
func TestSocketHoldsTheRepliesOfAStall(t *testing.T) {
	b := newTestbed(t, reflector.Options{})
	h, err := newHub(hubKey{local: netip.MustParseAddrPort("127.0.0.1:0")}, openCard, b.env)
	if err != nil {
		t.Fatal(err)
	}
	defer h.close(func() {})
	count := 30_000
	if granted := h.conn.Stats().ReceiveBufferBytes; granted < 2*receiveBufferBytes {
		count = granted / 1200 // this process may not exceed net.core.rmem_max, or has a memory limit
	}
	conn, err := net.Dial("udp4", h.conn.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	reply := make([]byte, DefaultSize(false))
	for range count {
		if _, err := conn.Write(reply); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(50 * time.Millisecond) // longer than the interval at which drops are read
	if n := h.conn.Stats().Dropped; n != 0 {
		t.Errorf("%d of %d packets dropped in a buffer of %d bytes, want none", n, count, h.conn.Stats().ReceiveBufferBytes)
	}
}

// TestBatchThatEndsEarlyLeavesPackets: a packet was read that arrived 4 s before. Only a batch that ended since no packet
// was left proves that all earlier ones are read.
func TestBatchThatEndsEarlyLeavesPackets(t *testing.T) {
	const begin, arrived = 99 * time.Second, 96 * time.Second
	at := wheelStart
	in := func(n int, origin sample.Origin) []tstamp.In {
		return slices.Repeat([]tstamp.In{{Stamp: sample.Stamp{At: at.Add(arrived - 100*time.Second), Origin: origin}}}, n)
	}
	for name, c := range map[string]struct {
		batch tstamp.Batch
		want  time.Duration
	}{
		"no packet is left":                {tstamp.Batch{In: in(3, sample.Kernel)}, begin},
		"only transmit timestamps":         {tstamp.Batch{}, begin},
		"full":                             {tstamp.Batch{In: in(receivePackets, sample.Kernel)}, arrived},
		"full, no timestamp of the kernel": {tstamp.Batch{In: in(receivePackets, sample.User)}, time.Second},
		"ended by an ICMP error":           {tstamp.Batch{In: in(3, sample.Kernel), Errors: make([]tstamp.ICMPError, 1)}, arrived},
		"no packet before the ICMP error":  {tstamp.Batch{Errors: make([]tstamp.ICMPError, 1)}, time.Second},
	} {
		var h hub
		h.heardUpTo(time.Second)
		h.hear(&c.batch, begin, 100*time.Second, at)
		if got := time.Duration(h.heard.Load()); got != c.want {
			t.Errorf("%s: all that arrived in the first %v are read; want %v", name, got, c.want)
		}
	}
}
