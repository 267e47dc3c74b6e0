// Package lease leases an agent's links to the load tests that people start from a terminal
// of the same host. The agent is a Server at a UNIX socket; `oneway test` is its client
// (Dial).
//
// One connection is one lease: the test says what it will fill, waits for the link, sets
// bytes of the quota aside, says when it sends, and settles with what it has sent. The
// lease ends with the connection, whichever end closes it or dies: the link is free then,
// and where a test that had begun to send has not told how much, all that was set aside
// counts as used. The agent's configuration may be reloaded meanwhile.
//
// Messages are lines of JSON, one object each, a request and its replies in turn. Who may
// ask is who may write to the socket: its owner and root, and one group if there is one.
package linklease

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
	"time"

	"oneway.example/exporter/ctxtime"
	"oneway.example/exporter/quota"
)

// DefaultSocket is where the agent listens if nothing else is said; its directory is what
// systemd makes of RuntimeDirectory=oneway.
const DefaultSocket = "/run/oneway/agent.sock"

// version is that of the messages.
const version = 1

// maxLine bounds a message in bytes.
const maxLine = 4096

// silence is how long an agent waits for a word of a test that has its link: one that was
// suspended fills no link. The client says one each third of it, or less.
const silence = 30 * time.Second

// Ask says which link a test will fill.
type Ask struct {
	// Kind is the test's word, such as "saturation".
	Kind string `json:"kind"`
	// Host and Port are its remote end, as the configuration would have them.
	Host string `json:"host"`
	Port uint16 `json:"port"`
	// Link is the one that the operator has named; empty: the agent finds it.
	Link string `json:"link,omitempty"`
}

// Place is where a test belongs: the labels of oneway_test_running.
type Place struct {
	Path  string `json:"path"`
	Probe string `json:"probe"`
	Link  string `json:"link"`
}

// Terms are what the agent says of a link.
type Terms struct {
	Place
	// Limit is the quota of a day in IP bytes, 0 if there is none; Left is left of it.
	Limit int64 `json:"limit,omitempty"`
	Left  int64 `json:"left,omitempty"`
	// Holder is the test that has the link, since Since; empty: none.
	Holder string    `json:"holder,omitempty"`
	Since  time.Time `json:"since,omitzero"`
}

// What a client asks for.
const (
	opAsk     = "ask"
	opTake    = "take"
	opReserve = "reserve"
	opSend    = "send"   // no reply
	opAlive   = "alive"  // no reply
	opSettle  = "settle" // the last
)

type request struct {
	Op      string `json:"op"`
	Version int    `json:"version,omitempty"`
	Ask     *Ask   `json:"ask,omitempty"`
	PID     int    `json:"pid,omitempty"`
	Network string `json:"network,omitempty"`
	// Wait is how long the link is waited for. Again: the test sends already, of bytes that
	// an agent has counted; the link is then not waited for.
	Wait  time.Duration `json:"wait_ns,omitempty"`
	Again bool          `json:"again,omitempty"`
	Bytes int64         `json:"bytes,omitempty"`
	// Forward and Reverse are the IP bytes that were sent.
	Forward int64 `json:"forward,omitempty"`
	Reverse int64 `json:"reverse,omitempty"`
}

// What an agent answers.
const (
	wordOK        = "ok"
	wordWaiting   = "waiting" // another reply follows
	wordBusy      = "busy"
	wordQuota     = "quota"
	wordElsewhere = "elsewhere" // of another network namespace
	wordRefused   = "refused"
)

type reply struct {
	Word  string `json:"word"`
	Error string `json:"error,omitempty"` // refused: why
	// Unsaved: refused, because the link's quota cannot be saved.
	Unsaved bool  `json:"unsaved,omitempty"`
	Terms   Terms `json:"terms,omitzero"`
	// Renewed is when the quota is.
	Renewed time.Time `json:"renewed,omitzero"`
}

// ErrGone says that the agent has ended the connection.
var ErrGone = errors.New("linklease: the agent has gone")

// NoAgentError says that no agent of this host and network listens.
type NoAgentError struct{ Why string }

// Error says why one thinks so.
func (e *NoAgentError) Error() string { return "linklease: no agent: " + e.Why }

// BusyError says who kept the link.
type BusyError struct {
	Terms
	Waited time.Duration
}

// Error says who, and for how long he was waited for.
func (e *BusyError) Error() string {
	return fmt.Sprintf("link %s was not free in %v, it is held by %s", e.Link, e.Waited, e.Holder)
}

// network names this process's network namespace; empty where there are none.
func network() string {
	name, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return ""
	}
	return name
}

// replyTime is how long an agent may take for a reply that waits for nothing.
const replyTime = 10 * time.Second

// Lease is a client's end of a connection. Its methods are for one goroutine, but Lost and
// Close.
type Lease struct {
	conn    net.Conn
	replies chan reply
	ctx     context.Context // ends when the agent says nothing more, and with Close
	cancel  context.CancelFunc
	terms   Terms
}

