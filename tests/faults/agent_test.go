package faults

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"oneway.example/exporter/core/hostport"
	"oneway.example/exporter/core/sample"
	"oneway.example/tests/lab"
	"oneway.example/tests/loadsite"
	"oneway.example/tests/program"
)

// Two paths share a link. Their runs, each due every ten seconds, take turns; each is counted once, has
// one report and is once on the link.
func TestRunsOfTwoPathsOnOneLinkNeverOverlapAndEachIsCountedOnce(t *testing.T) {
	link := loadsite.Slow()
	link.Forward.Queue, link.Reverse.Queue = 1_000_000, 2_000_000 // all that a run sends
	s := newSite(t, lab.Options{Profile: link})
	// A run takes about four seconds, so that runs mostly wait for each other. No queue overflows, even if a
	// stalled host sends all at once, and a pause of a second is within the drain timeout.
	load := []string{"duration: 1500ms", "drain_timeout: 10s", "rate: {forward: 5Mbit, reverse: 10Mbit}"}
	a := s.Agent(t, "paths:\n"+s.Path("a", load...)+s.Path("b", load...))
	const wanted = 2 // runs of each path
	var runs map[string]float64
	program.Eventually(t, fmt.Sprintf("%d runs of both paths", wanted), func() bool {
		if n := loadsite.Sum(a.Metrics(t, "oneway_test_running")); n > 1 {
			t.Errorf("%v tests run concurrently", n)
		}
		runs = a.Metrics(t, "oneway_probe_runs_total")
		return loadsite.Sum(runs, `path="a"`, `"completed"`) >= wanted && loadsite.Sum(runs, `path="b"`, `"completed"`) >= wanted
	})
	a.Signal(t, syscall.SIGTERM) // and possibly ends a run
	a.Wait(t)
	all := spans(s.Drained(t))
	disjoint(t, all)
	s.LoadServer.Signal(t, syscall.SIGTERM)
	s.LoadServer.Wait(t)
	// A run that ended before its first packet is also a session of the load server: it was stopped before it began to send, or
	// just then, before a packet left.
	said, logged := s.LoadServer.Stdout.String(), a.Stderr.String()
	unsent, stopped := strings.Count(logged, "result=skipped reason=stopped"), strings.Count(logged, "result=incomplete reason=stopped")
	t.Logf("counted: %v", runs)
	// One more run may have begun since the scrape and then ended early.
	switch n := len(all) - int(loadsite.Sum(runs, `"completed"`)); {
	case n == stopped:
	case n == 0 && stopped == 1:
		unsent++
	default:
		t.Errorf("%d sessions were on the link, %d stopped, counted are %v", len(all), stopped, runs)
	}
	if !strings.Contains(said, fmt.Sprintf("\n%d sessions, ", len(all))) && !strings.Contains(said, fmt.Sprintf("\n%d sessions, ", len(all)+unsent)) {
		t.Errorf("%d sessions were on the link, %d ended before; the load server: %s", len(all), unsent, said)
	}
	for _, p := range []string{"a", "b"} {
		lines := strings.Count(logged, `msg="Run completed" path=`+p+" ")
		if counted := loadsite.Sum(runs, `path="`+p+`"`, `"completed"`); int(counted) != lines {
			t.Errorf("path %s: %v runs are counted, %d were logged", p, counted, lines)
		}
	}
	// On a busy machine runs that take longer than ten seconds overrun the next.
	if n := loadsite.Sum(runs) - loadsite.Sum(runs, `"completed"`) - loadsite.Sum(runs, `"overrun"`); n != 0 {
		t.Errorf("%v runs did not complete, want 0", n)
	}
}

