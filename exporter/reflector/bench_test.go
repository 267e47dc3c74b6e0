package reflector

import (
	"fmt"
	"net/netip"
	"testing"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/tstamp"
	"oneway.example/exporter/net/wire/stampfmt"
)

// benchCase is one kind of request of a benchmark.
type benchCase struct {
	name string
	keys bool
	make func(k *poller, i uint32) []byte
}

func benchCases() []benchCase {
	return []benchCase{
		{"base44", false, func(k *poller, i uint32) []byte { return k.base(i) }},
		{"receipt172", false, func(k *poller, i uint32) []byte { return k.request(i, nil) }},
		{"authenticated", true, func(k *poller, i uint32) []byte { return k.request(i, nil) }},
	}
}

// cycle is how many different packets are made before the clock starts.
const cycle = 1024

// prepare makes a reflector and packets that it replies to repeatedly: see again.
func (c benchCase) prepare(tb testing.TB, sessions int) (*lab, [][]byte, []tstamp.In) {
	key := newKey(tb, "k")
	l := newLab(tb, func(o *Options) {
		if c.keys {
			o.Keys, o.RequireKey = []*stampfmt.Key{key}, true
		}
	})
	packets := make([][]byte, cycle)
	in := make([]tstamp.In, cycle)
	for i := range packets {
		k := l.poller(fmt.Sprintf("10.0.%d.%d:5000", i%sessions/250, i%sessions%250+1), uint32(i%sessions+1))
		if c.keys {
			k.key = key
		}
		packets[i] = c.make(k, uint32(i/sessions))
		in[i] = tstamp.In{
			Payload: make([]byte, len(packets[i])), Peer: k.peer, Local: netip.MustParseAddr("127.0.0.1"),
			Stamp: sample.Stamp{At: epochStart, Origin: sample.Kernel}, At: epochStart, TTL: 64,
		}
	}
	return l, packets, in
}

// again resets the sessions before packet i, the first of a cycle: copies of authenticated packets get no reply.
func (l *lab) again(i int) {
	if i%cycle != 0 {
		return
	}
	for _, s := range l.s.table.byKey {
		if s.single = false; s.window != nil {
			s.window.Reset()
		}
	}
}

func (l *lab) replyOne(packet []byte, in *tstamp.In, a *pendingReply) Result {
	copy(in.Payload, packet)
	r := l.s.handle(in, l.now, a)
	if r.Answered() {
		l.s.seal(a, epochStart)
	}
	return r
}

func BenchmarkHandle(b *testing.B) {
	for _, c := range benchCases() {
		for _, sessions := range []int{1, 1000} {
			b.Run(fmt.Sprintf("%s/sessions=%d", c.name, sessions), func(b *testing.B) {
				l, packets, in := c.prepare(b, sessions)
				var a pendingReply
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					l.now += 1000
					l.again(i)
					if r := l.replyOne(packets[i%cycle], &in[i%cycle], &a); !r.Answered() {
						b.Fatal(r)
					}
				}
			})
		}
	}
}

// BenchmarkHandleFlood uses a new source and session for every packet.
func BenchmarkHandleFlood(b *testing.B) { benchmarkFlood(b, -1, Answered) }

// BenchmarkHandleRefused uses a new source for every packet, beyond the limit of new sessions.
func BenchmarkHandleRefused(b *testing.B) { benchmarkFlood(b, 1, NewSessionLimited) }

func benchmarkFlood(b *testing.B, newSessions int, want Result) {
	l, packets, in := benchCases()[0].prepare(b, 1)
	l.s.unknownPeers = newNewSessionLimit(newSessions, 1)
	for l.s.unknownPeers.inAll.interval > 0 && l.s.unknownPeers.take(addr(0).Addr(), 0) {
	}
	var a pendingReply
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		p := &in[i%cycle]
		p.Peer = netip.AddrPortFrom(netip.AddrFrom4([4]byte{byte(1 + i>>24), byte(i >> 16), byte(i >> 8), byte(i)}), 5000)
		if r := l.replyOne(packets[0], p, &a); r != want {
			b.Fatal(r)
		}
	}
}

func TestRepliesOfKnownSessionsDoNotAllocate(t *testing.T) {
	for _, c := range benchCases() {
		l, packets, in := c.prepare(t, 10)
		var a pendingReply
		i := 0
		one := func() {
			l.again(i)
			if r := l.replyOne(packets[i%cycle], &in[i%cycle], &a); !r.Answered() {
				t.Fatal(r)
			}
			i++
		}
		for range cycle {
			one()
		}
		if n := testing.AllocsPerRun(2000, one); n != 0 {
			t.Errorf("%s: %v allocations per packet, want 0", c.name, n)
		}
	}
}

func TestFloodOfNewSourcesDoesNotAllocateWithAFullTable(t *testing.T) {
	l, packets, in := benchCases()[1].prepare(t, 1)
	l.s.table.max, l.s.table.maxPerSource, l.s.unknownPeers = 500, 250, newNewSessionLimit(-1, 1)
	var a pendingReply
	i := 0
	one := func() {
		in[0].Peer = addr(i)
		if r := l.replyOne(packets[0], &in[0], &a); r != Answered {
			t.Fatal(r)
		}
		i++
	}
	for range 20_000 {
		one()
	}
	if n := testing.AllocsPerRun(5000, one); n > 0.01 {
		t.Errorf("%v allocations per packet, want 0", n)
	}
	l.s.table.check(t)
}
