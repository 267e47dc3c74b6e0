package agent

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oneway.example/exporter/agent/eventlog"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/core/pathstate"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/link"
	"oneway.example/tests/await"
)

// hasEvent waits for an event of a path, or of the agent.
func (r *rig) hasEvent(family *metric.Desc, labels ...string) {
	r.t.Helper()
	await.That(r.t, "the event", func() bool {
		at, found := r.value(family.Name, labels...)
		return found && at > float64(r.started.Unix())-1 && at < float64(time.Now().Unix())+1
	})
}

// TestAgentsHaveEvents: it began, its configuration was changed, refused; planned work began and ended.
func TestAgentsHaveEvents(t *testing.T) {
	const paths = "clock: {source: none}\npaths: [{name: a, peer: x, probes: [{type: fake}]}]\n"
	r := newRig(t, newFake(), paths)
	r.hasEvent(metric.AgentEvent, "restarted")
	if v, found := r.value(metric.AgentEvent.Name, "reloaded"); found {
		t.Errorf("reloaded at %v, before it was", v)
	}
	r.write("version: 1\n" + paths + "maintenance: [{all: true, from: 2020-01-01T00:00:00Z, to: 2020-01-01T01:00:00Z, reason: done}]\n")
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	r.hasEvent(metric.AgentEvent, "reloaded")
	r.write("version: 7\n")
	if err := r.Reload(); err == nil {
		t.Fatal("version 7 was accepted")
	}
	r.hasEvent(metric.AgentEvent, "reload_failed")
	now := time.Now()
	r.write("version: 1\n" + paths + "maintenance: [{all: true, from: " + now.Format(time.RFC3339) + ", to: " + now.Add(time.Hour).Format(time.RFC3339) + ", reason: new router}]\n")
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	r.hasEvent(metric.AgentEvent, "maintenance_begun")
	r.hasEvent(metric.PathEvent, "a", "maintenance_begun")
	r.write("version: 1\n" + paths)
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	r.hasEvent(metric.PathEvent, "a", "maintenance_ended")
	r.stop()
	if v, found := r.value(metric.AgentEvent.Name, "restarted"); found {
		t.Errorf("an agent that has ended has the event of %v", v)
	}
}

// TestChangesOfStateAreEvents, but not what a path begins with: nobody knows since when.
func TestChangesOfStateAreEvents(t *testing.T) {
	sink, light := &metrictest.Sink{}, &known{}
	s := newPathStates(sink, eventlog.New(sink, nil), &misnamed{})
	j := jobOf(probe.Target{Path: "a", Probe: "stamp"}, light)
	j.unit = &unit{}
	s.put(&plan{jobs: []job{j}})
	facts := pathstate.Facts{Decided: true, Silence: pathstate.NoReply}
	look := func(after time.Duration, want ...string) {
		t.Helper()
		light.set(facts)
		s.since = s.since.Add(-after)
		s.publish(nil)
		got := sink.All(metric.PathEvent)
		if len(got) != len(want) {
			t.Errorf("events %v, want %v", got, want)
		}
		for _, kind := range want {
			if _, ok := sink.Value(metric.PathEvent, "a", kind); !ok {
				t.Errorf("no event %s: %v", kind, got)
			}
		}
	}
	look(0) // it is down from the begin on
	facts = pathstate.Facts{Decided: true, Replies: true, Measured: true, Answered: 10, MaxLoss: 0.01}
	look(time.Minute, "recovered")
	look(time.Minute, "recovered")
	facts = pathstate.Facts{Decided: true, Silence: pathstate.NoReply}
	look(time.Minute, "recovered", "down")
	facts = pathstate.Facts{Decided: true, Replies: true, Measured: true, Answered: 20, Unanswered: 30, MaxLoss: 0.01}
	look(time.Minute, "recovered", "down") // better, and not up
	facts = pathstate.Facts{Decided: true, Replies: true, Measured: true, Answered: 2000, Unanswered: 30, MaxLoss: 0.5}
	look(2*time.Hour, "recovered", "down")
	look(2*time.Minute, "recovered", "down")
	facts = pathstate.Facts{Decided: true, Replies: true, Measured: true, Answered: 2020, Unanswered: 60, MaxLoss: 0.01}
	look(10*time.Minute, "recovered", "down", "degraded")
}

