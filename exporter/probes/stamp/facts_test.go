package stamp

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"oneway.example/exporter/core/pathstate"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes/stamp/ledger"
	"oneway.example/exporter/reflector"
	"oneway.example/tests/await"
)

func TestFactsHaveWhyNothingReturns(t *testing.T) {
	for name, c := range map[string]struct {
		change func(v *snapshot)
		want   pathstate.Reason
	}{
		"nothing":                 {func(*snapshot) {}, pathstate.NoReply},
		"an ICMP message":         {func(v *snapshot) { v.peerError = errors.New("x") }, pathstate.Unreachable},
		"nothing was sent":        {func(v *snapshot) { v.directions[0].Sent.Value = 0 }, pathstate.NotSent},
		"the reflector rejects":   {func(v *snapshot) { v.refused = ledger.OptionalOf(ledger.DiscardKeyRejected, true) }, pathstate.Key},
		"a reflector without key": {func(v *snapshot) { v.refused = ledger.OptionalOf(ledger.DiscardNoKey, true) }, pathstate.Key},
		"another key":             {func(v *snapshot) { v.refused = ledger.OptionalOf(ledger.DiscardBadHMAC, true) }, pathstate.Key},
		"another sender's":        {func(v *snapshot) { v.refused = ledger.OptionalOf(ledger.DiscardWrongPeer, true) }, pathstate.Discarded},
	} {
		f := newSessionFixture(t, 20*us, nil)
		v := f.told()
		v.directions[0].Sent = ledger.OptionalOf[uint64](7, true)
		if c.change(v); v.silenceReason() != c.want {
			t.Errorf("%s: %v, want %v", name, v.silenceReason(), c.want)
		}
	}
}

// TestFactsOfASessionAreItsCounts: each delay is judged by the limits, and a clock that is proved wrong is known.
func TestFactsOfASessionAreItsCounts(t *testing.T) {
	f := newSessionFixture(t, 20*us, nil)
	for i := range 20 {
		late := time.Duration(0)
		if i%4 == 3 {
			late = 300 * time.Millisecond
		}
		f.bring(10*time.Millisecond+late, 5*time.Millisecond)
		f.account.RoundTripsReceived++
	}
	f.account.RoundTripsLost = 3
	var facts pathstate.Facts
	f.facts(&facts)
	if w := facts.Ways; w[0].Delays != 20 || w[0].Slow != 5 || w[1].Delays != 20 || w[1].Slow != 0 || facts.Answered != 20 || facts.Unanswered != 3 || facts.Measured || facts.ClockWrong || facts.Clockless {
		t.Errorf("%+v", facts)
	}
	f.theta = -time.Second
	f.bring(10*time.Millisecond, 5*time.Millisecond)
	f.closed()
	if f.facts(&facts); !facts.ClockWrong || !facts.Measured {
		t.Errorf("%+v, want a clock that is wrong", facts)
	}
	g := newSessionFixture(t, 20*us, nil)
	g.clock.reason = sample.NoClock
	g.bring(10*time.Millisecond, 5*time.Millisecond)
	if g.facts(&facts); !facts.Clockless {
		t.Errorf("%+v, want no clock by the configuration", facts)
	}
}

// TestFactsOfRealPaths: of a reflector that replies, that has no key, and of an address of an interface that this host lacks.
func TestFactsOfRealPaths(t *testing.T) {
	t.Parallel()
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("a secret of some bytes\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := newTestbed(t, reflector.Options{})
	for name, c := range map[string]struct {
		peer, key string
		want      pathstate.Reason
	}{
		"replies": {b.peer, "", pathstate.None}, "a key": {b.peer, key, pathstate.Key}, "no interface": {"fe80::1%nosuch", "", pathstate.NotSent},
	} {
		o := quick()
		o.KeyFile, o.Window = c.key, time.Second
		p, err := NewType().NewProber(b.env, probe.Target{Path: "p", Peer: c.peer}, o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Run(ctx) }()
		await.That(t, name, func() bool {
			f := p.Facts()
			if c.want == pathstate.None {
				return f.Decided && f.Replies && f.Measured && f.Answered > 0 && f.Session == 1 && f.Ways[0].Received > 0 && f.Ways[1].LossKnown
			}
			return f.Decided && !f.Replies && f.Silence == c.want
		})
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
