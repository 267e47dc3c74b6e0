package stamp

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/net/sched"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes/stamp/ledger"
)

// LightBytes is the payload of a packet of Light, with Follow-Up Telemetry, which gives the true T3, and without a Receipt: a query
// each second gives the counts instead. The packets must not take a share of the link that changes the load test's result.
const LightBytes = stampfmt.AuthenticatedBytes + followUpBytes + hmacTLVBytes

// lightPackets is how many packets fit MaxBytes, with the queries.
func lightPackets(o *probe.LightOptions) uint64 {
	query := int64(DefaultSize(true))
	perSecond := LightBytes/o.Interval.Seconds() + float64(query)
	seconds := float64(max(0, o.MaxBytes-ledger.OpenTries*query)) / perSecond
	return max(1, uint64(seconds/o.Interval.Seconds()))
}

// Light is the probe.Light of this package: a session with a hub of its own, so that the sockets of paths, their series
// and the attribution of their drops do not change while a load test runs.
func Light(ctx context.Context, env probe.Env, o probe.LightOptions) (probe.LightStream, error) {
	if env.Pacer == nil {
		return nil, errors.New("stamp: packets during a load test: there is no pacer")
	}
	opts := DefaultOptions()
	opts.Interval, opts.LossTimeout, opts.Size, opts.DSCP = o.Interval, o.LossTimeout, LightBytes, o.DSCP
	opts.keys = []*stampfmt.Key{stampfmt.NewKey(o.Key)}
	if o.Local.IsValid() {
		opts.Local = o.Local.String()
	}
	env.Sink, env.Scopes, env.Profile = metric.Discard{}, nil, metric.Slim
	path := o.Target
	path.Peer = o.Peer.String()
	p, err := NewType().NewProber(env, path, opts)
	if err != nil {
		return nil, fmt.Errorf("stamp: packets during a load test: %w", err)
	}
	series := seriesOf(p.env.Scope(p.path))
	s, end, err := p.begin(ctx, o.Peer, p.opts, series, func(s *session) {
		s.endAfter(lightPackets(&o))
		s.plan = sched.Scattered(o.Interval, rand.Uint64()) // a run is short: one phase of the link's slots would be its whole result
	})
	if err != nil {
		series.scope.Close()
		return nil, err
	}
	s.awaitOpening(ctx, pollInterval)
	unschedule := env.Pacer.Add(s, s.plan.Next(sched.Now()))
	return &lightStream{session: s, end: func() {
		end()
		series.scope.Close()
	}, unschedule: unschedule}, nil
}

// lightStream is a session of Light.
type lightStream struct {
	session         *session
	unschedule, end func()
}

// Stop implements probe.LightStream.
func (l *lightStream) Stop(ctx context.Context) (packets, bytes int64) {
	l.unschedule()
	s := l.session
	s.poll(ctx, pollInterval, s.opts.LossTimeout+time.Second, func() bool { return s.account.Outstanding() == 0 })
	s.mu.Lock()
	s.account.Flush(math.MaxInt64)
	tests, queries := int64(s.account.Next()), int64(s.account.Queries())
	s.mu.Unlock()
	l.end()
	return tests + queries, tests*LightBytes + queries*int64(DefaultSize(true))
}
