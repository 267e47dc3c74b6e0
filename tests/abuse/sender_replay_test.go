package abuse

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes/stamp"
	"oneway.example/tests/await"
)

// tapped are paths to oneway reflectors, of both families, with and without a Receipt in each packet.
func tapped(keyed ...bool) (all []remote) {
	for _, host := range []string{"127.0.0.1", "::1"} {
		for _, k := range keyed {
			sizes := []int{44, 172, 1472}
			if k {
				sizes = []int{112, 260, 1472}
			}
			for _, size := range sizes {
				all = append(all, remote{"oneway", k, host, size})
			}
		}
	}
	return all
}

// replyWait is the timeout for a reply on a path without loss: a busy machine may be late.
const replyWait = 20 * time.Second

// measureTapped measures all paths at the same time, each with its own capture.
func (s *senders) measureTapped(t *testing.T, all []remote, count func(remote) uint64, interval, wait time.Duration, each func(f remote, tp *capture), check func(t *testing.T, f remote, tp *capture, r stamp.Report)) {
	t.Helper()
	captures, reports, errs := make([]capture, len(all)), make([]stamp.Report, len(all)), make([]error, len(all))
	var running sync.WaitGroup
	for i, f := range all {
		tp, o := &captures[i], stamp.DefaultOptions()
		o.Size, o.Interval, o.LossTimeout = f.size, interval, wait
		if f.authenticated {
			o.KeyFile = s.keyFile
		}
		each(f, tp)
		if tp.local == nil {
			tp.open(t, netip.MustParseAddr(f.host), f.serve(t, s, nil))
		}
		p, err := s.kind.NewProber(s.env, probe.Target{Path: f.String(), Probe: "stamp", Peer: tp.local.LocalAddr().String()}, o)
		if err != nil {
			t.Fatal(err)
		}
		running.Go(func() { reports[i], errs[i] = p.Measure(t.Context(), count(f), func(stamp.Report) {}) })
	}
	running.Wait()
	for i, f := range all {
		t.Run(f.String(), func(t *testing.T) {
			if errs[i] != nil {
				t.Fatal(errs[i])
			}
			check(t, f, &captures[i], reports[i])
		})
	}
}

// wantNothingMoved expects the counts of a path without loss, with the given number of duplicate requests only.
func wantNothingMoved(t *testing.T, r stamp.Report, asked, copies uint64) {
	t.Helper()
	wantBooks(t, r)
	f, b := &r.Forward, &r.Reverse
	zero := func(of ...*uint64) (sum uint64) {
		for _, n := range of {
			sum += *cmp.Or(n, new(uint64))
		}
		return sum
	}
	if r.RoundTrip.Received != asked || r.RoundTrip.Lost != 0 ||
		*f.Received != asked || *f.Sent != asked || zero(f.Lost, f.HostDropped, f.Late, f.Reordered) != 0 || zero(f.Duplicated) != copies ||
		*b.Received != asked || *b.Sent != asked || zero(b.Lost, b.HostDropped, b.Late, b.Reordered, b.Duplicated, b.Corrupted) != 0 {
		t.Errorf("%d requests, %d replies; forward received %d, duplicated %d, lost %d, dropped %d, late %d; reverse sent %d, received %d, lost %d, late %d; refused %v",
			asked, r.RoundTrip.Received, *f.Received, zero(f.Duplicated), zero(f.Lost), zero(f.HostDropped), zero(f.Late), *b.Sent, *b.Received, zero(b.Lost), zero(b.Late), r.Discarded)
	}
}

