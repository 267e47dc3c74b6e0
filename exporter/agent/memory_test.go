package agent

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/probe"
)

// still is a prober that measures nothing, without a goroutine.
type still struct{}

func (still) Document() (doc string, options []option.Described) { return "", nil }
func (still) Name() string                                       { return "still" }
func (still) Run(context.Context) error                          { return nil }
func (still) Start(context.Context) (func(), error)              { return func() {}, nil }
func (still) Status() probe.Status                               { return probe.Status{} }
func (still) New(_ probe.Env, _ probe.Target, decode func(...any) error) (probe.Prober, error) {
	o := struct {
		Interval string `yaml:"interval"`
	}{}
	return still{}, decode(&o)
}

// Of a thousand paths the agent keeps what differs between them: no goroutines, loggers or YAML of their own.
func TestPathsTakeLittleMemory(t *testing.T) {
	const paths, most = 1000, 2000 // bytes of a path beside its prober, 1,620 to 1,870 in ten runs; about 450 of them are what the runtime keeps of the goroutine of its start
	var config strings.Builder
	config.WriteString("profile: slim\npaths:\n") // incidents keep more of the full ones
	for i := range paths {
		fmt.Fprintf(&config, "- {name: path-%d, peer: 192.0.2.1, probes: [{type: still, interval: 1s}]}\n", i)
	}
	file := filepath.Join(t.TempDir(), "oneway.yml")
	if err := os.WriteFile(file, []byte(config.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	before, goroutines := live(), runtime.NumGoroutine()
	a, err := New(Options{ConfigFile: file, Types: typesWith(still{}), Sink: metric.Discard{}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	a.begin(t.Context())
	for _, j := range a.inForce.jobs {
		for end := (func())(nil); end == nil; runtime.Gosched() {
			j.unit.mu.Lock()
			end = j.unit.end
			j.unit.mu.Unlock()
		}
	}
	after := live()
	if each := (after - before) / paths; each > most {
		t.Errorf("a path takes %d bytes, want at most %d", each, most)
	}
	if n := runtime.NumGoroutine() - goroutines; n > 10 {
		t.Errorf("%d goroutines for %d paths", n, paths)
	}
	if err := a.end(); err != nil {
		t.Error(err)
	}
	a.release()
}

// live is the heap without garbage.
func live() int64 {
	var m runtime.MemStats
	for range 3 { // what pools and finalizers keep needs more than one
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
