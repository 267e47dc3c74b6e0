package control

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"
)

// Ends of a connection that are no fault.
var (
	// ErrClosed says that the connection was ended in order, by this side's Close or by
	// the client's.
	ErrClosed = errors.New("control: connection closed")
	// ErrSilent is wrapped when nothing was heard for too long: see Ping.
	ErrSilent = errors.New("control: nothing heard")
	// ErrLost is wrapped when the connection broke.
	ErrLost = errors.New("control: connection lost")
)

// inboxMessages is how many messages may wait to be read; more than an orderly peer says.
const inboxMessages = 64

// Conn is one end of the connection, after the upgrade. It answers pings, sends its own,
// and ends itself when the peer is silent, breaks the protocol or says Close; Done is closed
// then at once, and Err tells why. Its methods may be called at the same time.
type Conn struct {
	nc            net.Conn
	in            *bufio.Reader
	client        bool // this end is the client's
	remote, local netip.AddrPort

	order gate // one message at a time, with the records that belong to it
	frame gate // one frame at a time; guards out
	out   []byte

	mu       sync.Mutex // guards the fields below
	patience patience
	wrote    time.Time // when the last frame was written
	owed     uint64    // the ping to answer; 0: none
	leaving  error     // the last words are being said, and this is why
	err      error

	inbox  chan event
	speak  chan struct{} // wakes pinger: something is owed
	sooner chan struct{} // wakes watch: the deadline may have come nearer
	done   chan struct{}
	tasks  sync.WaitGroup
}

// event is a message that was read, with its records.
type event struct {
	message Message
	records []byte
}

// newConn begins the conversation on nc, of which early octets are already read.
func newConn(nc net.Conn, early []byte, client bool) *Conn {
	now := time.Now()
	c := &Conn{
		nc: nc, client: client, remote: addrPort(nc.RemoteAddr()), local: addrPort(nc.LocalAddr()),
		patience: newPatience(now), wrote: now, order: newGate(), frame: newGate(),
		inbox: make(chan event, inboxMessages), speak: make(chan struct{}, 1), sooner: make(chan struct{}, 1),
		done: make(chan struct{}),
	}
	c.in = bufio.NewReader(io.MultiReader(bytes.NewReader(early), hearing{c}))
	c.tasks.Go(c.read)
	c.tasks.Go(c.ping)
	c.tasks.Go(c.watch)
	return c
}

// gate lets one through at a time. Unlike a mutex it may be held while the peer does not read:
// to testing/synctest, who waits at a channel waits, and time goes on.
type gate chan struct{}

func newGate() gate   { return make(gate, 1) }
func (g gate) enter() { g <- struct{}{} }
func (g gate) leave() { <-g }

// hearing reads from the connection and notes that something came.
type hearing struct{ c *Conn }

func (h hearing) Read(b []byte) (int, error) {
	n, err := h.c.nc.Read(b)
	if n > 0 {
		h.c.mu.Lock()
		h.c.patience.hear(time.Now())
		h.c.mu.Unlock()
	}
	return n, err
}

// addrPort is a net.Addr's address, without the mapping of IPv4 in IPv6; zero where it has none.
func addrPort(a net.Addr) netip.AddrPort {
	if t, ok := a.(*net.TCPAddr); ok {
		ap := t.AddrPort()
		return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
	}
	return netip.AddrPort{}
}

// Remote is the peer's address.
func (c *Conn) Remote() netip.AddrPort { return c.remote }

// Local is this end's address.
func (c *Conn) Local() netip.AddrPort { return c.local }

// Done is closed when the connection has ended, for whatever reason.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err says why the connection ended; nil while it has not. It is, or wraps, ErrClosed,
// ErrSilent, ErrLost, ErrProtocol, or at the client a *Refusal.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Read waits for the peer's next message; the records are those of a Finished. Pings and the
// end of the connection are dealt with here: after it, Read gives what came before and then
// Err's error.
func (c *Conn) Read(ctx context.Context) (m Message, records []byte, err error) {
	select {
	case e := <-c.inbox:
		return e.message, e.records, nil
	default:
	}
	select {
	case e := <-c.inbox:
		return e.message, e.records, nil
	case <-ctx.Done():
		return Message{}, nil, fmt.Errorf("control: reading from %s: %w", c.remote, context.Cause(ctx))
	case <-c.done:
	}
	select { // what came before the end
	case e := <-c.inbox:
		return e.message, e.records, nil
	default:
		return Message{}, nil, c.Err()
	}
}

// Close ends the connection and returns when nothing of it runs any more. A client says
// Close to the responder first. Closing again is no error.
func (c *Conn) Close() error {
	if c.client && c.hurry(ErrClosed) {
		_ = c.Write(Message{Close: &Close{}}) // a courtesy: the end of the connection says the same
	}
	c.end(ErrClosed)
	c.tasks.Wait()
	return nil
}

