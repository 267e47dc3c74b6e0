package stamp

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/net/sched"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes/stamp/ledger"
	"oneway.example/exporter/reflector"
)

// rejectionOf is the rejection of a request without authentication.
func rejectionOf(q []byte) []byte {
	s, _ := stampfmt.ParseSender(q)
	b := make([]byte, len(q))
	stampfmt.PutRejection(b, stampfmt.ReflectorPacket{Seq: s.Seq, SSID: s.SSID, SenderSeq: s.Seq, SenderT1: s.T1, SenderError: s.Error, T3: 1 << 60})
	return b
}

// TestForgedRejectionChangesNothing: an observer of the path adds rejections to the replies, and a host that guesses adds
// others. All packets have their outcome, and no reason of a fault appears.
func TestForgedRejectionChangesNothing(t *testing.T) {
	next := uint32(0)
	peer := fakePeer(t, func(q []byte) [][]byte {
		seen, guessed := rejectionOf(q), rejectionOf(q)
		binary.BigEndian.PutUint64(guessed[64:], 1<<61) // T1
		a := replyTo(q, next)
		next++
		return [][]byte{seen, guessed, a, seen}
	})
	b := newTestbed(t, reflector.Options{}).to(peer)
	r := b.measure(t, quick(), 50)
	if r.RoundTrip.Received != 50 || r.RoundTrip.Lost != 0 || *r.Forward.Lost != 0 || *r.Reverse.Lost != 0 || *r.Reverse.Duplicated != 0 || *r.Reverse.Corrupted != 0 {
		t.Error(asJSON(t, r))
	}
	if r.Discarded["key_rejected"] < 50 || r.Discarded["bad_echo"]+r.Discarded["unknown_sequence"] < 50 {
		t.Errorf("discarded %v, want at least 50 of each kind", r.Discarded)
	}
}

// TestRejectionOfAGuessIsNotTheReason: only the text for a silent peer is the general one.
func TestRejectionOfAGuessIsNotTheReason(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(b []byte)
		want   ledger.DiscardReason
	}{
		"seen":                   {func([]byte) {}, ledger.DiscardKeyRejected},
		"another T1":             {func(b []byte) { b[70] ^= 1 }, ledger.DiscardUnknownSequence},
		"with an HMAC":           {func(b []byte) { b[100] = 1 }, ledger.DiscardUnknownSequence},
		"with a time in T2 only": {func(b []byte) { b[39] = 1 }, ledger.DiscardUnknownSequence},
	} {
		peer := fakePeer(t, func(q []byte) [][]byte {
			b := rejectionOf(q)
			c.change(b)
			return [][]byte{b}
		})
		p, err := NewType().NewProber(newTestbed(t, reflector.Options{}).env, probe.Target{Peer: peer}, quick())
		if err != nil {
			t.Fatal(err)
		}
		r, _ := p.Measure(t.Context(), 10, func(Report) {})
		if n := r.Discarded[ledger.DiscardKeyRejected.String()]; (n > 0) != (c.want == ledger.DiscardKeyRejected) {
			t.Errorf("%s: discarded %v", name, r.Discarded)
		}
	}
}

// TestPeerThatIsDownRejectsNoKey: a peer whose reflector rejected the key, and that is silent since, is one without a reply.
func TestPeerThatIsDownRejectsNoKey(t *testing.T) {
	f := newSessionFixture(t, time.Millisecond, nil)
	rejected := sched.Now() + time.Minute
	f.account.Refuse(ledger.DiscardKeyRejected, rejected)
	for _, after := range []time.Duration{2 * time.Second, time.Minute, 4 * time.Minute} { // time does not go back
		want := after < time.Minute
		f.account.Tick(rejected+after, rejected+after)
		v := f.snapshot()
		if text := v.silence(); strings.Contains(text, "requires a key, and this path has none") != want {
			t.Errorf("%v after the last rejection: %s", after, text)
		}
	}
}

// TestPacketsOfAnotherServiceAreOfNoKey: only a reply to a request tells that a reflector has no key.
func TestPacketsOfAnotherServiceAreOfNoKey(t *testing.T) {
	t.Parallel()
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		packet func(q []byte) []byte
		want   ledger.DiscardReason
	}{
		"zeros": {func(q []byte) []byte { return make([]byte, len(q)) }, ledger.DiscardBadHMAC},
		"text":  {func([]byte) []byte { return append([]byte("220 service ready, say hello"), make([]byte, 228)...) }, ledger.DiscardBadHMAC},
		"a reflector without a key": {func(q []byte) []byte {
			b := make([]byte, len(q))
			copy(b[4:], q[16:28]) // any time and Error Estimate
			copy(b[24:], q[:4])
			return b
		}, ledger.DiscardNoKey},
		"another number": {func(q []byte) []byte {
			b := replyTo(q, 0)
			b[24] ^= 1
			return b
		}, ledger.DiscardBadHMAC},
	} {
		o := quick()
		o.KeyFile = key
		peer := fakePeer(t, func(q []byte) [][]byte { return [][]byte{c.packet(q)} })
		p, err := NewType().NewProber(newTestbed(t, reflector.Options{}).env, probe.Target{Peer: peer}, o)
		if err != nil {
			t.Fatal(err)
		}
		r, _ := p.Measure(t.Context(), 10, func(Report) {})
		if r.Discarded[c.want.String()] < 10 {
			t.Errorf("%s: discarded %v, want %v", name, r.Discarded, c.want)
		}
	}
}
