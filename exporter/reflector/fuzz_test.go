package reflector

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/tstamp"
	"oneway.example/exporter/net/wire/stampfmt"
)

// FuzzHandle passes arbitrary bytes to reflectors of all kinds. It checks that none panics, that a reply is exactly as
// long as its request, or a base packet where short requests are permitted, and that the tables stay consistent.
func FuzzHandle(f *testing.F) {
	key := stampfmt.NewKey([]byte("a secret of the fuzzer's own"))
	l := newLab(f, nil)
	k := l.poller("192.0.2.1:5000", 1)
	f.Add(k.base(0), uint16(5000), int64(0))
	f.Add(k.request(0, nil), uint16(5000), int64(time.Second))
	f.Add(k.request(7, func(r *stampfmt.Receipt) { r.StatsQuery, r.Finish = true, true }), uint16(5000), int64(1))
	f.Add(append(k.base(0), tlv(stampfmt.TypeClassOfService, 184, 0, 0, 0)...), uint16(1), int64(1))
	f.Add(append(k.base(0), tlv(stampfmt.TypeFollowUp, 1, 2)...), uint16(1), int64(1))
	k.key = key
	f.Add(k.request(3, nil), uint16(5000), int64(1))
	f.Add(k.base(3), uint16(5000), int64(1))

	kinds := []func(*Options){
		func(*Options) {},
		func(o *Options) { o.Stateless = true },
		func(o *Options) { o.Keys = []*stampfmt.Key{key} },
		func(o *Options) { o.Keys, o.RequireKey = []*stampfmt.Key{key}, true },
		func(o *Options) { o.ShortRequests, o.Allow = true, anywhere() },
	}
	f.Fuzz(func(t *testing.T, b []byte, port uint16, later int64) {
		for _, change := range kinds {
			l := newLab(t, func(o *Options) { o.MaxSessions = 2; change(o) })
			// The same packet later, and from another address: it meets the state that the first one left.
			for i := range uint16(4) {
				l.fuzz(t, b, port+i/2, later&1 == 1)
				l.now += time.Duration(later & (1<<40 - 1))
			}
		}
	})
}

// anywhere permits all sources.
func anywhere() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
}

func (l *lab) fuzz(t *testing.T, b []byte, port uint16, seal bool) {
	in := tstamp.In{
		// no capacity beyond the packet, to detect writes there
		Payload: bytes.Clone(b)[:len(b):len(b)], TTL: 3,
		Peer:  netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(port)}), port),
		Local: netip.AddrFrom4([4]byte{127, 0, 0, 1}),
		Stamp: sample.Stamp{At: l.wall(), Origin: sample.Kernel}, At: l.wall(),
	}
	if seal { // mutation would not find a valid CRC
		stampfmt.SealCRC(in.Payload, l.s.options.RequireKey)
	}
	pendingReply, _, r := l.deliverIn(&in)
	want := len(b)
	if l.s.options.ShortRequests {
		want = max(want, stampfmt.UnauthenticatedBytes)
	}
	if r.Answered() && (len(pendingReply) != want || len(b) < l.s.options.leastRequest()) {
		t.Fatalf("%v: reply to %d bytes has %d", r, len(b), len(pendingReply))
	}
	l.s.table.check(t)
}
