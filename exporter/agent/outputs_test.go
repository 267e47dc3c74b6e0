package agent

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/output"
	"oneway.example/exporter/output/point"
	"oneway.example/tests/await"
)

// fakeOutputs makes outputs that only report what was made and run.
type fakeOutputs struct {
	events chan string
	envs   chan output.Env
	fails  chan error // each Run takes one
}

func newFakeOutputs() *fakeOutputs {
	return &fakeOutputs{events: make(chan string, 100), envs: make(chan output.Env, 100), fails: make(chan error, 1)}
}

func (*fakeOutputs) Name() string { return "fake" }

func (*fakeOutputs) Document() (doc string, options []option.Described) { return "", nil }

func (f *fakeOutputs) New(env output.Env, decode func(...any) error) (output.Output, error) {
	var o struct {
		URL string `yaml:"url"`
	}
	if err := decode(&o); err != nil {
		return nil, err
	}
	if o.URL == "" {
		return nil, option.Errorf("url", "is missing")
	}
	return f.output(env, o.URL), nil
}

func (f *fakeOutputs) output(env output.Env, url string) output.Output {
	f.envs <- env
	return &fakeOutput{f, env, url}
}

type fakeOutput struct {
	*fakeOutputs
	env output.Env
	url string
}

func (o *fakeOutput) Run(ctx context.Context) error {
	scope := o.env.Scopes.Add(metric.NewScope(o.env.Sink, o.env.Name))
	scope.Series(metric.OutputWaiting).Set(7)
	o.events <- "start " + o.env.Name
	select {
	case err := <-o.fails:
		return err
	case <-ctx.Done():
	}
	o.events <- "stop " + o.env.Name
	return nil
}

func (o *fakeOutput) Status() output.Status { return output.Status{Destination: o.url, Waiting: 7} }

// expect fails unless the next events are these, in any order.
func (f *fakeOutputs) expect(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for range want {
		select {
		case one := <-f.events:
			got = append(got, one)
		case <-time.After(await.Timeout):
			t.Fatalf("events %q, want %q", got, want)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		t.Fatalf("events %q, want %q", got, want)
	}
}

const twoOutputs = noPaths + "state_dir: /nonexistent\noutputs: [{type: fake, name: one, url: u1}, {type: fake, url: u2}]\n"

func newOutputRig(t *testing.T, f *fakeOutputs, yaml string) *rig {
	t.Helper()
	return newRigWith(t, newFake(), yaml, func(o *Options) {
		o.Types.Outputs = []output.Type{f}
		o.Series = func(instant.Time, func(*point.Point)) error { return nil }
	})
}

func TestOutputsRunAndAreReloaded(t *testing.T) {
	f := newFakeOutputs()
	r := newOutputRig(t, f, twoOutputs)
	f.expect(t, "start fake", "start one")
	env := <-f.envs
	if env.Name != "one" || env.Recorder != &r.recorder || env.Series == nil || env.StateDir != "/nonexistent" || env.Log == nil {
		t.Errorf("environment is %+v", env)
	}
	want := []OutputStatus{
		{Name: "one", Type: "fake", Status: output.Status{Destination: "u1", Waiting: 7}},
		{Name: "fake", Type: "fake", Status: output.Status{Destination: "u2", Waiting: 7}},
	}
	if diff := cmp.Diff(want, r.Status().Outputs); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	if v, found := r.value("oneway_output_waiting_points", "one"); v != 7 || !found {
		t.Errorf("series is %v, %t", v, found)
	}
	if env.Labels == nil {
		t.Error("the environment has no labels of paths")
	}
	r.write(strings.Replace(twoOutputs, "url: u2", "url: u3", 1))
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	f.expect(t, "stop fake", "start fake")
	if got := r.Status().Outputs[1].Destination; got != "u3" {
		t.Errorf("destination is %s", got)
	}
	r.write(noPaths)
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	f.expect(t, "stop fake", "stop one")
	if _, found := r.value("oneway_output_waiting_points"); found || r.Status().Outputs != nil {
		t.Errorf("after the end there are series %t, status %+v", found, r.Status().Outputs)
	}
}

func TestFailedOutputIsRetriedAndShown(t *testing.T) {
	f := newFakeOutputs()
	r := newOutputRig(t, f, noPaths+"outputs: [{type: fake, url: u}]\n")
	f.expect(t, "start fake")
	r.expectFault(t, f, "the test requests it")
	f.expect(t, "start fake")
	await.That(t, "it runs again", func() bool { return r.Status().Outputs[0].Error == "" })
}

// expectFault makes the output fail, and waits until its status has the error. It ends before the next start.
func (r *rig) expectFault(t *testing.T, f *fakeOutputs, text string) {
	t.Helper()
	unit := r.unit("outputs/fake")
	before, _ := unit.state()
	f.fails <- errors.New(text)
	await.That(t, "the output has failed", func() bool {
		after, err := unit.state()
		return after > before || err != nil && r.Status().Outputs[0].Error == text
	})
}

func TestOutputWithoutConfiguration(t *testing.T) {
	f := newFakeOutputs()
	r := newRigWith(t, newFake(), noPaths, func(o *Options) {
		o.Output = func(env output.Env) output.Output { return f.output(env, "parent") }
	})
	f.expect(t, "start embedded")
	r.write(noPaths + "# changed\n")
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	if got := r.Status().Outputs; len(got) != 1 || got[0].Name != "embedded" || got[0].Destination != "parent" {
		t.Errorf("status is %+v", got)
	}
	r.stop()
	f.expect(t, "stop embedded")
}
