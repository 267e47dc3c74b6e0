package heavy

import (
	"context"
	"time"
)

// Lender lends a run the link that another process of this host keeps: the agent, to a test
// from the terminal. What this process itself knows of links and budgets holds, too.
type Lender interface {
	// Lend waits until the link is the run's, for wait at the most. The error is a *Failure,
	// or what has ended ctx.
	Lend(ctx context.Context, wait time.Duration) (Loan, error)
}

// Loan is a link that is lent for one try of a run.
type Loan interface {
	// Reserve sets IP octets of the link's budget aside.
	Reserve(bytes int64) error
	// Sending says that the link is being filled from now on.
	Sending()
	// Return gives the link back. It is called once, with the IP octets that were sent.
	Return(forward, reverse int64)
}

// own is the Lender of a process that keeps its links itself.
type own struct{}

func (own) Lend(context.Context, time.Duration) (Loan, error) { return own{}, nil }
func (own) Reserve(int64) error                               { return nil }
func (own) Sending()                                          {}
func (own) Return(_, _ int64)                                 {}
