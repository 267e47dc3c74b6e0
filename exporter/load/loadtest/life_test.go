package loadtest_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"oneway.example/exporter/core/ctxtime"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/traffictypes/udptraffic"
	"oneway.example/exporter/probe/calendar"
	"oneway.example/exporter/probe/link"
)

// in runs a test in a synctest bubble with simulated time.
func in(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

func (b *bench) expectRuns(want map[string]float64) {
	b.t.Helper()
	if diff := cmp.Diff(want, b.runs()); diff != "" {
		b.t.Errorf("runs (-want +got):\n%s", diff)
	}
}

// The offset is the one at the end of the run, also when the clocks change before the next.
func TestRunHasTheOffsetFromUTCAtItsEnd(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	local := time.Local
	time.Local = berlin
	defer func() { time.Local = local }()
	in(t, func(t *testing.T) {
		// The second run of the hour ends before, the third after the begin of summer time.
		time.Sleep(time.Until(time.Date(2000, 3, 26, 0, 55, 0, 0, time.UTC)) - time.Hour) // simulated time (synctest)
		b := newBench(t, nil)
		b.start()
		for i, want := range []float64{3600, 3600, 7200} {
			time.Sleep(time.Minute) // simulated time (synctest)
			if got, _ := b.sink.Value(metric.RunUTCOffset, "office", "saturation"); got != want {
				t.Errorf("run %d: an offset of %v s, want %v s", i, got, want)
			}
			time.Sleep(59 * time.Minute) // simulated time (synctest)
			if got, _ := b.sink.Value(metric.RunUTCOffset, "office", "saturation"); i == 1 && got != want {
				t.Errorf("after the change the offset of run %d is %v s, want %v s", i, got, want)
			}
		}
	})
}

func TestRunsStartWhenDueAndPublish(t *testing.T) {
	in(t, func(t *testing.T) {
		b := newBench(t, nil)
		begin := time.Now()
		b.start()
		time.Sleep(5 * time.Second) // simulated time (synctest)
		if b.running() != 1 {
			t.Error("oneway_test_running is 0 during a run")
		}
		if got := b.links.Uses(); len(got) != 1 || !got[link.Use{Link: "office", Path: "office"}].Equal(time.Now()) {
			t.Errorf("the run fills %v", got)
		}
		if s := b.prober.Status(); !strings.HasPrefix(s.State, "load, 4") && !strings.HasPrefix(s.State, "load, 5") {
			t.Errorf("status while running: %+v", s)
		}
		time.Sleep(2*time.Hour + 30*time.Minute) // simulated time (synctest)
		b.expectRuns(map[string]float64{"completed,ok": 3})
		if got := b.links.Uses(); len(got) != 0 {
			t.Errorf("%v is filled half an hour after a run", got)
		}
		if diff := cmp.Diff([]float64{0, 1, 0, 1, 0, 1, 0}, b.sink.History(metric.TestRunning, "office", "saturation", "office")); diff != "" {
			t.Errorf("oneway_test_running (-want +got):\n%s", diff)
		}
		last, _ := b.sink.Value(metric.RunLast, "office", "saturation")
		if want := float64(begin.Add(2*time.Hour+10*time.Second).UnixNano()) / 1e9; last != want {
			t.Errorf("last run ended at %f, want %f", last, want)
		}
		sent, _ := b.sink.Value(metric.RunBytes, "office", "saturation", "forward")
		throughput, _ := b.sink.Value(metric.UDPThroughput, "office", "saturation", "forward")
		took, _ := b.sink.Value(metric.RunDuration, "office", "saturation")
		every, _ := b.sink.Value(metric.RunInterval, "office", "saturation")
		if sent != 3*loadBytes || throughput != 100 || took != 10 || every != 3600 {
			t.Errorf("%v bytes sent, throughput %v, took %v, every %v", sent, throughput, took, every)
		}
		if s := b.prober.Status(); !s.Up || s.Reason != "" || len(s.Results) != 1 || !strings.HasPrefix(s.State, "next run at ") {
			t.Errorf("status: %+v", s)
		}
		b.end()
	})
}

func TestNoRunOutsideItsWindow(t *testing.T) {
	in(t, func(t *testing.T) {
		b := newBench(t, func(b *bench) {
			now := time.Now()
			w := calendar.Window{From: now.Hour()*60 + now.Minute(), To: now.Hour()*60 + now.Minute() + 1}
			b.opts.Windows, b.opts.MaxWait = []calendar.Window{w}, time.Hour
		})
		release, _ := b.links.TryAcquire("office", "somebody")
		b.start()
		time.Sleep(2 * time.Minute) // the window closes during the wait
		release()
		time.Sleep(time.Minute) // simulated time (synctest)
		b.expectRuns(map[string]float64{"skipped,window_closed": 1})
		time.Sleep(24 * time.Hour) // simulated time (synctest)
		b.expectRuns(map[string]float64{"skipped,window_closed": 1, "completed,ok": 1})
		b.end()
	})
}

func TestRunWithoutItsLinkIsSkipped(t *testing.T) {
	in(t, func(t *testing.T) {
		b := newBench(t, nil)
		release, _ := b.links.TryAcquire("office", "other/train")
		b.start()
		time.Sleep(b.opts.MaxWait + time.Second) // simulated time (synctest)
		b.expectRuns(map[string]float64{"skipped,link_busy": 1})
		if s := b.prober.Status(); !strings.Contains(s.Reason, "held by other/train") {
			t.Errorf("%+v", s)
		}
		if b.dials.Load() != 0 {
			t.Error("the remote end was dialed without the link")
		}
		if got := b.links.Uses(); len(got) != 0 {
			t.Errorf("a run that waits fills %v", got)
		}
		release()
		b.end()
	})
}

func TestRunsOfOneLinkNeverOverlap(t *testing.T) {
	in(t, func(t *testing.T) {
		one := newBench(t, nil)
		two := newBench(t, func(b *bench) { b.links = one.links })
		var at, most atomic.Int64
		count := func(context.Context, int64) error {
			most.Store(max(most.Load(), at.Add(1)))
			time.Sleep(time.Minute) // simulated time (synctest)
			at.Add(-1)
			return nil
		}
		one.kind.during, two.kind.during = count, count
		one.start()
		two.start()
		time.Sleep(10 * time.Minute) // simulated time (synctest)
		if most.Load() != 1 {
			t.Errorf("%d runs at once", most.Load())
		}
		one.expectRuns(map[string]float64{"completed,ok": 1})
		two.expectRuns(map[string]float64{"completed,ok": 1})
		one.end()
		two.end()
	})
}

func TestQuotaIsSettledWithWhatWasSent(t *testing.T) {
	in(t, func(t *testing.T) {
		b := newBench(t, func(b *bench) {
			b.links = links(t, link.Options{Name: "office", QuotaBytes: 5 * loadBytes / 2})
			b.link.Each = func(_ sample.Direction, c *udptraffic.CarrierResult) error {
				c.Packets, c.PayloadBytes = 50, 50*972 // half of it was sent
				return nil
			}
		})
		b.start()
		time.Sleep(3*time.Hour + 30*time.Minute) // simulated time (synctest)
		// 4 runs used 2 of 2.5 times Bytes; the fifth needs 1, and half is left.
		if u := b.links.Usage("office"); u.Used != 4*50*1000 {
			t.Errorf("%d bytes used, want 4 runs of 50 packets of 1000 bytes", u.Used)
		}
		time.Sleep(time.Hour) // simulated time (synctest)
		b.expectRuns(map[string]float64{"completed,ok": 4, "skipped,quota": 1})
		if s := b.prober.Status(); !strings.Contains(s.Reason, "quota") || !s.Up {
			t.Errorf("%+v", s)
		}
		b.end()
	})
}

// A path's first link is the link of its load tests, unless their option names another. A reservation is the run's own and does not
// reduce what is left for it.
func TestQuotaLeftIsThatOfTheLinkThatTheRunFills(t *testing.T) {
	for _, c := range []struct {
		option, ofPath string
		want           int64
	}{{"uplink", "", 1e6}, {"", "", 2e6}, {"other", "", math.MaxInt64}, {"", "uplink", 1e6}, {"other", "uplink", math.MaxInt64}} {
		in(t, func(t *testing.T) {
			b := newBench(t, func(b *bench) {
				b.opts.Link = c.option
				b.links = links(t, link.Options{Name: "uplink", QuotaBytes: 1e6}, link.Options{Name: "office", QuotaBytes: 2e6})
			})
			at := target
			at.Link = c.ofPath
			for range 2 {
				if _, err := loadtest.RunOnce(t.Context(), b.env, at, b.opts, b.test(), nil, nil); err != nil {
					t.Fatal(err)
				}
			}
			want := []int64{c.want, c.want - loadBytes}
			if c.want == math.MaxInt64 {
				want = []int64{c.want, c.want}
			}
			b.left = slices.DeleteFunc(b.left, func(left int64) bool { return left == 0 }) // asked before a run, for the least that it needs
			if !slices.Equal(b.left, want) {
				t.Errorf("option %q, link of the path %q: %d bytes left, want %d", c.option, c.ofPath, b.left, want)
			}
		})
	}
}

func busy(retry time.Duration) error {
	return fmt.Errorf("load server 192.0.2.1:8620: %w", &loadcontrol.Refusal{Reason: loadcontrol.Busy, Detail: "another session uses the link", RetryAfter: retry})
}

func TestBusyRemoteEndIsWaitedForWithoutTheLink(t *testing.T) {
	in(t, func(t *testing.T) {
		b := newBench(t, func(b *bench) {
			b.refuse = func(n int64) error {
				if n <= 3 {
					return busy(30 * time.Second)
				}
				return nil
			}
		})
		b.start()
		time.Sleep(10 * time.Second) // simulated time (synctest)
		if _, _, held := b.links.Holder("office"); held {
			t.Error("the link is held during the wait for the remote end")
		}
		if u := b.links.Usage("office"); u.Reserved != 0 {
			t.Errorf("%d bytes are reserved during the wait", u.Reserved)
		}
		time.Sleep(5 * time.Minute) // simulated time (synctest)
		b.expectRuns(map[string]float64{"completed,ok": 1})
		b.end()
	})
}

func TestRunIsSkippedIfTheRemoteEndStaysBusy(t *testing.T) {
	in(t, func(t *testing.T) {
		b := newBench(t, func(b *bench) { b.refuse = func(int64) error { return busy(time.Minute) } })
		b.start()
		time.Sleep(50 * time.Minute) // simulated time (synctest)
		b.expectRuns(map[string]float64{"skipped,remote_busy": 1})
		want := "last run skipped: load server 192.0.2.1:8620: refused: busy: another session uses the link, try again in 1m0s"
		if s := b.prober.Status(); s.Reason != want {
			t.Errorf("status %q, want %q", s.Reason, want)
		}
		b.end()
	})
}

// Each agent needs its own link and then the other's.
func TestTwoAgentsThatTestEachOtherBothGetTheirTurn(t *testing.T) {
	in(t, func(t *testing.T) {
		one, two := newBench(t, nil), newBench(t, nil)
		into := func(remote *bench) func(int64) error {
			return func(int64) error {
				time.Sleep(50 * time.Millisecond) // time of the dialing, in which both hold their own link
				release, ok := remote.links.TryAcquire("office", "load_server")
				if !ok {
					return busy(time.Second)
				}
				time.AfterFunc(20*time.Second, release)
				return nil
			}
		}
		one.refuse, two.refuse = into(two), into(one)
		one.start()
		two.start()
		time.Sleep(30 * time.Minute) // simulated time (synctest)
		one.expectRuns(map[string]float64{"completed,ok": 1})
		two.expectRuns(map[string]float64{"completed,ok": 1})
		one.end()
		two.end()
	})
}

func TestRefusalsAndFailuresAreCountedByReason(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"refused":     {&loadcontrol.Refusal{Reason: loadcontrol.RateLimit}, "refused,rate_limit"},
		"unknown":     {&loadcontrol.Refusal{Reason: "because"}, "refused,bad_request"},
		"unreachable": {&loadtest.Failure{Reason: runreason.Unreachable, Err: errors.New("x")}, "failed,unreachable"},
		"no UDP":      {&loadtest.Failure{Reason: runreason.NoTraffic, Err: errors.New("x")}, "failed,no_udp_reply"},
		"anything":    {errors.New("x"), "failed,internal"},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T) {
				b := newBench(t, func(b *bench) { b.refuse = func(int64) error { return c.err } })
				b.start()
				time.Sleep(time.Minute) // simulated time (synctest)
				b.expectRuns(map[string]float64{c.want: 1})
				if s := b.prober.Status(); s.Up || !strings.Contains(s.Reason, c.err.Error()) {
					t.Errorf("%+v", s)
				}
				b.end()
			})
		})
	}
}

