package ondemand

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oneway.example/exporter/core/lightreason"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/probe"
)

// fakeOnce takes a second for each packet.
type fakeOnce struct {
	peer string
	of   *scenario
}

func (fakeOnce) Fits(a netip.Addr) bool { return a.Is4() }

func (fakeOnce) Longest(count uint64) time.Duration { return time.Duration(count) * time.Second }

func (o fakeOnce) Measure(ctx context.Context, count uint64) (probe.Outcome, error) {
	s := o.of
	s.most.Store(max(s.most.Load(), s.running.Add(1)))
	defer s.running.Add(-1)
	s.mu.Lock()
	s.peers = append(s.peers, o.peer)
	s.mu.Unlock()
	select {
	case <-ctx.Done():
		return probe.Outcome{}, ctx.Err()
	case <-time.After(time.Duration(count) * time.Second):
	}
	return s.outcome, nil
}

// scenario is a service with two modules, "a" of 2 s and "gone", whose options have become wrong.
type scenario struct {
	*Service
	own     metrictest.Sink
	outcome probe.Outcome

	running, most atomic.Int64
	mu            sync.Mutex
	peers         []string
}

func newScenario(t *testing.T, pause time.Duration) *scenario {
	t.Helper()
	s := &scenario{outcome: probe.Outcome{Received: 3, Lost: 1}}
	s.Service = New(Options{Sink: &s.own, Log: slog.New(slog.DiscardHandler), Lookup: func(ctx context.Context, _, host string) ([]netip.Addr, error) {
		switch {
		case host == "slow.example.net":
			<-ctx.Done()
			return nil, ctx.Err()
		case host == "away.example.net":
			return []netip.Addr{netip.MustParseAddr("169.254.169.254"), netip.MustParseAddr("2001:db8::1")}, nil
		case host == "six.example.net":
			return []netip.Addr{netip.MustParseAddr("2001:db8::1")}, nil
		case strings.HasPrefix(host, "no"):
			return nil, errors.New("no such host")
		}
		return []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("::ffff:192.0.2.7")}, nil
	}})
	s.Configure(&Config{
		Modules: []Module{
			{Name: "a", Type: "fake", Count: 2, New: func(_ metric.Sink, _ *slog.Logger, target probe.Target) (probe.Once, error) {
				return fakeOnce{target.Peer, s}, nil
			}},
			{Name: "gone", New: func(metric.Sink, *slog.Logger, probe.Target) (probe.Once, error) {
				return nil, errors.New("no key file")
			}},
		},
		Targets: allowed(t, "*.example.net", "192.0.2.0/24", "2001:db8::/32"), Port: 862, MaxConcurrent: 2, TargetPause: pause,
	})
	return s
}

// ask measures with module a, and returns the families of the reply.
func (s *scenario) ask(ctx context.Context, target, module string, within time.Duration) (*metrictest.Sink, error) {
	sink := &metrictest.Sink{}
	return sink, s.Measure(ctx, Request{Target: target, Module: module, Within: within, Sink: sink, Log: slog.New(slog.DiscardHandler)})
}

func kindOf(err error) Kind {
	if r, ok := errors.AsType[*Refused](err); ok {
		return r.Kind
	}
	return Kind(fmt.Sprint(err))
}

func TestReplyHasTheFamiliesOfBlackboxExporter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScenario(t, 0)
		for _, c := range []struct {
			target        string
			outcome       probe.Outcome
			success, loss float64
			reason        lightreason.Reason
		}{
			{"a.example.net", probe.Outcome{Received: 3, Lost: 1}, 1, 0.25, ""},
			{"192.0.2.7", probe.Outcome{Lost: 4, Failure: lightreason.NoReply}, 0, 1, lightreason.NoReply},
			{"192.0.2.7", probe.Outcome{Failure: lightreason.NotSent}, 0, 1, lightreason.NotSent},
			{"no.example.net", probe.Outcome{}, 0, 1, lightreason.Unresolved},
			{"six.example.net", probe.Outcome{}, 0, 1, lightreason.Unresolved},
			{"slow.example.net", probe.Outcome{}, 0, 1, lightreason.Unresolved},
		} {
			s.outcome = c.outcome
			sink, err := s.ask(t.Context(), c.target, "a", 9500*time.Millisecond)
			success, _ := sink.Value(metric.OnDemandSuccess)
			loss, _ := sink.Value(metric.OnDemandLoss)
			took, ok := sink.Value(metric.OnDemandDuration)
			_, reason := sink.Value(metric.OnDemandFailure, string(c.reason))
			if err != nil || success != c.success || loss != c.loss || !ok || took > 9.5 || reason != (c.reason != "") {
				t.Errorf("%+v: success %v, loss %v, %v s, reason %t, %v", c, success, loss, took, reason, err)
			}
		}
		if want := []string{"192.0.2.7:862", "192.0.2.7:862", "192.0.2.7:862"}; fmt.Sprint(s.peers) != fmt.Sprint(want) {
			t.Errorf("measured %q, want %q", s.peers, want)
		}
		if v, _ := s.own.Value(metric.OnDemandRequests, "failure"); v != 5 {
			t.Errorf("%v failures, want 5", v)
		}
		s.Stop()
	})
}

func TestRefusedRequestsMeasureNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScenario(t, 0)
		for _, c := range []struct {
			target, module string
			within         time.Duration
			want           Kind
		}{
			{"192.0.2.7", "b", time.Minute, NotAllowed},
			{"192.0.2.7", "gone", time.Minute, Unusable},
			{"10.0.0.1", "a", time.Minute, NotAllowed},
			{"away.example.net", "a", time.Minute, NotAllowed},
			{"2001:db8::1", "a", time.Minute, NotAllowed},
			{"x@y", "a", time.Minute, Malformed},
			{"192.0.2.7", "a", 1999 * time.Millisecond, TooShort},
			{"192.0.2.7", "a", -time.Second, TooShort},
		} {
			if _, err := s.ask(t.Context(), c.target, c.module, c.within); kindOf(err) != c.want {
				t.Errorf("%+v: %v", c, err)
			}
			if v, ok := s.own.Value(metric.OnDemandRequests, string(c.want)); !ok || v == 0 {
				t.Errorf("%+v is not counted", c)
			}
		}
		if len(s.peers) > 0 {
			t.Errorf("measured %q", s.peers)
		}
		if s.Stop(); kindOf(errorOf(s.ask(t.Context(), "192.0.2.7", "a", time.Minute))) != Unconfigured || s.own.Open() != 0 {
			t.Errorf("after the end a request is accepted, or %d series are open", s.own.Open())
		}
	})
}

func errorOf(_ *metrictest.Sink, err error) error { return err }

func TestFewMeasurementsRunAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScenario(t, 0)
		var all sync.WaitGroup
		var ok, busy atomic.Int64
		for i := range 100 {
			all.Go(func() {
				switch _, err := s.ask(t.Context(), fmt.Sprintf("192.0.2.%d", i), "a", 7*time.Second); {
				case err == nil:
					ok.Add(1)
				case kindOf(err) == Busy:
					busy.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		all.Wait()
		// Two run, and those that begin within 5 s end in time: 2 at 0 s, 2 s and 4 s.
		if ok.Load() != 6 || busy.Load() != 94 || s.most.Load() != 2 {
			t.Errorf("%d measured, %d refused, %d at a time", ok.Load(), busy.Load(), s.most.Load())
		}
		if v, _ := s.own.Value(metric.OnDemandRunning); v != 0 || s.turns.running != 0 || len(s.turns.waiting) != 0 {
			t.Errorf("%v running after the end, %d turns, %d waiting", v, s.turns.running, len(s.turns.waiting))
		}
		s.Stop()
	})
}

// TestOneClientDoesNotStarveAnother: a client requests all the time, and another one now and then.
func TestOneClientDoesNotStarveAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScenario(t, 0)
		from := func(client string, target int, within time.Duration) error {
			return s.Measure(t.Context(), Request{
				Target: fmt.Sprintf("192.0.2.%d", target), Module: "a", Within: within, Client: netip.MustParseAddr(client),
				Sink: &metrictest.Sink{}, Log: slog.New(slog.DiscardHandler),
			})
		}
		begin := time.Now()
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				for time.Since(begin) < time.Minute {
					if kindOf(from("10.0.0.1", i, 30*time.Second)) == Busy {
						time.Sleep(100 * time.Millisecond) // simulated time (synctest): a client that returns at once
					}
				}
			})
		}
		for range 10 {
			time.Sleep(3 * time.Second) // simulated time (synctest)
			at := time.Now()
			if err := from("10.0.0.2", 200, 5*time.Second); err != nil || time.Since(at) != 2*time.Second {
				t.Errorf("%v after %v, want a measurement at once, of 2s", err, time.Since(at))
			}
		}
		all.Wait()
		if s.most.Load() != 2 || s.turns.running != 0 || len(s.turns.clients) != 0 || len(s.turns.waiting) != 0 {
			t.Errorf("%d at a time; %d turns, %d clients, %d waiting at the end", s.most.Load(), s.turns.running, len(s.turns.clients), len(s.turns.waiting))
		}
		s.Stop()
	})
}

