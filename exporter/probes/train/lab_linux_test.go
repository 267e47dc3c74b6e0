package train

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"testing"
	"time"

	"oneway.example/exporter/heavy"
	"oneway.example/exporter/heavy/heavytest"
	"oneway.example/exporter/sample"
	"oneway.example/tests/lab"
	"oneway.example/tests/precision"
)

func TestMain(m *testing.M) { os.Exit(lab.Main(m.Run)) }

// bridge carries streams over an emulated link, between these addresses of its hosts.
func bridge(t *testing.T, l *lab.Lab, idle time.Duration, address func(*lab.Host) netip.Addr) *heavytest.Bridge {
	t.Helper()
	end := func(h *lab.Host) heavytest.End { return heavytest.End{Address: address(h), Do: h.Do} }
	return heavytest.NewBridge(t, end(l.Client), end(l.Server), idle)
}

// TestTrainsFindTheEmulatedLinksCapacity is the probe over the papers' links: capacity
// within 5 % of the truth, which on evdo is that of Figure 15 of the WPI report.
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
			b := bridge(t, lab.Start(t, lab.Options{Profile: profile, Seed: 1}), 500*time.Millisecond, func(h *lab.Host) netip.Addr {
				if c.ipv6 {
					return h.Addr6
				}
				return h.Addr4
			})
			o := DefaultOptions()
			o.PayloadBytes, o.Trains, o.MinClean = c.payload, 7, 3
			o.TrainInterval, o.GroupPause = 200*time.Millisecond, 0
			k, err := NewKind(heavy.DefaultOptions(), o)
			if err != nil {
				t.Fatal(err)
			}
			run := &heavy.Run{Directions: []sample.Direction{c.direction}}
			if err := k.Perform(t.Context(), heavy.NewSession(b, heavy.SessionOptions{IPv6: c.ipv6, Shared: true}), run); err != nil {
				t.Fatal(err)
			}
			check(t, run, float64(link.Rate)/8)
		})
	}
}

// check holds a run in one direction against the link's rate.
func check(t *testing.T, run *heavy.Run, rate float64) {
	t.Helper()
	d := run.Body.(*Result).Directions[0]
	for _, note := range run.Notes {
		t.Log(note)
	}
	if d.PathMTU != lab.MTU {
		t.Errorf("path MTU %d, want %d", d.PathMTU, lab.MTU)
	}
	for _, z := range d.Sizes {
		if z.Refusal != "" { // a busy host holds packets up
			precision.Missed(t, errors.New(z.Refusal))
			continue
		}
		near(t, "capacity", z.Median, rate, 0.05)
		// A mean: trains that the host held up are in it.
		if want := float64(z.PacketBytes) / rate; z.Dispersion == nil || *z.Dispersion < 0.8*want {
			t.Errorf("dispersion %v, want %v", z.Dispersion, want)
		} else if *z.Dispersion > 1.2*want {
			precision.Missed(t, fmt.Errorf("dispersion %v, want %v", *z.Dispersion, want))
		}
		if z.Fragmented == nil || *z.Fragmented {
			t.Errorf("%d B are called fragmented", z.PacketBytes)
		}
		if z.Median != nil {
			t.Logf("%d B: %s of %s, dispersion %.1f ms, trains %v", z.PacketBytes,
				heavy.Rate(*z.Median).Words(), heavy.Rate(rate).Words(), 1e3**z.Dispersion, z.Trains)
		}
	}
	if d.Capacity == nil {
		precision.Missed(t, fmt.Errorf("no capacity: %s", d.Refusal))
	} else if off := *d.Capacity - rate; off < -*d.Bound || off > *d.Bound {
		precision.Missed(t, fmt.Errorf("capacity %.6g ± %.2g, want %.6g", *d.Capacity, *d.Bound, rate))
	} else {
		t.Logf("capacity %.6g ± %.2g of %.6g; a bucket above %d octets would not show; long trains %v", *d.Capacity, *d.Bound, rate, d.HiddenBucket, d.LongTrains)
	}
}

// TestPathMTUIsFoundThroughABlackHole has the server's interface take no more than 1400
// octets: what is larger never leaves there, and vanishes without a word on its way in.
// A veth takes four octets more, those of a VLAN's tag (is_skb_forwardable of Linux's
// net/core/dev.c).
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
			b := bridge(t, l, 200*time.Millisecond, address)
			s := heavy.NewSession(b, heavy.SessionOptions{IPv6: name == "IPv6", Shared: true})
			for d, want := range map[sample.Direction]int{sample.Forward: 1404, sample.Reverse: 1400} {
				if got, err := pathMTU(t.Context(), s, d, 9000, &patience{}); err != nil || got != want {
					t.Errorf("%v: path MTU %d, %v, want %d", d, got, err, want)
				}
			}
		})
	}
}
