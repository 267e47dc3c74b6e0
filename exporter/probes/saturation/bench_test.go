package saturation_test

import (
	"errors"
	"log/slog"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"oneway.example/exporter/clocks/static"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadsession"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/traffictypes/udptraffic"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes/saturation"
)

// wibro is the thesis' uplink: 2.5 Mb/s, 110 kB, 30 ms.
func wibro() *bottleneck {
	return &bottleneck{Rate: 2.5e6 / 8, Queue: 110_000, Delay: 30 * time.Millisecond}
}

// bench is a run of a kind over a simulated link, with its published results.
type bench struct {
	kind *saturation.Kind
	run  *loadtest.Run
	sink *metrictest.Sink
	sent int64
}

// wibroOptions are the default options with 5 and 12 Mb/s, for the thesis' links of 2.5 and 10 Mb/s.
func wibroOptions() saturation.Options {
	o := saturation.DefaultOptions()
	o.Rate.Forward, o.Rate.Reverse = 5e6/8, 12e6/8
	return o
}

func perform(t *testing.T, link *bottleneck, change func(*saturation.Options), directions ...string) (*bench, error) {
	t.Helper()
	shared, own := loadsession.DefaultOptions(), wibroOptions()
	shared.Directions = directions
	if change != nil {
		change(&own)
	}
	kind, err := saturation.NewKind(shared, own)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{kind: kind, run: &loadtest.Run{}, sink: &metrictest.Sink{}}
	for _, d := range sample.Directions() {
		for _, word := range directions {
			if d.String() == word {
				b.run.Directions = append(b.run.Directions, d)
			}
		}
	}
	each := link.Each
	link.Each = func(d sample.Direction, c *udptraffic.CarrierResult) error {
		b.sent += c.PayloadBytes + 28*int64(c.Packets)
		if each != nil {
			return each(d, c)
		}
		return nil
	}
	session := udptraffic.NewSession(link, udptraffic.SessionOptions{})
	err = kind.Perform(t.Context(), session, b.run)
	session.Account(&loadtest.Outcome{Run: b.run}, metric.NewScope(metric.Discard{}))
	if f, ok := errors.AsType[*loadtest.Failure](err); err != nil && (!ok || !runreason.Find(f.Reason).Counted) {
		return b, err
	}
	loadtest.NewValues(metric.NewScope(b.sink, "office", "saturation")).Replace("", func(v *loadtest.Values) { kind.Publish(v, b.run) })
	if b.sent > kind.Bytes(math.MaxInt64) {
		t.Errorf("%d bytes sent, at most %d announced", b.sent, kind.Bytes(math.MaxInt64))
	}
	return b, err
}

func must(t *testing.T, link *bottleneck, change func(*saturation.Options), directions ...string) *bench {
	t.Helper()
	b, err := perform(t, link, change, directions...)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) expect(t *testing.T, d *metric.Desc, want, share float64, labels ...string) {
	t.Helper()
	got, ok := b.sink.Value(d, append([]string{"office", "saturation"}, labels...)...)
	if !ok || math.Abs(got-want) > share*math.Abs(want) {
		t.Errorf("%s%v is %v (%v), want %v within %v", d.Name, labels, got, ok, want, share)
	}
}

func (b *bench) absent(t *testing.T, all ...*metric.Desc) {
	t.Helper()
	for _, d := range all {
		if got := b.sink.All(d); len(got) != 0 {
			t.Errorf("%s has the values %v, want none", d.Name, got)
		}
	}
}

func (b *bench) words() string {
	var all []string
	for _, l := range b.run.Summary {
		all = append(all, l.Quantity+" "+l.Direction+": "+l.Text())
	}
	return strings.Join(append(all, b.run.Notes...), "\n")
}

// gate counts the concurrent users of a section.
type gate struct {
	mu       sync.Mutex
	in, most int
}

func (g *gate) enter() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.in++
	g.most = max(g.most, g.in)
}

func (g *gate) exit() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.in--
}

var target = probe.Target{Path: "office", Probe: "saturation", Peer: "192.0.2.1"}

func envWith(sink metric.Sink) probe.Env {
	return probe.Env{Log: slog.New(slog.DiscardHandler), Sink: sink, Clock: static.New(time.Millisecond, metric.Discard{})}
}
