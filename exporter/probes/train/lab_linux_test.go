package train

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"testing"
	"time"

	"oneway.example/exporter/clocks/static"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/load/loadsession"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/loadtesttest"
	"oneway.example/exporter/load/traffictypes/udptraffic"
	"oneway.example/exporter/probe"
	"oneway.example/tests/lab"
	"oneway.example/tests/precision"
)

func TestMain(m *testing.M) { os.Exit(lab.Main(m.Run)) }

// runOver is one run of a kind from the lab's client, with a remote end at an address of its server.
func runOver(t *testing.T, l *lab.Lab, address func(*lab.Host) netip.Addr, drain time.Duration, make func(loadsession.Options) (loadsession.Kind[*udptraffic.Session], error), directions ...string) *loadtest.Outcome {
	t.Helper()
	shared := loadtesttest.RemoteEnd(t.Context(), t, loadtesttest.End{Address: address(l.Server), Do: l.Server.Do})
	shared.Directions, shared.DrainTimeout = directions, drain
	k, err := make(shared)
	if err != nil {
		t.Fatal(err)
	}
	env := probe.Env{Log: slog.New(slog.DiscardHandler), Sink: metric.Discard{}, Clock: static.New(time.Millisecond, metric.Discard{})}
	var out *loadtest.Outcome
	err = l.Client.Do(func() (err error) {
		out, err = loadtesttest.RunKind(t.Context(), env, probe.Target{Path: "lab", Probe: "train", Peer: "far"}, shared, k, nil)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestTrainsFindTheEmulatedLinksCapacity runs the probe over the papers' links: the capacity must be within 5 % of
// the link's, which on evdo is that of Figure 15 of the WPI report.
func TestTrainsFindTheEmulatedLinksCapacity(t *testing.T) {
	for _, c := range []struct {
		profile   string
		ipv6      bool
		payload   []int
		direction sample.Direction
	}{
		{"evdo", false, []int{1472, 800}, sample.Reverse},
		{"wibro", false, []int{1472, 1200, 1000, 800}, sample.Forward},
		{"wibro", true, []int{1400, 800}, sample.Reverse},
	} {
		name := c.profile + " " + c.direction.String()
		if c.ipv6 {
			name += " IPv6"
		}
		t.Run(name, func(t *testing.T) {
			profile, err := lab.LoadProfile(c.profile)
			if err != nil {
				t.Fatal(err)
			}
			link := profile.Forward
			if c.direction == sample.Reverse {
				link = profile.Reverse
			}
			address := func(h *lab.Host) netip.Addr {
				if c.ipv6 {
					return h.Addr6
				}
				return h.Addr4
			}
			o := DefaultOptions()
			o.PayloadBytes, o.Trains, o.MinClean = c.payload, 7, 3
			o.TrainInterval, o.GroupPause = 200*time.Millisecond, 0
			make := func(shared loadsession.Options) (loadsession.Kind[*udptraffic.Session], error) {
				return NewKind(shared, o)
			}
			check(t, runOver(t, lab.Start(t, lab.Options{Profile: profile, Seed: 1}), address, 500*time.Millisecond, make, c.direction.String()), float64(link.Rate)/8)
		})
	}
}

// check compares a run in one direction with the link's rate.
func check(t *testing.T, run *loadtest.Outcome, rate float64) {
	t.Helper()
	d := run.Body.(*Result).Directions[0]
	for _, note := range run.Notes {
		t.Log(note)
	}
	if d.PathMTU != lab.MTU {
		t.Errorf("path MTU %d, want %d", d.PathMTU, lab.MTU)
	}
	for _, z := range d.Sizes {
		if z.Refusal != "" { // a busy host delays packets
			precision.Missed(t, errors.New(z.Refusal))
			continue
		}
		near(t, "capacity", z.Median, rate, 0.05)
		// A mean: it includes trains that the host delayed.
		if want := float64(z.PacketBytes) / rate; z.Dispersion == nil || *z.Dispersion < 0.8*want {
			t.Errorf("dispersion %v, want %v", z.Dispersion, want)
		} else if *z.Dispersion > 1.2*want {
			precision.Missed(t, fmt.Errorf("dispersion %v, want %v", *z.Dispersion, want))
		}
		if z.Fragmented == nil || *z.Fragmented {
			t.Errorf("%d B reported as fragmented", z.PacketBytes)
		}
		if z.Median != nil {
			t.Logf("%d B: %s of %s, dispersion %.1f ms, trains %v", z.PacketBytes,
				unit.BytesPerSecond.Format(*z.Median), unit.BytesPerSecond.Format(rate), 1e3**z.Dispersion, z.Trains)
		}
	}
	if d.Capacity == nil {
		precision.Missed(t, fmt.Errorf("no capacity: %s", d.Refusal))
	} else if off := *d.Capacity - rate; off < -*d.Bound || off > *d.Bound {
		precision.Missed(t, fmt.Errorf("capacity %.6g ± %.2g, want %.6g", *d.Capacity, *d.Bound, rate))
	} else {
		t.Logf("capacity %.6g ± %.2g of %.6g; a bucket above %d bytes is not detected; long trains %v", *d.Capacity, *d.Bound, rate, d.HiddenBucket, d.LongTrains)
	}
}

// TestPathMTUIsFoundThroughABlackHole sets the MTU of the server's interface to 1400 bytes: larger packets are not
// sent there, and are dropped without a message on arrival. A veth accepts four bytes more, for a VLAN tag
// (is_skb_forwardable of Linux's net/core/dev.c).
func TestPathMTUIsFoundThroughABlackHole(t *testing.T) {
	for name, address := range map[string]func(*lab.Host) netip.Addr{
		"IPv4": func(h *lab.Host) netip.Addr { return h.LAN4 },
		"IPv6": func(h *lab.Host) netip.Addr { return h.LAN6 },
	} {
		t.Run(name, func(t *testing.T) {
			l := lab.Start(t, lab.Options{})
			if out, err := l.Server.Command("ip", "link", "set", "lan0", "mtu", "1400").CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			k := mtuOnly{}
			runOver(t, l, address, 200*time.Millisecond, func(loadsession.Options) (loadsession.Kind[*udptraffic.Session], error) { return k, nil }, "forward", "reverse")
			for d, want := range map[sample.Direction]int{sample.Forward: 1404, sample.Reverse: 1400} {
				if got := k[d]; got != want {
					t.Errorf("%v: path MTU %d, want %d", d, got, want)
				}
			}
		})
	}
}

// mtuOnly is the probe without its trains: the MTU found.
type mtuOnly map[sample.Direction]int

func (mtuOnly) Kind() string                                      { return "train" }
func (mtuOnly) Bytes(int64) int64                                 { return 10e6 }
func (mtuOnly) Duration() time.Duration                           { return time.Minute }
func (mtuOnly) Traffic() loadsession.Traffic[*udptraffic.Session] { return udptraffic.Local{} }
func (mtuOnly) Publish(*loadtest.Values, *loadtest.Run)           {}

func (k mtuOnly) Perform(ctx context.Context, s *udptraffic.Session, r *loadtest.Run) (err error) {
	for _, d := range r.Directions {
		if k[d], err = pathMTU(ctx, s, d, 9000, &timeout{}); err != nil {
			return err
		}
	}
	return nil
}
