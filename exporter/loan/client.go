package loan

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"oneway.example/exporter/sched"
)

// answerTime is how long an agent may take for an answer that waits for nothing.
const answerTime = 10 * time.Second

// Loan is a client's end of a connection. Its methods are for one goroutine, but Lost and
// Close.
type Loan struct {
	conn    net.Conn
	replies chan reply
	ended   chan struct{} // closed when the agent says nothing more
	mine    chan struct{} // closed by Close
	closing sync.Once
	writing sync.Mutex
	terms   Terms
}

// Dial asks the agent at socket for a link, and takes nothing yet. The error is
// a *NoAgentError if nobody listens there, or only for another network namespace, and wraps
// fs.ErrPermission if this process may not ask.
func Dial(ctx context.Context, socket string, a Ask) (*Loan, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	switch {
	case err == nil:
	case errors.Is(err, fs.ErrNotExist):
		return nil, &NoAgentError{"there is no " + socket}
	case errors.Is(err, syscall.ECONNREFUSED):
		return nil, &NoAgentError{"nobody listens at " + socket}
	default:
		return nil, fmt.Errorf("loan: %w", err)
	}
	l := &Loan{conn: conn, replies: make(chan reply), ended: make(chan struct{}), mine: make(chan struct{})}
	go l.read()
	r, err := l.ask(ctx, request{Op: opAsk, Version: version, Ask: &a, PID: os.Getpid(), Network: network()}, answerTime)
	if err == nil && r.Word == wordElsewhere {
		err = &NoAgentError{"that at " + socket + " is of another network namespace"}
	}
	if err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// Terms are what the agent has said last.
func (l *Loan) Terms() Terms { return l.terms }

// Lost is closed when the connection has ended, or Close was called.
func (l *Loan) Lost() <-chan struct{} { return l.ended }

// Close ends the loan.
func (l *Loan) Close() {
	l.closing.Do(func() {
		close(l.mine)
		_ = l.conn.Close() // nothing is left to be said
	})
}

func (l *Loan) read() {
	defer close(l.ended)
	lines := bufio.NewScanner(l.conn)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var r reply
		if json.Unmarshal(lines.Bytes(), &r) != nil {
			return
		}
		select {
		case l.replies <- r:
		case <-l.mine:
			return
		}
	}
}

func (l *Loan) send(q request) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	if err := l.conn.SetWriteDeadline(time.Now().Add(answerTime)); err != nil {
		return ErrGone
	}
	if json.NewEncoder(l.conn).Encode(q) != nil {
		return ErrGone
	}
	return nil
}

// ask sends a request and awaits its reply. What ends it early makes the loan useless.
func (l *Loan) ask(ctx context.Context, q request, within time.Duration) (reply, error) {
	if err := l.send(q); err != nil {
		return reply{}, err
	}
	return l.await(ctx, within)
}

func (l *Loan) await(ctx context.Context, within time.Duration) (reply, error) {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case r := <-l.replies:
		if r.Word == wordRefused {
			return r, errors.New(r.Error)
		}
		if r.Terms.Link != "" {
			l.terms = r.Terms
		}
		return r, nil
	case <-l.ended:
		return reply{}, ErrGone
	case <-timer.C:
		return reply{}, fmt.Errorf("loan: no answer of the agent in %v", within)
	case <-ctx.Done():
		return reply{}, context.Cause(ctx)
	}
}

// Take waits for the link, for wait at the most, and tells waiting, if it has to, who has
// it. The error is a *BusyError, ErrGone or ctx's.
func (l *Loan) Take(ctx context.Context, wait time.Duration, waiting func(Terms)) error {
	wait = max(0, wait)
	r, err := l.ask(ctx, request{Op: opTake, Wait: wait}, wait+answerTime)
	if err == nil && r.Word == wordWaiting {
		waiting(r.Terms)
		r, err = l.await(ctx, wait+answerTime)
	}
	return l.taken(r, err, wait)
}

// TakeAgain takes the link for a test that sends already, after an agent that had lent it
// has gone: it neither waits nor counts its octets once more.
func (l *Loan) TakeAgain(ctx context.Context) error {
	r, err := l.ask(ctx, request{Op: opTake, Again: true}, answerTime)
	return l.taken(r, err, 0)
}

func (l *Loan) taken(r reply, err error, wait time.Duration) error {
	if err != nil {
		return err
	}
	if r.Word == wordBusy {
		return &BusyError{r.Terms, wait}
	}
	go l.beat()
	return nil
}

// beat says every now and then that the test is not suspended.
func (l *Loan) beat() {
	ticker := time.NewTicker(Silence / 6)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if l.send(request{Op: opAlive}) != nil {
				return
			}
		case <-l.ended:
			return
		case <-l.mine:
			return
		}
	}
}

// Reserve sets IP octets of the link's budget aside. The error is a *sched.BudgetError, a
// *sched.UnsavedError or ErrGone.
func (l *Loan) Reserve(bytes int64) error {
	r, err := l.ask(context.Background(), request{Op: opReserve, Bytes: bytes}, answerTime)
	if err == nil && r.Word == wordBudget {
		err = &sched.BudgetError{Link: r.Terms.Link, Left: r.Terms.Left, Need: bytes, Renewed: r.Renewed}
	}
	if r.Unsaved {
		err = &sched.UnsavedError{Link: l.terms.Link, Err: err}
	}
	return err
}

// Sending says that the test begins to fill the link.
func (l *Loan) Sending() { _ = l.send(request{Op: opSend}) } // Lost tells of a connection that has ended

// Settle ends the loan with the IP octets that were sent; Terms are then those after it.
func (l *Loan) Settle(forward, reverse int64) error {
	defer l.Close()
	_, err := l.ask(context.Background(), request{Op: opSettle, Forward: forward, Reverse: reverse}, answerTime)
	return err
}
