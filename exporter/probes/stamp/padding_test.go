package stamp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/lightreason"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/sched"
	"oneway.example/exporter/net/tstamp"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/net/wire/timefmt"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes/stamp/ledger"
	"oneway.example/exporter/reflector"
	"oneway.example/tests/await"
	"oneway.example/tests/testseed"
)

// padded is the reply of a reflector without TLVs: its base packet, and padding.
func padded(q []byte, seq uint32, padding []byte) []byte {
	return append(replyTo(q[:stampfmt.UnauthenticatedBytes], seq), padding...)
}

// numberedPeer replies with consecutive numbers.
func numberedPeer(t *testing.T, reply func(q []byte, seq uint32) []byte) string {
	next := uint32(0)
	return fakePeer(t, func(q []byte) [][]byte {
		b := reply(q, next)
		next++
		return [][]byte{b}
	})
}

// refusedBy measures to a peer whose replies are all refused, and returns why.
func refusedBy(t *testing.T, o Options, reply func(q []byte, seq uint32) []byte) (Report, error) {
	t.Helper()
	p, err := NewType().NewProber(newTestbed(t, reflector.Options{}).env, probe.Target{Peer: numberedPeer(t, reply)}, o)
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Measure(t.Context(), 20, func(Report) {})
	if !errors.Is(err, probe.ErrNoReply) || r.Failure != lightreason.Discarded {
		t.Errorf("%v, failure %q, want %q", err, r.Failure, lightreason.Discarded)
	}
	return r, err
}

// TestRefusedRepliesAreCountedAndAreTheReason: a peer that sends something does not count as silent.
func TestRefusedRepliesAreCountedAndAreTheReason(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reply  func(q []byte, seq uint32) []byte
		reason string // of the count
		text   string
	}{
		"38 bytes": {func(q []byte, seq uint32) []byte { return replyTo(q, seq)[:38] }, "short", "replies of 38 bytes, at least 41 are needed"},
		"4 bytes":  {func(q []byte, seq uint32) []byte { return replyTo(q, seq)[:4] }, "short", "replies of 4 bytes, at least 41 are needed"},
		"nothing":  {func([]byte, uint32) []byte { return nil }, "short", "replies of 0 bytes, at least 41 are needed"},
		"no echo of the time": {func(q []byte, seq uint32) []byte {
			b := replyTo(q, seq)
			clear(b[28:36])
			return b
		}, "bad_echo", "do not repeat the time"},
		"zeros": {func(q []byte, _ uint32) []byte { return make([]byte, len(q)) }, "bad_echo", "do not repeat the time"},
		"text":  {func([]byte, uint32) []byte { return []byte(strings.Repeat("220 service ready\r\n", 5)) }, "unknown_sequence", "number and time of no test packet"},
	} {
		r, err := refusedBy(t, quick(), c.reply)
		if n := r.Discarded[c.reason]; n < 20 {
			t.Errorf("%s: discarded %v, want at least 20 with reason %s", name, r.Discarded, c.reason)
		}
		if err == nil || !strings.Contains(err.Error(), c.text) || strings.Contains(err.Error(), "does not reply") {
			t.Errorf("%s: %v, want %q", name, err, c.text)
		}
	}
}

// TestPacketsAfterAnICMPErrorAreTheReason: the port was closed once.
func TestPacketsAfterAnICMPErrorAreTheReason(t *testing.T) {
	f := newSessionFixture(t, time.Millisecond, nil)
	f.failed(syscall.ECONNREFUSED)
	now := sched.Now()
	f.received(0, &tstamp.In{Payload: make([]byte, 38)}, now)
	f.account.Tick(now, now)
	v := f.snapshot()
	if text := v.silence(); !strings.Contains(text, "replies of 38 bytes") {
		t.Error(text)
	}
}

