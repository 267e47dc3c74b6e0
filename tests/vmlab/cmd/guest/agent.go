package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"oneway.example/exporter/agent"
	"oneway.example/exporter/clocks"
	"oneway.example/exporter/core/ctxtime"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/traffictypes"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes"
	"oneway.example/exporter/probes/stamp"
	"oneway.example/exporter/watchers"
	"oneway.example/tests/vmlab/record"
	"oneway.example/tests/vmlab/truth"
)

// runAgent is oneway's agent with its configuration, and logs to dir.
func runAgent(config, dir string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	packets, err := openLog(filepath.Join(dir, record.PacketsFile))
	if err != nil {
		return err
	}
	states, err := openLog(filepath.Join(dir, record.StatesFile))
	if err != nil {
		return err
	}
	metrics, err := openLog(filepath.Join(dir, record.MetricsFile))
	if err != nil {
		return err
	}
	sink := newSink()
	types := probes.All()
	for i, t := range types {
		types[i] = tracing{t, packets}
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo}))
	a, err := agent.New(agent.Options{ConfigFile: config, Types: agent.Types{Clocks: clocks.All(), Probes: types, Watchers: watchers.All(), Traffic: traffictypes.All()}, Sink: sink, Log: log})
	if err != nil {
		return err
	}
	var background sync.WaitGroup
	defer background.Wait()
	defer stop()
	for _, l := range []*jsonLog{packets, states, metrics} {
		background.Go(func() { l.keep(ctx) })
	}
	background.Go(func() { logStates(ctx, a, states) })
	background.Go(func() { logMetrics(ctx, sink, metrics) })
	return a.Run(ctx)
}

// tracing is a probe type whose STAMP probers write down every packet of the path that is
// judged.
type tracing struct {
	probe.Type
	log *jsonLog
}

func (t tracing) New(env probe.Env, target probe.Target, decode func(...any) error) (probe.Prober, error) {
	p, err := t.Type.New(env, target, decode)
	if s, ok := p.(*stamp.Prober); ok && err == nil && target.Path == record.JudgedPath {
		s.OnPacket = func(p sample.Packet, forward, reverse sample.Delay) {
			t.log.put(record.Packet{Seen: truth.Counter(), Packet: p, Forward: forward, Reverse: reverse})
		}
	}
	return p, err
}

// stateEvery is how often the agent is asked for its clock's state.
const stateEvery = 50 * time.Millisecond

func logStates(ctx context.Context, a *agent.Agent, log *jsonLog) {
	for ctxtime.Sleep(ctx, stateEvery) {
		s := a.Status().Clock
		r := record.State{
			Counter: truth.Counter(), State: s.State, Reason: s.Reason, Trusted: s.Trusted,
			Bound: time.Duration(s.Bound), Offset: time.Duration(s.Offset), Steps: s.Steps,
		}
		if !s.LastUpdate.IsZero() {
			r.LastUpdate = instant.FromTime(s.LastUpdate)
		}
		log.put(r)
	}
}

func logMetrics(ctx context.Context, s *sink, log *jsonLog) {
	for first := true; ctxtime.Sleep(ctx, 2*flushEvery); {
		if changed := s.changes(); len(changed) > 0 {
			log.put(record.Metrics{Counter: truth.Counter(), First: first, Values: changed})
			first = false
		}
	}
}
