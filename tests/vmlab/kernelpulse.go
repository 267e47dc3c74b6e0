package vmlab

import (
	"fmt"
	"os"
	"time"
)

// KernelPulseScenarios are those of guests whose kernel has a pulse of its own, on
// /dev/pps0, and a receiver on the serial port whose sentences name the second: chronyd
// runs with this file, chrony-config/gpio-pps/chrony.conf, and gpsd beside it; see Chronyd
// for the one added line.
func KernelPulseScenarios(conf string) []Scenario {
	return []Scenario{kernelPulseStart(conf), kernelPulseSteady(), lan()}
}

// sentenceDelay is the latency of the receiver's sentences, as the file expects.
const sentenceDelay = 200 * time.Millisecond

// pulseTime is the longest time of chronyd, with a poll of 8 s and a clock that is seconds
// wrong at first, until its bound is pulseBound.
const (
	pulseTime  = 4 * time.Minute
	pulseBound = 30 * time.Microsecond
)

const pulseClock = `clock:
  source: chrony
  address: udp://127.0.0.1:323
  gpsd: {address: "127.0.0.1:2947"}
  pps: {device: /dev/pps0}
`

func kernelPulseStart(conf string) Scenario {
	return Scenario{
		Name: "kernel PPS, cold start", States: []string{"silent", "unsynchronized", "stepping", "synchronized"}, Reason: "local_stepped",
		Metric: "oneway_pps_pulses_total grows, the receiver has a fix", Alert: "OnewayClockStepped",
		Met: func(local, _ *Values) bool {
			return local.Grew("oneway_pps_pulses_total{pps0}") >= 10 && local.Reached("oneway_gnss_fix{gps0}", 3)
		},
		Do: func(r *Run) error {
			for _, at := range []*Receiver{r.Receiver, r.RemoteReceiver} {
				at.Write(r.Line, sentenceDelay)
			}
			return inTurn(
				func() error { return r.Local.Set(3700 * time.Millisecond) },
				func() error { return r.Remote.Set(-2100 * time.Millisecond) },
				func() error { return r.Remote.Agent(pulseClock + remoteReflector) },
				func() error { return r.Local.Agent(pulseClock + localPaths) },
				pause(2*time.Second),
				func() error { return r.Both(func(h *Host) error { return inTurn(h.chronydOf(conf), h.gpsd) }) },
				func() error { return r.Settle(pulseTime, pulseBound) },
			)
		},
	}
}

// kernelPulseSteady: no changes. The offset by the pulses agrees with chronyd.
func kernelPulseSteady() Scenario {
	return Scenario{
		Name: steadyName, States: []string{"synchronized"},
		// The file admits 20 us of interrupt latency, so each clock's bound is some 30 us; 50 us are
		// the timestamps', and the rest is the TX uncertainty of the guests: 130 us in all on a quiet
		// machine, 170 us beside neighbors.
		MostBound: 200 * time.Microsecond,
		Metric:    "kind is pps, a pulse a second is used, the judge's offset is there",
		Met: func(local, _ *Values) bool {
			return local.Has("oneway_clock_reference_info", ",pps}") && local.Appeared("oneway_pps_fit_offset_seconds", "") &&
				local.Grew("oneway_pps_pulses_total{pps0}") >= 50
		},
		Do: pauses(time.Minute),
	}
}

// chronydOf starts chronyd with a file of the host.
func (h *Host) chronydOf(conf string) func() error {
	return func() error {
		text, err := os.ReadFile(conf)
		if err != nil {
			return fmt.Errorf("vmlab: %w", err)
		}
		in, err := h.Write("chrony.conf", string(text)+"\nclockprecision 1e-6\n")
		if err != nil {
			return err
		}
		return h.start(chronydName, "chronyd", "-d", "-u", "root", "-f", in)
	}
}

// KernelPulseTests are the tests of packages that need a kernel with a pulse.
func KernelPulseTests() []KernelTest {
	return []KernelTest{{Binary: "pps.test", Name: "TestRealPulsesAreFetched"}}
}
