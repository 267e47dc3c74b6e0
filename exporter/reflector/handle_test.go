package reflector

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/tstamp"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/net/wire/timefmt"
)

func TestReplyHasTheFieldsOfRFC8762(t *testing.T) {
	for _, format := range []timefmt.Format{timefmt.NTP, timefmt.PTP} {
		l := newLab(t, nil)
		k := l.poller("192.0.2.1:5000", 1)
		k.send(k.base(41)) // the next reply is number 1
		p := stampfmt.SenderPacket{
			Seq: 42, T1: 0x1122334455667788, SSID: 77,
			Error: timefmt.MakeErrorEstimate(time.Second, true, format),
		}
		got := k.send(p.AppendTo(nil))
		want := stampfmt.ReflectorPacket{
			Seq: 1, T3: format.Encode(l.wall().Add(50*time.Microsecond), tai), SSID: 77,
			Error: timefmt.MakeErrorEstimate(time.Millisecond, true, format),
			T2:    format.Encode(l.wall(), tai), SenderSeq: 42, SenderT1: p.T1, SenderError: p.Error, SenderTTL: 61,
		}
		if got.result != Answered || got.base != want {
			t.Errorf("format %v: %v\n got %+v\nwant %+v", format, got.result, got.base, want)
		}
	}
}

func TestStatelessReplyCopiesTheNumber(t *testing.T) {
	l := newLab(t, func(o *Options) { o.Stateless = true })
	k := l.poller("192.0.2.1:5000", 1)
	for _, seq := range []uint32{5, 5, 1<<32 - 1} {
		rep := k.poll(seq)
		if rep.base.Seq != seq || rep.flags[stampfmt.TypeReceipt] != stampfmt.FlagUnrecognized || rep.flags[stampfmt.TypeFollowUp] != 0 {
			t.Errorf("request %d: got number %d, flags %v", seq, rep.base.Seq, rep.flags)
		}
	}
	if l.s.table.len() != 0 {
		t.Error("a stateless reflector has sessions")
	}
}

func TestStatefulRepliesAreNumberedBySession(t *testing.T) {
	l := newLab(t, nil)
	a, b, c := l.poller("192.0.2.1:5000", 1), l.poller("192.0.2.1:5001", 2), l.poller("192.0.2.1:5000", 3)
	c.ssid = 78
	for i := range uint32(4) {
		for _, k := range []*poller{a, b, c} {
			if got := k.send(k.base(i * 10)).base.Seq; got != i {
				t.Fatalf("reply %d of %v/%d has number %d", i, k.peer, k.ssid, got)
			}
		}
	}
}

func TestTWAMPLightRequestsOf41BytesGetReplies(t *testing.T) {
	l := newLab(t, nil)
	k := l.poller("192.0.2.1:5000", 1)
	whole := k.base(3)
	for n := range 48 {
		q := append(bytes.Clone(whole), 0, 0, 0, 0)[:n]
		rep := k.send(q)
		if want := n >= 41; rep.result.Answered() != want || (!want && rep.result != Short) {
			t.Errorf("%d bytes: got %v, want answered", n, rep.result)
		}
		if n >= 41 && (rep.base.SenderSeq != 3 || rep.base.SenderTTL != 61) {
			t.Errorf("%d bytes: reply %+v", n, rep.base)
		}
	}
}

