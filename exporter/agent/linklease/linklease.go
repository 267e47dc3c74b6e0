// Package linklease leases an agent's links to the load tests that an operator starts on the same
// host. The agent is a Server at a UNIX socket; `oneway test` is its client (Dial).
//
// One connection is one lease: the test names its remote end, waits for the link, reserves bytes
// of the quota, reports that it begins to send, and settles with the bytes it sent. The lease ends
// with the connection, whichever end closes it: the link is then free, and if a test that has begun
// to send did not settle, all reserved bytes count as used. The agent may reload its configuration
// during a lease.
//
// Messages are JSON objects, one per line: a request, then its replies. Access is controlled by the
// permissions of the socket: its owner, root, and an optional group.
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

	"oneway.example/exporter/core/ctxtime"
	"oneway.example/exporter/probe/link"
	"oneway.example/exporter/probe/quota"
)

// DefaultSocket is the default path of the socket; systemd creates its directory
// (RuntimeDirectory=oneway).
const DefaultSocket = "/run/oneway/agent.sock"

// version of the messages.
const version = 1

// maxLine is the most bytes of a message.
const maxLine = 4096

// idleTimeout is the idle timeout of a test that holds a link: a suspended test fills no link. The
// client sends opKeepAlive at least each third of it.
const idleTimeout = 30 * time.Second

// Test describes the test that needs a link.
type Test struct {
	// Kind of the test, such as "saturation".
	Kind string `json:"kind"`
	// Host and Port of the remote end, as in the configuration.
	Host string `json:"host"`
	Port uint16 `json:"port"`
	// Link that the operator has named; empty: the agent finds it.
	Link string `json:"link,omitempty"`
}

// Labels has the labels of a test's metrics, such as oneway_test_running.
type Labels struct {
	Path  string `json:"path"`
	Probe string `json:"probe"`
	Link  string `json:"link"`
}

// Terms are the state of a link, as the agent reports it.
type Terms struct {
	Labels
	// Limit is the quota of a day in IP bytes, 0 if there is none; Left is the rest of it.
	Limit int64 `json:"limit_bytes,omitempty"`
	Left  int64 `json:"left_bytes,omitempty"`
	// Holder is the test that holds the link since Since; empty: none.
	Holder string    `json:"holder,omitempty"`
	Since  time.Time `json:"since,omitzero"`
}

// Operations of a request.
const (
	opTerms     = "terms"
	opTake      = "take"
	opReserve   = "reserve"
	opSend      = "send"       // no reply
	opKeepAlive = "keep_alive" // no reply
	opSettle    = "settle"     // the last request
)

type request struct {
	Op      string `json:"op"`
	Version int    `json:"version,omitempty"`
	Test    *Test  `json:"test,omitempty"`
	PID     int    `json:"pid,omitempty"`
	Network string `json:"network,omitempty"`
	// Wait is the longest wait for the link. Again: the test already sends, and an earlier agent
	// has counted its bytes; the agent then does not wait.
	Wait  time.Duration `json:"wait_ns,omitempty"`
	Again bool          `json:"again,omitempty"`
	Bytes int64         `json:"bytes,omitempty"`
	// Body is of a request of Ask.
	Body json.RawMessage `json:"body,omitempty"`
	// Forward and Reverse are the IP bytes sent.
	Forward int64 `json:"forward_bytes,omitempty"`
	Reverse int64 `json:"reverse_bytes,omitempty"`
}

// Results of a reply.
const (
	resultOK           = "ok"
	resultWaiting      = "waiting" // a second reply follows
	resultBusy         = "busy"
	resultQuota        = "quota"
	resultOtherNetwork = "other_network" // the agent is in another network namespace
	resultRefused      = "refused"
)

type reply struct {
	Result string `json:"result"`
	Error  string `json:"error,omitempty"` // the reason of resultRefused
	// Unsaved: the reason of resultRefused is that the quota cannot be saved.
	Unsaved bool  `json:"unsaved,omitempty"`
	Terms   Terms `json:"terms,omitzero"`
	// Body is the reply to a request of Ask.
	Body json.RawMessage `json:"body,omitempty"`
	// Renewed is when the quota is renewed.
	Renewed time.Time `json:"renewed,omitzero"`
}

// ErrClosed reports that the agent has closed the connection.
var ErrClosed = errors.New("linklease: the agent has closed the connection")

// NoAgentError reports that no agent of this host and network namespace serves the socket.
type NoAgentError struct{ Why string }

// Error has the reason.
func (e *NoAgentError) Error() string { return "linklease: no agent: " + e.Why }

// network returns the network namespace of this process; empty if the kernel has none.
func network() string {
	name, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return ""
	}
	return name
}

// replyTime is the timeout of a reply for which the agent need not wait.
const replyTime = 10 * time.Second

// Lease is the client end of a connection. One goroutine may use it; Lost and Close are safe for
// concurrent use.
type Lease struct {
	conn    net.Conn
	replies chan reply
	ctx     context.Context // ends with the connection and with Close
	cancel  context.CancelFunc
	terms   Terms
}