func newLease(conn net.Conn) *Lease {
	l := &Lease{conn: conn, replies: make(chan reply)}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// Dial asks the agent at socket for a link, and takes nothing yet. The error is
// a *NoAgentError if nobody listens there, or only for another network namespace, and wraps
// fs.ErrPermission if this process may not ask.
func Dial(ctx context.Context, socket string, a Ask) (*Lease, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	switch {
	case err == nil:
	case errors.Is(err, fs.ErrNotExist):
		return nil, &NoAgentError{"there is no " + socket}
	case errors.Is(err, syscall.ECONNREFUSED):
		return nil, &NoAgentError{"nobody listens at " + socket}
	default:
		return nil, fmt.Errorf("linklease: %w", err)
	}
	l := newLease(conn)
	go l.read()
	r, err := l.ask(ctx, request{Op: opAsk, Version: version, Ask: &a, PID: os.Getpid(), Network: network()}, replyTime)
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
func (l *Lease) Terms() Terms { return l.terms }

// Lost is closed when the connection has ended, or Close was called.
func (l *Lease) Lost() <-chan struct{} { return l.ctx.Done() }

// Close ends the lease.
func (l *Lease) Close() {
	l.cancel()
	_ = l.conn.Close() // nothing is left to be said
}

func (l *Lease) read() {
	defer l.cancel()
	lines := bufio.NewScanner(l.conn)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var r reply
		if json.Unmarshal(lines.Bytes(), &r) != nil {
			return
		}
		select {
		case l.replies <- r:
		case <-l.ctx.Done():
			return
		}
	}
}

func (l *Lease) send(q request) error {
	if write(l.conn, q) != nil {
		return ErrGone
	}
	return nil
}

// ask sends a request and awaits its reply. What ends it early makes the lease useless.
func (l *Lease) ask(ctx context.Context, q request, within time.Duration) (reply, error) {
	if err := l.send(q); err != nil {
		return reply{}, err
	}
	return l.await(ctx, within)
}

func (l *Lease) await(ctx context.Context, within time.Duration) (reply, error) {
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
	case <-l.ctx.Done():
		return reply{}, ErrGone
	case <-timer.C:
		return reply{}, fmt.Errorf("linklease: no reply of the agent in %v", within)
	case <-ctx.Done():
		return reply{}, context.Cause(ctx)
	}
}

// Take waits for the link, for a time at the most, and tells waiting, if it has to, who has
// it. The error is a *BusyError, ErrGone or ctx's.
func (l *Lease) Take(ctx context.Context, most time.Duration, waiting func(Terms)) error {
	most = max(0, most)
	r, err := l.ask(ctx, request{Op: opTake, Wait: most}, most+replyTime)
	if err == nil && r.Word == wordWaiting {
		waiting(r.Terms)
		r, err = l.await(ctx, most+replyTime)
	}
	return l.taken(r, err, most)
}

// TakeAgain takes the link for a test that sends already, after an agent that had leased it
// has gone: it neither waits nor counts its bytes once more.
func (l *Lease) TakeAgain(ctx context.Context) error {
	r, err := l.ask(ctx, request{Op: opTake, Again: true}, replyTime)
	return l.taken(r, err, 0)
}

func (l *Lease) taken(r reply, err error, waited time.Duration) error {
	if err != nil {
		return err
	}
	if r.Word == wordBusy {
		return &BusyError{r.Terms, waited}
	}
	go l.beat()
	return nil
}

// beat says every now and then that the test is not suspended.
func (l *Lease) beat() {
	for ctxtime.For(l.ctx, silence/6) && l.send(request{Op: opAlive}) == nil {
	}
}

// Reserve sets IP bytes of the link's quota aside. The error is a *quota.ExceededError, a
// *quota.UnsavedError or ErrGone.
func (l *Lease) Reserve(bytes int64) error {
	r, err := l.ask(context.Background(), request{Op: opReserve, Bytes: bytes}, replyTime)
	if err == nil && r.Word == wordQuota {
		err = &quota.ExceededError{Name: r.Terms.Link, Left: r.Terms.Left, Need: bytes, Renewed: r.Renewed}
	}
	if r.Unsaved {
		err = &quota.UnsavedError{Name: l.terms.Link, Err: err}
	}
	return err
}

// Sending says that the test begins to fill the link.
func (l *Lease) Sending() { _ = l.send(request{Op: opSend}) } // Lost tells of a connection that has ended

// Settle ends the lease with the IP bytes that were sent; Terms are then those after it.
func (l *Lease) Settle(forward, reverse int64) error {
	defer l.Close()
	_, err := l.ask(context.Background(), request{Op: opSettle, Forward: forward, Reverse: reverse}, replyTime)
	return err
}
