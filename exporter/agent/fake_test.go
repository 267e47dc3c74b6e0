package agent

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"oneway.example/exporter/clocks"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/load/traffictypes"
	"oneway.example/exporter/output/promsink"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/watchers"
)

// fakeType makes probers that only do what the test requests, and reports what was made and run.
type fakeType struct {
	mu     sync.Mutex
	made   int
	events chan string // "start a", "stop a"
	panics map[string]bool
	fails  map[string]error
	lazy   map[string]chan struct{} // by path: the prober ends only when the channel is closed
	causes map[string]error         // by path: why its last prober was ended
	// addresses are the peers' by host name, for probers of any path.
	addresses map[string]netip.Addr
}

func newFake() *fakeType {
	return &fakeType{events: make(chan string, 100), panics: map[string]bool{}, fails: map[string]error{}, lazy: map[string]chan struct{}{}, causes: map[string]error{}, addresses: map[string]netip.Addr{}}
}

func (*fakeType) Name() string { return "fake" }

func (*fakeType) Document() (doc string, options []option.Described) { return "", nil }

type fakeOptions struct {
	Interval time.Duration `yaml:"interval"`
	KeyFile  string        `yaml:"key_file"`
}

func (f *fakeType) New(env probe.Env, target probe.Target, decode func(...any) error) (probe.Prober, error) {
	o := fakeOptions{Interval: time.Second}
	if err := decode(&o); err != nil {
		return nil, err
	}
	if o.Interval <= 0 {
		return nil, &option.Error{Key: "interval", Problem: fmt.Sprintf("is %v; it must be above zero", o.Interval)}
	}
	if target.Peer == "refused" {
		return nil, errors.New("fake: this peer is refused")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.made++
	return &fakeProber{f: f, env: env, target: target}, nil
}

// tell passes an event on. Where nobody reads them, a prober that fails, and begins again every few milliseconds, must not block.
func (f *fakeType) tell(event string) {
	select {
	case f.events <- event:
	default:
	}
}

type fakeProber struct {
	f      *fakeType
	env    probe.Env
	target probe.Target
	mu     sync.Mutex
	status probe.Status
}

// Address implements probe.Addressed.
func (p *fakeProber) Address() netip.Addr {
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	return p.f.addresses[p.target.Host()]
}

// RecordsPackets implements probe.IncidentSource.
func (*fakeProber) RecordsPackets() {}

func (p *fakeProber) Run(ctx context.Context) error {
	up := p.env.Scope(p.target).Series(metric.ProbeUp)
	up.Set(1)
	p.f.mu.Lock()
	panics, fails, lazy := p.f.panics[p.target.Path], p.f.fails[p.target.Path], p.f.lazy[p.target.Path]
	p.f.mu.Unlock()
	p.f.tell("start " + p.target.Path)
	switch {
	case panics:
		panic("requested by the test")
	case fails != nil:
		return fails // with its series left open
	}
	p.mu.Lock()
	p.status = probe.Status{Up: true, State: "measuring", LastSuccess: time.Unix(1, 0)}
	p.mu.Unlock()
	<-ctx.Done()
	if lazy != nil {
		<-lazy
	}
	up.Close()
	p.f.mu.Lock()
	p.f.causes[p.target.Path] = context.Cause(ctx)
	p.f.mu.Unlock()
	p.f.tell("stop " + p.target.Path)
	return nil
}

func (p *fakeProber) Status() probe.Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.status
}

// cause is why the last prober of a path was ended.
func (f *fakeType) cause(path string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.causes[path]
}

