package linklease

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"oneway.example/exporter/core/ctxtime"
	"oneway.example/exporter/core/errtext"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/probe/link"
	"oneway.example/exporter/probe/quota"
)

// Options configure a Server. All but Group are required.
type Options struct {
	// Socket is the path of the UNIX socket. Its directory is created if it does not exist.
	Socket string
	// Group whose members have access, besides this user and root; empty: none.
	Group string
	// Links to lease.
	Links *link.Table
	Sink  metric.Sink
	Log   *slog.Logger
	// Find returns the labels and the link of a test. Its error is sent to the client.
	Find func(Test) (Labels, error)
	// Handlers make the replies to requests that are no load tests, by operation: see Ask. Each takes the body of the request, and returns the reply's. Errors are sent to
	// the client.
	Handlers map[string]func(body json.RawMessage) (any, error)

	idleTimeout, seriesRetention time.Duration // shorter in tests
}

// Server leases links. Make one with NewServer.
type Server struct {
	options Options
	places  chan struct{}  // capacity maxLeases, one entry for each connection
	tasks   sync.WaitGroup // connections, and series of tests that have ended
}

const (
	// maxLeases is the most concurrent connections.
	maxLeases = 32
	// again is the retry interval of a socket that could not be opened.
	again = 10 * time.Second
)

// NewServer opens nothing; see Run.
func NewServer(o Options) *Server {
	o.idleTimeout, o.seriesRetention = cmp.Or(o.idleTimeout, idleTimeout), cmp.Or(o.seriesRetention, metric.TerminalRetention)
	return &Server{options: o, places: make(chan struct{}, maxLeases)}
}

// Run serves until ctx ends; then it ends the leases. If the socket cannot be opened, it logs the
// error and retries.
func (s *Server) Run(ctx context.Context) error {
	defer s.tasks.Wait()
	logged := ""
	for {
		l, end, err := listen(ctx, s.options.Socket, s.options.Group)
		if err == nil {
			logged = ""
			err = s.accept(ctx, l)
			end()
		}
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, errRemoved) {
			s.options.Log.Warn("Load tests of the terminal could not lease links for a second", "err", err)
			continue
		}
		if err.Error() != logged {
			logged = err.Error()
			s.options.Log.Warn("Load tests of the terminal cannot lease links; they run concurrently with the agent's", "err", err)
		}
		if !ctxtime.Sleep(ctx, again) {
			return nil
		}
	}
}

// lookEvery is the interval at which the server looks whether its socket is still at its path: its removal has no event.
const lookEvery = time.Second

// errRemoved: a cleaner of /run, or a user, has removed the socket. A test would take that for no agent, and lease nothing.
var errRemoved = errors.New("it was removed, and is made again")

// accept serves connections until ctx ends, or the socket fails or is removed.
func (s *Server) accept(ctx context.Context, l *net.UnixListener) error {
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	made, err := os.Lstat(s.options.Socket)
	if err != nil {
		return err
	}
	for {
		_ = l.SetDeadline(time.Now().Add(lookEvery)) // fails only after Close, as Accept does
		conn, err := l.Accept()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			if now, err := os.Lstat(s.options.Socket); err == nil && os.SameFile(made, now) {
				continue
			}
			l.SetUnlinkOnClose(false) // what is there now is not this socket
			return fmt.Errorf("socket %s: %w", s.options.Socket, errRemoved)
		}
		if errtext.NoDescriptors(err) {
			// The agent logs that. A test waits for its reply, and does not take this for no agent. The kernel does not tell when a
			// descriptor is free, and Accept would fail at once.
			ctxtime.Sleep(ctx, lookEvery)
			continue
		}
		if err != nil {
			return err
		}
		select {
		case s.places <- struct{}{}:
		default:
			_ = write(conn, reply{Result: resultRefused, Error: "the agent serves its maximum of load tests; try again later"})
			_ = conn.Close() // the refusal is sent
			continue
		}
		s.tasks.Go(func() {
			defer func() { <-s.places }()
			s.serve(ctx, conn)
		})
	}
}