// TestReflectorsOwnPaddingIsNoDamage: of every content and length, also longer than what is read.
func TestReflectorsOwnPaddingIsNoDamage(t *testing.T) {
	rng := rand.New(rand.NewPCG(testseed.Of(t), 9))
	random := make([]byte, 20_000)
	for i := range random {
		random[i] = byte(rng.Uint32())
	}
	noise := func(n int) []byte { return random[:n:n] }
	for name, reply := range map[string]func(q []byte, seq uint32) []byte{
		"41 bytes":                  func(q []byte, seq uint32) []byte { return replyTo(q, seq)[:41] },
		"random, of any length":     func(q []byte, seq uint32) []byte { return padded(q, seq, noise(int(seq)*37%1400)) },
		"random, of 20000 bytes":    func(q []byte, seq uint32) []byte { return padded(q, seq, noise(20_000)) },
		"random, of the request":    func(q []byte, seq uint32) []byte { return padded(q, seq, noise(len(q)-44)) },
		"ones":                      func(q []byte, seq uint32) []byte { return padded(q, seq, bytes.Repeat([]byte{255}, len(q)-44)) },
		"the sender's from byte 14": func(q []byte, seq uint32) []byte { return padded(q, seq, q[17:len(q)-27]) },
		"the sender's, truncated":   func(q []byte, seq uint32) []byte { return padded(q, seq, q[44:100]) },
		"the sender's, and zeros":   func(q []byte, seq uint32) []byte { return padded(q, seq, append(bytes.Clone(q[44:]), 0, 0, 0)) },
		"the first TLV alone":       func(q []byte, seq uint32) []byte { return padded(q, seq, q[44:64]) },
		"the request's, or random": func(q []byte, seq uint32) []byte {
			if seq%2 == 0 {
				return padded(q, seq, q[44:])
			}
			return padded(q, seq, noise(len(q)-44))
		},
		"TLVs, and padding of its own": func(q []byte, seq uint32) []byte {
			b := padded(q, seq, q[44:])
			if len(b) > DefaultSize(false) { // a test packet with Extra Padding
				copy(b[len(b)-20:], noise(20))
			}
			return b
		},
	} {
		for _, size := range []int{172, 300, 1400} {
			t.Run(fmt.Sprintf("%s/%d", name, size), func(t *testing.T) {
				t.Parallel()
				o := quick()
				o.Size = size
				r := newTestbed(t, reflector.Options{}).to(numberedPeer(t, reply)).measure(t, o, 30)
				if r.RoundTrip.Received != 30 || r.RoundTrip.Lost != 0 || len(r.Discarded) > 0 || r.Reflector != "stateful" || *r.Forward.Lost+*r.Reverse.Lost+*r.Reverse.Corrupted != 0 {
					t.Error(asJSON(t, r))
				}
			})
		}
	}
}

// TestDamagedTLVsOfAForeignReflectorAreCounted: once a reply has returned the TLVs of its request.
func TestDamagedTLVsOfAForeignReflectorAreCounted(t *testing.T) {
	t.Parallel()
	o := quick()
	o.Size = 300 // with Extra Padding, whose content is known
	r := newTestbed(t, reflector.Options{}).to(numberedPeer(t, func(q []byte, seq uint32) []byte {
		b := replyTo(q, seq)
		if seq > 0 && seq%5 == 0 {
			b[len(b)-1] ^= 1
		}
		return b
	})).measure(t, o, 50)
	if n := r.Discarded["corrupted"]; n < 9 || r.RoundTrip.Received+n < 50 || *r.Reverse.Corrupted != n {
		t.Errorf("corrupted %d: %s", n, asJSON(t, r))
	}
}

