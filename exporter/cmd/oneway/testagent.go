package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"oneway.example/exporter/agent/linklease"
	"oneway.example/exporter/core/ctxtime"
	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/link"
)

// lessee leases a link from the agent of this host.
type lessee struct {
	socket string
	ask    linklease.Test
	links  *link.Table // of this process; mirror copies the agent's quota to them
	say    func(format string, args ...any)
}

// lessor finds the agent of this host and takes the link and the path's names from it; nil if there is no agent or it
// is not to be used.
func (f *testFlags) lessor(ctx context.Context, test loadtest.Test, run *loadtest.Options, links *link.Table, target *probe.Target, say func(string, ...any)) (loadtest.Lessor, error) {
	if !f.agent {
		return nil, nil
	}
	host, port := test.Remote()
	b := &lessee{
		socket: f.socket, links: links, say: say,
		ask: linklease.Test{Kind: target.Probe, Host: host, Port: port, Link: run.Link},
	}
	l, err := linklease.Dial(ctx, b.socket, b.ask)
	none, isNone := errors.AsType[*linklease.NoAgentError](err)
	switch {
	case isNone:
		say("No agent runs on this host (%s): the link is not reserved, so that another test may run on it at the same time.", none.Why)
		return nil, nil
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("%w: run this as root, as the agent's user, or as a member of the group of its flag --test.socket-group; or add --no-agent (see --help)", err)
	case err != nil:
		return nil, withoutAgent(err)
	}
	l.Close()
	t := l.Terms()
	target.Path, target.Probe = t.Path, t.Probe
	run.Link, b.ask.Link = t.Link, t.Link
	return b, nil
}

func withoutAgent(err error) error {
	return fmt.Errorf("%w; --no-agent runs the test without the agent (see --help)", err)
}

// Lease implements loadtest.Lessor.
func (b *lessee) Lease(ctx context.Context, most time.Duration) (loadtest.Lease, error) {
	l, err := linklease.Dial(ctx, b.socket, b.ask)
	if err == nil {
		if err = l.Acquire(ctx, most, func(t linklease.Terms) {
			b.say("Waiting for link %s, for at most %v: %s has it since %s.", t.Link, most.Round(time.Second), t.Holder, t.Since.Local().Format(time.TimeOnly))
		}); err != nil {
			l.Close()
		}
	}
	busy, isBusy := errors.AsType[*link.BusyError](err)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case isBusy:
		return nil, &loadtest.Failure{Reason: runreason.LinkBusy, Err: fmt.Errorf("%w; --max-wait sets a longer waiting time", busy)}
	case errors.As(err, new(*linklease.NoAgentError)), errors.Is(err, linklease.ErrClosed):
		b.say("The agent on this host has ended: the link is no longer reserved, so that another test may run on it at the same time.")
		return &leasedLink{from: b}, nil
	default:
		return nil, &loadtest.Failure{Reason: runreason.Configuration, Err: withoutAgent(err)}
	}
	t := l.Terms()
	b.say("The agent on this host leases link %s, for path %s and probe %s: %s.", t.Link, t.Path, t.Probe, quotaOf(t))
	if err := b.mirror(t); err != nil {
		l.Close()
		return nil, err
	}
	return &leasedLink{from: b, lease: l}, nil
}

// mirror sets the quota of this process's link to the rest of the agent's quota.
func (b *lessee) mirror(t linklease.Terms) error {
	limit := int64(0)
	if t.Limit > 0 {
		used, err := b.links.Reserve(t.Link, 0)
		if err != nil {
			return err
		}
		used.Settle(1) // a limit of 0 would mean no quota
		limit = b.links.Usage(t.Link).Used + t.Left
	}
	return b.links.SetLinks([]link.Options{{Name: t.Link, QuotaBytes: limit}})
}

// quotaOf is "12 MB of today's quota of 500 MB are left".
func quotaOf(t linklease.Terms) string {
	if t.Limit == 0 {
		return "it has no data quota"
	}
	return fmt.Sprintf("%s of today's quota of %s are left", unit.Bytes.Format(float64(t.Left)), unit.Bytes.Format(float64(t.Limit)))
}

// leasedLink implements loadtest.Lease: the link that the agent leased, if any.
type leasedLink struct {
	from  *lessee
	lease *linklease.Lease // nil: the agent ended before it leased the link

	stop    context.CancelFunc
	watched sync.WaitGroup
}

// Reserve implements loadtest.Lease. Without an agent there is no quota.
func (l *leasedLink) Reserve(bytes int64) error {
	if l.lease == nil {
		return nil
	}
	if err := l.lease.Reserve(bytes); !errors.Is(err, linklease.ErrClosed) {
		return err
	}
	return nil // watch reports it
}

// BeginSending implements loadtest.Lease.
func (l *leasedLink) BeginSending() {
	if l.lease == nil {
		return
	}
	l.lease.BeginSending()
	ctx, cancel := context.WithCancel(context.Background())
	l.stop = cancel
	l.watched.Go(func() { l.watch(ctx) })
}

// tryAgain is the interval at which watch looks for a new agent.
const tryAgain = time.Second

// watch reports the end of the lease, and leases the link from the next agent.
func (l *leasedLink) watch(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.lease.Lost():
		}
		l.lease.Close()
		l.from.say("The agent on this host has ended, or has taken link %s back: this test goes on, and other tests can use the link until an agent leases it again.", l.lease.Terms().Link)
		for ctxtime.Sleep(ctx, tryAgain) {
			again, err := linklease.Dial(ctx, l.from.socket, l.from.ask)
			if err != nil {
				continue
			}
			if again.Reacquire(ctx) == nil {
				l.lease = again
				l.from.say("An agent on this host leases link %s again; the bytes reserved for the test count as used.", again.Terms().Link)
				break
			}
			again.Close()
		}
	}
}

// Return implements loadtest.Lease.
func (l *leasedLink) Return(forward, reverse int64) {
	if l.lease == nil {
		return
	}
	if l.stop != nil {
		l.stop()
		l.watched.Wait()
	}
	if l.lease.Settle(forward, reverse) != nil {
		return // watch has reported the lost agent, which counts the reserved bytes as used
	}
	if t := l.lease.Terms(); t.Limit > 0 {
		l.from.say("Link %s is returned to the agent on this host: %s.", t.Link, quotaOf(t))
	}
}
