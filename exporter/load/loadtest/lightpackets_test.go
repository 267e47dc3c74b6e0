package loadtest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"oneway.example/exporter/core/ctxtime"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/estimate/working"
	"oneway.example/exporter/load/loadsession"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/loadtesttest"
	"oneway.example/exporter/load/stream"
	"oneway.example/exporter/load/traffictypes/udptraffic"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/link"
)

// burdenKind sends for a second, forward.
type burdenKind struct {
	loadKind
	perform func(ctx context.Context) error // instead; nil: sends
}

func (*burdenKind) Bytes(int64) int64       { return 100_000 }
func (*burdenKind) Duration() time.Duration { return time.Second }

func (k *burdenKind) Perform(ctx context.Context, s *udptraffic.Session, r *loadtest.Run) error {
	r.Body = 1
	if k.perform != nil {
		return k.perform(ctx)
	}
	_, err := s.Transfer(ctx, sample.Forward, s.Plan(
		stream.Segment{PayloadBytes: 100, Interval: 500 * time.Millisecond, Burst: 1, Bursts: 1}, // no load
		stream.Segment{PayloadBytes: 1000 - s.Overhead(), Interval: 20 * time.Millisecond, Burst: 1, Bursts: 50},
	), nil)
	return err
}

// fakeLight records packets as if each had a delay of 10 ms, and 110 ms forward since from after its begin.
type fakeLight struct {
	err     error
	silent  bool
	early   time.Duration // what the remote clock is behind
	from    time.Duration
	options probe.LightOptions
	sent    int64
	stopped int
	alive   bool // Stop was called before the end of the run's context
}

func (f *fakeLight) begin(ctx context.Context, env probe.Env, o probe.LightOptions) (probe.LightStream, error) {
	f.options = o
	if f.err != nil {
		return nil, f.err
	}
	s := &fakeStream{fakeLight: f}
	ctx, s.cancel = context.WithCancel(ctx)
	begin := time.Now()
	s.sending.Go(func() {
		// A packet that the host sends late has its time in the schedule: their number does not depend on the host.
		for due := begin.Add(o.Interval); ctxtime.Sleep(ctx, time.Until(due)); due = due.Add(o.Interval) {
			now := instant.FromTime(due)
			p := record.Packet{Packet: sample.Packet{Seq: uint64(s.sent), ReverseSeq: uint64(s.sent)}}
			forward, stamp := 10*time.Millisecond, func(t instant.Time) sample.Stamp { return sample.Stamp{At: t, Origin: sample.Kernel} }
			if f.from > 0 && due.Sub(begin) > f.from {
				forward = 110 * time.Millisecond
			}
			forward -= f.early
			p.T1, p.T2, p.T3, p.T4 = stamp(now), stamp(now.Add(forward)), stamp(now.Add(forward)), stamp(now.Add(forward+f.early+10*time.Millisecond))
			p.Forward = sample.Delay{Value: forward, Bound: time.Millisecond, Reason: sample.OK}
			p.Reverse = sample.Delay{Value: 10 * time.Millisecond, Bound: time.Millisecond, Reason: sample.OK}
			if s.sent++; !f.silent {
				env.Recorder.Packets().Record(&p)
			}
		}
	})
	return s, nil
}

type fakeStream struct {
	*fakeLight
	cancel  context.CancelFunc
	sending sync.WaitGroup
}

func (s *fakeStream) Stop(ctx context.Context) (packets, bytes int64) {
	s.cancel()
	s.sending.Wait()
	s.stopped++
	s.alive = ctx.Err() == nil
	return s.sent, 152 * s.sent
}

// withLightPackets runs the kind with a real load server on loopback.
func withLightPackets(t *testing.T, k loadsession.Kind[*udptraffic.Session], f *fakeLight, change func(*loadsession.Options, *probe.Env), limits ...string) (*loadtest.Outcome, *metrictest.Sink) {
	t.Helper()
	sink := &metrictest.Keeping{}
	env := probe.Env{Log: slog.New(slog.DiscardHandler), Sink: sink, Clock: goodClock{}, Links: links(t), Light: f.begin}
	o := loadtesttest.RemoteEnd(t.Context(), t, loadtesttest.End{}, limits...)
	o.Directions, o.WorkingDelayInterval, o.DrainTimeout = []string{"forward"}, 50*time.Millisecond, 200*time.Millisecond
	if change != nil {
		change(&o, &env)
	}
	out, err := loadtesttest.RunKind(t.Context(), env, target, o, k, nil)
	if out == nil {
		t.Fatal(err)
	}
	return out, &sink.Sink
}

