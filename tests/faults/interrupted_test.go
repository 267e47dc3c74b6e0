package faults

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/tests/loadsite"
)

// Ctrl-C under load ends a run with what was measured of it, on both sides, and a second one ends the program at once.
func TestInterruptedSaturationPrintsItsResults(t *testing.T) {
	for _, d := range sample.Directions() {
		t.Run(d.String(), func(t *testing.T) {
			s := newSite(t, loadsite.OverSlow())
			c := s.saturation(t, "--direction="+d.String(), "--duration=60s", "--rate-forward=8Mbit", overload)
			s.underLoad(t, c, d)
			time.Sleep(1500 * time.Millisecond) // of load, more than is skipped at its ends
			at := time.Now()
			c.Signal(t, syscall.SIGINT)
			var r struct {
				loadsite.Result
				Results struct {
					Directions []struct {
						Partial string `json:"partial"`
						Load    *struct {
							Loss       float64 `json:"loss_ratio"`
							Throughput float64 `json:"throughput_bytes_per_second"`
							Underrun   float64 `json:"sender_underrun_ratio"`
						} `json:"load"`
					} `json:"directions"`
				} `json:"results"`
			}
			c.Decode(t, 1, &r)
			if r.Outcome != "incomplete" || r.Reason != "interrupted" || !strings.Contains(r.Error, `"load in both directions"`) {
				t.Errorf("%s, %s: %s", r.Outcome, r.Reason, r.Error)
			}
			if len(r.Results.Directions) != 1 || r.Results.Directions[0].Load == nil {
				t.Fatalf("no result: %+v", r.Results)
			}
			got, rate := r.Results.Directions[0], 4e6/8
			if d == sample.Reverse {
				rate = 8e6 / 8
			}
			// What this host did not send in time, the link did not carry.
			if l := got.Load; got.Partial == "" || l.Throughput < 0.9*rate*(1-l.Underrun) || l.Throughput > 1.1*rate || l.Loss < 0.1 || l.Underrun > 0.5 {
				t.Errorf("%q, %+v; the link has %v bytes a second", got.Partial, *l, rate)
			}
			if len(r.Transfers) != 1 || r.Transfers[0].Counts.Arrived == 0 {
				t.Errorf("transfers %+v", r.Transfers)
			}
			punctual(t, "the client's end", c.Ended.Sub(at), 5*time.Second)
			if next := s.saturation(t, "--direction="+d.String()).Finish(t, 0); next.Outcome != "completed" {
				t.Errorf("the next run: %s, %s", next.Outcome, next.Error)
			}
		})
	}
	t.Run("twice", func(t *testing.T) {
		s := newSite(t, loadsite.OverSlow())
		c := s.saturation(t, "--direction=forward", "--duration=60s", "--rate-forward=8Mbit")
		s.underLoad(t, c, sample.Forward)
		c.Signal(t, syscall.SIGINT)
		time.Sleep(500 * time.Millisecond) // more than the time in which signals are one, less than the wait for the packets under way
		at := time.Now()
		c.Signal(t, syscall.SIGINT)
		if status := c.Wait(t); status != -1 {
			t.Errorf("status %d, want the signal", status)
		}
		punctual(t, "the client's end", c.Ended.Sub(at), time.Second)
		// The load server may not know yet that the client has ended.
		if next := s.saturation(t, "--direction=forward", "--max-wait=1m").Finish(t, 0); next.Outcome != "completed" {
			t.Errorf("the next run: %s, %s", next.Outcome, next.Error)
		}
	})
}

// Ctrl-C at the begin of a run: what is said of it has no other reason than Ctrl-C, and no rate is above that of the link.
func TestInterruptedRunsBlameNothingElse(t *testing.T) {
	for kind, args := range map[string][]string{
		"saturation": {"--mode=search", "--direction=forward", "--rate-forward=5Mbit", "--clock-bound=1ms"},
		"message":    {"--direction=forward"},
		"tcp":        {"--direction=forward", "--omit=1s", "--duration=10s"},
	} {
		t.Run(kind, func(t *testing.T) {
			s := newSite(t, loadsite.OverSlow())
			for _, after := range []time.Duration{2200 * time.Millisecond, 2800 * time.Millisecond} {
				c := s.Test(t, kind, args...)
				time.Sleep(after) // of the idle part and the first moments of load
				c.Signal(t, syscall.SIGINT)
				var r struct {
					Reason  string   `json:"reason"`
					Notes   []string `json:"notes"`
					Results struct {
						Parts, Directions []struct {
							Throughput float64 `json:"throughput_bytes_per_second"`
							Maximum    float64 `json:"maximum_bytes_per_second"`
						}
					} `json:"results"`
				}
				c.Decode(t, 1, &r)
				notes := strings.Join(r.Notes, "; ")
				if r.Reason != "interrupted" || strings.Contains(notes, "context canceled") || strings.Contains(notes, "feedback") || strings.Contains(notes, "did not reach") {
					t.Errorf("after %v: %s: %s", after, r.Reason, notes)
				}
				for _, d := range append(r.Results.Parts, r.Results.Directions...) {
					if most := 1.01 * 4e6 / 8; max(d.Throughput, d.Maximum) > most {
						t.Errorf("after %v: %+v, the link has %v bytes a second", after, d, most)
					}
				}
			}
		})
	}
}
