package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/exporter-toolkit/web"

	"oneway.example/exporter/core/metric"
	"oneway.example/tests/freeport"
)

// whole is the complete program in this process: agent, reflector and HTTP server.
type whole struct {
	t    *testing.T
	file string
	url  string
}

// startWhole runs it until the end of the test.
func startWhole(t *testing.T, config string) *whole {
	t.Helper()
	at := freeport.Address(t)
	w := &whole{t: t, file: write(t, config), url: "http://" + at}
	f := &agentFlags{
		classic: true, native: true,
		config: w.file,
		web:    &web.FlagConfig{WebListenAddresses: &[]string{at}, WebSystemdSocket: new(bool), WebConfigFile: new(string)},
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f.run(ctx, slog.New(slog.DiscardHandler)) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the agent ended with %v", err)
		}
	})
	waitFor(t, w.url+"/-/ready", func(string) bool { return true })
	return w
}

// scrape is the response for a server that accepts native histograms.
func (w *whole) scrape() map[string]*dto.MetricFamily {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, w.url+"/metrics", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Accept", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited")
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer got.Body.Close()
	all := map[string]*dto.MetricFamily{}
	for d := expfmt.NewDecoder(got.Body, expfmt.ResponseFormat(got.Header)); ; {
		var f dto.MetricFamily
		if err := d.Decode(&f); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			w.t.Fatal(err)
		}
		all[f.GetName()] = &f
	}
}

// find is the one series of a family with these label values.
func find(f *dto.MetricFamily, values ...string) *dto.Metric {
	for _, m := range f.GetMetric() {
		matches := 0
		for _, l := range m.Label {
			for _, v := range values {
				if l.GetValue() == v {
					matches++
				}
			}
		}
		if matches == len(values) {
			return m
		}
	}
	return nil
}

// twoSelves are two paths to the agent's own reflector.
func twoSelves(reflector string) string {
	path := func(name, more string) string {
		return fmt.Sprintf("  - {name: %s, peer: %q, probes: [{type: stamp, interval: 2ms, window: 1s, loss_timeout: 200ms%s}]}\n", name, reflector, more)
	}
	return fmt.Sprintf("clock: {source: static, bound: 1us}\nreflector: {listen: [%q]}\npaths:\n", reflector) +
		path("kept", ", dscp: 46, codecs: [G.711-PLC], playout: [adaptive]") + path("gone", "")
}

// voiced waits until a window with a voice rating has ended: all series of a path exist then.
func (w *whole) voiced() {
	w.t.Helper()
	waitFor(w.t, w.url+"/metrics", func(body string) bool { return strings.Contains(body, metric.VoiceR.Name+"{") })
}

// METRICS.md: a family without a text of absence is always exported. This configuration does not have the types that declare
// families of their own.
func TestEachFamilyWithoutAnAbsenceIsInAScrapeOfTheRunningProgram(t *testing.T) {
	w := startWhole(t, twoSelves(freeport.Address(t)))
	w.voiced()
	all, checked := w.scrape(), 0
	for _, group := range metric.Groups() {
		switch group.Title {
		case metric.TitleRuns, metric.TitleLoad, metric.TitleSizeSweep, metric.TitleCapacity, metric.TitlePulse, metric.TitleLoadServer, metric.TitleOutputs:
			continue // this configuration does not have their sections
		}
		for _, d := range group.Descs {
			// A static clock has no daemon.
			if d.Absent != "" || d == metric.ClockQueryFailures {
				continue
			}
			if checked++; all[d.Name] == nil {
				t.Errorf("%s, %s: not in the scrape, but METRICS.md has no text of absence", group.Title, d.Name)
			}
		}
	}
	if checked < 20 {
		t.Errorf("checked %d of %d families", checked, len(all))
	}
}

