package target

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oneway.example/exporter/core/hostport"
	"oneway.example/exporter/core/lightreason"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/probe"
)

func (s *scenario) lookup(context.Context, string, string) (found []netip.Addr, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lookups++
	if s.turns && len(s.addrs) > 0 { // one of the addresses in turn
		return []netip.Addr{netip.MustParseAddr(s.addrs[s.lookups%len(s.addrs)])}, nil
	}
	for _, a := range s.addrs {
		found = append(found, netip.MustParseAddr(a))
	}
	if found == nil {
		err = &net.DNSError{Err: "no such host", Name: "peer.test", IsNotFound: true}
	}
	return found, err
}

// scenario is a target that is followed, what became of it, and what the log said.
type scenario struct {
	*Target
	log bytes.Buffer // read when following has ended

	mu      sync.Mutex
	addrs   []string // that the name has at the moment; none: it does not resolve
	refuse  error    // what opening says
	events  []string
	failed  int // lookups
	unsent  int // failures without a lookup
	renewed int
	onRenew func() // nil: nothing
	turns   bool   // each lookup finds one of addrs, the next one
	lookups int
	replies bool // what the measurement reports
}

func newScenario(t *testing.T, peer string) *scenario {
	t.Helper()
	s := &scenario{}
	o := option.Defaults[Options]()
	if err := option.Check(&o); err != nil {
		t.Fatal(err)
	}
	var err error
	if s.Target, err = New(&probe.Target{Path: "a", Probe: "stamp", Peer: peer}, 862, &o, slog.New(slog.NewTextHandler(&s.log, nil))); err != nil {
		t.Fatal(err)
	}
	s.Target.lookup = s.lookup
	return s
}

func (s *scenario) follow(ctx context.Context) {
	failed := func(why lightreason.Reason) {
		s.change(func() {
			if why == lightreason.Unresolved {
				s.failed++
			} else {
				s.unsent++
			}
		})
	}
	end := s.Follow(ctx, failed, func(_ context.Context, peer netip.AddrPort) (Measurement, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.refuse != nil {
			return Measurement{}, s.refuse
		}
		s.events = append(s.events, "open "+peer.String())
		return Measurement{
			Renew: func() {
				s.change(func() { s.renewed++ })
				if s.onRenew != nil {
					s.onRenew()
				}
			},
			End:     func() { s.change(func() { s.events = append(s.events, "end "+peer.String()) }) },
			Replies: func() bool { return s.replies },
		}, nil
	})
	<-ctx.Done()
	if end != nil {
		end()
	}
}

func (s *scenario) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// during follows the target until what has been done.
func (s *scenario) during(t *testing.T, what func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); s.follow(ctx) }()
	what()
	cancel()
	<-ended
}

func TestMeasuringBeginsAnewWhenTheAddressIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScenario(t, "peer.test")
		s.addrs = []string{"192.0.2.1", "192.0.2.2"}
		s.during(t, func() {
			// simulated time (synctest)
			time.Sleep(time.Minute + time.Second)
			s.change(func() { s.addrs = []string{"192.0.2.2", "192.0.2.1"} }) // in another order
			time.Sleep(time.Minute)                                           // simulated time (synctest)
			s.change(func() { s.addrs = nil })                                // for the moment
			time.Sleep(time.Minute)                                           // simulated time (synctest)
			s.change(func() { s.addrs = []string{"2001:db8::3"} })
			time.Sleep(time.Minute) // simulated time (synctest)
		})
		want := []string{"open 192.0.2.1:862", "end 192.0.2.1:862", "open [2001:db8::3]:862", "end [2001:db8::3]:862"}
		if !slices.Equal(s.events, want) || s.failed != 1 {
			t.Errorf("%q, want %q; %d lookups failed, want 1", s.events, want, s.failed)
		}
		if said := s.log.String(); strings.Count(said, "\n") != 3 || !strings.Contains(said, `fault="the peer's name gives no address"`) || !strings.Contains(said, "Address of the peer has changed") {
			t.Errorf("the log says\n%s", said)
		}
	})
}

// TestPanicOfARenewalEndsNothing: the measurement and its renewals go on, and so do those of other paths.
func TestPanicOfARenewalEndsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScenario(t, "peer.test")
		s.addrs = []string{"192.0.2.1"}
		s.onRenew = func() {
			if s.renewed == 2 {
				panic("two")
			}
		}
		s.during(t, func() {
			time.Sleep(3*time.Minute + time.Second) // simulated time (synctest)
			s.change(func() { s.addrs = []string{"192.0.2.2"} })
			time.Sleep(time.Minute) // simulated time (synctest)
		})
		want := []string{"open 192.0.2.1:862", "end 192.0.2.1:862", "open 192.0.2.2:862", "end 192.0.2.2:862"}
		if !slices.Equal(s.events, want) || s.renewed != 4 {
			t.Errorf("%q, want %q; renewed %d times, want 4", s.events, want, s.renewed)
		}
		if said := s.log.String(); strings.Count(said, "Panic in the renewal") != 1 || !strings.Contains(said, "panic=two") {
			t.Errorf("the log says\n%s", said)
		}
	})
}

func TestNameThatDoesNotResolveIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScenario(t, "peer.test:9000")
		s.during(t, func() {
			time.Sleep(2 * time.Minute) // simulated time (synctest)
			s.change(func() {
				why, reason := s.Unmeasurable()
				if s.failed < 5 || s.failed > 9 || why != lightreason.Unresolved || !strings.HasPrefix(reason, "peer \"peer.test\": lookup peer.test: no such host; correct the name, or its entry in /etc/hosts or in DNS") {
					t.Errorf("%d lookups in two minutes, reason %s, %q", s.failed, why, reason)
				}
			})
			s.change(func() { s.addrs = []string{"192.0.2.1"} })
			time.Sleep(maxRetry) // simulated time (synctest)
			s.change(func() {
				if why, reason := s.Unmeasurable(); len(s.events) != 1 || why != "" || reason != "" {
					t.Errorf("%q, reason %s, %q", s.events, why, reason)
				}
			})
		})
	})
}

func TestFailedOpenIsRetriedAndLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScenario(t, "192.0.2.1")
		s.refuse = errors.New("no socket")
		s.during(t, func() {
			time.Sleep(10 * time.Second) // simulated time (synctest)
			s.change(func() {
				if why, reason := s.Unmeasurable(); why != lightreason.NotSent || reason != "no socket" || s.unsent == 0 {
					t.Errorf("reason %s, %q, %d failures", why, reason, s.unsent)
				}
				s.refuse = nil
			})
			time.Sleep(maxRetry) // simulated time (synctest)
		})
		if want := []string{"open 192.0.2.1:862", "end 192.0.2.1:862"}; !slices.Equal(s.events, want) {
			t.Errorf("%q, want %q", s.events, want)
		}
		if said := s.log.String(); strings.Count(said, "\n") != 2 || strings.Count(said, `fault="it cannot be measured"`) != 2 {
			t.Errorf("the log says\n%s", said)
		}
	})
}

func TestAddressThatDoesNotFitIsRefused(t *testing.T) {
	for want, addressing := range map[string]Addressing{
		"peer is 192.0.2.1, which is not of family ipv6":                                              {Family: hostport.IPv6},
		"peer is 192.0.2.1, which is not of family ipv6, the family of the local address 2001:db8::1": {local: netip.MustParseAddr("2001:db8::1")},
	} {
		if _, err := New(&probe.Target{Peer: "192.0.2.1"}, 862, &Options{Addressing: addressing}, slog.New(slog.DiscardHandler)); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	s := newScenario(t, "peer.test")
	s.options.Family, s.addrs = hostport.IPv6, []string{"192.0.2.1", "::ffff:192.0.2.1"}
	if _, err := s.Resolve(t.Context(), netip.AddrPort{}); err == nil || err.Error() != `target: peer "peer.test" has no address of family ipv6` {
		t.Error(err)
	}
	for local, want := range map[string]string{
		"2001:db8::1": `target: peer "peer.test" has no address of family ipv6, the family of the local address 2001:db8::1`,
		"192.0.2.9":   `target: peer "peer.test" has no address of family ipv4, the family of the local address 192.0.2.9`,
	} {
		s = newScenario(t, "peer.test")
		s.options.Local, s.options.local = local, netip.MustParseAddr(local)
		if s.addrs = []string{"192.0.2.1"}; s.options.local.Is4() {
			s.addrs = []string{"2001:db8::7"}
		}
		if _, err := s.Resolve(t.Context(), netip.AddrPort{}); err == nil || err.Error() != want {
			t.Error(err)
		}
	}
}

// TestNameWithoutTheAddressOfAHostIsSaid: filters of names reply with 0.0.0.0.
func TestNameWithoutTheAddressOfAHostIsSaid(t *testing.T) {
	for addrs, want := range map[string]string{
		"0.0.0.0":             `target: peer "peer.test" has the address 0.0.0.0: this address means no host`,
		"::":                  `target: peer "peer.test" has the address ::: this address means no host`,
		"fe80::1":             `target: peer "peer.test" has the address fe80::1: a link-local address needs the interface`,
		"224.0.0.5":           `target: peer "peer.test" has the address 224.0.0.5: this is a multicast address`,
		"fe80::1 192.0.2.1":   "",
		"192.0.2.1 224.0.0.5": "",
	} {
		s := newScenario(t, "peer.test")
		s.addrs = strings.Fields(addrs)
		at, err := s.Resolve(t.Context(), netip.AddrPort{})
		if want == "" && (err != nil || at.String() != "192.0.2.1:862") || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%s: %v, %v; want %q", addrs, at, err, want)
		}
	}
}

