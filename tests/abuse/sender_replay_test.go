package abuse

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"oneway.example/exporter/metric"
	"oneway.example/exporter/metric/metrictest"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes/stamp"
	"oneway.example/tests/await"
)

// tapped are paths to our own reflector, of both families, with and without a Receipt in each packet.
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

// replyWait is how long a reply is waited for where no packet is lost: a busy machine may be late.
const replyWait = 20 * time.Second

// measureTapped measures all paths at the same time, each with a tap of its own.
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

// wantNothingMoved wants the books of a path that loses nothing and doubles nothing but so many requests.
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
		t.Errorf("of %d requests %d answered; forward received %d, duplicated %d, lost %d, dropped %d, late %d; reverse sent %d, received %d, lost %d, late %d; refused %v",
			asked, r.RoundTrip.Received, *f.Received, zero(f.Duplicated), zero(f.Lost), zero(f.HostDropped), zero(f.Late), *b.Sent, *b.Received, zero(b.Lost), zero(b.Late), r.Discarded)
	}
}

// TestReplayedPacketsMoveNothing: who sees the packets of a path records requests and answers, and sends
// them again, from another host or from the address of one of the ends. The sender counted a reply as lost for each
// request that was sent again from elsewhere.
func TestReplayedPacketsMoveNothing(t *testing.T) {
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
		// copies come from the sender's address; told replies, at the most, come from the reflector's.
		copies, told uint64
		// keyed: what is written on an open path is believed.
		keyed bool
	}{
		{name: "nothing"},
		{name: "each request, from elsewhere", attack: every(1)},
		{name: "requests of before, from elsewhere", attack: every(16)},
		{name: "the opening query from elsewhere, and its reply", attack: func(tp *capture, number int, _ []byte) {
			if number == 100 {
				if b := tp.steal(0); b != nil {
					tp.tell(b)
				}
			}
		}},
		{name: "the first test packet from elsewhere, and its reply", told: 1, attack: func(tp *capture, number int, _ []byte) {
			if number == 100 {
				if b := tp.steal(1); b != nil {
					tp.tell(b)
				}
			}
		}},
		{name: "one request 1000 times, from elsewhere", attack: func(tp *capture, number int, _ []byte) {
			if number == 100 {
				for range 1000 {
					_, _ = tp.elsewhere.Write(tp.request(90))
				}
			}
		}},
		{name: "one request 1000 times, from the sender's address", copies: 1000, keyed: true, attack: func(tp *capture, number int, _ []byte) {
			if number > 100 && number <= 200 {
				for range 10 { // so few that the sender's kernel drops none
					tp.ask(tp.request(90))
				}
			}
		}},
		{name: "all replies", told: asked, attack: func(tp *capture, number int, _ []byte) {
			if number == 200 {
				for _, b := range tp.all(&tp.replies) {
					tp.tell(b)
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
				if n := *r.Reverse.Duplicated; n <= c.told { // that is what they are
					r.Reverse.Duplicated = nil
				}
				wantNothingMoved(t, r, asked, c.copies)
			})
		})
	}
}

// TestRestartOfTheReflectorLosesNothingThatWasAnswered: packets too small for a Receipt are counted by the
// queries beside them, and until the first of those after the restart nobody tells of it.
func TestRestartOfTheReflectorLosesNothingThatWasAnswered(t *testing.T) {
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
		// Nothing was with the reflector when it ended. Some numbers that begin anew are refused.
		if r.RoundTrip.Received != asked || *f.Lost+*b.Lost > 0 || *b.Sent > asked || *f.Received != asked || *b.Received < asked-20 {
			t.Errorf("of %d requests %d answered; forward received %d, lost %d; reverse sent %d, received %d, lost %d; refused %v",
				asked, r.RoundTrip.Received, *f.Received, *f.Lost, *b.Sent, *b.Received, *b.Lost, r.Discarded)
		}
		if n, _ := sink.Value(metric.RemoteRestarts, path.String(), "stamp"); n != 1 {
			t.Errorf("%v restarts, want 1", n)
		}
	})
}