func newLease(conn net.Conn) *Lease {
	l := &Lease{conn: conn, replies: make(chan reply)}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// Dial requests the terms of a link from the agent at socket, and does not take it. The error is a
// *NoAgentError if no agent listens there, or one of another network namespace; it wraps
// fs.ErrPermission if this process has no access to the socket.
func Dial(ctx context.Context, socket string, a Test) (*Lease, error) {
	conn, err := connect(ctx, socket)
	if err != nil {
		return nil, err
	}
	l := newLease(conn)
	go l.read()
	r, err := l.request(ctx, request{Op: opTerms, Version: version, Test: &a, PID: os.Getpid(), Network: network()}, replyTime)
	if err == nil && r.Result == resultOtherNetwork {
		err = &NoAgentError{"the agent at " + socket + " is in another network namespace"}
	}
	if err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// connect connects to the agent; see Dial for its errors.
func connect(ctx context.Context, socket string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	switch {
	case err == nil:
		return conn, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, &NoAgentError{"there is no " + socket}
	case errors.Is(err, syscall.ECONNREFUSED):
		return nil, &NoAgentError{"no process listens at " + socket}
	}
	return nil, fmt.Errorf("linklease: %w", err)
}

// maxBody is the most bytes of a reply to Ask; a request has at most maxLine.
const maxBody = 16 << 20

// Ask sends a request that is no load test to the agent at socket, and decodes the body of its reply into found. op is one of
// Options.Handlers. An error is as in Dial, or from the agent. The agent may be in another network namespace.
func Ask(ctx context.Context, socket, op string, body, found any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("linklease: %w", err)
	}
	message, err := json.Marshal(request{Op: op, Version: version, Body: text})
	if err != nil {
		return fmt.Errorf("linklease: %w", err)
	}
	if len(message) >= maxLine {
		return fmt.Errorf("linklease: the request has %d bytes; it may have %d", len(message), maxLine-1)
	}
	conn, err := connect(ctx, socket)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()                         // the reply is read, or there is none
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })() // reading ends
	if err := conn.SetDeadline(time.Now().Add(replyTime)); err != nil {
		return fmt.Errorf("linklease: %w", err)
	}
	if _, err := conn.Write(append(message, '\n')); err != nil {
		return ErrClosed
	}
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, maxBody)
	if !lines.Scan() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("linklease: no reply from the agent: it stands still, or has another version: restart it, or install the same version of both")
	}
	var r reply
	if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
		return fmt.Errorf("linklease: the reply of the agent is not valid: %w", err)
	}
	if r.Result != resultOK {
		return errors.New(r.Error)
	}
	if err := json.Unmarshal(r.Body, found); err != nil {
		return fmt.Errorf("linklease: the reply of the agent is not valid: %w", err)
	}
	return nil
}

// Terms returns those of the last reply.
func (l *Lease) Terms() Terms { return l.terms }

// Lost is closed at the end of the connection and by Close.
func (l *Lease) Lost() <-chan struct{} { return l.ctx.Done() }

// Close ends the lease.
func (l *Lease) Close() {
	l.cancel()
	_ = l.conn.Close() // nothing is unsent
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
		return ErrClosed
	}
	return nil
}

// request sends a request and awaits its reply. After an error the lease is unusable.
func (l *Lease) request(ctx context.Context, q request, within time.Duration) (reply, error) {
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
		if r.Result == resultRefused {
			return r, errors.New(r.Error)
		}
		if r.Terms.Link != "" {
			l.terms = r.Terms
		}
		return r, nil
	case <-l.ctx.Done():
		return reply{}, ErrClosed
	case <-timer.C:
		return reply{}, fmt.Errorf("linklease: no reply from the agent within %v", within)
	case <-ctx.Done():
		return reply{}, context.Cause(ctx)
	}
}

// Acquire waits for the link for at most most. If it has to wait, it first calls waiting with the
// present holder. The error is a *link.BusyError, ErrClosed or the cause of ctx.
func (l *Lease) Acquire(ctx context.Context, most time.Duration, waiting func(Terms)) error {
	most = max(0, most)
	r, err := l.request(ctx, request{Op: opTake, Wait: most}, most+replyTime)
	if err == nil && r.Result == resultWaiting {
		waiting(r.Terms)
		r, err = l.await(ctx, most+replyTime)
	}
	return l.taken(r, err, most)
}

// Reacquire takes the link for a test that already sends, after the agent that had leased it was
// restarted: it neither waits nor counts its bytes again.
func (l *Lease) Reacquire(ctx context.Context) error {
	r, err := l.request(ctx, request{Op: opTake, Again: true}, replyTime)
	return l.taken(r, err, 0)
}

func (l *Lease) taken(r reply, err error, waited time.Duration) error {
	if err != nil {
		return err
	}
	if r.Result == resultBusy {
		return &link.BusyError{Link: r.Terms.Link, Waited: waited, Holder: r.Terms.Holder}
	}
	go l.keepAlive()
	return nil
}

// keepAlive keeps the lease from timing out.
func (l *Lease) keepAlive() {
	for ctxtime.Sleep(l.ctx, idleTimeout/6) && l.send(request{Op: opKeepAlive}) == nil {
	}
}

// Reserve reserves IP bytes of the link's quota. The error is a *quota.ExceededError, a
// *quota.UnsavedError or ErrClosed.
func (l *Lease) Reserve(bytes int64) error {
	r, err := l.request(context.Background(), request{Op: opReserve, Bytes: bytes}, replyTime)
	if err == nil && r.Result == resultQuota {
		err = &quota.ExceededError{Name: r.Terms.Link, Left: r.Terms.Left, Need: bytes, Renewed: r.Renewed}
	}
	if r.Unsaved {
		err = &quota.UnsavedError{Name: l.terms.Link, Err: err}
	}
	return err
}

// BeginSending reports that the test begins to send.
func (l *Lease) BeginSending() { _ = l.send(request{Op: opSend}) } // Lost reports the end of the connection

// Settle ends the lease with the IP bytes that were sent, and updates Terms.
func (l *Lease) Settle(forward, reverse int64) error {
	defer l.Close()
	_, err := l.request(context.Background(), request{Op: opSettle, Forward: forward, Reverse: reverse}, replyTime)
	return err
}
