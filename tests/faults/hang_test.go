package faults

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/traffic"
	"oneway.example/tests/loadsite"
)

// A load server that hangs, whose kernel goes on, is silent, whatever runs: the run ends after ten seconds with what it has.
func TestRunOfALoadServerThatHangsEnds(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(t *testing.T, s *site) *loadsite.Process{
		"udp forward": func(t *testing.T, s *site) *loadsite.Process {
			p := s.saturation(t, "--direction=forward", "--duration=60s", "--rate-forward=12Mbit")
			s.underLoad(t, p, sample.Forward)
			return p
		},
		"udp reverse, near its end": func(t *testing.T, s *site) *loadsite.Process {
			p := s.saturation(t, "--direction=reverse", "--duration=5s", overload)
			s.underLoad(t, p, sample.Reverse)
			return p
		},
		"tcp forward": func(t *testing.T, s *site) *loadsite.Process {
			return s.startFaulty(t, []sample.Direction{sample.Forward}, "--duration=60s", "--idle-timeout=2s")
		},
		"tcp reverse": func(t *testing.T, s *site) *loadsite.Process {
			return s.startFaulty(t, []sample.Direction{sample.Reverse}, "--duration=60s", "--idle-timeout=2s")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, loadsite.OverSlow())
			p := start(t, s)
			at := time.Now()
			s.LoadServer.Signal(t, syscall.SIGSTOP)
			defer s.LoadServer.Signal(t, syscall.SIGCONT)
			r := p.FinishTCP(t, 1) // the result of each type has these fields
			took := p.Ended.Sub(at)
			t.Logf("the client ended %v later: %s", took, r.Error)
			// What is in buffers and the queue still arrives.
			if took < traffic.IdleTimeout-2*time.Second || took > traffic.IdleTimeout+5*time.Second {
				t.Errorf("the client ended after %v, want %v", took, traffic.IdleTimeout)
			}
			if r.Outcome != "incomplete" || r.Reason != "session_lost" || !strings.Contains(r.Error, "nothing was received from the load server at "+s.At.String()) {
				t.Errorf("%s, %s: %s", r.Outcome, r.Reason, r.Error)
			}
		})
	}
}