func TestZoneOfNoInterfaceIsUnmeasurable(t *testing.T) {
	const want = "target: it cannot be measured: this host has no interface nosuch"
	s := newScenario(t, "fe80::1%nosuch")
	if _, err := s.Resolve(t.Context(), netip.AddrPort{}); err == nil || err.Error() != want {
		t.Error(err)
	}
	s = newScenario(t, "fe80::1%lo")
	s.options.Local = "fe80::2%nosuch"
	if err := option.Check(s.options); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Resolve(t.Context(), netip.AddrPort{}); err == nil || err.Error() != want {
		t.Error(err)
	}
}

// TestAddressOfAMissingInterfaceIsNoNameThatFails: a link-local address has no name, and its interface may be renamed.
func TestAddressOfAMissingInterfaceIsNoNameThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScenario(t, "fe80::1%nosuch")
		s.during(t, func() { time.Sleep(3 * time.Minute) }) // simulated time (synctest)
		const want = `fault="an address cannot be used" err="target: it cannot be measured: this host has no interface nosuch"`
		if said := s.log.String(); strings.Count(said, "\n") != 1 || !strings.Contains(said, want) || s.failed != 0 || s.unsent == 0 {
			t.Errorf("%d lookups failed, want 0; the log says\n%s", s.failed, said)
		}
	})
}

func TestAddressIsRenewedUntilItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScenario(t, "192.0.2.1")
		s.during(t, func() { time.Sleep(3*time.Minute + time.Second) }) // simulated time (synctest)
		time.Sleep(time.Hour)                                           // simulated time (synctest)
		if s.renewed != 3 || s.failed != 0 {
			t.Errorf("renewed %d times in three minutes and an hour after the end, want 3; %d failures", s.renewed, s.failed)
		}
	})
}

// TestAddressThatRepliesStaysWhileTheNameHasItInTurn: name servers give one of several addresses. A peer that was moved is
// followed, even if the old one still replies.
func TestAddressThatRepliesStaysWhileTheNameHasItInTurn(t *testing.T) {
	for _, several := range [][]string{{"192.0.2.1", "192.0.2.2"}, {"192.0.2.1", "192.0.2.2", "192.0.2.3"}, {"192.0.2.1", "2001:db8::2", "192.0.2.3", "192.0.2.4"}} {
		synctest.Test(t, func(t *testing.T) {
			s := newScenario(t, "peer.test")
			s.addrs, s.turns, s.replies = several, true, true
			s.during(t, func() {
				time.Sleep(time.Hour + time.Second) // simulated time (synctest)
				s.change(func() {
					if len(s.events) != 1 || s.lookups != 61 {
						t.Errorf("%d addresses in turn: %q, %d lookups; want one measurement and 61 lookups", len(several), s.events, s.lookups)
					}
					s.addrs = []string{"192.0.2.9"}
				})
				time.Sleep(maxLacking * time.Minute) // simulated time (synctest)
			})
			if want := "open 192.0.2.9:862"; len(s.events) != 4 || s.events[2] != want {
				t.Errorf("moved: %q, want %q at the end", s.events, want)
			}
			if said := s.log.String(); strings.Count(said, "\n") != 1 || !strings.Contains(said, "Address of the peer has changed") {
				t.Errorf("the log says\n%s", said)
			}
		})
	}
}

// TestCheckedAddressIsOpened: the address that was found is measured, without another lookup; changes are limited in the log.
func TestCheckedAddressIsOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScenario(t, "peer.test")
		s.addrs, s.turns = []string{"192.0.2.1", "192.0.2.2"}, true
		s.during(t, func() { time.Sleep(20*time.Minute + time.Second) }) // simulated time (synctest)
		opened := map[string]int{}
		for i, e := range s.events {
			if e == "open "+netip.AddrPortFrom(netip.MustParseAddr(s.addrs[(i/2+1)%2]), 862).String() {
				opened[e]++
			}
		}
		if s.lookups != 21 || len(s.events) != 42 || len(opened) != 2 {
			t.Errorf("%d lookups, %q; want one lookup for each of 21 measurements, at each address in turn", s.lookups, s.events)
		}
		if said := s.log.String(); strings.Count(said, "\n") != 4 || strings.Count(said, "changes_not_logged=4") != 3 {
			t.Errorf("20 changes in 20 minutes; the log says\n%s", said)
		}
	})
}
