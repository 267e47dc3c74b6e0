package backtoback

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/clocks/none"
	"oneway.example/exporter/clocks/static"
	"oneway.example/exporter/core/hostport"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/net/sched"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/calibration"
	"oneway.example/exporter/probes/stamp"
	"oneway.example/exporter/reflector"
)

// environment runs the clock and the pacer that a prober needs for the test.
func environment(t *testing.T, m clock.Monitor) probe.Env {
	t.Helper()
	pacer, err := sched.NewPacer()
	if err != nil {
		t.Fatal(err)
	}
	running(t, pacer.Run)
	return probe.Env{Log: slog.New(slog.DiscardHandler), Sink: metric.Discard{}, Clock: m, Pacer: pacer}
}

// running runs f until the end of the test.
func running(t *testing.T, f func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- f(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func known() clock.Monitor { return static.New(time.Microsecond, metric.Discard{}) }

func options(setup string) Options {
	o := Options{Setup: setup, Stamp: stamp.DefaultOptions(), Count: 400}
	o.Stamp.Interval, o.Stamp.Size, o.Stamp.Codecs, o.Stamp.Playout = time.Millisecond, 172, nil, nil
	o.Stamp.LossTimeout = time.Second
	return o
}

func quiet(stamp.Report) {}

// check checks what holds for every calibration on one host.
func check(t *testing.T, r Result, setup, iface, driver string) {
	t.Helper()
	got, here := r.Record, calibration.ThisSystem()
	if err := got.Check(); err != nil {
		t.Fatal(err)
	}
	if got.Interface != iface || got.Driver != driver || got.Setup != setup || got.Host != here.Host || got.Kernel != here.Kernel ||
		!got.SharedClock || !r.Report.SharedClock || got.Origin != "kernel" || got.PacketBytes != 172 || got.Interval != time.Millisecond {
		t.Errorf("%+v", got)
	}
	if age := time.Since(got.Date); age < 0 || age > time.Minute {
		t.Errorf("taken %v ago", age)
	}
	if r.Report.Forward.Delay == nil || r.Report.Reverse.Delay == nil {
		t.Error("the report has no delays")
	}
	for name, d := range map[string]calibration.Direction{"forward": got.Forward, "reverse": got.Reverse} {
		// The timestamps of one kernel are in order; half a millisecond between them would not be kernel timestamps.
		if d.Count < 380 || d.Systematic <= 0 || d.Systematic > 500*time.Microsecond || d.Random < 0 {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

func TestLoopbackIsCalibratedWithoutRoot(t *testing.T) {
	r, err := Run(t.Context(), options(calibration.Loopback), environment(t, known()), quiet)
	if err != nil {
		t.Fatal(err)
	}
	name, err := calibration.InterfaceOf(netip.MustParseAddr("127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	check(t, r, calibration.Loopback, name, "loopback")
}

func TestVethPairIsCalibratedAndLeavesNothingBehind(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED, NOT PASSED: a veth pair needs root")
	}
	r, err := Run(t.Context(), options(calibration.Veth), environment(t, known()), quiet)
	if err != nil {
		t.Fatal(err)
	}
	check(t, r, calibration.Veth, "oneway0", "veth")
	if d := calibration.DriverOf("oneway0"); d != "" {
		t.Errorf("the pair is in this namespace: driver %q", d)
	}
	if name, err := calibration.InterfaceOf(netip.MustParseAddr("192.0.2.1")); err == nil {
		t.Errorf("its address is on %q", name)
	}
}

func TestTrueDelayAboveTheRoundTripsIsRefused(t *testing.T) {
	o := options(calibration.Loopback)
	o.TrueDelay = 300 * time.Millisecond
	_, err := Run(t.Context(), o, environment(t, known()), quiet)
	if err == nil {
		t.Fatal("not refused")
	}
	_, limit, _ := strings.Cut(err.Error(), "true_delay_ns is 300000000; it must be at most ")
	limit, _, _ = strings.Cut(limit, ",")
	if most, e := strconv.Atoi(limit); e != nil || most <= 0 || most > int(100*time.Millisecond) {
		t.Errorf("%v; want the largest true delay, above 0 and below 100 ms", err)
	}
}

// startReflector runs a reflector of the given kind and returns its address.
func startReflector(t *testing.T, m clock.Monitor, stateless bool) string {
	t.Helper()
	r, err := reflector.New(reflector.Options{
		Listen: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}, RatePackets: -1, Stateless: stateless,
	}, reflector.Env{Sink: metric.Discard{}, Clock: m})
	if err != nil {
		t.Fatal(err)
	}
	running(t, r.Run)
	<-r.Started()
	return r.Addrs()[0].String()
}

func TestPeerWithoutAClockIsDetectedToShareTheLocalOne(t *testing.T) {
	o := options(calibration.Peer)
	o.Peer = startReflector(t, none.New(metric.Discard{}), false)
	r, err := Run(t.Context(), o, environment(t, known()), quiet)
	if err != nil {
		t.Fatal(err)
	}
	check(t, r, calibration.Peer, "lo", "loopback")
	if r.Record.At != o.Peer {
		t.Errorf("at %s, want %s", r.Record.At, o.Peer)
	}
}

func TestPeerWithAClockIsNotTrusted(t *testing.T) {
	o := options(calibration.Peer)
	o.Peer = startReflector(t, known(), false)
	r, err := Run(t.Context(), o, environment(t, known()), quiet)
	if err != nil {
		t.Fatal(err)
	}
	if r.Record.SharedClock {
		t.Error("shared clock, though both ends reported a trusted clock")
	}
	o.Trust, o.Count, o.Stamp.Interval = true, calibration.MinTrustedCount, 200*time.Microsecond
	if _, err := Run(t.Context(), o, environment(t, known()), quiet); err == nil || !strings.Contains(err.Error(), "clocks of their own") {
		t.Error(err)
	}
}

func TestAForeignReflectorOrAnUnknownClockGivesNoCalibration(t *testing.T) {
	o := options(calibration.Peer)
	o.Peer = startReflector(t, known(), true)
	if _, err := Run(t.Context(), o, environment(t, known()), quiet); !errors.Is(err, errForeign) {
		t.Error(err)
	}
	o.Peer = startReflector(t, known(), false)
	if _, err := Run(t.Context(), o, environment(t, none.New(metric.Discard{})), quiet); !errors.Is(err, calibration.ErrTooFewPackets) ||
		!strings.Contains(err.Error(), "forward: no clock") {
		t.Error(err)
	}
}

func TestAPeerWithoutAReplyIsAnError(t *testing.T) {
	o := options(calibration.Peer)
	o.Peer, o.Count, o.Stamp.LossTimeout = "127.0.0.1:9", calibration.MinCount, 50*time.Millisecond
	if _, err := Run(t.Context(), o, environment(t, known()), quiet); !errors.Is(err, probe.ErrNoReply) {
		t.Error(err)
	}
}

func TestAnInterruptedRunIsNoCalibration(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	o := options(calibration.Loopback)
	o.Count = 100_000
	_, err := Run(ctx, o, environment(t, known()), func(stamp.Report) { cancel() })
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "interrupted") {
		t.Error(err)
	}
}

func TestUnknownNameOfThePeerHasItsRemedy(t *testing.T) {
	o := options(calibration.Peer)
	o.Peer = "nosuch.invalid"
	_, err := Run(t.Context(), o, environment(t, known()), quiet)
	if err == nil || hostport.LookupRemedy(err) == "" || !strings.HasSuffix(err.Error(), hostport.LookupRemedy(err)) {
		t.Error(err)
	}
}

func TestWrongOptionsAreNamed(t *testing.T) {
	for want, change := range map[string]func(*Options){
		"count is 199; it must be between 200 and 1000000":         func(o *Options) { o.Count = 199 },
		"count is 400; trust needs at least 3000":                  func(o *Options) { o.Trust = true },
		`setup is "wifi"; it must be "loopback", "veth" or "peer"`: func(o *Options) { o.Setup = "wifi" },
		`interface is "eth7", but packets to 127.0.0.1 pass "lo"`:  func(o *Options) { o.Interface = "eth7" },
		`interface is "lo" with driver "loopback"; a veth pair`:    func(o *Options) { o.Setup, o.Interface = calibration.Veth, "lo" },
		`hardware is "eth7", but packets to 127.0.0.1 pass "lo"`:   func(o *Options) { o.Stamp.Hardware = "eth7" },
		`local is "here"; it must be an address`:                   func(o *Options) { o.Stamp.Local = "here" },
	} {
		o := options(calibration.Loopback)
		change(&o)
		_, err := Run(t.Context(), o, probe.Env{}, quiet)
		if _, ok := errors.AsType[*option.Error](err); !ok || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	o := options(calibration.Loopback)
	o.Stamp.DSCP = 64
	_, err := Run(t.Context(), o, environment(t, known()), quiet)
	if wrong, ok := errors.AsType[*option.Error](err); !ok || wrong.Key != "dscp" {
		t.Error(err)
	}
}
