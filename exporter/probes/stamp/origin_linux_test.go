package stamp

import (
	"context"
	"net/netip"
	"os/exec"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/lightreason"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes/stamp/ledger"
	"oneway.example/exporter/reflector"
	"oneway.example/tests/await"
	"oneway.example/tests/namespace"
	"oneway.example/tests/standstill"
)

// TestPacketsOfAHostWithoutItsAddressAreSkipped: the address that packets leave from is removed and returns. Nothing is lost, and the
// path says what is missing.
func TestPacketsOfAHostWithoutItsAddressAreSkipped(t *testing.T) {
	for name, c := range map[string]struct {
		peer, address string
		change        func(*Options)
		want          string
	}{
		"interface":     {"10.77.0.2", "10.77.0.1/24", func(o *Options) { o.Interface = "near" }, "no usable IPv4 address on interface near"},
		"source":        {"10.77.0.2", "10.77.0.1/24", func(o *Options) { o.Local = "10.77.0.1" }, "does not have the address 10.77.0.1"},
		"source, IPv6":  {"fd77::2", "fd77::1/64", func(o *Options) { o.Local = "fd77::1" }, "does not have the address fd77::1"},
		"routers, IPv6": {"fd78::2", "fd77::1/64", func(*Options) {}, "other than the link-local"},
	} {
		t.Run(name, func(t *testing.T) {
			pair, b := namespace.NewPair(t), newTestbed(t, reflector.Options{})
			ip := func(command string) {
				t.Helper()
				if said, err := exec.Command("ip", strings.Fields(command)...).CombinedOutput(); err != nil {
					t.Fatalf("ip %s: %v: %s", command, err, said)
				}
			}
			namespace.Do(t, pair.Remote, func() {
				ip("address add fe80::b/64 dev far nodad")
				ip("address add fd78::2/64 dev far nodad")
				all := &bareReflector{lost: func(uint32) (bool, bool) { return false, false }}
				fakePeerAt(t, netip.AddrPortFrom(netip.MustParseAddr(c.peer), 862), all.reply)
			})
			namespace.Do(t, pair.Local, func() {
				ip("address add fe80::a/64 dev near nodad")
				ip("-6 route add fd78::/64 via fe80::b dev near")
			})
			o := quick()
			c.change(&o)
			p, err := NewType().NewProber(b.env, probe.Target{Path: "p", Probe: "stamp", Peer: c.peer}, o)
			namespace.Check(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var end func()
			namespace.Do(t, pair.Local, func() { end, err = p.Start(ctx) })
			namespace.Check(t, err)
			defer end()
			replies := func(more uint64) {
				t.Helper()
				first, _, _ := p.counts()
				await.That(t, "replies", func() bool { n, _, _ := p.counts(); return n >= first+more })
			}
			replies(20)
			s := p.session.Load()
			counts := func() (skipped, sent uint64) {
				s.mu.Lock()
				defer s.mu.Unlock()
				return s.account.Faults().Skipped[ledger.SkipNoAddress], s.account.Next()
			}
			namespace.Do(t, pair.Local, func() { ip("address del " + c.address + " dev near") })
			await.That(t, "skipped packets", func() bool { skipped, _ := counts(); return skipped > 0 })
			_, before := counts()
			time.Sleep(2 * o.LossTimeout) // nothing may be sent or lost in this time, but what was on its way
			skipped, sent := counts()
			_, lost, _ := p.counts()
			if sent != before {
				t.Errorf("%d packets were sent without an address, %d skipped", sent-before, skipped)
			}
			s.mu.Lock()
			v := s.snapshot()
			s.mu.Unlock()
			if why, detail := v.failure(); v.peerError == nil || !strings.Contains(v.peerError.Error(), c.want) || why != lightreason.Unreachable {
				t.Errorf("without the address: %v, %s, %s", v.peerError, why, detail)
			}
			judge, returned := standstill.Judging(t, standstill.Begin(t)), instant.Now() // a reply after the loss timeout is late
			namespace.Do(t, pair.Local, func() { ip("address add " + c.address + " dev near nodad") })
			replies(20)
			if _, more, _ := p.counts(); more > lost {
				judge.Measurement(returned, instant.Now()).Errorf("%d packets are lost after the address returned", more-lost)
			}
			judge.Conclude()
		})
	}
}
