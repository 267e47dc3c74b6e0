package reflector

import (
	"math/rand/v2"
	"testing"
	"time"

	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/tests/testseed"
)

func newKey(t testing.TB, secret string) *stampfmt.Key {
	t.Helper()
	return stampfmt.NewKey([]byte(secret + " is a secret"))
}

func seeded(t testing.TB) *rand.Rand {
	seed := testseed.Of(t)
	return rand.New(rand.NewPCG(seed, 0))
}

func TestAuthenticatedRequestGetsAuthenticatedReply(t *testing.T) {
	key := newKey(t, "one")
	l := newLab(t, func(o *Options) { o.Keys = []*stampfmt.Key{key}; o.RequireKey = true })
	k := l.poller("192.0.2.1:5000", 1)
	k.key = key
	for seq := range uint32(3) {
		rep := k.poll(seq) // verifies the base HMAC
		if rep.result != Answered || rep.receipt.Received != seq+1 || rep.base.Seq != seq || rep.base.SSID != 77 {
			t.Fatalf("request %d: got %v, %+v", seq, rep.result, rep.base)
		}
		if !key.VerifyTLVs(rep.data, stampfmt.AuthenticatedBytes, len(rep.data)-hmacTLVBytes) {
			t.Fatal("the reply's HMAC TLV does not verify")
		}
	}
	if rep := k.send(k.base(3)); rep.result != Answered && rep.result != Corrupted {
		t.Errorf("base packet: got %v, want an answered result", rep.result)
	}
}