// TestReplayedPacketsChangeNoCounts: an on-path attacker records requests and replies, and replays them from another
// host or from the address of one of the ends. None may count as lost because of that.
func TestReplayedPacketsChangeNoCounts(t *testing.T) {
	const asked = 300
	every := func(back int) func(*capture, int, []byte) {
		return func(tp *capture, number int, _ []byte) {
			if number > 20 && number < 220 && number%2 == 0 {
				_, _ = tp.elsewhere.Write(tp.request(number - back))
			}
		}
	}
	for _, c := range []struct {
		name   string
		attack func(tp *capture, number int, b []byte)
		// copies are sent from the sender's address; at most told replies from the reflector's.
		copies, told uint64
		// keyed: only with a key; without one, a forged packet is accepted.
		keyed bool
	}{
		{name: "nothing"},
		{name: "each request, from another host", attack: every(1)},
		{name: "earlier requests, from another host", attack: every(16)},
		{name: "the opening statistics query from another host, and its reply", attack: func(tp *capture, number int, _ []byte) {
			if number == 100 {
				if b := tp.steal(0); b != nil {
					tp.sendReply(b)
				}
			}
		}},
		{name: "the first test packet from another host, and its reply", told: 1, attack: func(tp *capture, number int, _ []byte) {
			if number == 100 {
				if b := tp.steal(1); b != nil {
					tp.sendReply(b)
				}
			}
		}},
		{name: "one request 1000 times, from another host", attack: func(tp *capture, number int, _ []byte) {
			if number == 100 {
				for range 1000 {
					_, _ = tp.elsewhere.Write(tp.request(90))
				}
			}
		}},
		{name: "one request 1000 times, from the sender's address", copies: 1000, keyed: true, attack: func(tp *capture, number int, _ []byte) {
			if number > 100 && number <= 200 {
				for range 10 { // so few that the sender's kernel drops none
					tp.sendRequest(tp.request(90))
				}
			}
		}},
		{name: "all replies", told: asked, attack: func(tp *capture, number int, _ []byte) {
			if number == 200 {
				for _, b := range tp.all(&tp.replies) {
					tp.sendReply(b)
				}
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := tapped(true, false)
			if c.keyed {
				all = tapped(true)
			}
			s := newSenders(t, metric.Discard{})
			each := func(_ remote, tp *capture) { tp.asked = c.attack }
			s.measureTapped(t, all, func(remote) uint64 { return asked }, 10*time.Millisecond, replyWait, each, func(t *testing.T, f remote, _ *capture, r stamp.Report) {
				if n := *r.Reverse.Duplicated; n <= c.told { // replays are counted as duplicates
					r.Reverse.Duplicated = nil
				}
				wantNothingMoved(t, r, asked, c.copies)
			})
		})
	}
}

// TestRestartOfTheReflectorLosesNoReflectedPackets: packets too small for a Receipt are counted by statistics queries,
// and only the first query after the restart detects it.
func TestRestartOfTheReflectorLosesNoReflectedPackets(t *testing.T) {
	const asked, restart = 1000, 700
	sink := &metrictest.Keeping{}
	s := newSenders(t, sink)
	each := func(f remote, tp *capture) {
		life := &lives{t: t, s: s, at: netip.AddrPortFrom(netip.MustParseAddr(f.host), 0), open: !f.authenticated}
		life.begin()
		t.Cleanup(func() { life.stop() })
		tp.asked = func(tp *capture, number int, _ []byte) {
			if number == restart {
				tp.answeredAll(t)
				life.stop()
				life.begin()
			}
		}
		tp.open(t, netip.MustParseAddr(f.host), life.at)
	}
	s.measureTapped(t, tapped(false, true), func(remote) uint64 { return asked }, 5*time.Millisecond, replyWait, each, func(t *testing.T, path remote, _ *capture, r stamp.Report) {
		wantBooks(t, r)
		f, b := &r.Forward, &r.Reverse
		// No request was in progress when the reflector stopped. Some numbers after the restart are refused.
		if r.RoundTrip.Received != asked || *f.Lost+*b.Lost > 0 || *b.Sent > asked || *f.Received != asked || *b.Received < asked-20 {
			t.Errorf("%d requests, %d replies; forward received %d, lost %d; reverse sent %d, received %d, lost %d; refused %v",
				asked, r.RoundTrip.Received, *f.Received, *f.Lost, *b.Sent, *b.Received, *b.Lost, r.Discarded)
		}
		if n, _ := sink.Value(metric.RemoteRestarts, path.String(), "stamp"); n != 1 {
			t.Errorf("counted %v restarts, want 1", n)
		}
	})
}

// TestReplaysAfterARestartChangeNoCounts: the restarted reflector has no sessions and receives recorded packets first.
// They must not open the session from which the sender takes its losses.
func TestReplaysAfterARestartChangeNoCounts(t *testing.T) {
	const asked, restart = 600, 500
	for name, replay := range map[string]func(tp *capture, old [][]byte){
		"the opening statistics query": func(tp *capture, old [][]byte) { tp.sendRequest(old[0]) },
		"one request":                  func(tp *capture, old [][]byte) { tp.sendRequest(old[5]) },
		"requests": func(tp *capture, old [][]byte) {
			for _, b := range old[:30] {
				tp.sendRequest(b)
			}
		},
		"requests, from another host": func(tp *capture, old [][]byte) {
			for _, b := range old {
				_, _ = tp.elsewhere.Write(b)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSenders(t, metric.Discard{})
			each := func(f remote, tp *capture) {
				life := &lives{t: t, s: s, at: netip.AddrPortFrom(netip.MustParseAddr(f.host), 0)}
				life.begin()
				t.Cleanup(func() { life.stop() })
				tp.asked = func(tp *capture, number int, _ []byte) {
					switch {
					case number == restart:
						tp.answeredAll(t)
						life.stop()
						life.begin()
						fallthrough
					case number > restart && number%10 == 0:
						replay(tp, tp.all(&tp.requests)[:100])
					}
				}
				tp.open(t, netip.MustParseAddr(f.host), life.at)
			}
			large := slices.DeleteFunc(tapped(true), func(f remote) bool { return f.size == 112 }) // see TestSessionOpenedByRecordedRequestsRestartsWithItsSender
			// The replayed packets are at least 4.7 s older than the restart, more than the waiting time and 2 s
			// (SECURITY.md).
			const wait = 2 * time.Second
			s.measureTapped(t, large, func(remote) uint64 { return asked }, 10*time.Millisecond, wait, each, func(t *testing.T, _ remote, _ *capture, r stamp.Report) {
				wantNothingMoved(t, r, asked, 0)
			})
		})
	}
}

// TestPacketsWithWrongBitsAreRefused: before each request and each reply a copy of it with one flipped bit arrives:
// every bit of the packet, and so of its HMACs, once.
func TestPacketsWithWrongBitsAreRefused(t *testing.T) {
	s := newSenders(t, metric.Discard{})
	flipped := func(number int, b []byte) []byte {
		at := number * 7 % (8 * len(b)) // 7 divides no such length
		b = append([]byte(nil), b...)
		b[at/8] ^= 1 << (at % 8)
		return b
	}
	each := func(_ remote, tp *capture) {
		tp.asked = func(tp *capture, number int, b []byte) { tp.sendRequest(flipped(number, b)) }
		tp.answered = func(tp *capture, number int, b []byte) bool { tp.sendReply(flipped(number, b)); return false }
	}
	all := []remote{{"oneway", true, "127.0.0.1", 112}, {"oneway", true, "::1", 112}, {"oneway", true, "127.0.0.1", 260}, {"oneway", true, "::1", 260}}
	count := func(f remote) uint64 { return uint64(8 * f.size) }
	s.measureTapped(t, all, count, 2*time.Millisecond, replyWait, each, func(t *testing.T, f remote, _ *capture, r stamp.Report) {
		t.Logf("corrupted forward %d, reverse %d; refused %v", *r.Forward.Corrupted, *r.Reverse.Corrupted, r.Discarded)
		r.Reverse.Corrupted = nil // the copies with valid HMACs and damaged TLV headers
		wantNothingMoved(t, r, count(f), 0)
	})
}

// TestForgedDamageIsNotCountedOnThePath: an off-path attacker without a key sends packets that look like damaged
// requests from the sender's address.
func TestForgedDamageIsNotCountedOnThePath(t *testing.T) {
	const asked = 300
	s := newSenders(t, metric.Discard{})
	each := func(f remote, tp *capture) {
		tp.asked = func(tp *capture, number int, b []byte) {
			if number <= 100 || number > 200 {
				return
			}
			key := newKey("guessed")
			if !f.authenticated {
				key = nil
			}
			forged := request(7, 1, key)
			at := 14 // the SSID, which is easily guessed
			if f.authenticated {
				at = 26
			}
			copy(forged[at:at+2], b[at:at+2])
			forged[40] ^= 1
			forged[len(forged)-1] ^= 1
			for range 5 {
				tp.sendRequest(forged)
			}
		}
	}
	all := slices.DeleteFunc(tapped(true, false), func(f remote) bool { return f.size == 44 })
	s.measureTapped(t, all, func(remote) uint64 { return asked }, 10*time.Millisecond, replyWait, each, func(t *testing.T, _ remote, _ *capture, r stamp.Report) {
		wantNothingMoved(t, r, asked, 0)
		if n := *r.Forward.Corrupted; n != 0 {
			t.Errorf("counted %d damaged packets on a path without damage", n)
		}
	})
}

// TestRepliesOfAnEarlierSessionDoNotKeepThePathUp: replies of the reflector before a restart are delayed on the path
// and arrive one by one after it. They are not received packets and must not keep the path up.
func TestRepliesOfAnEarlierSessionDoNotKeepThePathUp(t *testing.T) {
	const good, kept, wait = 20, 60, 20 * time.Second
	for _, host := range []string{"127.0.0.1", "::1"} {
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			sink := &metrictest.Keeping{}
			s := newSenders(t, sink)
			life := &lives{t: t, s: s, at: netip.AddrPortFrom(netip.MustParseAddr(host), 0)}
			life.begin()
			defer func() { life.stop() }()
			var mu sync.Mutex
			var former [][]byte
			restarted, again, present := make(chan struct{}), false, 0
			tp := &capture{}
			tp.asked = func(tp *capture, number int, _ []byte) {
				if number == good+kept+20 {
					life.stop()
					life.begin()
					mu.Lock()
					again = true
					mu.Unlock()
				}
			}
			tp.answered = func(_ *capture, number int, b []byte) (keep bool) {
				mu.Lock()
				defer mu.Unlock()
				switch {
				case again:
					if present++; present == 6 {
						close(restarted)
					}
					return present > 5 // by then the fifth has been forwarded
				case number >= good && len(former) < kept:
					former = append(former, append([]byte(nil), b...))
					return true
				}
				return false
			}
			tp.open(t, netip.MustParseAddr(host), life.at)
			o := stamp.DefaultOptions()
			o.Size, o.Interval, o.LossTimeout, o.KeyFile = 260, 10*time.Millisecond, wait, s.keyFile
			p, err := s.kind.NewProber(s.env, probe.Target{Path: "p", Probe: "stamp", Peer: tp.local.LocalAddr().String()}, o)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- p.Run(ctx) }()
			<-restarted
			late := func() float64 {
				n, _ := sink.Value(metric.PacketsLate, "p", "stamp", "reverse")
				return n
			}
			mu.Lock()
			defer mu.Unlock()
			tp.sendReply(former[0]) // when this one is counted, so are the five before it
			if !await.Within(20*time.Second, func() bool { return late() == 1 }) {
				t.Fatalf("%v late replies, want 1", late())
			}
			before := p.Status().LastSuccess
			for _, b := range former[1:] {
				tp.sendReply(b)
			}
			if !await.Within(20*time.Second, func() bool { return late() == kept }) {
				t.Fatalf("%v late replies, want %d", late(), kept)
			}
			if after := p.Status(); !after.LastSuccess.Equal(before) {
				t.Errorf("replies of an earlier session moved the last success by %v", after.LastSuccess.Sub(before))
			}
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}