// The values of the previous run stay, and oneway_test_running returns to 0.
func TestRunThatEndsEarlyKeepsThePreviousValues(t *testing.T) {
	for name, c := range map[string]struct {
		second func(*bench, context.Context) error
		want   string
	}{
		"the session is lost": {func(b *bench, ctx context.Context) error {
			close(b.lost)
			<-ctx.Done()
			return ctx.Err()
		}, "incomplete,session_lost"},
		"it takes too long": {func(_ *bench, ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}, "incomplete,timeout"},
		"it panics": {func(*bench, context.Context) error { panic("as the test wants") }, "incomplete,internal"},
		"a transfer is refused": {func(*bench, context.Context) error {
			return &loadcontrol.Refusal{ID: 2, Reason: loadcontrol.DayLimit}
		}, "refused,day_limit"},
		"a refusal ends the session": {func(b *bench, _ context.Context) error {
			close(b.lost)
			return &loadcontrol.Refusal{Reason: loadcontrol.ShuttingDown}
		}, "refused,shutting_down"},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T) {
				b := newBench(t, func(b *bench) {
					b.why = errors.New("no word for 1s")
					b.kind.during = func(ctx context.Context, run int64) error {
						if run == 1 {
							return nil
						}
						return c.second(b, ctx)
					}
				})
				b.start()
				time.Sleep(time.Minute) // simulated time (synctest)
				last, _ := b.sink.Value(metric.RunLast, "office", "saturation")
				time.Sleep(time.Hour + 5*time.Minute) // simulated time (synctest)
				b.expectRuns(map[string]float64{"completed,ok": 1, c.want: 1})
				again, _ := b.sink.Value(metric.RunLast, "office", "saturation")
				v, ok := b.sink.Value(metric.UDPThroughput, "office", "saturation", "forward")
				if again != last || v != 100 || !ok {
					t.Errorf("last run %f, was %f; throughput %v %v", again, last, v, ok)
				}
				if b.running() != 0 {
					t.Error("oneway_test_running is 1 after the end of the run")
				}
				if u := b.links.Usage("office"); u.Used != 2*loadBytes {
					t.Errorf("%d bytes settled, want those of both runs", u.Used)
				}
				b.end()
			})
		})
	}
}

