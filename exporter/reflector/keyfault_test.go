package reflector

import (
	"bytes"
	"encoding/binary"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/net/wire/stampfmt"
)

// faults is the list after a delivery.
func (l *lab) faults() (k KeyFaults) {
	l.s.keyFaults.list(&k, l.now)
	return k
}

func TestRequestsThatCannotBeAuthenticatedAreListedBySource(t *testing.T) {
	right, wrong := newKey(t, "right"), newKey(t, "wrong")
	for _, c := range []struct {
		name   string
		ours   []*stampfmt.Key
		theirs *stampfmt.Key
		size   int // 0: all
		want   KeyFaultReason
		result Result
	}{
		{"another key", []*stampfmt.Key{right}, wrong, 0, OtherKey, BadHMAC},
		{"no key", []*stampfmt.Key{right}, nil, 0, KeyMissing, BadHMAC},
		{"no key, short", []*stampfmt.Key{right}, nil, 60, KeyMissing, Short},
		{"no key here", nil, wrong, 0, NoKeyHere, AnsweredWithoutKey},
	} {
		l := newLab(t, func(o *Options) { o.Keys, o.RequireKey = c.ours, len(c.ours) > 0 })
		k := l.poller("192.0.2.1:5000", 1)
		k.key = c.theirs
		for seq := range uint32(minKeyFaults) {
			if n := len(l.faults().Sources); n != 0 {
				t.Errorf("%s: %d sources are listed after %d packets", c.name, n, seq)
			}
			b := k.request(seq, nil)
			if c.size > 0 {
				b = b[:c.size]
			}
			if _, _, r := l.deliver(k.peer, b); r != c.result {
				t.Errorf("%s: got %v, want %v", c.name, r, c.result)
			}
		}
		want := KeyFault{Source: k.peer.Addr(), Reason: c.want, Packets: minKeyFaults}
		if got := l.faults(); len(got.Sources) != 1 || got.Sources[0] != want || got.Packets() != minKeyFaults {
			t.Errorf("%s: got %+v, want %+v", c.name, got, want)
		}
		if l.now += KeyFaultWindow + time.Minute; l.faults().Packets() != 0 {
			t.Errorf("%s: after the window: %+v", c.name, l.faults())
		}
	}
}

func TestSpoofedSourcesDoNotHideASenderWithAnotherKey(t *testing.T) {
	l := newLab(t, func(o *Options) { o.Keys, o.RequireKey = []*stampfmt.Key{newKey(t, "right")}, true })
	k := l.poller("192.0.2.1:5000", 1)
	spoofed := netip.MustParseAddr("198.51.100.0")
	for seq := range uint32(2000) {
		if seq%200 == 0 {
			for range minKeyFaults {
				l.deliver(k.peer, k.request(seq, nil))
			}
		}
		spoofed = spoofed.Next()
		l.deliver(netip.AddrPortFrom(spoofed, 5000), k.request(seq, nil))
		l.now += 100 * time.Millisecond
	}
	got := l.faults()
	if len(got.Sources) != 1 || got.Sources[0].Source != k.peer.Addr() || got.Sources[0].Packets != 30 || got.Packets() != 2030 {
		t.Errorf("got %+v, want 30 packets of %v and 2000 others", got, k.peer.Addr())
	}
}