// TestARouteIsAnotherOneWhenAllPacketsTakeIt for a minute; packets that take two routes in turn are no change.
func TestARouteIsAnotherOneWhenAllPacketsTakeIt(t *testing.T) {
	r, changes := &route{}, uint64(0)
	var told []time.Duration
	at, last := time.Duration(0), uint8(0)
	run := func(long time.Duration, routers func(i int) uint8) {
		for i := range int(long / time.Second) {
			n := routers(i)
			if last != 0 && n != last {
				changes++
			}
			last = n
			if _, since, changed := r.see(at, probe.Hops{Known: true, Routers: n, Changes: changes}); changed {
				told = append(told, since)
			}
			at += time.Second
		}
	}
	run(10*time.Minute, func(int) uint8 { return 9 })
	run(10*time.Minute, func(i int) uint8 { return 9 + uint8(i%2) })
	run(30*time.Second, func(int) uint8 { return 12 })
	run(10*time.Minute, func(int) uint8 { return 9 })
	if len(told) != 0 {
		t.Errorf("changes at %v, want none", told)
	}
	changed := at
	run(10*time.Minute, func(int) uint8 { return 12 })
	if len(told) != 1 || told[0] != changed {
		t.Errorf("changes at %v, want one at %v", told, changed)
	}
}

// routed is a light prober with given hops.
type routed struct {
	known
	hops [2]probe.Hops
}

func (r *routed) Hops() [2]probe.Hops { return r.hops }

// TestRoutesAreOfProfileFull: the other profile has no number of routers.
func TestRoutesAreOfProfileFull(t *testing.T) {
	for profile, want := range map[metric.Profile]int{metric.Full: 1, metric.Slim: 0} {
		sink, light := &metrictest.Sink{}, &routed{hops: [2]probe.Hops{{Known: true, Routers: 3}, {}}}
		s := newRoutes(eventlog.New(sink, nil))
		j := jobOf(probe.Target{Path: "a", Probe: "stamp"}, light)
		j.profile = profile
		look := func(after time.Duration) {
			s.since = s.since.Add(-after)
			s.publish()
		}
		s.put(&plan{jobs: []job{j}})
		look(0)
		look(routeHold)
		s.put(&plan{jobs: []job{j}}) // it continues
		light.hops[0].Routers = 4
		look(time.Second)
		if n := len(sink.All(metric.PathEvent)); n != 0 {
			t.Errorf("%d events at once", n)
		}
		look(routeHold)
		if n := len(sink.All(metric.PathEvent)); n != want {
			t.Errorf("profile %v: %d events, want %d", profile, n, want)
		}
	}
}

// TestEachLoadTestIsAnEventOfItsPaths: at its begin, and a long one is one.
func TestEachLoadTestIsAnEventOfItsPaths(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, sink := link.NewTable(nil), &metrictest.Sink{}
		paths := newTestedPaths(table, sink, eventlog.New(sink, nil))
		paths.put(sharedLinks())
		for range 2 {
			begin := float64(time.Now().UnixNano()) / 1e9
			end := table.Fill(link.Use{Link: "core"})
			for range 30 {
				paths.publish()
				time.Sleep(time.Second) // simulated time (synctest)
			}
			end()
			paths.publish()
			if v, ok := sink.Value(metric.PathEvent, "a", "load_test"); !ok || v != begin {
				t.Errorf("the test is an event of %v, want %v", v, begin)
			}
			time.Sleep(time.Minute) // simulated time (synctest)
		}
		if got := sink.History(metric.PathEvent, "a", "load_test"); len(got) != 2 {
			t.Errorf("events at %v, want two", got)
		}
	})
}

// TestStepsOfTheClockAreEvents; another source of the clock counts from zero, which is no step.
func TestStepsOfTheClockAreEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var steps atomic.Uint64
		sink := &metrictest.Sink{}
		go watchSteps(t.Context(), steps.Load, eventlog.New(sink, nil))
		for _, c := range []struct {
			steps uint64
			want  int
		}{{0, 0}, {1, 1}, {1, 1}, {3, 2}, {0, 2}, {1, 3}} {
			steps.Store(c.steps)
			time.Sleep(2 * stepsInterval) // simulated time (synctest)
			if got := sink.History(metric.AgentEvent, "clock_stepped"); len(got) != c.want {
				t.Errorf("after %d steps: events at %v, want %d", c.steps, got, c.want)
			}
		}
	})
}