func TestWorkingDelayIsOfThePacketsDuringTheLoad(t *testing.T) {
	t.Parallel()
	f := &fakeLight{from: 2 * time.Second}
	out, sink := withLightPackets(t, &burdenKind{}, f, nil)
	if out.Result != loadtest.Completed || len(out.Notes) > 0 || f.stopped != 1 || !f.alive {
		t.Fatalf("%s, %v, stopped %d times", out.Result, out.Notes, f.stopped)
	}
	if f.options.Peer.Port() < 8621 || f.options.Peer.Port() > 8640 || len(f.options.Key) < 16 || f.options.Interval != 50*time.Millisecond || f.options.LossTimeout != 200*time.Millisecond {
		t.Errorf("%+v", f.options)
	}
	parts := out.Working.Parts
	if len(parts) != 2 || parts[0].Loaded != working.None || parts[1].Loaded != working.Forward || parts[1].Packets < 12 || parts[1].Packets > 22 {
		t.Fatalf("%+v, want the idle second and one of load", out.Working)
	}
	if !slices.ContainsFunc(out.Summary, func(l probe.Result) bool {
		return l.Quantity == "working delay" && l.Direction == "forward" && strings.HasPrefix(l.Text(), "idle 10.0 ms ± 1.0 ms, working 110.0 ms ± 1.0 ms, R 92 -> 90 (one packet changes it by up to ")
	}) {
		t.Errorf("%+v", out.Summary)
	}
	for want, got := range map[float64][]string{0.01: {"forward", "none", "0.5"}, 0.11: {"forward", "forward", "0.95"}} {
		if v, ok := sink.Value(metric.WorkingDelay, append([]string{"office", "saturation"}, got...)...); !ok || v != want {
			t.Errorf("%v: %v, %v; want %v", got, v, ok, want)
		}
	}
	for d, labels := range map[*metric.Desc][]string{
		metric.WorkingDelayBound: {"reverse", "forward"}, metric.WorkingVariation: {"forward", "none", "0.95"}, metric.WorkingLoss: {"reverse", "none"},
		metric.WorkingR: {"forward", "forward"}, metric.WorkingRTT: {"forward", "0.5"}, metric.WorkingRoundTrips: {"none"},
	} {
		if _, ok := sink.Value(d, append([]string{"office", "saturation"}, labels...)...); !ok {
			t.Errorf("%s%v has no value", d.Name, labels)
		}
	}
	// 51 packets of the load; the light ones have headers, and as many replies.
	light := f.sent * 180
	if out.ReverseBytes != light || out.ForwardBytes != 50*1000+128+light {
		t.Errorf("%d and %d bytes, want the bytes of the load and %d of light packets", out.ForwardBytes, out.ReverseBytes, light)
	}
}

func TestWhatPreventsWorkingDelayIsANoteOfACompletedRun(t *testing.T) {
	quota := func(bytes int64) func(*loadsession.Options, *probe.Env) {
		return func(_ *loadsession.Options, env *probe.Env) {
			env.Links = links(t, link.Options{Name: "office", QuotaBytes: bytes})
		}
	}
	for name, c := range map[string]struct {
		light  fakeLight
		change func(*loadsession.Options, *probe.Env)
		limits []string
		want   string
	}{
		"no socket":    {light: fakeLight{err: errors.New("no socket")}, want: "no socket"},
		"no reply":     {light: fakeLight{silent: true}, want: "no reply to test packets at UDP 86"},
		"link's quota": {change: quota(100_001), want: "the link's quota of the day does not suffice for its packets"},
		"token's day":  {limits: []string{"per-day=101kB"}, want: "the token's bytes of the day do not suffice for its packets"},
		"token's rate": {limits: []string{"rate=20kbit"}, want: "the token's rate is too low for its packets"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := &burdenKind{}
			if name == "token's rate" {
				k.perform = func(context.Context) error { return nil } // the transfer is beyond it too
			}
			out, sink := withLightPackets(t, k, &c.light, c.change, c.limits...)
			if out.Result != loadtest.Completed || out.Working == nil || !strings.HasPrefix(out.Working.Reason, c.want) {
				t.Fatalf("%s %s, %+v", out.Result, out.Error, out.Working)
			}
			if len(out.Notes) != 1 || out.Notes[0] != "no working delay: "+out.Working.Reason {
				t.Errorf("notes %q", out.Notes)
			}
			if all := sink.Present("oneway_working_"); len(all) > 0 {
				t.Errorf("series %v", all)
			}
		})
	}
}