// TestPathWithDamagedRepliesOnlyIsNotSilent: the first reply is intact, or another reflector takes the address.
func TestPathWithDamagedRepliesOnlyIsNotSilent(t *testing.T) {
	s := askedSession(t, netip.MustParseAddrPort("127.0.0.1:862"), ledger.RemoteOurs, 7, 20)
	w := newWheel(t)
	damaged := bytes.Clone(w.reply(3))
	damaged[60] ^= 1
	now := sched.Now()
	s.received(0, &tstamp.In{Payload: damaged, Stamp: sample.Stamp{At: wheelStart, Origin: sample.Kernel}, At: wheelStart}, now)
	s.account.Tick(now, now)
	v := s.snapshot()
	if text := v.silence(); v.Discarded[ledger.DiscardCorrupted] != 1 || !strings.Contains(text, "damaged") {
		t.Errorf("discarded %v: %s", v.Discarded, text)
	}
}

// TestReflectorThatIsReplacedIsMeasured: a router takes the address of our reflector, and then our reflector takes it again.
func TestReflectorThatIsReplacedIsMeasured(t *testing.T) {
	t.Parallel()
	b := newTestbed(t, reflector.Options{})
	var to atomic.Pointer[net.UDPAddr] // nil: the router, which pads with ones
	ours := net.UDPAddrFromAddrPort(netip.MustParseAddrPort(b.peer))
	to.Store(ours)
	next := uint32(0)
	peer := fakePeer(t, func(q []byte) [][]byte {
		at := to.Load()
		if at == nil {
			next++
			return [][]byte{padded(q, next-1, bytes.Repeat([]byte{255}, 128))}
		}
		conn, err := net.DialUDP("udp4", nil, at)
		if err != nil {
			return nil
		}
		defer conn.Close()
		reply := make([]byte, 2000)
		_ = conn.SetReadDeadline(time.Now().Add(time.Second)) // it cannot fail
		if _, err := conn.Write(q); err != nil {
			return nil
		}
		n, err := conn.Read(reply)
		if err != nil {
			return nil
		}
		return [][]byte{reply[:n]}
	})
	sink := &metrictest.Sink{}
	b.env.Sink = sink
	o := DefaultOptions()
	o.Interval, o.LossTimeout, o.ResolveInterval = 20*time.Millisecond, 100*time.Millisecond, time.Second
	p, err := NewType().NewProber(b.env, probe.Target{Path: "p", Probe: "stamp", Peer: peer}, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	is := func(kind string) func() bool {
		return func() bool {
			s := p.session.Load()
			if s == nil {
				return false
			}
			r := reportOf(s.partial(s.estimator.window))
			return s.replies() && r.Reflector == kind && r.RoundTrip.Received > 20
		}
	}
	await.That(t, "our reflector is measured", is("oneway"))
	to.Store(nil)
	await.That(t, "the router is measured", is("stateful"))
	to.Store(ours)
	await.That(t, "our reflector is measured again", is("oneway"))
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// authenticatedReply is the reply of a reflector of RFC 8762, which knows no TLVs, with this padding.
func authenticatedReply(q []byte, seq uint32, key *stampfmt.Key, padding []byte) []byte {
	s, err := stampfmt.ParseSenderUnverified(q)
	if err != nil {
		return nil
	}
	now := timefmt.NTP.Encode(instant.Now(), 0)
	b := stampfmt.ReflectorPacket{
		Seq: seq, T2: now, T3: now, Error: timefmt.MakeErrorEstimate(time.Microsecond, true, timefmt.NTP),
		SenderSeq: s.Seq, SenderT1: s.T1, SenderError: s.Error, SenderTTL: 255,
	}.AppendAuthenticatedTo(nil, key)
	return append(b, padding...)
}

// TestAuthenticatedRepliesWithoutTLVsAreMeasured: the base packet alone is authenticated; nothing else is read.
func TestAuthenticatedRepliesWithoutTLVsAreMeasured(t *testing.T) {
	t.Parallel()
	o, secret := quickWithKey(t)
	for name, padding := range map[string]func(q []byte) []byte{
		"none":           func([]byte) []byte { return nil },
		"the request's":  func(q []byte) []byte { return q[stampfmt.AuthenticatedBytes:] },
		"ones":           func(q []byte) []byte { return bytes.Repeat([]byte{255}, len(q)-stampfmt.AuthenticatedBytes) },
		"zeros, shorter": func([]byte) []byte { return make([]byte, 7) },
	} {
		key := stampfmt.NewKey(secret) // a key is of one goroutine
		peer := numberedPeer(t, func(q []byte, seq uint32) []byte { return authenticatedReply(q, seq, key, padding(q)) })
		r := newTestbed(t, reflector.Options{}).to(peer).measure(t, o, 30)
		if r.RoundTrip.Received != 30 || len(r.Discarded) > 0 || r.Reflector != "stateful" || *r.Forward.Lost+*r.Reverse.Lost != 0 {
			t.Errorf("%s: %s", name, asJSON(t, r))
		}
	}
	// One byte of the TLVs is wrong: it is of none of these.
	key := stampfmt.NewKey(secret)
	r, _ := refusedBy(t, o, func(q []byte, seq uint32) []byte {
		b := authenticatedReply(q, seq, key, q[stampfmt.AuthenticatedBytes:])
		b[len(b)-30] ^= 1
		return b
	})
	if r.Discarded["bad_hmac"] < 20 {
		t.Errorf("discarded %v, want bad_hmac", r.Discarded)
	}
	// A reflector without a key, which does not copy the rest of the request.
	r, err := refusedBy(t, o, func(q []byte, seq uint32) []byte { return replyTo(q[:stampfmt.UnauthenticatedBytes], seq) })
	if r.Discarded["no_key"] < 20 || !strings.Contains(err.Error(), "has no key") {
		t.Errorf("discarded %v: %v", r.Discarded, err)
	}
}

// TestForeignRepliesAllocateNothing: their padding is not parsed, so that it causes no errors.
func TestForeignRepliesAllocateNothing(t *testing.T) {
	const packets = 2000
	w := newWheel(t)
	peer := netip.MustParseAddrPort("127.0.0.1:862")
	h := &hub{sessions: map[uint16]*session{}, byPeer: map[netip.AddrPort][]*session{}, nextSSID: 1}
	sessions := [2]*session{w.s}
	w.restart()
	sessions[1] = w.s
	var replies [2][]tstamp.In
	for i, s := range sessions {
		if s.peer = peer; h.add(s) != nil {
			t.Fatal("the hub is full")
		}
		for seq := range uint32(packets) {
			b := stampfmt.ReflectorPacket{
				Seq: 2*seq + uint32(i), T3: timefmt.NTP.Encode(userTime(seq)+200_000, 0), T2: timefmt.NTP.Encode(userTime(seq)+100_000, 0),
				SenderSeq: seq, SenderT1: timefmt.NTP.Encode(userTime(seq).Add(time.Duration(i)), 0), SenderTTL: 255,
			}.AppendTo(nil)
			replies[i] = append(replies[i], tstamp.In{
				Payload: append(b, bytes.Repeat([]byte{0xa5}, 128)...), Peer: peer,
				Stamp: sample.Stamp{At: userTime(seq) + 300_000, Origin: sample.Kernel}, At: userTime(seq) + 310_000,
			})
		}
	}
	h.series = w.hub
	seq := uint32(0)
	turn := func() {
		for i, s := range sessions {
			s.account.Send(sched.Now(), userTime(seq).Add(time.Duration(i)), ledger.ClockThen{Bound: sample.Bound{Reason: sample.OK}})
			h.arrived(&replies[i][seq], sched.Now())
		}
		seq++
	}
	for range 500 {
		turn()
	}
	if n := testing.AllocsPerRun(packets-510, turn); n != 0 {
		t.Errorf("%v allocations for two replies, want none", n)
	}
	for _, s := range sessions {
		if a := s.account; a.RoundTripsReceived != uint64(seq) || a.Kind != ledger.RemoteStateless || a.Restarts != 0 {
			t.Errorf("%d of %d round trips of a %v reflector, %d restarts; discarded %v", a.RoundTripsReceived, seq, a.Kind, a.Restarts, a.Faults().Discarded)
		}
	}
}
