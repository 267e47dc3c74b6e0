package train

import (
	"context"
	"log/slog"
	"net/netip"
	"os"
	"testing"
	"time"

	"oneway.example/exporter/control"
	"oneway.example/exporter/heavy"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/stream"
	"oneway.example/tests/lab"
)

func TestMain(m *testing.M) { os.Exit(lab.Main(m.Run)) }

// bridge carries streams over an emulated link, with the real sockets and their stamps but
// without control: both ends are in this process. It implements heavy.Carrier.
type bridge struct {
	ends      [2]*stream.Session // client, server
	addresses [2]netip.AddrPort
	n         uint16
	idle      time.Duration // until what has not come is lost
}

// build opens both ends, each on an address of its host.
func (b *bridge) build(t *testing.T, l *lab.Lab, address func(*lab.Host) netip.Addr) {
	t.Helper()
	for i, h := range []*lab.Host{l.Client, l.Server} {
		at := netip.AddrPortFrom(address(h), 0)
		var e *stream.Endpoint
		err := h.Do(func() (err error) {
			e, err = stream.Open(stream.Options{Local: at, Log: slog.New(slog.DiscardHandler)})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- e.Run(context.Background()) }()
		t.Cleanup(func() {
			e.Close()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
		b.ends[i], b.addresses[i] = e.Join(7), e.LocalAddr()
	}
}

// Carry is heavy.Carrier.
func (b *bridge) Carry(ctx context.Context, d sample.Direction, p stream.Plan, idle time.Duration, _ func(heavy.Progress)) (*heavy.Carried, error) {
	b.n++
	from, to := 0, 1
	if d == sample.Reverse {
		from, to = 1, 0
	}
	reception, err := b.ends[to].Expect(b.n, p)
	if err != nil {
		return nil, err
	}
	out := &heavy.Carried{}
	out.Sent, err = b.ends[from].Send(ctx, b.n, b.addresses[to], p, nil)
	if err != nil {
		return nil, err
	}
	for _, one := range out.Sent.Packets {
		if one.Stamp.Present() {
			out.Packets++
		}
	}
	out.PayloadBytes = p.Bytes()
	out.Received = reception.Finish(ctx, out.Packets, max(b.idle, idle))
	ok := control.Clock{Reason: "ok"}
	out.Near, out.Far = heavy.Clocks{Before: ok, After: ok}, heavy.Clocks{Before: ok, After: ok}
	return out, nil
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
			b := &bridge{idle: 500 * time.Millisecond}
			b.build(t, lab.Start(t, lab.Options{Profile: profile, Seed: 1}), func(h *lab.Host) netip.Addr {
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
	if d.PathMTU != lab.MTU {
		t.Errorf("path MTU %d, want %d", d.PathMTU, lab.MTU)
	}
	for _, z := range d.Sizes {
		near(t, "capacity", z.Median, rate, 0.05)
		near(t, "dispersion", z.Dispersion, float64(z.PacketBytes)/rate, 0.2) // a mean: one train that the host held up is in it
		if z.Fragmented == nil || *z.Fragmented {
			t.Errorf("%d B are called fragmented", z.PacketBytes)
		}
		if z.Median != nil {
			t.Logf("%d B: %s of %s, dispersion %.1f ms, trains %v", z.PacketBytes,
				heavy.Rate(*z.Median).Words(), heavy.Rate(rate).Words(), 1e3**z.Dispersion, z.Trains)
		}
	}
	for _, note := range run.Notes {
		t.Log(note)
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
			b := &bridge{idle: 200 * time.Millisecond}
			b.build(t, l, address)
			s := heavy.NewSession(b, heavy.SessionOptions{IPv6: name == "IPv6", Shared: true})
			for d, want := range map[sample.Direction]int{sample.Forward: 1404, sample.Reverse: 1400} {
				if got, err := pathMTU(t.Context(), s, d, 9000, &patience{}); err != nil || got != want {
					t.Errorf("%v: path MTU %d, %v, want %d", d, got, err, want)
				}
			}
		})
	}
}