// Two agents test each other over one link, each with its own load server. The second is refused as
// busy, and there is no deadlock.
func TestAgentsThatTestEachOtherTakeTurns(t *testing.T) {
	s := newSite(t, loadsite.OverSlow())
	const port = hostport.LoadServer + 1
	hosts := []*lab.Host{s.Network.Client, s.Network.Server}
	var agents [2]*loadsite.Agent
	var pins, loadServers [2]string
	for i, h := range hosts {
		loadServers[i] = fmt.Sprintf("load_server: {listen: [%q], tokens_file: tokens, link: uplink}\n", netip.AddrPortFrom(h.Addr4, port))
		agents[i] = s.AgentOn(t, h, loadServers[i])
		program.Eventually(t, "the load server's pin", func() bool {
			_, rest, ok := strings.Cut(agents[i].Stderr.String(), "pin=")
			pins[i], _, _ = strings.Cut(rest, "\n")
			pins[i], _, _ = strings.Cut(pins[i], " ")
			return ok
		})
	}
	for i, a := range agents {
		load := []string{"duration: 1500ms", "drain_timeout: 10s", "rate: {forward: 5Mbit, reverse: 5Mbit}"}
		a.Configure(t, loadServers[i]+"paths:\n"+loadsite.Path("p", netip.AddrPortFrom(hosts[1-i].Addr4, port), pins[1-i], load...))
		a.Reload(t)
	}
	for _, a := range agents {
		program.Eventually(t, "two runs of each agent", func() bool {
			return loadsite.Sum(a.Metrics(t, "oneway_probe_runs_total"), `"completed"`) >= 2
		})
	}
	for _, a := range agents {
		runs := a.Metrics(t, "oneway_probe_runs_total")
		t.Logf("counted: %v", runs)
		// A run may be due while the previous one waits.
		if loadsite.Sum(runs) != loadsite.Sum(runs, `"completed"`)+loadsite.Sum(runs, `"overrun"`) {
			t.Error("runs that began did not complete")
		}
	}
	for _, a := range agents { // only now: the other agent may still start a run
		a.Signal(t, syscall.SIGTERM)
		a.Wait(t)
	}
	disjoint(t, spans(s.Drained(t)))
}

// A reload that does not change a probe does not end its run; one that changes it ends the run at both
// ends, and the next run has the new configuration.
func TestReloadEndsOnlyTheRunsOfProbesThatItChanges(t *testing.T) {
	s := newSite(t, loadsite.OverSlow())
	load := []string{"directions: [reverse]", "duration: 4s"}
	before := "paths:\n" + s.Path("p", append(load, "rate: {reverse: 24Mbit}")...)
	a := s.Agent(t, before)

	s.underLoad(t, a.Process, sample.Reverse)
	a.Configure(t, before+`  - {name: other, peer: "127.0.0.1:862", probes: [{type: stamp}]}`+"\n")
	a.Reload(t)
	program.Eventually(t, "the run completes", func() bool { return loadsite.Sum(a.Metrics(t, "oneway_probe_runs_total"), `"completed"`) == 1 })
	// On a busy machine the next run may have begun; none must have ended early.
	if runs := a.Metrics(t, "oneway_probe_runs_total"); loadsite.Sum(runs) != loadsite.Sum(runs, `"completed"`)+loadsite.Sum(runs, `"overrun"`) {
		t.Errorf("%v runs are counted, want completed ones only", runs)
	}

	c, _ := s.Network.Counts(sample.Reverse)
	program.Eventually(t, "the next run", func() bool {
		now, _ := s.Network.Counts(sample.Reverse)
		return now.Entered > c.Entered+1000
	})
	a.Configure(t, "paths:\n"+s.Path("p", append(load, "rate: {reverse: 12Mbit}")...))
	changed := a.Reload(t)
	program.Eventually(t, "the first run of the new configuration", func() bool {
		return loadsite.Sum(a.Metrics(t, "oneway_probe_runs_total"), `"completed"`) == 1 && len(a.Runs(t)) == 3
	})
	all := spans(s.Drained(t))
	disjoint(t, all)
	if len(all) != 3 {
		t.Fatalf("%d sessions were on the link, want 3", len(all))
	}
	if all[1].packets >= all[0].packets {
		t.Errorf("%d packets of the run that ended early, %d of a complete one", all[1].packets, all[0].packets)
	}
	punctual(t, "the load server's last packet", all[1].sent.Time().Sub(changed), time.Second)
	// The newest is first; runs that began in the same second are in no order.
	got := a.Runs(t)
	stopped := slices.IndexFunc(got, func(r loadsite.Reported) bool { return r.Result == "incomplete" && r.Reason == "stopped" })
	if stopped != 0 && stopped != 1 || got[1-stopped].Result != "completed" || got[2].Result != "completed" {
		t.Errorf("the reports: %+v", got)
	} else if !strings.Contains(got[stopped].Error, "a reload of the configuration changed or removed it") {
		t.Errorf("the report does not name the reload: %+v", got[stopped])
	}
}
