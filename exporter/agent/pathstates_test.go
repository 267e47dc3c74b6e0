package agent

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/pathstate"
	"oneway.example/exporter/probe"
	"oneway.example/tests/await"
)

// known is a light prober with given facts, and their type.
type known struct {
	mu    sync.Mutex
	facts pathstate.Facts
	fails error
}

func (*known) Name() string                                       { return "known" }
func (*known) Document() (doc string, options []option.Described) { return "", nil }
func (k *known) New(_ probe.Env, _ probe.Target, decode func(...any) error) (probe.Prober, error) {
	return k, decode(&struct{}{})
}

func (k *known) Run(ctx context.Context) error {
	k.mu.Lock()
	err := k.fails
	k.mu.Unlock()
	if err == nil {
		<-ctx.Done()
	}
	return err
}

func (k *known) Status() probe.Status { return probe.Status{Up: true, State: "measuring"} }

func (k *known) Facts() pathstate.Facts {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.facts
}

func (k *known) set(f pathstate.Facts) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.facts = f
}

// TestStateOfAPathIsOneDecision: series, status and health have the same, from the first scrape on, and end with the path.
func TestStateOfAPathIsOneDecision(t *testing.T) {
	const path = "clock: {source: none}\npaths: [{name: a, peer: x, probes: [{type: known}]}, {name: b, peer: x, probes: [{type: fake}]}]\n"
	light := &known{}
	r := newRigWith(t, newFake(), path, func(o *Options) { o.Types.Probes = append(o.Types.Probes, light) })
	up := pathstate.Facts{Decided: true, Replies: true, Measured: true, Session: 1, Answered: 1, MaxLoss: 0.01}
	for _, c := range []struct {
		facts  pathstate.Facts
		want   pathstate.Reason
		health Health
	}{
		{pathstate.Facts{}, pathstate.NoData, Starting},
		{up, pathstate.None, Up},
		{pathstate.Facts{Decided: true, Silence: pathstate.Key}, pathstate.Key, Down},
	} {
		light.set(c.facts)
		await.That(t, c.want.String(), func() bool {
			state, _ := r.value(metric.PathState.Name, "a")
			why, known := r.value(metric.PathStateReason.Name, "a")
			p := r.Status().Paths[0].Probes[0]
			same := p.PathStateReason == c.want.String() && p.PathState == c.want.State().String() && p.Health == c.health
			return known && state == float64(c.want.State()) && why == float64(c.want) && same
		})
	}
	if p := r.Status().Paths[0].Probes[0]; p.Reason != pathstate.Key.Sentence() || p.Cause != "key" {
		t.Errorf("%+v, want the sentence of the reason", p)
	}
	if p := r.Status().Paths[1].Probes[0]; p.PathState != "" {
		t.Errorf("a probe without facts has the state %s", p.PathState)
	}
	r.write("version: 1\nclock: {source: none}\npaths: [{name: b, peer: x, probes: [{type: fake}]}]\n")
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	if v, found := r.value(metric.PathState.Name, "a"); found {
		t.Errorf("a path that was removed has the state %v", v)
	}
}

// TestProbeThatFailsHasAState: its own series end, so that it would be missing from a list of the worst paths.
func TestProbeThatFailsHasAState(t *testing.T) {
	light := &known{fails: errors.New("no socket")}
	r := newRigWith(t, newFake(), "clock: {source: none}\npaths: [{name: a, peer: x, probes: [{type: known}]}]\n", func(o *Options) {
		o.Types.Probes, o.retry = append(o.Types.Probes, light), retry{first: time.Hour, most: time.Hour}
	})
	await.That(t, "the state of a probe that does not run", func() bool {
		why, _ := r.value(metric.PathStateReason.Name, "a")
		return why == float64(pathstate.NotRunning) && r.Status().Paths[0].Probes[0].Health == Failed
	})
}

// TestPathToAnotherHostIsDegraded: replies of another host show nothing of the one of this name; silence does.
func TestPathToAnotherHostIsDegraded(t *testing.T) {
	sink, wrong := &metrictest.Sink{}, &misnamed{all: map[string]string{"a": "two names have one address"}}
	s, light := newPathStates(sink, nil, wrong), &known{}
	j := jobOf(probe.Target{Path: "a", Probe: "stamp"}, light)
	j.unit = &unit{}
	s.put(&plan{jobs: []job{j}})
	for _, c := range []struct {
		replies bool
		want    pathstate.Reason
	}{{true, pathstate.OtherHost}, {false, pathstate.NoReply}} {
		light.set(pathstate.Facts{Decided: true, Replies: c.replies, Silence: pathstate.NoReply, Measured: true, Answered: 10, MaxLoss: 0.01})
		s.publish(nil)
		if v, _ := sink.Value(metric.PathStateReason, "a", "stamp"); v != float64(c.want) {
			t.Errorf("replies %v: reason %v, want %d", c.replies, v, c.want)
		}
	}
}

// TestStatesContinueOverAReload, and a load test is known by the path.
func TestStatesContinueOverAReload(t *testing.T) {
	sink := &metrictest.Sink{}
	s, light := newPathStates(sink, nil, &misnamed{}), &known{}
	j := jobOf(probe.Target{Path: "a", Probe: "stamp"}, light)
	j.unit = &unit{}
	s.put(&plan{jobs: []job{j}})
	facts := pathstate.Facts{Decided: true, Replies: true, Measured: true, Answered: 10, MaxLoss: 0.01}
	light.set(facts)
	s.publish(nil)
	s.put(&plan{jobs: []job{j}})
	facts.Answered, facts.Unanswered = 20, 10
	light.set(facts)
	s.publish(map[string]time.Time{"a": time.Now()})
	if v, ok := sink.Value(metric.PathState, "a", "stamp"); v != 0 || !ok {
		t.Errorf("state %v, %v: want the one before the load test", v, ok)
	}
	facts.Unanswered = 20
	light.set(facts)
	s.since = s.since.Add(-time.Minute)
	s.publish(nil)
	if v, _ := sink.Value(metric.PathStateReason, "a", "stamp"); v != float64(pathstate.Loss) {
		t.Errorf("reason %v, want %d", v, pathstate.Loss)
	}
	s.put(&plan{})
	if n := sink.Open(); n != 0 {
		t.Errorf("%d series are left", n)
	}
}
