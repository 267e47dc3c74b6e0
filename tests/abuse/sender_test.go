package abuse

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes/stamp"
	"oneway.example/tests/await"
	"oneway.example/tests/standstill"
	"oneway.example/tests/testbed"
)

// remotes are paths of every kind: reflectors, keys, families, sizes.
func remotes(reflectors ...string) (all []remote) {
	for _, r := range reflectors {
		for _, host := range []string{"127.0.0.1", "::1"} {
			for _, size := range []int{44, 120, 172, 1472} {
				all = append(all, remote{r, false, host, size})
			}
			for _, size := range []int{112, 136, 260, 1472} {
				all = append(all, remote{r, true, host, size})
			}
		}
	}
	return all
}

func (f remote) String() string {
	return fmt.Sprintf("%s/%s/%d/authenticated=%v", f.reflector, f.host, f.size, f.authenticated)
}

// measureAll measures all paths at the same time, and passes the report of each one to check.
func (s *senders) measureAll(t *testing.T, all []remote, count uint64, each func(remote, *tamperer, *stamp.Options), check func(*testing.T, remote, *tamperer, stamp.Report)) {
	t.Helper()
	tamperers, reports, errs := make([]tamperer, len(all)), make([]stamp.Report, len(all)), make([]error, len(all))
	timeouts, watch, begin := make([]time.Duration, len(all)), standstill.Begin(t), instant.Now()
	var running sync.WaitGroup
	for i, f := range all {
		m := &tamperers[i]
		each(f, m, &stamp.Options{})
		peer, o := f.start(t, s, m)
		each(f, m, &o)
		timeouts[i] = o.LossTimeout
		p, err := s.kind.NewProber(s.env, probe.Target{Path: f.String(), Probe: "stamp", Peer: peer}, o)
		if err != nil {
			t.Fatal(err)
		}
		running.Go(func() { reports[i], errs[i] = p.Measure(t.Context(), count, func(stamp.Report) {}) })
	}
	running.Wait()
	still := watch.FoundFrom(begin)
	for i, f := range all {
		t.Run(f.String(), func(t *testing.T) {
			if errs[i] != nil {
				t.Fatal(errs[i])
			}
			tamperers[i].inTime(t, timeouts[i], still)
			check(t, f, &tamperers[i], reports[i])
		})
	}
}

// TestForgedRepliesChangeNoCounts: an off-path attacker without a key sends, from the reflector's address, replies to
// requests that have expired, are not sent yet, or were sent at another time, with number 2^30, and replays a reply;
// without authentication, an on-path attacker replies before the reflector, with a number out of range.
func TestForgedRepliesChangeNoCounts(t *testing.T) {
	const asked, forgotten, wrong = 170, 140, 1 << 30
	s := newSenders(t, metric.Discard{})
	each := func(f remote, m *tamperer, o *stamp.Options) {
		// The sender stores the last 128 packets, somewhat more than twice the waiting time.
		o.Interval, o.LossTimeout = 36*time.Millisecond, time.Second
		m.forge = func(q stampfmt.SenderPacket, _ int) [][]byte {
			lie := q
			switch q.Seq {
			case forgotten:
				lie.Seq = 0
			case forgotten + 3:
				lie.Seq++
			case forgotten + 6:
				lie.T1++
			case forgotten + 9:
				return [][]byte{m.recorded(1), m.recorded(forgotten)}
			case forgotten + 12:
				if f.authenticated {
					return nil
				}
			default:
				return nil
			}
			return [][]byte{m.forged(lie, wrong)}
		}
	}
	s.measureAll(t, remotes("oneway", "stateful", "stateless"), asked, each, func(t *testing.T, f remote, _ *tamperer, r stamp.Report) {
		if r.Reflector != f.reflector {
			t.Errorf("the report has reflector %s", r.Reflector)
		}
		if r.RoundTrip.Received != asked || r.RoundTrip.Lost != 0 {
			t.Errorf("%d requests, %d replies, %d lost; refused: %v", asked, r.RoundTrip.Received, r.RoundTrip.Lost, r.Discarded)
		}
		wantBooks(t, r)
		if f.reflector == "stateless" {
			return
		}
		for name, d := range map[string]stamp.DirectionReport{"forward": r.Forward, "reverse": r.Reverse} {
			if *d.Received != asked || *d.Lost != 0 {
				t.Errorf("%s: sent %d, received %d, lost %d; refused: %v", name, *d.Sent, *d.Received, *d.Lost, r.Discarded)
			}
		}
	})
}