// METRICS.md: sent = received + lost + undecided + outstanding holds in every scrape.
func TestPacketsAreConservedInEveryScrapeOfTheRunningProgram(t *testing.T) {
	w := startWhole(t, twoSelves(freeport.Address(t)))
	w.voiced()
	grown := 0.0
	for range 50 {
		all := w.scrape()
		for _, direction := range []string{"forward", "reverse"} {
			value := func(d *metric.Desc) float64 {
				m := find(all[d.Name], "kept", direction)
				return m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
			sent, received, lost, under := value(metric.PacketsSent), value(metric.PacketsReceived), value(metric.PacketsLost), value(metric.PacketsOutstanding)
			undecided := value(metric.PacketsUndecided)
			if sent != received+lost+undecided+under || sent == 0 {
				t.Fatalf("%s: sent %v, received %v, lost %v, undecided %v, outstanding %v", direction, sent, received, lost, undecided, under)
			}
			grown = max(grown, sent)
		}
	}
	if first := find(w.scrape()[metric.PacketsSent.Name], "kept", "forward").GetCounter().GetValue(); first < grown {
		t.Errorf("the count decreased from %v to %v", grown, first)
	}
}

// METRICS.md: all histograms but one have native and classic buckets. The properties of a path are labels.
func TestHistogramsAreNativeAndClassicInAScrapeOfTheRunningProgram(t *testing.T) {
	w := startWhole(t, twoSelves(freeport.Address(t)))
	w.voiced()
	nativeOnly := map[string]bool{}
	for _, g := range metric.Groups() {
		for _, d := range g.Descs {
			nativeOnly[d.Name] = d.NativeOnly
		}
	}
	all, histograms := w.scrape(), 0
	for name, f := range all {
		if f.GetType() != dto.MetricType_HISTOGRAM || !strings.HasPrefix(name, "oneway_") {
			continue
		}
		for _, m := range f.Metric {
			h := m.GetHistogram()
			native := h.GetZeroCount()
			count := int64(0) // the buckets are written as differences
			for _, deltas := range [][]int64{h.PositiveDelta, h.NegativeDelta} {
				count = 0
				for _, d := range deltas {
					count += d
					native += uint64(count)
				}
			}
			if h.GetSchema() != 3 || (len(h.Bucket) == 0) != nativeOnly[name] || native != h.GetSampleCount() || h.GetCreatedTimestamp() == nil {
				t.Errorf("%s: schema %d, %d classic buckets, %d observations in native buckets of %d, created %v",
					name, h.GetSchema(), len(h.Bucket), native, h.GetSampleCount(), h.GetCreatedTimestamp())
			}
			histograms++
		}
	}
	if histograms < 8 {
		t.Errorf("%d histograms", histograms)
	}
	info := find(all[metric.PathInfo.Name], "kept", "46", "oneway", "172", "ipv4")
	if info == nil {
		t.Errorf("no path_info of DSCP 46, our reflector, 172 bytes, IPv4: %v", all[metric.PathInfo.Name])
	}
}

// agent --help and METRICS.md: SIGHUP reads the configuration again; unchanged paths keep their counters, and the
// series of a removed path end.
func TestHangupKeepsUnchangedPathsAndEndsTheSeriesOfRemovedOnes(t *testing.T) {
	at := freeport.Address(t)
	w := startWhole(t, twoSelves(at))
	w.voiced()
	before := find(w.scrape()[metric.PacketsSent.Name], "kept", "forward").GetCounter()
	kept, _, _ := strings.Cut(twoSelves(at), "  - {name: gone")
	if err := os.WriteFile(w.file, []byte(kept), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	waitFor(t, w.url+"/metrics", func(body string) bool { return !strings.Contains(body, `path="gone"`) })
	all := w.scrape()
	for name, f := range all {
		if m := find(f, "gone"); m != nil {
			t.Errorf("%s still has %v", name, m.Label)
		}
	}
	after := find(all[metric.PacketsSent.Name], "kept", "forward").GetCounter()
	if after.GetValue() < before.GetValue() || !after.GetCreatedTimestamp().AsTime().Equal(before.GetCreatedTimestamp().AsTime()) ||
		before.GetCreatedTimestamp().AsTime().Before(time.Now().Add(-time.Hour)) {
		t.Errorf("before the signal %v, after it %v", before, after)
	}
}
