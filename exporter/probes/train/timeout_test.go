package train

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadsession"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/stream"
	"oneway.example/exporter/load/traffictypes/udptraffic"
)

// slowSimulatedPath adds the lag of a remote end, and waits for lost packets.
type slowSimulatedPath struct {
	*simulatedPath
	lag   time.Duration
	idles []time.Duration
}

const drainTimeout = 5 * time.Second

// Transfer is udp.Carrier.
func (r *slowSimulatedPath) Transfer(ctx context.Context, d sample.Direction, p stream.Plan, idle time.Duration, progress func(loadtest.Progress), adjustRate stream.Adjuster) (*udptraffic.CarrierResult, error) {
	r.idles = append(r.idles, idle)
	c, err := r.simulatedPath.Transfer(ctx, d, p, idle, progress, adjustRate)
	if idle == 0 {
		idle = drainTimeout
	}
	// simulated time (synctest): the transfer's duration and the remote end's lag.
	time.Sleep(c.Sent.End.Sub(c.Sent.Begin) + r.lag)
	if len(c.Received.Packets) < c.Packets {
		time.Sleep(idle) // simulated time (synctest)
	}
	return c, err
}

func (r *slowSimulatedPath) session() *udptraffic.Session {
	return udptraffic.NewSession(r, udptraffic.SessionOptions{SharedClock: true})
}

func TestLostMTUProbesAreAwaitedForSomeLagsOnly(t *testing.T) {
	for name, c := range map[string]struct {
		lag, want time.Duration // want is the wait for each lost probe
	}{
		"a near path": {20 * time.Millisecond, time.Second},
		"a far path":  {600 * time.Millisecond, 2400 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &slowSimulatedPath{simulatedPath: &simulatedPath{rate: wibro, mtu: 1404, stamps: sample.Kernel}, lag: c.lag}
				begin := time.Now()
				mtu, err := pathMTU(t.Context(), r.session(), sample.Forward, 9000, &timeout{})
				if err != nil || mtu != 1404 {
					t.Fatalf("path MTU %d, %v, want 1404", mtu, err)
				}
				if r.idles[0] != 0 {
					t.Errorf("waits %v for the first probe, want the configured time: no lag is known", r.idles[0])
				}
				for _, idle := range r.idles[1:] {
					if idle != c.want {
						t.Errorf("waits %v, want %v: %v", idle, c.want, r.idles)
						break
					}
				}
				took, asked := time.Since(begin), time.Duration(len(r.idles))
				if most := asked * (c.lag + c.want + 2*probes*probeSpace); took > most {
					t.Errorf("%d sizes took %v, want at most %v", asked, took, most)
				}
			})
		})
	}
}

func TestUnknownLagUsesTheConfiguredTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &slowSimulatedPath{simulatedPath: &simulatedPath{rate: wibro, stamps: sample.Kernel, lose: func(int) bool { return true }}}
		if mtu, err := pathMTU(t.Context(), r.session(), sample.Forward, 1500, &timeout{}); err != nil || mtu != 0 {
			t.Fatalf("path MTU %d, %v, of a path that is down", mtu, err)
		}
		for _, idle := range r.idles {
			if idle != 0 {
				t.Errorf("waits %v without a lag: %v", idle, r.idles)
			}
		}
	})
}

func TestLostTrainsAreAwaitedByTheLagOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := DefaultOptions()
		o.PayloadBytes, o.Trains, o.GroupPause = []int{1000}, 6, 0
		// One packet of the second train is lost, and one of some later ones.
		r := &slowSimulatedPath{simulatedPath: &simulatedPath{rate: wibro, stamps: sample.Kernel, nic: 5 * time.Microsecond, lose: func(n int) bool { return n%60 == 50 }}, lag: 100 * time.Millisecond}
		o.PathMTU = false
		k, err := NewKind(loadsession.DefaultOptions(), o)
		if err != nil {
			t.Fatal(err)
		}
		run := &loadtest.Run{Directions: []sample.Direction{sample.Forward, sample.Reverse}}
		if err := k.Perform(t.Context(), r.session(), run); err != nil {
			t.Fatal(err)
		}
		unknown := 0
		for i, idle := range r.idles {
			switch idle {
			case 0:
				unknown++
			case minIdleTrains:
			default:
				t.Errorf("transfer %d waits %v", i, idle)
			}
		}
		if unknown < 2 || unknown > len(r.idles)/2 {
			t.Errorf("%d of %d transfers wait as configured, want the first of each direction: %v", unknown, len(r.idles), r.idles)
		}
	})
}