// TestReplaysAfterARestartMoveNothing: the reflector has forgotten its sessions, and what comes first is
// recorded. It opened the session, and the sender booked all numbers since then as lost once more.
func TestReplaysAfterARestartMoveNothing(t *testing.T) {
	const asked, restart = 600, 500
	for name, replay := range map[string]func(tp *capture, old [][]byte){
		"the opening query": func(tp *capture, old [][]byte) { tp.ask(old[0]) },
		"one request":       func(tp *capture, old [][]byte) { tp.ask(old[5]) },
		"questions": func(tp *capture, old [][]byte) {
			for _, b := range old[:30] {
				tp.ask(b)
			}
		},
		"requests, from elsewhere": func(tp *capture, old [][]byte) {
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
			// What is replayed is older than the restart by 4.7 s or more: by the waiting time and 2 s, as SECURITY.md wants it.
			const wait = 2 * time.Second
			s.measureTapped(t, large, func(remote) uint64 { return asked }, 10*time.Millisecond, wait, each, func(t *testing.T, _ remote, _ *capture, r stamp.Report) {
				wantNothingMoved(t, r, asked, 0)
			})
		})
	}
}

// TestWrongBitsAreNeverBelieved: before each request and each reply comes a copy of it in which one bit is
// another one: every bit of the packet, and so of its HMACs, once.
func TestWrongBitsAreNeverBelieved(t *testing.T) {
	s := newSenders(t, metric.Discard{})
	flipped := func(number int, b []byte) []byte {
		at := number * 7 % (8 * len(b)) // 7 divides no such length
		b = append([]byte(nil), b...)
		b[at/8] ^= 1 << (at % 8)
		return b
	}
	each := func(_ remote, tp *capture) {
		tp.asked = func(tp *capture, number int, b []byte) { tp.ask(flipped(number, b)) }
		tp.answered = func(tp *capture, number int, b []byte) bool { tp.tell(flipped(number, b)); return false }
	}
	all := []remote{{"oneway", true, "127.0.0.1", 112}, {"oneway", true, "::1", 112}, {"oneway", true, "127.0.0.1", 260}, {"oneway", true, "::1", 260}}
	count := func(f remote) uint64 { return uint64(8 * f.size) }
	s.measureTapped(t, all, count, 2*time.Millisecond, replyWait, each, func(t *testing.T, f remote, _ *capture, r stamp.Report) {
		t.Logf("corrupted forward %d, reverse %d; refused %v", *r.Forward.Corrupted, *r.Reverse.Corrupted, r.Discarded)
		r.Reverse.Corrupted = nil // those whose HMACs are right, and the headers of TLVs are not
		wantNothingMoved(t, r, count(f), 0)
	})
}

// TestDamageThatIsForgedIsNotCounted: who has no key, and sees no packets, sends from the sender's address what
// looks like damaged requests.
func TestDamageThatIsForgedIsNotCounted(t *testing.T) {
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
			at := 14 // the SSID, which is guessed soon
			if f.authenticated {
				at = 26
			}
			copy(forged[at:at+2], b[at:at+2])
			forged[40] ^= 1
			forged[len(forged)-1] ^= 1
			for range 5 {
				tp.ask(forged)
			}
		}
	}
	all := slices.DeleteFunc(tapped(true, false), func(f remote) bool { return f.size == 44 })
	s.measureTapped(t, all, func(remote) uint64 { return asked }, 10*time.Millisecond, replyWait, each, func(t *testing.T, _ remote, _ *capture, r stamp.Report) {
		wantNothingMoved(t, r, asked, 0)
		if n := *r.Forward.Corrupted; n != 0 {
			t.Errorf("%d damaged packets on a path that damages none", n)
		}
	})
}

// TestRepliesOfAFormerLifeKeepNoPathUp: answers of the reflector's former life are kept back on the path
// and come one by one when it has restarted. They are received by nobody's count, but kept the path up.
func TestRepliesOfAFormerLifeKeepNoPathUp(t *testing.T) {
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
					return present > 5 // by then the fifth has been sent on
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
			tp.tell(former[0]) // when it has been taken, so have the five before it
			if !await.Within(20*time.Second, func() bool { return late() == 1 }) {
				t.Fatalf("%v late answers, want 1", late())
			}
			before := p.Status().LastSuccess
			for _, b := range former[1:] {
				tp.tell(b)
			}
			if !await.Within(20*time.Second, func() bool { return late() == kept }) {
				t.Fatalf("%v late answers, want %d", late(), kept)
			}
			if after := p.Status(); !after.LastSuccess.Equal(before) {
				t.Errorf("the last success moved by %v with answers of a former life", after.LastSuccess.Sub(before))
			}
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}