// TestShortRequestsGetABasePacketIfPermitted: twampy and others send 14 bytes, without padding (RFC 8762 section 4.6).
func TestShortRequestsGetABasePacketIfPermitted(t *testing.T) {
	for _, stateless := range []bool{false, true} {
		l := newLab(t, func(o *Options) {
			o.ShortRequests, o.Stateless, o.Allow = true, stateless, []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
		})
		k, unlisted := l.poller("192.0.2.1:5000", 1), netip.MustParseAddrPort("198.51.100.1:5000")
		answered := uint32(0)
		for n := range 60 {
			for _, padding := range []byte{0, 0xff} {
				q := append(k.base(3)[:14], bytes.Repeat([]byte{padding}, 46)...)[:n]
				neighbor := append(bytes.Clone(q), bytes.Repeat([]byte{0xa5}, 60)...)
				in := inOf(l, k.peer, nil)
				in.Payload = neighbor[:n] // its capacity is of other packets
				got, _, r := l.deliverIn(&in)
				if want := n >= 14; r.Answered() != want || !want && r != Short {
					t.Fatalf("%d bytes: %v, want a reply %v", n, r, want)
				}
				if !bytes.Equal(neighbor[n:], bytes.Repeat([]byte{0xa5}, 60)) {
					t.Fatalf("%d bytes: the reply was written over another packet", n)
				}
				if _, _, r := l.deliver(unlisted, q); r.Answered() {
					t.Fatalf("%d bytes of a source that is not listed: %v", n, r)
				}
				if n < 14 {
					continue
				}
				p, err := stampfmt.ParseReflector(got)
				seq := answered
				if answered++; stateless {
					seq = 3
				}
				if err != nil || len(got) != max(n, stampfmt.UnauthenticatedBytes) || p.Seq != seq || p.SenderSeq != 3 || p.SenderTTL != 61 || p.T2 == 0 || p.T3 == 0 {
					t.Fatalf("%d bytes: reply of %d, number %d: %+v, %v", n, len(got), seq, p, err)
				}
			}
		}
	}
}

// RFC 4656 section 4.1.2, to which RFC 5357 refers, requires random padding; it begins where STAMP has its SSID.
func TestRandomPaddingOfTWAMPLightIsOneSession(t *testing.T) {
	l := newLab(t, nil)
	k := l.poller("192.0.2.1:5000", 1)
	rng := seeded(t)
	for i := range uint32(200) {
		q := append(k.base(i), make([]byte, 100)...)
		for at := 14; at < len(q); at++ {
			q[at] = byte(rng.Uint32())
		}
		rep := k.send(q)
		if !rep.result.Answered() || rep.base.Seq != i {
			t.Fatalf("packet %d: got %v, number %d", i, rep.result, rep.base.Seq)
		}
		if rep.result == AnsweredMalformed || rep.data[45] != q[45] {
			t.Fatalf("packet %d: got %v, want padding not parsed as TLVs", i, rep.result)
		}
	}
	if l.s.table.len() != 1 {
		t.Errorf("%d sessions, want 1", l.s.table.len())
	}
}

func TestZeroPaddingIsCopied(t *testing.T) {
	l := newLab(t, nil)
	k := l.poller("192.0.2.1:5000", 1)
	rep := k.send(append(k.base(0), make([]byte, 100)...))
	if rep.result != Answered || !allZero(rep.data[44:]) {
		t.Errorf("%v: padding returned as % x", rep.result, rep.data[44:])
	}
}

func tlv(kind stampfmt.TLVType, value ...byte) []byte {
	b := []byte{stampfmt.FlagUnrecognized, byte(kind), 0, 0}
	binary.BigEndian.PutUint16(b[2:], uint16(len(value)))
	return append(b, value...)
}

