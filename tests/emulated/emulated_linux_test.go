// Package emulated runs a load test over emulated links, with real sockets, and compares the results with the links' logs. Package
// links has the simulated ones.
package emulated

import (
	"fmt"
	"log/slog"
	"maps"
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"oneway.example/exporter/clocks/static"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/estimate/orderstat"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/loadtesttest"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes/saturation"
	"oneway.example/tests/lab"
	"oneway.example/tests/standstill"
)

func TestMain(m *testing.M) { os.Exit(lab.Main(m.Run)) }

// emulated is the expected result over a profile of the emulated link, by direction: the
// right states, and the limit where dropped packets do not show it.
var emulated = map[string][2]struct {
	states []string
	limit  int
}{
	"wibro":          {{states: []string{"filled"}}, {states: []string{"filled"}}},
	"cellular":       {{states: []string{"filled"}}, {states: []string{"filled"}}},
	"slots":          {{states: []string{"filled"}}, {states: []string{"filled"}}},
	"token-bucket":   {{states: []string{"filled"}}, {states: []string{"policer"}}},
	"two-queues":     {{states: []string{"filled"}}, {states: []string{"filled"}}},
	"packet-limit":   {{states: []string{"filled"}}, {states: []string{"time_limited", "filled"}, limit: -1}},
	"retransmission": {{states: []string{"filled"}}, {states: []string{"filled"}}},
	"shared":         {{states: []string{"filled"}}, {states: []string{"filled"}}},
	"codel":          {{states: []string{"aqm"}}, {states: []string{"aqm"}}},
	"red":            {{states: []string{"aqm"}}, {states: []string{"filled"}, limit: 500_000}},
	"changing-path":  {{states: []string{"filled"}}, {states: []string{"filled"}}},
}

const (
	// packet is the size of all packets.
	packet = 1410
	// rounds is the number of late ones after which there is no result.
	rounds = 10
)

// TestLoadTestsOverEmulatedLinks runs the probe over real sockets, both directions at once.
// A busy machine makes the emulated link late, as its log shows; such a
// round is repeated, and the test cannot tell after rounds of them in which this host stood still.
func TestLoadTestsOverEmulatedLinks(t *testing.T) {
	watch := standstill.Begin(t)
	for _, name := range slices.Sorted(maps.Keys(emulated)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begin := instant.Now()
			for round := 1; ; round++ {
				late, wrong := overEmulated(t, name)
				if len(wrong) == 0 {
					return
				}
				why := fmt.Sprintf("%q; the emulated link held a packet %v too long", wrong, late)
				switch still := watch.FoundFrom(begin); {
				case late < 2*time.Millisecond || round == rounds && still.Spans == 0:
					t.Fatal(why)
				case round == rounds:
					standstill.CannotTell(t, still, why)
				}
				t.Logf("round %d spoilt: %s", round, why)
			}
		})
	}
}

func overEmulated(t *testing.T, name string) (late time.Duration, wrong []string) {
	t.Helper()
	profile, err := lab.LoadProfile(name)
	if err != nil {
		t.Fatal(err)
	}
	network := lab.Start(t, lab.Options{Profile: profile})
	shared := loadtesttest.RemoteEnd(t.Context(), t, loadtesttest.End{Address: network.Server.Addr4, Do: network.Server.Do})
	shared.DrainTimeout = 5 * time.Second
	own := saturation.DefaultOptions()
	own.Together, own.Duration, own.Skip, own.PacketBytes = true, 8*time.Second, time.Second, packet
	own.Rate = option.PerDirection{Forward: option.Rate(profile.Forward.MeanRate() / 4), Reverse: option.Rate(profile.Reverse.MeanRate() / 4)}
	kind, err := saturation.NewKind(shared, own)
	if err != nil {
		t.Fatal(err)
	}
	var outcome *loadtest.Outcome
	env := probe.Env{Log: slog.New(slog.DiscardHandler), Sink: &metrictest.Sink{}, Clock: static.New(time.Millisecond, metric.Discard{})}
	if err := network.Client.Do(func() (err error) {
		outcome, err = loadtesttest.RunKind(t.Context(), env, probe.Target{Path: "lab", Probe: "saturation"}, shared, kind, nil)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for i, want := range emulated[name] {
		log := network.Log(sample.Direction(i))
		for _, r := range log {
			if r.Outcome == lab.Delivered {
				late = max(late, r.Late())
			}
		}
		d := outcome.Body.(*saturation.Result).Directions[i]
		held, refused := ownBytes(log)
		if want.limit > 0 {
			held, refused = float64(want.limit)-packet, float64(want.limit)
		}
		t.Logf("%s %s: held %.0f, refused %.0f: %s", name, d.Direction, held, refused, words(d.Load))
		wrong = append(wrong, holds(d, want.states, want.limit >= 0, held, refused)...)
	}
	return late, wrong
}

// ownBytes is the test's own backlog by the link's log: the largest with a packet
// that was admitted, and the median with a packet that was refused.
func ownBytes(log []lab.Record) (held, refused float64) {
	var waiting []lab.Record // by departure
	var all []float64
	for i := range log {
		r := &log[i]
		if r.Size != packet {
			continue
		}
		bytes := float64(packet)
		waiting = slices.DeleteFunc(waiting, func(w lab.Record) bool { return w.Departure <= r.Entry })
		bytes += float64(packet * len(waiting))
		if r.Departure == 0 {
			all = append(all, bytes)
			continue
		}
		held = max(held, bytes)
		waiting = append(waiting, *r)
	}
	slices.Sort(all)
	return held, orderstat.Quantile(all, 0.5)
}

func holds(d *saturation.Direction, states []string, sized bool, held, refused float64) (wrong []string) {
	l := d.Load
	if !slices.Contains(states, l.State) {
		wrong = append(wrong, fmt.Sprintf("%s: %s, want %q: %s", d.Direction, l.State, states, l.Evidence))
	}
	switch {
	case !sized:
	case states[0] != "filled":
		if l.SizeBytes != nil {
			wrong = append(wrong, fmt.Sprintf("%s: %s has a size: %s", d.Direction, states[0], words(l)))
		}
	case l.SizeBytes == nil || *l.SizeBytes-*l.SizeBound > refused || *l.SizeBytes+*l.SizeBound < refused-packet:
		wrong = append(wrong, fmt.Sprintf("%s: %s, want %.0f to %.0f", d.Direction, words(l), refused-packet, refused))
	case *l.SizeBound > max(3*packet, 0.15*refused):
		wrong = append(wrong, fmt.Sprintf("%s: %s is too wide", d.Direction, words(l)))
	}
	if l.AtLeastBytes != nil && *l.AtLeastBytes > max(held, refused) {
		wrong = append(wrong, fmt.Sprintf("%s: at least %.0f, and it held %.0f", d.Direction, *l.AtLeastBytes, held))
	}
	return wrong
}

func words(l *saturation.Load) string {
	size := "no size"
	if l.SizeBytes != nil {
		size = fmt.Sprintf("%.0f ± %.0f", *l.SizeBytes, *l.SizeBound)
	}
	delay := "no delay"
	if l.Queue != nil {
		delay = fmt.Sprintf("%v ± %v", *l.Queue, *l.QueueBound)
	}
	if l.Rates == nil {
		l.Rates = &[3]float64{math.NaN(), math.NaN(), math.NaN()}
	}
	return fmt.Sprintf("%s, %s, %s, %.0f B/s: %s", l.State, size, delay, *l.Rates, l.Evidence)
}