// All names that lead to one address share its pause.
func TestTargetIsNotMeasuredMoreOftenThanItsPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScenario(t, 10*time.Second)
		begin := time.Now()
		for i, c := range []struct {
			target string
			within time.Duration
			want   Kind
			at     time.Duration
		}{
			{"a.example.net", 9 * time.Second, "<nil>", 2 * time.Second},
			{"192.0.2.7", 9 * time.Second, Paused, 2 * time.Second},
			{"192.0.2.8", 9 * time.Second, "<nil>", 4 * time.Second},
			{"b.example.net", 9 * time.Second, "<nil>", 12 * time.Second},
		} {
			_, err := s.ask(t.Context(), c.target, "a", c.within)
			if kindOf(err) != c.want || time.Since(begin) != c.at {
				t.Errorf("request %d: %v after %v, want %q after %v", i, err, time.Since(begin), c.want, c.at)
			}
			if r, ok := errors.AsType[*Refused](err); ok && r.RetryAfter != time.Second {
				t.Errorf("request %d: retry after %v, want 1s", i, r.RetryAfter)
			}
		}
		time.Sleep(time.Minute) // simulated time (synctest)
		if _, err := s.ask(t.Context(), "192.0.2.9", "a", time.Minute); err != nil || len(s.turns.next) != 1 {
			t.Errorf("%v; %d targets are remembered, want the last one", err, len(s.turns.next))
		}
		s.Stop()
	})
}

func TestClientsThatGoWhileTheyWaitDoNotKeepATarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScenario(t, 10*time.Second)
		begin := time.Now()
		if _, err := s.ask(t.Context(), "192.0.2.7", "a", time.Minute); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			var both sync.WaitGroup
			for range 2 {
				both.Go(func() {
					if _, err := s.ask(ctx, "192.0.2.7", "a", time.Minute); !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("%v, want the end of the context", err)
					}
				})
			}
			both.Wait()
			cancel()
		}
		// 7 s have passed; the target is free 10 s after the begin.
		if _, err := s.ask(t.Context(), "192.0.2.7", "a", 9*time.Second); err != nil || time.Since(begin) != 12*time.Second {
			t.Errorf("%v after %v, want a measurement of 2 s that begins 10 s after the first", err, time.Since(begin))
		}
		s.Stop()
	})
}

func TestRequestsThatWaitForATargetAreSpaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScenario(t, 10*time.Second)
		s.config.MaxConcurrent = 4
		begin := time.Now()
		var mu sync.Mutex
		var ends []time.Duration
		var all sync.WaitGroup
		refused := 0
		for range 4 {
			all.Go(func() {
				_, err := s.ask(t.Context(), "192.0.2.7", "a", 25*time.Second)
				mu.Lock()
				defer mu.Unlock()
				if kindOf(err) == Paused && time.Since(begin) == 0 {
					refused++
				} else if err == nil {
					ends = append(ends, time.Since(begin))
				}
			})
		}
		all.Wait()
		if want := []time.Duration{2 * time.Second, 12 * time.Second, 22 * time.Second}; refused != 1 || !slices.Equal(ends, want) {
			t.Errorf("%d refused at once, ends %v; want 1 and %v", refused, ends, want)
		}
		s.Stop()
	})
}

func TestClientThatGoesEndsItsMeasurement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScenario(t, 0)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		if _, err := s.ask(ctx, "192.0.2.7", "a", time.Minute); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != time.Second {
			t.Errorf("%v after %v, want the end of the context after 1s", err, time.Since(begin))
		}
		if v, _ := s.own.Value(metric.OnDemandRequests, "canceled"); v != 1 {
			t.Errorf("%v canceled, want 1", v)
		}
		ended := make(chan error)
		go func() { ended <- errorOf(s.ask(t.Context(), "192.0.2.7", "a", time.Minute)) }()
		synctest.Wait()
		go s.Stop()
		if err := <-ended; kindOf(err) != Stopped {
			t.Errorf("%v at the end of the agent, want %s", err, Stopped)
		}
	})
}