func TestNoLightPacketsWithoutAnIntervalOrForAKindThatTheyDisturb(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind   loadsession.Kind[*udptraffic.Session]
		change func(*loadsession.Options, *probe.Env)
	}{
		"interval 0":  {&burdenKind{}, func(o *loadsession.Options, _ *probe.Env) { o.WorkingDelayInterval = 0 }},
		"no light":    {&burdenKind{}, func(_ *loadsession.Options, env *probe.Env) { env.Light = nil }},
		"undisturbed": {&quietKind{}, nil},
	} {
		f := &fakeLight{}
		if out, _ := withLightPackets(t, c.kind, f, c.change); out.Result != loadtest.Completed || out.Working != nil || f.options.Peer != (netip.AddrPort{}) || len(out.Notes) > 0 {
			t.Errorf("%s: %s, %+v, %q", name, out.Result, out.Working, out.Notes)
		}
	}
}

type quietKind struct{ burdenKind }

func (*quietKind) Undisturbed() {}

// longKind takes hours.
type longKind struct{ burdenKind }

func (*longKind) Duration() time.Duration { return 12 * time.Hour }

// All packets are kept until the end of the run: four hours at 10 ms would need 140 MB, and as much to evaluate them.
func TestLightPacketsOfALongRunAreFew(t *testing.T) {
	t.Parallel()
	f, k := &fakeLight{}, &longKind{}
	k.perform = func(context.Context) error { return nil }
	out, _ := withLightPackets(t, k, f, func(o *loadsession.Options, _ *probe.Env) { o.WorkingDelayInterval = 10 * time.Millisecond })
	if v := f.options.Interval; out.Result != loadtest.Completed || 4*time.Hour/v > 1<<17 || v > 120*time.Millisecond {
		t.Errorf("%s, interval %v: %d packets in four hours", out.Result, v, 4*time.Hour/v)
	}
}

func TestFailedRunEndsItsPackets(t *testing.T) {
	t.Parallel()
	f := &fakeLight{}
	k := &burdenKind{perform: func(context.Context) error { return fmt.Errorf("as the test wants") }}
	if out, _ := withLightPackets(t, k, f, nil); out.Result != loadtest.Incomplete || f.stopped != 1 || len(out.Working.Parts) != 1 {
		t.Errorf("%s, stopped %d times, %+v", out.Result, f.stopped, out.Working)
	}
	f, k = &fakeLight{silent: true}, &burdenKind{perform: func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }}
	for timeout, want := range map[time.Duration]string{
		loadtest.IdleTime / 2:           "the run ended before a reply to its packets", // which says nothing of the path
		loadtest.IdleTime + time.Second: "no reply to test packets at UDP 86",
	} {
		f.stopped = 0
		out, _ := withLightPackets(t, k, f, func(o *loadsession.Options, _ *probe.Env) { o.Timeout = timeout })
		if out.Reason != runreason.Timeout || f.stopped != 1 || f.alive {
			t.Errorf("%s, stopped %d times, in time %v", out.Reason, f.stopped, f.alive)
		}
		if !strings.HasPrefix(out.Working.Reason, want) {
			t.Errorf("%q, want %q", out.Working.Reason, want)
		}
	}
}

// disprovedKind keeps its transfer.
type disprovedKind struct {
	burdenKind
	transfer *udptraffic.Transfer
	body     delayedBody
}

// delayedBody is a result with delays.
type delayedBody struct{ withheld bool }

// Withhold is loadtest.Delayed.
func (b *delayedBody) Withhold() bool {
	b.withheld = true
	return true
}

func (k *disprovedKind) Perform(ctx context.Context, s *udptraffic.Session, r *loadtest.Run) (err error) {
	r.Body = &k.body
	k.transfer, err = s.Transfer(ctx, sample.Forward, s.Plan(stream.Segment{PayloadBytes: 100, Interval: 20 * time.Millisecond, Burst: 1, Bursts: 50}), nil)
	return err
}

func (k *disprovedKind) Publish(*loadtest.Values, *loadtest.Run) {}

// A light packet that arrives before it is sent disproves the clocks for the load, too, whose delays may all be too large.
func TestLightPacketsDisproveTheClocksOfTheLoad(t *testing.T) {
	t.Parallel()
	for early, want := range map[time.Duration]sample.Reason{0: sample.OK, time.Second: sample.ClocksApart} {
		k := &disprovedKind{}
		out, _ := withLightPackets(t, k, &fakeLight{early: early}, nil)
		if out.Result != loadtest.Completed || k.transfer.Bound().Reason != want {
			t.Errorf("%v: %s, %s, want %s", early, out.Result, k.transfer.Bound().Reason, want)
		}
		// The result may be of a transfer before the proof.
		if wrong := want != sample.OK; k.body.withheld != wrong || slices.ContainsFunc(out.Notes, func(n string) bool { return strings.HasPrefix(n, "one-way delays are unknown: ") }) != wrong {
			t.Errorf("%v: withheld %v, notes %q", early, k.body.withheld, out.Notes)
		}
	}
}