func TestTLVsAreHandledByType(t *testing.T) {
	pad := tlv(stampfmt.TypeExtraPadding, 1, 2, 3, 4, 5)
	for _, c := range []struct {
		name   string
		tlvs   []byte
		want   []byte
		result Result
	}{
		{"padding is copied", pad, append([]byte{0, 1, 0, 5}, 1, 2, 3, 4, 5), Answered},
		{"unknown type is flagged and copied", tlv(200, 9, 8), []byte{0x80, 200, 0, 2, 9, 8}, Answered},
		{"location is not supported", tlv(stampfmt.TypeLocation, 0, 0, 0, 0), []byte{0x80, 2, 0, 4, 0, 0, 0, 0}, Answered},
		{"type 251 of another vendor", tlv(stampfmt.TypeReceipt, make([]byte, 80)...), append([]byte{0x80, 251, 0, 80}, make([]byte, 80)...), Answered},
		{"timestamp information", tlv(stampfmt.TypeTimestampInformation, 0, 0, 0, 0), []byte{0, 3, 0, 4, 1, 2, 1, 2}, Answered},
		{
			"direct measurement", tlv(stampfmt.TypeDirectMeasurement, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0),
			[]byte{0, 5, 0, 12, 0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 1},
			Answered,
		},
		{"class of service, refused", tlv(stampfmt.TypeClassOfService, 46<<2, 0, 0, 0), []byte{0, 4, 0, 4, 46 << 2, 10<<4 | 2<<2 | 1, 0, 0}, Answered},
		{"class of service, as received", tlv(stampfmt.TypeClassOfService, 10<<2, 0, 0, 0), []byte{0, 4, 0, 4, 10 << 2, 10<<4 | 2<<2, 0, 0}, Answered},
		{"too long for the packet", append(tlv(200, 1), 0x80, 1, 0, 9, 7), []byte{0x80, 200, 0, 1, 1, 0x40, 1, 0, 9, 7}, AnsweredMalformed},
		{"wrong length for its kind", append(tlv(stampfmt.TypeDirectMeasurement, 1, 2), pad...), append([]byte{0x40, 5, 0, 2, 1, 2}, pad...), AnsweredMalformed},
		{"follow-up of wrong length is emptied", tlv(stampfmt.TypeFollowUp, 1, 2, 3), []byte{0x40, 7, 0, 3, 0, 0, 0}, AnsweredMalformed},
		{"hmac without keys", append(tlv(200, 1), tlv(stampfmt.TypeHMAC, make([]byte, 16)...)...), append([]byte{0x20, 200, 0, 1, 1, 0x20, 8, 0, 16}, make([]byte, 16)...), AnsweredUnverified},
		{"part of a header", []byte{1, 2, 3}, []byte{1, 2, 3}, Answered},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, nil)
			k := l.poller("192.0.2.1:5000", 1)
			in := tstamp.In{
				Payload: append(k.base(0), c.tlvs...), Peer: k.peer, Local: netip.MustParseAddr("127.0.0.1"),
				Stamp: sample.Stamp{At: l.wall(), Origin: sample.Kernel}, TTL: 61, DSCP: 10, ECN: 2,
			}
			b, _, r := l.deliverIn(&in)
			if r != c.result || !bytes.Equal(b[44:], c.want) {
				t.Errorf("result %v\n got % x\nwant % x", r, b[44:], c.want)
			}
		})
	}
}

func TestManyTLVsCostBoundedWork(t *testing.T) {
	l := newLab(t, nil)
	k := l.poller("192.0.2.1:5000", 1)
	q := k.base(0)
	for range 2000 {
		q = append(q, tlv(201)...)
	}
	rep := k.send(q)
	if rep.result != AnsweredMalformed || rep.data[44+4*maxTLVs] != stampfmt.FlagMalformed {
		t.Errorf("got %v, flags of TLV %d: %#x", rep.result, maxTLVs, rep.data[44+4*maxTLVs])
	}
}

func TestErrorEstimateReportsTheClocksState(t *testing.T) {
	for _, c := range []struct {
		state  clock.State
		reason sample.Reason
		sync   bool
		code   stampfmt.ClockCode
	}{
		{clock.Synchronized, sample.OK, true, stampfmt.ClockOK},
		{clock.Holdover, sample.OK, true, stampfmt.ClockOK},
		{clock.Stepping, sample.LocalStepped, false, stampfmt.ClockStepped},
		{clock.Unsynchronized, sample.LocalUnsynchronized, false, stampfmt.ClockUnsynchronized},
		{clock.Silent, sample.ClockSilent, false, stampfmt.ClockSilent},
		{clock.None, sample.NoClock, false, stampfmt.ClockNone},
	} {
		l := newLab(t, nil)
		l.s.clock = viewClock(fixedClock{State: c.state, Bound: sample.Bound{Error: 3 * time.Millisecond, Reason: c.reason}}, epochStart)
		k := l.poller("192.0.2.1:5000", 1)
		rep := k.poll(0)
		e := rep.base.Error
		if e.Synchronized() != c.sync || !e.Valid() || e.Bound() < 3*time.Millisecond || (e.Bound() > time.Hour) == c.sync {
			t.Errorf("%v: synchronized %v, bound %v", c.state, e.Synchronized(), e.Bound())
		}
		if rep.receipt.Clock != c.code {
			t.Errorf("%v: Receipt has clock %v, want %v", c.state, rep.receipt.Clock, c.code)
		}
	}
}

