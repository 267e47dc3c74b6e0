package train

import (
	"context"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/clock/static"
	"oneway.example/exporter/estimate/capacity"
	"oneway.example/exporter/heavy"
	"oneway.example/exporter/heavy/heavytest"
	"oneway.example/exporter/metric"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/responder"
	"oneway.example/exporter/sched"
)

// farEnd runs a responder on loopback, and says how to reach it.
func farEnd(t *testing.T, limits ...string) heavy.Options {
	t.Helper()
	dir := t.TempDir()
	allowed, err := responder.ParseLimits(limits)
	if err != nil {
		t.Fatal(err)
	}
	token, text, err := responder.NewToken("test", allowed)
	if err != nil {
		t.Fatal(err)
	}
	if err := responder.AppendToken(filepath.Join(dir, "tokens"), token); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte(text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	links, err := sched.NewLinks(sched.LinksOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := responder.New(responder.Options{
		Listen: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}, TokensFile: filepath.Join(dir, "tokens"), StateDir: dir,
	}, responder.Env{Log: slog.New(slog.DiscardHandler), Sink: metric.Discard{}, Clock: static.New(time.Millisecond, metric.Discard{}), Links: links})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	select {
	case <-r.Started():
	case err := <-ended:
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	o := heavy.DefaultOptions()
	o.Responder, o.Pin, o.TokenFile = r.Addrs()[0].String(), r.Pin(), filepath.Join(dir, "token")
	return o
}

// keeping is a sink whose series outlive the run.
type keeping struct{ heavytest.Sink }

// Series opens it once more than is closed.
func (k *keeping) Series(d *metric.Desc, values ...string) metric.Series {
	k.Sink.Series(d, values...)
	return k.Sink.Series(d, values...)
}

func TestRunWithARealFarEndIsPublished(t *testing.T) {
	shared := farEnd(t)
	own := DefaultOptions()
	own.PayloadBytes, own.Trains, own.TrainInterval, own.Repeats = []int{1472, 9000 - 28}, 4, 20*time.Millisecond, 2
	own.MaxMTU = 8000
	sink := &keeping{}
	env := probe.Env{Log: slog.New(slog.DiscardHandler), Sink: sink, Clock: static.New(time.Millisecond, metric.Discard{})}
	k, err := NewKind(shared, own)
	if err != nil {
		t.Fatal(err)
	}
	target := probe.Target{Path: "a-to-b", Probe: "train", Peer: "b"}
	outcome, err := heavy.Once(t.Context(), env, target, shared, k, nil)
	if err != nil {
		t.Fatal(err)
	}
	// What loopback's trains say is the scheduler's: they are counted, clean or not.
	for _, d := range outcome.Body.(*Result).Directions {
		if got, ok := sink.Value(metric.PathMTU, "a-to-b", "train", d.Way); !ok || got != 8000 {
			t.Errorf("%s: published path MTU %v, want that of the largest size asked for, 8000", d.Way, got)
		}
		for size, fragmented := range map[string]float64{"1500": 0, "9000": 1} {
			trains := 0.0
			for _, r := range capacity.Results() {
				n, ok := sink.Value(metric.Trains, "a-to-b", "train", d.Way, size, r.String())
				if !ok {
					t.Errorf("%s, %s B: no counter of trains that are %v", d.Way, size, r)
				}
				trains += n
			}
			if trains < 3 {
				t.Errorf("%s, %s B: %v trains counted", d.Way, size, trains)
			}
			if got, ok := sink.Value(metric.TrainFragmented, "a-to-b", "train", d.Way, size); !ok || got != fragmented {
				t.Errorf("%s, %s B: fragmented is %v, %v, want %v", d.Way, size, got, ok, fragmented)
			}
		}
		for _, z := range d.Sizes {
			quantiles := 0
			for labels := range sink.All(metric.Capacity) {
				if strings.HasPrefix(labels, "a-to-b,train,"+d.Way+","+strconv.Itoa(z.PacketBytes)+",0.") {
					quantiles++
				}
			}
			if known := z.Median != nil; known != (quantiles == 3) {
				t.Errorf("%s, %d B: %d quantiles published, refusal %q", d.Way, z.PacketBytes, quantiles, z.Refusal)
			}
			if observed, _ := sink.Observed(metric.TrainCapacity, "a-to-b", "train", d.Way, strconv.Itoa(z.PacketBytes)); z.Median != nil && observed != len(z.Capacities) {
				t.Errorf("%s, %d B: %d capacities in the histogram, want %d", d.Way, z.PacketBytes, observed, len(z.Capacities))
			}
		}
	}
}