func TestEndOfTheContextEndsARunAtOnce(t *testing.T) {
	in(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.start()
		time.Sleep(3 * time.Second) // simulated time (synctest)
		stopped := time.Now()
		b.end()
		if late := time.Since(stopped); late > time.Second {
			t.Errorf("ended after %v", late)
		}
		if u := b.links.Usage("office"); u.Used != 128 {
			t.Errorf("%d bytes settled, want the 128 that were sent", u.Used)
		}
	})
}

func TestRunsDueDuringAnotherAreSkipped(t *testing.T) {
	in(t, func(t *testing.T) {
		b := newBench(t, func(b *bench) {
			b.opts.Every, b.opts.Timeout = time.Minute, time.Hour
			// simulated time (synctest)
			b.kind.during = func(ctx context.Context, _ int64) error { ctxtime.Sleep(ctx, 150*time.Second); return nil }
		})
		b.start()
		time.Sleep(9*time.Minute + 30*time.Second) // due at 0, 1, ... 9 min; a run takes 3 min
		got := b.runs()
		if got["completed,ok"] != 3 || got["skipped,overrun"] != 6 {
			t.Errorf("%v, want 3 completed, 6 overrun, and one in progress", got)
		}
		b.end()
	})
}

func TestOnceReturnsTheResultsUntilItsEnd(t *testing.T) {
	in(t, func(t *testing.T) {
		b := newBench(t, nil)
		ctx, cancel := context.WithTimeout(t.Context(), 12*time.Second)
		defer cancel()
		b.kind.during = func(ctx context.Context, _ int64) error { <-ctx.Done(); return ctx.Err() }
		var shares []float64
		o, err := loadtest.RunOnce(ctx, b.env, target, b.opts, b.test(), nil, func(p loadtest.Progress) { shares = append(shares, p.Share) })
		if err == nil || o == nil || o.Result != loadtest.Incomplete || o.Reason != runreason.Stopped {
			t.Fatalf("%+v, %v", o, err)
		}
		if o.Body != 100 || o.ForwardBytes != loadBytes || len(o.Transfers.([]*udptraffic.Series)) != 1 {
			t.Errorf("%+v", o)
		}
		if len(shares) < 10 || shares[len(shares)-1] != 1 {
			t.Errorf("progress: %v", shares)
		}
	})
}

func TestRunThatWaitsAtTheEndOfTheContextIsCounted(t *testing.T) {
	in(t, func(t *testing.T) {
		b := newBench(t, func(b *bench) { b.refuse = func(int64) error { return busy(time.Minute) } })
		o := make(chan *loadtest.Outcome, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			out, _ := loadtest.RunOnce(ctx, b.env, target, b.opts, b.test(), nil, nil)
			o <- out
		}()
		time.Sleep(30 * time.Second) // simulated time (synctest)
		cancel()
		if out := <-o; out.Result != loadtest.Skipped || out.Reason != runreason.Stopped {
			t.Errorf("%s, %s", out.Result, out.Reason)
		}
	})
}