// expect fails unless the next events are these, in any order, and no more follow.
func (f *fakeType) expect(t *testing.T, want ...string) {
	t.Helper()
	left := map[string]int{}
	for _, w := range want {
		left[w]++
	}
	for range want {
		select {
		case got := <-f.events:
			if left[got]--; left[got] < 0 {
				t.Fatalf("got event %q, want %q", got, want)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("timeout; want %q", want)
		}
	}
	select {
	case got := <-f.events:
		t.Fatalf("got event %q too, want only %q", got, want)
	default:
	}
}

// rig is an agent that runs in a test.
type rig struct {
	*Agent
	t      *testing.T
	fake   *fakeType
	file   string
	reg    *promsink.Sink
	states chan string
	cancel context.CancelFunc
	ended  chan error
}

// typesWith are the types of the registries, except outputs, with these probes.
func typesWith(all ...probe.Type) Types {
	return Types{Clocks: clocks.All(), Probes: all, Watchers: watchers.All(), Traffic: traffictypes.All()}
}

// newRig starts an agent with a configuration; the end of the test stops it and checks that nothing is left running.
func newRig(t *testing.T, fake *fakeType, yaml string) *rig {
	t.Helper()
	return newRigWith(t, fake, yaml, func(*Options) {})
}

// newRigWith is newRig with other options.
func newRigWith(t *testing.T, fake *fakeType, yaml string, change func(*Options)) *rig {
	t.Helper()
	before := runtime.NumGoroutine()
	r := &rig{t: t, fake: fake, file: filepath.Join(t.TempDir(), "oneway.yml"), states: make(chan string, 100), ended: make(chan error, 1)}
	r.write(yaml)
	r.reg = promsink.New(promsink.Options{})
	o := Options{
		ConfigFile: r.file, Types: typesWith(fake), Sink: r.reg,
		Notify: func(s string) { r.states <- s }, retry: retry{first: time.Millisecond, most: 10 * time.Millisecond}, reloadPause: time.Nanosecond,
	}
	change(&o)
	var err error
	r.Agent, err = New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	go func() { r.ended <- r.Run(ctx) }()
	t.Cleanup(func() {
		r.stop()
		checkGoroutines(t, before)
	})
	r.expectState("READY=1")
	return r
}

// unit is the unit of a task; nil: there is no task.
func (r *rig) unit(key string) *unit {
	if t := r.running[key]; t != nil {
		return t.unit
	}
	return nil
}

// job is the task of a probe, counted over all paths.
func (r *rig) job(i int) *task { return r.inForce.jobs[i].task }

// stop ends the agent; a second call does nothing.
func (r *rig) stop() {
	r.t.Helper()
	r.cancel()
	select {
	case err, running := <-r.ended:
		if err != nil {
			r.t.Errorf("Run returned %v", err)
		}
		if running {
			close(r.ended)
		}
	case <-time.After(10 * time.Second):
		r.t.Fatal("Run did not return")
	}
}

func checkGoroutines(t *testing.T, before int) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for runtime.NumGoroutine() > before && time.Now().Before(deadline) {
		runtime.Gosched()
	}
	if after := runtime.NumGoroutine(); after > before {
		stacks := make([]byte, 1<<20)
		t.Errorf("%d goroutines before, %d after\n%s", before, after, stacks[:runtime.Stack(stacks, true)])
	}
}

func (r *rig) write(yaml string) {
	r.t.Helper()
	if err := os.WriteFile(r.file, []byte(yaml), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) expectState(want string) {
	r.t.Helper()
	select {
	case got := <-r.states:
		if !strings.HasPrefix(got, want) {
			r.t.Fatalf("the service manager was notified of %q, want %q", got, want)
		}
	case <-time.After(10 * time.Second):
		r.t.Fatalf("the service manager was not notified of %q", want)
	}
}

// value returns the value of a metric, and whether there is one.
func (r *rig) value(name string, labels ...string) (float64, bool) {
	r.t.Helper()
	families, err := r.reg.Gather()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.Metric {
			text := m.String()
			matches := true
			for _, l := range labels {
				matches = matches && strings.Contains(text, fmt.Sprintf("value:%q", l))
			}
			if matches {
				return m.GetGauge().GetValue() + m.GetCounter().GetValue(), true
			}
		}
	}
	return 0, false
}