// show creates the series of a test.
func (l *leased) show() {
	l.series = metric.NewScope(l.options.Sink, l.labels.Path, l.labels.Probe)
	l.fill = link.NewFill(l.options.Links, link.Use{Link: l.labels.Link, Path: l.labels.Path}, l.series)
	for _, d := range sample.Directions() {
		l.series.Series(metric.RunBytes, d.String())
	}
}

// leave closes the series of a test after seriesRetention, or when the server ends.
func (s *Server) leave(ctx context.Context, series *metric.Scope) {
	s.tasks.Go(func() {
		ctxtime.Sleep(ctx, s.options.seriesRetention)
		series.Close()
	})
}

var errProtocol = errors.New("linklease: unexpected message")

// leased is the server end of one connection.
type leased struct {
	*Server
	run    context.Context // ends with the server
	conn   net.Conn
	labels Labels
	holder string

	described, sending, settled bool
	release                     func() // releases the link; nil: not held
	reservation                 *quota.Reservation
	reserved                    int64
	series                      *metric.Scope
	fill                        *link.Fill // nil with release
}

// serve handles one connection.
func (s *Server) serve(run context.Context, conn net.Conn) {
	ctx, cancel := context.WithCancel(run)
	defer cancel()
	closed := make(chan struct{})
	defer func() { <-closed }()
	requests := make(chan request, 16)
	go func() {
		defer close(closed)
		defer cancel()
		read(conn, requests)
	}()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	defer func() { _ = conn.Close() }() // the replies are sent
	l := &leased{Server: s, run: run, conn: conn}
	defer l.end()
	silence := time.NewTimer(s.options.idleTimeout)
	defer silence.Stop()
	// A prober of the same path that a reload restarts resets the shared gauge to 0.
	show := time.NewTicker(time.Second)
	defer show.Stop()
	for {
		select {
		case q := <-requests:
			if err := l.handle(ctx, q); err != nil || l.settled {
				return
			}
			silence.Reset(s.options.idleTimeout)
		case <-show.C:
			if l.fill != nil {
				l.fill.Refresh()
			}
		case <-silence.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// read forwards requests until the connection ends, a line is invalid or the queue is full.
func read(conn net.Conn, to chan<- request) {
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var q request
		if json.Unmarshal(lines.Bytes(), &q) != nil {
			return
		}
		select {
		case to <- q:
		default:
			return
		}
	}
}

// write sends a message; both ends use it.
func write(conn net.Conn, message any) error {
	if err := conn.SetWriteDeadline(time.Now().Add(replyTime)); err != nil {
		return err
	}
	return json.NewEncoder(conn).Encode(message)
}

// handle executes a request; an error ends the connection.
func (l *leased) handle(ctx context.Context, q request) error {
	held := l.release != nil
	if handler := l.options.Handlers[q.Op]; handler != nil && !l.described {
		return l.handleAlone(q, handler)
	}
	switch {
	case q.Op == opTerms && !l.described:
		return l.describe(q)
	case q.Op == opTake && l.described && !held:
		return l.take(ctx, q)
	case q.Op == opReserve && held && l.reservation == nil && !l.sending:
		return l.reserve(q.Bytes)
	case q.Op == opSend && held:
		l.send()
		return nil
	case q.Op == opKeepAlive:
		return nil
	case q.Op == opSettle && held:
		return l.settle(max(0, q.Forward), max(0, q.Reverse))
	}
	return errProtocol
}

func (l *leased) reply(word string) error {
	return write(l.conn, reply{Result: word, Terms: l.terms()})
}

func (l *leased) refuse(text string) error {
	return errors.Join(write(l.conn, reply{Result: resultRefused, Error: text}), errProtocol)
}

func (l *leased) terms() Terms {
	t := Terms{Labels: l.labels}
	if u := l.options.Links.Usage(l.labels.Link); u.Limit > 0 {
		t.Limit, t.Left = u.Limit, u.Left
	}
	t.Holder, t.Since, _ = l.options.Links.Holder(l.labels.Link)
	return t
}

func (l *leased) describe(q request) error {
	if q.Version != version || q.Test == nil {
		return l.refuse(errOtherVersion)
	}
	if q.Network != network() {
		return errors.Join(write(l.conn, reply{Result: resultOtherNetwork}), errProtocol)
	}
	place, err := l.options.Find(*q.Test)
	if err != nil {
		return l.refuse(errtext.Words(err))
	}
	l.described, l.labels = true, place
	l.holder = fmt.Sprintf("%s/%s (oneway test, process %d)", place.Path, place.Probe, q.PID)
	return l.reply(resultOK)
}

// handleAlone replies to the only request of a connection.
func (l *leased) handleAlone(q request, by func(json.RawMessage) (any, error)) error {
	if q.Version != version {
		return l.refuse(errOtherVersion)
	}
	found, err := by(q.Body)
	if err != nil {
		return l.refuse(errtext.Words(err))
	}
	body, err := json.Marshal(found)
	if err != nil {
		return l.refuse(errtext.Words(err))
	}
	l.settled = true // the last request
	return write(l.conn, reply{Result: resultOK, Body: body})
}

// errOtherVersion refuses a request of another version of the messages.
const errOtherVersion = "the agent on this host has another version; restart it, or install the same version of both"

func (l *leased) take(ctx context.Context, q request) error {
	links, link := l.options.Links, l.labels.Link
	release, ok := links.TryAcquire(link, l.holder)
	if !ok && q.Wait > 0 && !q.Again {
		if err := l.reply(resultWaiting); err != nil {
			return err
		}
		waiting, cancel := context.WithTimeout(ctx, q.Wait)
		defer cancel()
		var err error
		release, err = links.Acquire(waiting, link, l.holder)
		ok = err == nil
	}
	if ctx.Err() != nil {
		if ok {
			release()
		}
		return ctx.Err()
	}
	if !ok {
		return l.reply(resultBusy)
	}
	l.release = release
	l.show()
	l.options.Log.Info("Link leased", "link", link, "to", l.holder)
	if q.Again {
		l.send()
	}
	return l.reply(resultOK)
}

func (l *leased) reserve(bytes int64) error {
	r, err := l.options.Links.Reserve(l.labels.Link, max(0, bytes))
	if missing, ok := errors.AsType[*quota.ExceededError](err); ok {
		return write(l.conn, reply{Result: resultQuota, Terms: l.terms(), Renewed: missing.Renewed})
	}
	if unsaved, ok := errors.AsType[*quota.UnsavedError](err); ok {
		return errors.Join(write(l.conn, reply{Result: resultRefused, Unsaved: true, Error: unsaved.Err.Error()}), errProtocol)
	}
	if err != nil {
		return l.refuse(errtext.Words(err))
	}
	l.reservation, l.reserved = r, max(0, bytes)
	return l.reply(resultOK)
}

// send records that the test sends.
func (l *leased) send() {
	l.sending = true
	l.fill.Begin()
}

// settle ends the lease with the bytes reported by the test.
func (l *leased) settle(forward, reverse int64) error {
	l.settled = true
	l.reservation.Settle(forward + reverse)
	l.fill.Sent(forward, reverse)
	l.endUse()
	l.options.Log.Info("Link returned", "link", l.labels.Link, "by", l.holder, "forward_bytes", forward, "reverse_bytes", reverse)
	return l.reply(resultOK)
}

// end releases the link of a test that did not settle.
func (l *leased) end() {
	if l.settled || l.release == nil {
		return
	}
	used := int64(0)
	if l.sending {
		used = l.reserved
	}
	l.reservation.Settle(used)
	l.endUse()
	l.options.Log.Warn("Link taken back from a test that did not settle", "link", l.labels.Link, "from", l.holder, "counted_bytes", used)
}

func (l *leased) endUse() {
	l.fill.End()
	l.leave(l.run, l.series)
	l.release()
}
