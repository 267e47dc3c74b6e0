package stamp

import (
	"testing"
	"time"

	"oneway.example/exporter/core/bound"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/calibration"
	"oneway.example/exporter/reflector"
)

// calibratedAs is a table with one interface: systematic error of a timestamp 4 us, random error 44 us.
func calibratedAs(t *testing.T, iface string) *calibration.Table {
	t.Helper()
	d := calibration.Direction{Count: 5000, Systematic: 8 * time.Microsecond, Random: 40 * time.Microsecond, Largest: 40 * time.Microsecond}
	var table calibration.Table
	if err := table.Put(calibration.Record{
		Interface: iface, Driver: "loopback", Host: "h", Kernel: "k", Date: time.Unix(1e9, 0), Setup: calibration.Loopback, At: "127.0.0.1:862",
		SharedClock: true, Origin: "kernel", PacketBytes: 172, Interval: time.Millisecond, Forward: d, Reverse: d,
	}); err != nil {
		t.Fatal(err)
	}
	return &table
}

func TestCalibrationOfTheInterfaceIsAppliedToItsOwnStampsOnly(t *testing.T) {
	b := newTestbed(t, reflector.Options{})
	for iface, shift := range map[string]time.Duration{"lo": 4 * time.Microsecond, "eth7": 0} {
		b.env.Calibration = calibratedAs(t, iface)
		p, err := NewType().NewProber(b.env, probe.Target{Path: "p", Probe: "stamp", Peer: b.peer}, quick())
		if err != nil {
			t.Fatal(err)
		}
		applied := 0
		p.OnPacket = func(p sample.Packet, forward, reverse sample.Delay) {
			for _, c := range []struct {
				got             sample.Delay
				from, to, local sample.Stamp
			}{{forward, p.T1, p.T2, p.T1}, {reverse, p.T3, p.T4, p.T4}} {
				if c.local.Origin != sample.Kernel {
					continue
				}
				applied++
				if want := c.to.At.Sub(c.from.At) - shift; c.got.Value != want {
					t.Errorf("%s: %v, want %v", iface, c.got.Value, want)
				}
				// 50 us of each clock and 25 us of each timestamp; calibrated, 44 us for the local one, and the
				// systematic error.
				least := 150 * time.Microsecond
				if shift > 0 {
					least += 19*time.Microsecond + shift
				}
				if c.from.TXUncertainty <= bound.KernelError && c.from.Origin != sample.InPacket && c.to.Origin == sample.Kernel && (c.got.Bound < least || c.got.Bound > least+time.Microsecond) {
					t.Errorf("%s: bound %v, want %v", iface, c.got.Bound, least)
				}
			}
		}
		if _, err := p.Measure(t.Context(), 100, func(Report) {}); err != nil {
			t.Fatal(err)
		}
		if applied < 100 {
			t.Errorf("%s: only %d delays had a kernel timestamp", iface, applied)
		}
	}
}

func TestAShortDelayIsNotNegativeForItsCorrection(t *testing.T) {
	b := newTestbed(t, reflector.Options{})
	d := calibration.Direction{Count: 5000, Systematic: time.Second}
	var table calibration.Table
	if err := table.Put(calibration.Record{
		Interface: "lo", Host: "h", Kernel: "k", Date: time.Unix(1e9, 0), Setup: calibration.Loopback, At: "127.0.0.1:862",
		SharedClock: true, Origin: "kernel", PacketBytes: 172, Forward: d, Reverse: d,
	}); err != nil {
		t.Fatal(err)
	}
	b.env.Calibration = &table
	r := b.measure(t, quick(), 50)
	if r.Forward.Negative != 0 || r.Reverse.Negative != 0 {
		t.Errorf("%d and %d negative", r.Forward.Negative, r.Reverse.Negative)
	}
	if r.Forward.Delay == nil || *r.Forward.Delay.P50 > 0 {
		t.Errorf("got %+v, want a corrected delay", r.Forward.Delay)
	}
}