// TestRestartedReflectorIsMeasured: a foreign reflector restarts its numbers while packets are outstanding: with zero,
// with a random number, and shortly before the wrap.
func TestRestartedReflectorIsMeasured(t *testing.T) {
	const asked, at, hold = 500, 200, 20 * time.Millisecond
	for name, first := range map[string]uint32{"zero": 0, "random": 2_718_281_828, "wrap": 1<<32 - 20, "a little ahead": at + 1000} {
		t.Run(name, func(t *testing.T) {
			sink := &metrictest.Keeping{}
			s := newSenders(t, sink)
			each := func(_ remote, m *tamperer, o *stamp.Options) {
				o.Interval, o.LossTimeout = 8*time.Millisecond, 2*time.Second
				m.hold = hold
				m.renumber = func(number int, next uint32) uint32 {
					if number == at {
						return first
					}
					return next
				}
			}
			s.measureAll(t, remotes("stateful"), asked, each, func(t *testing.T, f remote, _ *tamperer, r stamp.Report) {
				if r.RoundTrip.Received != asked || *r.Forward.Received != asked {
					t.Errorf("%d requests, %d received, %d replies; refused: %v", asked, *r.Forward.Received, r.RoundTrip.Received, r.Discarded)
				}
				wantBooks(t, r)
				// Refused are replies to requests sent before the last reply with the old numbers was received, and the
				// two that a third one has to confirm.
				refused := r.Discarded["wrong_number"] + *r.Reverse.Late
				if got := *r.Reverse.Received; *r.Reverse.Lost != 0 || got+refused != asked || refused > asked/5 {
					t.Errorf("%d replies, %d received, %d lost, %d late; refused: %v", asked, got, *r.Reverse.Lost, *r.Reverse.Late, r.Discarded)
				}
				if n, _ := sink.Value(metric.RemoteRestarts, f.String(), "stamp"); n != 1 {
					t.Errorf("counted %v restarts", n)
				}
			})
		})
	}
}

// TestPathIsNotUpWhileNothingIsReceived: after the first requests, no packet that arrives is a reply to a test packet.
func TestPathIsNotUpWhileNothingIsReceived(t *testing.T) {
	const good = 20
	forge := map[string]func(q stampfmt.SenderPacket, m *tamperer) []byte{
		"unknown number": func(q stampfmt.SenderPacket, _ *tamperer) []byte {
			q.Seq += 1000
			return replyTo(q, q.Seq, nil)
		},
		"another time": func(q stampfmt.SenderPacket, _ *tamperer) []byte {
			q.T1++
			return replyTo(q, q.Seq, nil)
		},
		"replays": func(_ stampfmt.SenderPacket, m *tamperer) []byte { return m.recorded(1) },
	}
	s := newSenders(t, metric.Discard{})
	probers := map[string]*stamp.Prober{}
	for name, forge := range forge {
		for _, f := range []remote{
			{"oneway", false, "127.0.0.1", 172},
			{"oneway", false, "::1", 44},
			{"stateful", false, "127.0.0.1", 44},
			{"stateless", false, "::1", 172},
		} {
			m := &tamperer{}
			m.pass = func(number int) bool { return number < good }
			m.forge = func(q stampfmt.SenderPacket, number int) [][]byte {
				if number < good {
					return nil
				}
				return [][]byte{forge(q, m)}
			}
			peer, o := f.start(t, s, m)
			o.Interval, o.LossTimeout = 100*time.Millisecond, 200*time.Millisecond
			p, err := s.kind.NewProber(s.env, probe.Target{Path: name, Probe: f.String(), Peer: peer}, o)
			if err != nil {
				t.Fatal(err)
			}
			probers[name+"/"+f.String()] = p
			testbed.Background(t, p.Run)
		}
	}
	for name, p := range probers {
		if !await.Within(20*time.Second, func() bool { return !p.Status().LastSuccess.IsZero() }) {
			t.Errorf("%s: the path was never up: %+v", name, p.Status())
		}
	}
	for name, p := range probers {
		down := func() bool {
			s := p.Status() // a replay of a received reply is a duplicate
			return !s.Up && (s.Reason != "" && !strings.Contains(s.Reason, "does not reply") || strings.HasPrefix(name, "replays"))
		}
		if !await.Within(10*time.Second, down) {
			t.Errorf("%s: the path is up without received packets, last success %v ago: %+v", name, time.Since(p.Status().LastSuccess), p.Status())
		}
	}
}