// goodbyeTime is how long the last words may take.
const goodbyeTime = 200 * time.Millisecond

// hurry lets what is being written end soon, as this side leaves; false: the connection has
// ended.
func (c *Conn) hurry(why error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return false
	}
	c.leaving = why
	return c.nc.SetWriteDeadline(time.Now().Add(goodbyeTime)) == nil
}

// writeBy is until when a frame that is begun now has to be written.
func (c *Conn) writeBy() (by time.Time, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	limit := goodbyeTime
	if c.leaving == nil {
		limit = frameTime + max(c.patience.silence(time.Now()), c.patience.tail)
	}
	return time.Now().Add(limit), c.err
}

// Refuse says no to the whole session and ends the connection, such that the peer reads why;
// Err is r then.
func (c *Conn) Refuse(r *Refusal) error {
	last := *r
	last.ID = 0
	c.hurry(&last)
	err := c.Write(Message{Refusal: &last})
	if err == nil {
		// To close while the peer still speaks would have the kernel reset the connection
		// and the peer never read this; a client that is refused closes by itself.
		timer := time.NewTimer(goodbyeTime)
		defer timer.Stop()
		select {
		case <-c.done:
		case <-timer.C:
		}
	}
	c.end(&last)
	c.tasks.Wait()
	return err
}

// end ends the connection for this reason, unless it has ended. It does not wait.
func (c *Conn) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	if c.leaving != nil {
		err = c.leaving // the peer may be faster to close
	}
	c.err = err
	close(c.done)
	raw := c.nc
	if t, ok := raw.(*tls.Conn); ok {
		raw = t.NetConn() // tls's own Close may wait 5 s for a peer that does not read
	}
	if t, ok := raw.(interface{ SetLinger(seconds int) error }); ok && errors.Is(err, ErrSilent) {
		_ = t.SetLinger(0) // nobody is there: do not repeat to it what was not acknowledged
	}
	_ = raw.Close()
}

// lost wraps an error of the connection's; what was the peer's doing stays itself.
func (c *Conn) lost(err error) error {
	if errors.Is(err, ErrProtocol) {
		return fmt.Errorf("%w (peer %s)", err, c.remote)
	}
	return fmt.Errorf("%w: %s: %w", ErrLost, c.remote, err)
}

// wake wakes who waits on a channel of one.
func wake(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// Heard notes a sign of the peer's life that is not of this connection: a test packet. It
// is worth what is heard here: a queue that a test keeps full may let nothing else through.
func (c *Conn) Heard() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.patience.hear(time.Now())
}

// watch ends the connection when the peer is silent for too long.
func (c *Conn) watch() {
	timer := time.NewTimer(Silence)
	defer timer.Stop()
	late, pulse := false, pulse{c: c}
	for {
		select {
		case <-c.done:
			return
		case <-c.sooner:
		case <-timer.C:
		}
		c.mu.Lock()
		at, dripping := c.patience.deadline(time.Now())
		silent := time.Since(c.patience.heard)
		c.mu.Unlock()
		left := time.Until(at)
		switch {
		case left > 0:
			late, pulse.felt = false, false
		case left < -busyHost && !late:
			// This host was too busy to look in time, and so perhaps to read: look again.
			late, left = true, busyHost
		case dripping:
			c.end(c.lost(fmt.Errorf("%w: a frame that does not end", ErrProtocol)))
			return
		case pulse.beats():
			left = pulseTime
		default:
			c.end(fmt.Errorf("%w from %s for %v", ErrSilent, c.remote, silent.Round(time.Millisecond)))
			return
		}
		timer.Reset(left)
	}
}

// pulse tells a client that overloads the way to the responder whether that is still there
// when no word comes: its kernel says again what was lost, and no octet of that is new. A
// kernel answers for a program that hangs, too, so this is believed no longer than the client
// sends; and not by a responder, which must not send a stream to who may be gone.
type pulse struct {
	c        *Conn
	felt     bool   // segments are those of a moment ago
	segments uint32 // that had come
}

// pulseTime is in which a kernel says again what was lost, see Tune, on a path as slow as
// there are.
const pulseTime = 2 * time.Second

// beats is asked when the peer would be given up, and pulseTime later again.
func (p *pulse) beats() bool {
	p.c.mu.Lock()
	sending := p.c.client && p.c.patience.sending(time.Now())
	p.c.mu.Unlock()
	n := segments(p.c.nc)
	if !sending || n == 0 || p.felt && n == p.segments {
		return false
	}
	if p.felt {
		p.c.Heard()
	}
	p.felt, p.segments = true, n
	return true
}

// busyHost is how late a goroutine may run on a host that has time.
const busyHost = 20 * time.Millisecond