func TestRejectionIsAsLongAsItsRequestAndNoReply(t *testing.T) {
	right, wrong := newKey(t, "right"), newKey(t, "wrong")
	for _, key := range []*stampfmt.Key{wrong, nil} {
		l := newLab(t, func(o *Options) { o.Keys, o.RequireKey = []*stampfmt.Key{right}, true })
		k := l.poller("192.0.2.1:5000", 1)
		k.key = key
		in := inOf(l, k.peer, k.request(7, nil))
		request := bytes.Clone(in.Payload)
		var a pendingReply
		if r := l.s.handle(&in, l.now, &a); r != BadHMAC || a.payload == nil {
			t.Fatalf("got %v, want bad_hmac with a rejection", r)
		}
		l.s.seal(&a, l.wall())
		p, ok := stampfmt.ParseRejection(a.payload)
		base, _ := stampfmt.ParseSender(request)
		if key != nil {
			base, _ = stampfmt.ParseSenderUnverified(request)
		}
		if !ok || len(a.payload) != len(request) || p.SenderSeq != 7 || p.SenderT1 != base.T1 || p.SSID != 77 {
			t.Errorf("%d bytes for %d: %+v", len(a.payload), len(request), p)
		}
		if reply, _ := stampfmt.ParseReflector(a.payload); reply.SenderSeq == 7 || reply.SenderT1 == base.T1 {
			t.Errorf("a sender without a key takes it as a reply: %+v", reply)
		}
		if _, err := stampfmt.ParseReflectorAuthenticated(a.payload, right); err == nil {
			t.Error("it is signed")
		}
		for at := 0; key != nil && at < len(request)-stampfmt.AuthenticatedBytes; {
			one := a.payload[stampfmt.AuthenticatedBytes+at:]
			if one[0] != stampfmt.FlagIntegrity {
				t.Errorf("TLV %d has flags %#x, want I (RFC 8972 section 4.8)", one[1], one[0])
			}
			at += stampfmt.TLVHeaderBytes + int(binary.BigEndian.Uint16(one[2:]))
		}
		if key == nil && !allZero(a.payload[stampfmt.AuthenticatedBytes:min(len(request), 2*stampfmt.AuthenticatedBytes)]) {
			t.Error("bytes of the request follow the base packet")
		}
		if _, _, r := l.deliver(netip.MustParseAddrPort("192.0.2.2:8620"), a.payload); r != Loop {
			t.Errorf("another reflector: got %v, want loop", r)
		}
	}
}

func TestRejectionsAreLimited(t *testing.T) {
	l := newLab(t, func(o *Options) { o.Keys, o.RequireKey = []*stampfmt.Key{newKey(t, "right")}, true })
	k := l.poller("192.0.2.1:5000", 1)
	sent := func(from netip.AddrPort) (n int) {
		for seq := range uint32(20) {
			in, a := inOf(l, from, k.request(seq, nil)), pendingReply{}
			if l.s.handle(&in, l.now, &a); a.payload != nil {
				n++
			}
		}
		return n
	}
	if n := sent(k.peer); n != rejectionBurst {
		t.Errorf("one source: %d rejections, want %d", n, rejectionBurst)
	}
	if l.now += time.Second; sent(k.peer) != 1 {
		t.Error("a second later there must be one")
	}
	all, from := 0, netip.MustParseAddr("198.51.100.0")
	for range 200 {
		from = from.Next()
		all += sent(netip.AddrPortFrom(from, 5000))
	}
	if all != rejectionsInTotal-1 {
		t.Errorf("%d rejections to all sources, want %d", all, rejectionsInTotal-1)
	}
}

func TestKeyFaultsAreLoggedOncePerSource(t *testing.T) {
	var said strings.Builder
	log := slog.New(slog.NewTextHandler(&said, nil))
	var l keyFaultLog
	var many []KeyFault
	from := netip.MustParseAddr("192.0.2.0")
	for range 2 * maxKeyFaults {
		from = from.Next()
		many = append(many, KeyFault{Source: from, Packets: 3})
	}
	for s := range 10 {
		l.check(many[:1], time.Duration(s)*time.Second, log)
	}
	if text := said.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "source=192.0.2.1") || !strings.Contains(text, "key_file") {
		t.Errorf("got %q, want one line", text)
	}
	l.check(many, 10*time.Second, log)
	if n := strings.Count(said.String(), "\n"); n != maxKeyFaults {
		t.Errorf("%d lines for %d sources, want %d", n, len(many), maxKeyFaults)
	}
	l.check(nil, 11*time.Second, log)
	if n := strings.Count(said.String(), "level=INFO"); n != maxKeyFaults {
		t.Errorf("%d lines for the end, want %d", n, maxKeyFaults)
	}
}
