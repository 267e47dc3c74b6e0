package stamp

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/output/promsink"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes/stamp/ledger"
	"oneway.example/exporter/reflector"
	"oneway.example/tests/await"
)

// The largest number of series of a path and probe.
const mostFull, mostSlim = metric.MaxFull - metric.OfAgent - 5, metric.MaxSlim - metric.OfAgent

// stored returns how many series a server without, and one with, native histograms keeps of a sink.
func stored(t *testing.T, sink *promsink.Sink) (classic, native int) {
	t.Helper()
	var text strings.Builder
	if err := sink.Expose(&text, expfmt.NewFormat(expfmt.TypeTextPlain)); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text.String()) {
		if strings.Contains(line, `path="p"`) {
			classic++
		}
	}
	families, err := sink.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if strings.Contains(f.String(), `"path"`) {
			native += len(f.Metric)
		}
	}
	return classic, native
}

// runInto measures until the sink has the results of a window, and calls check during the run.
func runInto(t *testing.T, sink metric.Sink, profile metric.Profile, shown func() bool, check func(*Prober)) {
	t.Helper()
	b := newTestbed(t, reflector.Options{})
	b.env.Sink, b.env.Profile = sink, profile
	o := DefaultOptions()
	o.Interval, o.Window = 10*time.Millisecond, time.Second
	made, err := NewType().NewProber(b.env, probe.Target{Path: "p", Probe: "stamp", Peer: b.peer}, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- made.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	await.That(t, "the results of a window", shown)
	check(made)
}

func TestProfilesKeepToTheirNumberOfSeries(t *testing.T) {
	for _, c := range []struct {
		profile metric.Profile
		least   int // fewer: the test has not seen all
		most    int
	}{{metric.Full, 90, mostFull}, {metric.Slim, 12, mostSlim}} {
		t.Run(c.profile.String(), func(t *testing.T) {
			sink := promsink.New(promsink.Options{})
			shown := func() bool {
				var text strings.Builder
				_ = sink.Expose(&text, expfmt.NewFormat(expfmt.TypeTextPlain)) // stored repeats it and fails on an error
				return strings.Contains(text.String(), `oneway_delay_quantile_seconds{direction="reverse",path="p",probe="stamp",quantile_rank="0.95"}`)
			}
			runInto(t, sink, c.profile, shown, func(p *Prober) {
				classic, native := stored(t, sink)
				t.Logf("%d series in a server without native histograms, %d in one with them", classic, native)
				if max(classic, native) > c.most || classic < c.least {
					t.Errorf("%d and %d series, want at most %d, and at least %d", classic, native, c.most, c.least)
				}
				if st := p.Status(); !st.Up || len(st.Results) == 0 {
					t.Errorf("status %+v", st)
				}
			})
			if classic, native := stored(t, sink); classic != 0 || native != 0 {
				t.Errorf("%d and %d series are left when the probe has ended", classic, native)
			}
		})
	}
}

// The most series of a full path with every reason and event that has one.
const mostFaulty = metric.MaxFullFaults - metric.OfAgent

func TestFaultsAddNoMoreSeriesThanStated(t *testing.T) {
	for profile, most := range map[metric.Profile]int{metric.Full: mostFaulty, metric.Slim: mostSlim} {
		w, sink := newWheel(t), promsink.New(promsink.Options{})
		for range 100 {
			w.turn()
		}
		w.s.window = w.s.estimator.close(w.s.account.Known())
		v := w.s.snapshot()
		all(v.noRoundTrip[:], v.Skipped[:], v.Discarded[:], v.LowConfidence[:])
		for i := range v.directions {
			d := &v.directions[i]
			all(d.invalid[:])
			d.negative, d.lowConfidence, d.txUncertain = 1, 1, 1
			v.TrafficClass[i] = ledger.TrafficClass{DSCP: ledger.OptionalOf[uint8](1, true), Remarked: 1, CE: 1}
			v.Hops[i] = ledger.Hops{Last: ledger.OptionalOf[uint8](1, true), Changes: 1}
			for _, m := range []*ledger.Optional[uint64]{
				&d.Sent, &d.Received, &d.Lost, &d.Dropped, &d.Outstanding, &d.Duplicated, &d.Reordered, &d.Late, &d.Corrupted,
			} {
				*m = ledger.OptionalOf[uint64](1, true)
			}
		}
		for i := range v.stamps {
			all(v.stamps[i][:])
		}
		s := seriesOf(profile.Scope(sink, "p", "stamp"))
		s.publish(&v)
		if classic, native := stored(t, sink); max(classic, native) > most || profile == metric.Full && classic <= mostFull {
			t.Errorf("%v: %d and %d series, want at most %d, and more than without faults", profile, classic, native, most)
		} else {
			t.Logf("%v: %d and %d series", profile, classic, native)
		}
		s.scope.Close()
	}
}

func all(counts ...[]uint64) {
	for _, one := range counts {
		for i := range one {
			one[i] = 1
		}
	}
}

func TestImpairmentsAreSeriesOnlyIfConfigured(t *testing.T) {
	for _, wanted := range []bool{false, true} {
		w, sink := newWheel(t), &metrictest.Sink{}
		for range 100 {
			w.turn()
		}
		w.s.opts.Impairments = wanted
		w.s.window = w.s.estimator.close(w.s.account.Known())
		v, s := w.s.snapshot(), newSeries(sink, "p", "stamp")
		s.publish(&v)
		for _, d := range []*metric.Desc{metric.VoiceDelayImpairment, metric.VoiceEquipmentImpairment} {
			if n := len(sink.All(d)); (n > 0) != wanted {
				t.Errorf("%s: %d series, configured %v", d.Name, n, wanted)
			}
		}
		if len(sink.All(metric.VoiceR)) == 0 {
			t.Error("no voice quality")
		}
		s.scope.Close()
	}
}

func TestUnknownVoiceModelIsRefused(t *testing.T) {
	o := DefaultOptions()
	if err := o.check(); err != nil {
		t.Fatal(err)
	}
	o.Models = []string{"g107", "complex"}
	if err := o.check(); err == nil || !strings.Contains(err.Error(), "voice_models[1]") {
		t.Errorf("error %v does not name voice_models[1]", err)
	}
}

func TestSeriesOfASocketDoNotDependOnTheProfileOfTheFirstPath(t *testing.T) {
	b, sink := newTestbed(t, reflector.Options{}), &metrictest.Sink{}
	b.env.Sink, b.env.Profile = sink, metric.Slim
	kind := NewType()
	key := hubKey{local: netip.MustParseAddrPort("127.0.0.1:0")}
	h, err := kind.acquire(key, b.env)
	if err != nil {
		t.Fatal(err)
	}
	defer kind.release(h)
	if _, found := sink.Value(metric.SocketDrops, "sender_ipv4"); !found {
		t.Errorf("no %s of the socket that a slim path opened", metric.SocketDrops.Name)
	}
}