func TestRefusedAddresses(t *testing.T) {
	allowed := netip.MustParsePrefix("192.0.2.0/24")
	for _, c := range []struct {
		peer, local string
		want        Result
	}{
		{"192.0.2.1:5000", "127.0.0.1", Answered},
		{"192.0.2.1:0", "127.0.0.1", BadAddress},
		{"0.0.0.0:5000", "127.0.0.1", BadAddress},
		{"[::]:5000", "::1", BadAddress},
		{"255.255.255.255:5000", "127.0.0.1", BadAddress},
		{"224.0.0.1:5000", "127.0.0.1", BadAddress},
		{"[ff02::1]:5000", "::1", BadAddress},
		{"192.0.2.1:5000", "224.0.0.1", BadAddress},
		{"192.0.2.1:5000", "255.255.255.255", BadAddress},
		{"192.0.2.1:862", "127.0.0.1", Loop},
		{"192.0.2.1:9999", "127.0.0.1", Loop},
		{"198.51.100.1:5000", "127.0.0.1", NotAllowed},
		{"[2001:db8::1]:5000", "::1", NotAllowed},
	} {
		l := newLab(t, func(o *Options) { o.Allow = []netip.Prefix{allowed} })
		l.s.refusedPorts = []uint16{862, 9999}
		k := l.poller(c.peer, 1)
		in := tstamp.In{Payload: k.request(0, nil), Peer: k.peer, Local: netip.MustParseAddr(c.local)}
		if _, _, r := l.deliverIn(&in); r != c.want {
			t.Errorf("%s -> %s: got %v, want %v", c.peer, c.local, r, c.want)
		}
	}
}

func TestRepliesOfReflectorsAreRefused(t *testing.T) {
	key := newKey(t, "k")
	for _, keys := range [][]*stampfmt.Key{nil, {key}} {
		for _, format := range []timefmt.Format{timefmt.NTP, timefmt.PTP} {
			l := newLab(t, func(o *Options) { o.Keys = keys })
			k := l.poller("192.0.2.1:5000", 1)
			if keys != nil {
				k.key = key
			}
			q := k.request(0, nil)
			if format == timefmt.PTP && k.key == nil {
				q[12] |= 0x40
				stampfmt.SealCRC(q, false)
			}
			rep := k.send(q)
			if !rep.result.Answered() {
				t.Fatalf("request: got %v", rep.result)
			}
			if _, _, r := l.deliver(netip.MustParseAddrPort("192.0.2.9:4000"), rep.data); r != Loop {
				t.Errorf("keys %v, format %v: a reply sent to a reflector: got %v, want loop", keys != nil, format, r)
			}
		}
	}
}

func TestRateLimitIsPerSource(t *testing.T) {
	l := newLab(t, func(o *Options) { o.RatePackets, o.RateBurst = 10, 5 })
	loud, quiet := l.poller("192.0.2.1:5000", 1), l.poller("192.0.2.2:5000", 2)
	limited := 0
	for i := range uint32(100) {
		loud.peer = netip.AddrPortFrom(loud.peer.Addr(), uint16(5000+i)) // another port has the same limit
		if loud.poll(i).result == RateLimited {
			limited++
		}
	}
	if limited != 95 {
		t.Errorf("%d of 100 limited, want 95", limited)
	}
	if r := quiet.poll(0).result; r != Answered {
		t.Errorf("another source: got %v, want answered", r)
	}
}

func TestFullTableRefusesNewSessions(t *testing.T) {
	l := newLab(t, func(o *Options) { o.MaxSessions = 2 })
	a, b := l.poller("192.0.2.1:5000", 1), l.poller("192.0.2.2:5000", 2)
	for i := range uint32(2) {
		a.poll(i)
		b.poll(i)
	}
	if r := l.poller("192.0.2.3:5000", 3).poll(0).result; r != SessionsFull {
		t.Errorf("a third session: got %v, want sessions_full", r)
	}
	if rep := a.poll(2); rep.receipt.Received != 3 {
		t.Errorf("the first session has %d received, want 3", rep.receipt.Received)
	}
}