func TestKeysMayBeRequiredOrOptional(t *testing.T) {
	right, wrong := newKey(t, "right"), newKey(t, "wrong")
	for _, c := range []struct {
		name    string
		require bool
		key     *stampfmt.Key
		want    Result
	}{
		{"required, right", true, right, Answered},
		{"required, wrong", true, wrong, BadHMAC},
		{"required, large unauthenticated", true, nil, BadHMAC},
		{"optional, right", false, right, Answered},
		{"optional, wrong", false, wrong, BadHMAC},
		{"optional, unauthenticated", false, nil, Answered},
	} {
		l := newLab(t, func(o *Options) { o.Keys, o.RequireKey = []*stampfmt.Key{right}, c.require })
		k := l.poller("192.0.2.1:5000", 1)
		k.key = c.key
		if got := k.poll(0).result; got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestShortPacketIsRefusedIfAKeyIsRequired(t *testing.T) {
	l := newLab(t, func(o *Options) { o.Keys = []*stampfmt.Key{newKey(t, "k")}; o.RequireKey = true })
	if r := l.poller("192.0.2.1:5000", 1).send(make([]byte, 111)).result; r != Short {
		t.Errorf("111 bytes: got %v, want short", r)
	}
}

func TestKeyRotationKeepsTheSession(t *testing.T) {
	old, fresh := newKey(t, "old"), newKey(t, "fresh")
	l := newLab(t, func(o *Options) { o.Keys = []*stampfmt.Key{old} })
	k := l.poller("192.0.2.1:5000", 1)
	k.key = old
	k.poll(0)
	l.s.keys = []*stampfmt.Key{old.Clone(), fresh.Clone()}
	k.poll(1)
	k.key = fresh
	if rep := k.poll(2); rep.result != Answered || rep.receipt.Received != 3 {
		t.Errorf("after the sender's rotation: got %v, received %d", rep.result, rep.receipt.Received)
	}
	l.s.keys = []*stampfmt.Key{fresh.Clone()}
	if rep := k.poll(3); rep.result != Answered || rep.receipt.Received != 4 {
		t.Errorf("after removal of the old key: got %v, received %d", rep.result, rep.receipt.Received)
	}
	k.key = old
	if r := k.poll(4).result; r != BadHMAC {
		t.Errorf("the old key after removal: got %v", r)
	}
}

func TestDamagedAuthenticatedPacketIsCorruptedNotBadHMAC(t *testing.T) {
	key := newKey(t, "k")
	l := newLab(t, func(o *Options) { o.Keys = []*stampfmt.Key{key}; o.RequireKey = true })
	k := l.poller("192.0.2.1:5000", 1)
	k.key = key
	k.poll(0)
	for _, at := range []int{0, 3, 20, 40, 90, 140, 200} {
		bad := k.request(1, nil)
		bad[at] ^= 1
		if _, _, r := l.deliver(k.peer, bad); r != Corrupted {
			t.Errorf("byte %d damaged: got %v, want corrupted", at, r)
		}
	}
	if r := k.poll(1).receipt; r.Corrupted != 7 || r.Received != 2 {
		t.Errorf("corrupted %d received %d, want 7 2", r.Corrupted, r.Received)
	}
}

func TestForgedTLVsAreReturnedWithTheIntegrityFlag(t *testing.T) {
	key := newKey(t, "k")
	l := newLab(t, func(o *Options) { o.Keys = []*stampfmt.Key{key} })
	k := l.poller("192.0.2.1:5000", 1)
	k.key = key
	next := uint32(0)
	for name, tlvs := range map[string][]byte{
		"no HMAC TLV":        tlv(200, 1, 2, 3, 4),
		"wrong HMAC TLV":     append(tlv(200, 1, 2, 3, 4), tlv(stampfmt.TypeHMAC, make([]byte, 16)...)...),
		"misplaced HMAC TLV": append(stampfmt.PutTLVHMAC(stampfmt.AppendTLVHMAC(k.base(0)), 112, key)[112:], tlv(200, 1)...),
	} {
		rep := k.send(append(k.base(next), tlvs...))
		next++
		if rep.result != AnsweredUnverified || rep.flags[200] != stampfmt.FlagIntegrity {
			t.Errorf("%s: got %v, flags %#x", name, rep.result, rep.flags[200])
		}
	}
	if rep := k.send(append(k.base(next), tlv(stampfmt.TypeExtraPadding, 1, 2)...)); rep.result != Answered {
		t.Errorf("padding without HMAC TLV: got %v, want answered (RFC 8972 section 4.8)", rep.result)
	}
}

func TestInvalidHMACsAreLimitedExceptForKnownPeers(t *testing.T) {
	key, wrong := newKey(t, "k"), newKey(t, "wrong")
	l := newLab(t, func(o *Options) { o.Keys = []*stampfmt.Key{key}; o.RequireKey = true })
	known := l.poller("192.0.2.1:5000", 1)
	known.key = key
	known.poll(0)
	attacker := l.poller("192.0.2.1:6000", 2) // the same source as the known peer
	attacker.key = wrong
	bad := attacker.request(0, nil)
	counts := map[Result]int{}
	for range 3 * failuresPerSource {
		_, _, r := l.deliver(attacker.peer, bad)
		counts[r]++
	}
	if counts[BadHMAC] != failuresPerSource || counts[HMACLimited] != 2*failuresPerSource {
		t.Errorf("invalid HMACs: got %v, want %d bad_hmac and the rest hmac_limited", counts, failuresPerSource)
	}
	if r := known.poll(1).result; r != Answered {
		t.Errorf("the known peer during the flood: got %v", r)
	}
	l.now += 10 * time.Second
	if _, _, r := l.deliver(attacker.peer, bad); r != BadHMAC {
		t.Errorf("after the flood: got %v, want bad_hmac", r)
	}
}

func TestUnauthenticatedRequestMayHaveAnHMACTLV(t *testing.T) {
	key := newKey(t, "k")
	l := newLab(t, func(o *Options) { o.Keys = []*stampfmt.Key{key} })
	k := l.poller("192.0.2.1:5000", 1)
	q := stampfmt.PutTLVHMAC(stampfmt.AppendTLVHMAC(append(k.base(0), tlv(stampfmt.TypeDirectMeasurement, make([]byte, 12)...)...)), 44, key)
	rep := k.send(q)
	if rep.result != Answered || rep.flags[stampfmt.TypeDirectMeasurement] != 0 {
		t.Fatalf("got %v, flags %v", rep.result, rep.flags)
	}
	if !key.VerifyTLVs(rep.data, stampfmt.UnauthenticatedBytes, len(rep.data)-hmacTLVBytes) {
		t.Error("the reply's HMAC TLV does not verify")
	}
}
