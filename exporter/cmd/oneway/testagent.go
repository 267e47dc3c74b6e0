package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"oneway.example/exporter/heavy"
	"oneway.example/exporter/link"
	"oneway.example/exporter/loan"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/wait"
)

// borrower has the agent of this host lend its link.
type borrower struct {
	socket string
	ask    loan.Ask
	links  *link.Table // are told what is left of the agent's budget
	say    func(format string, args ...any)
}

// lender asks whether an agent runs here, and takes from it the link and the names of the
// test; nil: none does, or it is not to be asked.
func (f *testFlags) lender(ctx context.Context, links *link.Table, target *probe.Target, say func(string, ...any)) (heavy.Lender, error) {
	if f.noAgent {
		return nil, nil
	}
	host, port, err := heavy.Address(&f.options, *target)
	if err != nil {
		return nil, asUsage(err)
	}
	b := &borrower{
		socket: f.socket, links: links, say: say,
		ask: loan.Ask{Kind: target.Probe, Host: host, Port: port, Link: f.options.Link},
	}
	l, err := loan.Dial(ctx, b.socket, b.ask)
	none, isNone := errors.AsType[*loan.NoAgentError](err)
	switch {
	case isNone:
		say("No agent runs on this host (%s): this test runs alone, and no other is kept from its link.", none.Why)
		return nil, nil
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("%w: run this as root, as the agent's user, or as a member of the group of its flag --test.socket-group; or add --no-agent: --help says what that means", err)
	case err != nil:
		return nil, withoutAgent(err)
	}
	l.Close()
	t := l.Terms()
	target.Path, target.Probe = t.Path, t.Probe
	f.options.Link, b.ask.Link = t.Link, t.Link
	return b, nil
}

func withoutAgent(err error) error {
	return fmt.Errorf("%w; --no-agent runs the test without the agent: --help says what that means", err)
}

// Lend is heavy.Lender's.
func (b *borrower) Lend(ctx context.Context, most time.Duration) (heavy.Loan, error) {
	l, err := loan.Dial(ctx, b.socket, b.ask)
	if err == nil {
		if err = l.Take(ctx, most, func(t loan.Terms) {
			b.say("Waiting for link %s, for %v at the most: %s has it since %s.", t.Link, most.Round(time.Second), t.Holder, t.Since.Local().Format(time.TimeOnly))
		}); err != nil {
			l.Close()
		}
	}
	busy, isBusy := errors.AsType[*loan.BusyError](err)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case isBusy:
		return nil, &heavy.Failure{Reason: heavy.ReasonLinkBusy, Err: fmt.Errorf("%w; --wait waits longer", busy)}
	case errors.As(err, new(*loan.NoAgentError)), errors.Is(err, loan.ErrGone):
		b.say("The agent on this host has ended: this test runs alone, and no other is kept from its link.")
		return &lentLink{from: b}, nil
	default:
		return nil, &heavy.Failure{Reason: heavy.ReasonConfiguration, Err: withoutAgent(err)}
	}
	t := l.Terms()
	b.say("The agent on this host lends link %s, for path %s and probe %s: %s.", t.Link, t.Path, t.Probe, budgetOf(t))
	if err := b.mirror(t); err != nil {
		l.Close()
		return nil, err
	}
	return &lentLink{from: b, loan: l}, nil
}

// mirror has this process's own links know what is left of the agent's budget.
func (b *borrower) mirror(t loan.Terms) error {
	limit := int64(0)
	if t.Limit > 0 {
		used, err := b.links.Reserve(t.Link, 0)
		if err != nil {
			return err
		}
		used.Settle(1) // a limit of 0 would be none
		limit = b.links.Usage(t.Link).Used + t.Left
	}
	return b.links.SetLinks([]link.Options{{Name: t.Link, BudgetBytes: limit}})
}

// budgetOf is "12.0 MB of today's budget of 500.0 MB are left".
func budgetOf(t loan.Terms) string {
	if t.Limit == 0 {
		return "it has no data budget"
	}
	return fmt.Sprintf("%.1f MB of today's budget of %.1f MB are left", float64(t.Left)/1e6, float64(t.Limit)/1e6)
}

// lentLink is heavy.Loan: what the agent has lent, while there is one.
type lentLink struct {
	from *borrower
	loan *loan.Loan // nil: the agent has gone before it lent anything

	stop    context.CancelFunc
	watched sync.WaitGroup
}

// Reserve is heavy.Loan's. An agent that has gone has no budget any more.
func (l *lentLink) Reserve(bytes int64) error {
	if l.loan == nil {
		return nil
	}
	if err := l.loan.Reserve(bytes); !errors.Is(err, loan.ErrGone) {
		return err
	}
	return nil // Sending tells
}

// Sending is heavy.Loan's.
func (l *lentLink) Sending() {
	if l.loan == nil {
		return
	}
	l.loan.Sending()
	ctx, cancel := context.WithCancel(context.Background())
	l.stop = cancel
	l.watched.Go(func() { l.watch(ctx) })
}

// tryAgain is how often an agent that has gone is looked for.
const tryAgain = time.Second

// watch tells when the agent goes, and takes the link of the one that comes.
func (l *lentLink) watch(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.loan.Lost():
		}
		l.loan.Close()
		l.from.say("The agent on this host has ended, or has taken link %s back: this test goes on, and no other is kept from the link until an agent lends it again.", l.loan.Terms().Link)
		for wait.For(ctx, tryAgain) {
			again, err := loan.Dial(ctx, l.from.socket, l.from.ask)
			if err != nil {
				continue
			}
			if again.TakeAgain(ctx) == nil {
				l.loan = again
				l.from.say("An agent on this host lends link %s again; what was set aside for the test counts as used.", again.Terms().Link)
				break
			}
			again.Close()
		}
	}
}

// Return is heavy.Loan's.
func (l *lentLink) Return(forward, reverse int64) {
	if l.loan == nil {
		return
	}
	if l.stop != nil {
		l.stop()
		l.watched.Wait()
	}
	if l.loan.Settle(forward, reverse) != nil {
		return // that the agent has gone was told, and it counts what was set aside
	}
	if t := l.loan.Terms(); t.Limit > 0 {
		l.from.say("The agent on this host has its link %s again: %s.", t.Link, budgetOf(t))
	}
}
