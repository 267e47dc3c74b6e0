package loadcontrol

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Ends of a connection that are no fault.
var (
	// ErrClosed says that the connection was ended in order, by this side's Close or by
	// the client's.
	ErrClosed = errors.New("loadcontrol: connection closed")
	// ErrLost is wrapped when the connection broke.
	ErrLost = errors.New("loadcontrol: connection lost")
)

// KeepAlive is TCP's at both ends: it keeps the mapping of a NAT while nothing is said, and
// gives up no connection of which a test keeps the probes back for an hour.
func KeepAlive() net.KeepAliveConfig {
	return net.KeepAliveConfig{Enable: true, Idle: 30 * time.Second, Interval: 30 * time.Second, Count: 127}
}

const (
	// inboxMessages is how many messages may wait to be read; more than an orderly peer says.
	inboxMessages = 64
	// partBytes of a frame are read and written at once.
	partBytes = 16 << 10
	// goodbyeTime is how long the last words may take.
	goodbyeTime = 200 * time.Millisecond
)

// Conn is one end of the connection, after the upgrade. It ends itself when the peer breaks
// the protocol or says Close; Done is closed then at once, and Err tells why. Its methods may
// be called at the same time.
type Conn struct {
	nc            net.Conn
	in            *bufio.Reader
	client        bool // this end is the client's
	remote, local netip.AddrPort
	heard         atomic.Int64 // when bytes last came, Unix ns

	order gate // one message at a time, with the bytes that belong to it

	mu      sync.Mutex
	leaving error // the last words are being said, and this is why
	err     error

	inbox chan event // closed after the end
	done  chan struct{}
	tasks sync.WaitGroup
}

// event is a message that was read, with its bytes.
type event struct {
	message Message
	data    []byte
}

// newConn begins the conversation on nc, of which early bytes are already read.
func newConn(nc net.Conn, early []byte, client bool) *Conn {
	c := &Conn{
		nc: nc, client: client, remote: addrPort(nc.RemoteAddr()), local: addrPort(nc.LocalAddr()),
		order: make(gate, 1), inbox: make(chan event, inboxMessages), done: make(chan struct{}),
	}
	c.heard.Store(time.Now().UnixNano())
	c.in = bufio.NewReader(io.MultiReader(bytes.NewReader(early), hearing{c}))
	c.tasks.Go(c.read)
	return c
}

// gate lets one through at a time. Unlike a mutex it may be held while the peer does not read:
// to testing/synctest, who waits at a channel waits, and time goes on.
type gate chan struct{}

func (g gate) enter() { g <- struct{}{} }
func (g gate) leave() { <-g }

// hearing reads from the connection and notes when something came.
type hearing struct{ c *Conn }

func (h hearing) Read(b []byte) (int, error) {
	n, err := h.c.nc.Read(b)
	if n > 0 {
		h.c.heard.Store(time.Now().UnixNano())
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
// ErrLost, ErrProtocol, or at the client a *Refusal.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Heard is when bytes of the peer's last came.
func (c *Conn) Heard() time.Time { return time.Unix(0, c.heard.Load()) }

// Read waits for the peer's next message, and its bytes. After the end of the connection it
// gives what came before, and then Err's error.
func (c *Conn) Read(ctx context.Context) (m Message, data []byte, err error) {
	select {
	case e, ok := <-c.inbox:
		if !ok {
			return Message{}, nil, c.Err()
		}
		return e.message, e.data, nil
	case <-ctx.Done():
		return Message{}, nil, fmt.Errorf("loadcontrol: reading from %s: %w", c.remote, context.Cause(ctx))
	}
}

// Close ends the connection and returns when nothing of it runs any more. A client says
// Close to the load server first. Closing again is no error.
func (c *Conn) Close() error {
	if c.client && c.hurry(ErrClosed) {
		_ = c.write(&Message{Close: &Close{}}, nil) // a courtesy: the end of the connection says the same
	}
	c.end(ErrClosed)
	c.tasks.Wait()
	return nil
}

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

// Refuse says no to the whole session and ends the connection, such that the peer reads why;
// Err is r then.
func (c *Conn) Refuse(r *Refusal) error {
	last := *r
	last.ID = 0
	c.hurry(&last)
	err := c.write(&Message{Refusal: &last}, nil)
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
	_ = raw.Close()
}

// lost wraps an error of the connection's; what was the peer's doing stays itself.
func (c *Conn) lost(err error) error {
	if errors.Is(err, ErrProtocol) {
		return fmt.Errorf("%w (peer %s)", err, c.remote)
	}
	return fmt.Errorf("%w: %s: %w", ErrLost, c.remote, err)
}

// read takes what the peer says, until the connection ends.
func (c *Conn) read() {
	defer close(c.inbox)
	var buf []byte
	for {
		e, err := c.next(&buf)
		if err != nil {
			err = c.lost(err)
		} else {
			err = c.take(e)
		}
		if err != nil {
			c.end(err)
			return
		}
	}
}

// next reads one message and the bytes that belong to it. Their memory grows with what comes,
// not with what was announced.
func (c *Conn) next(buf *[]byte) (e event, err error) {
	if _, err := c.in.Peek(1); err != nil {
		return e, err
	}
	begun := time.Now()
	header, err := c.part(buf, frameHeaderBytes, begun)
	if err != nil {
		return e, err
	}
	length, bytes, most := binary.BigEndian.Uint32(header), binary.BigEndian.Uint32(header[4:]), uint32(0)
	if c.client {
		most = MaxBytes
	}
	if length == 0 || length > MaxMessageBytes || bytes > most {
		return e, fmt.Errorf("%w: message of %d bytes with %d more, want 1 to %d and at most %d", ErrProtocol, length, bytes, MaxMessageBytes, most)
	}
	payload, err := c.part(buf, int(length), begun)
	if err != nil {
		return e, err
	}
	if e.message, err = decode(payload); err != nil {
		return e, err
	}
	if !e.message.says(!c.client) {
		return e, fmt.Errorf("%w: this side says %s, not the peer", ErrProtocol, e.message.name())
	}
	if bytes > 0 && e.message.Say == nil {
		return e, fmt.Errorf("%w: %s has %d bytes, want none", ErrProtocol, e.message.name(), bytes)
	}
	for left := int(bytes); left > 0; left -= len(payload) {
		if payload, err = c.part(buf, min(left, partBytes), time.Now()); err != nil {
			return e, err
		}
		e.data = append(e.data, payload...)
	}
	_ = c.nc.SetReadDeadline(time.Time{}) // what has come before the end counts
	return e, nil
}

// part reads so many bytes of a frame. They take frameTime at most from a time on, and are valid
// until the next call.
func (c *Conn) part(buf *[]byte, n int, begun time.Time) ([]byte, error) {
	_ = c.nc.SetReadDeadline(begun.Add(frameTime)) // to read from a connection that has ended says so
	*buf = slices.Grow((*buf)[:0], n)[:n]
	_, err := io.ReadFull(c.in, *buf)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, fmt.Errorf("%w: a frame that does not end", ErrProtocol)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fmt.Errorf("within a frame: %w", io.ErrUnexpectedEOF)
	}
	return *buf, err
}

// take hands a message to Read. An error ends the connection.
func (c *Conn) take(e event) error {
	switch m := &e.message; {
	case m.Close != nil:
		return ErrClosed
	case m.Refusal != nil:
		m.Refusal.Detail = Printable(m.Refusal.Detail)
		return fmt.Errorf("loadcontrol: %s: %w", c.remote, m.Refusal)
	}
	select {
	case c.inbox <- e:
		return nil
	default:
		return c.lost(fmt.Errorf("%w: more than %d messages at once", ErrProtocol, inboxMessages))
	}
}

// Write says a message. It waits while the peer does not read, and returns Err's error when
// the connection ends.
func (c *Conn) Write(m Message) error { return c.write(&m, nil) }

// Opened grants the session, with the traffic's reply.
func (c *Conn) Opened(reply any) error {
	b, err := json.Marshal(reply)
	if err != nil {
		return fmt.Errorf("loadcontrol: opened: %w", err)
	}
	return c.write(&Message{Opened: &Opened{Reply: b}}, nil)
}

// Say says a message of the traffic's, with bytes of a load server's.
func (c *Conn) Say(name string, body any, data []byte) error {
	b, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("loadcontrol: %s: %w", name, err)
	}
	return c.write(&Message{Say: &Say{Name: name, Body: b}}, data)
}

func (c *Conn) write(m *Message, data []byte) error {
	if !m.says(c.client) || c.client && len(data) > 0 {
		return fmt.Errorf("loadcontrol: the peer says %s, not this side", m.name())
	}
	b, err := encode(m)
	if err != nil {
		return err
	}
	c.order.enter()
	defer c.order.leave()
	for _, whole := range [][]byte{frame(b, len(data)), data} {
		for part := range slices.Chunk(whole, partBytes) {
			if err := c.writePart(part); err != nil {
				return err
			}
		}
	}
	return nil
}

// writePart writes a part of a frame. An error ends the connection.
func (c *Conn) writePart(b []byte) error {
	if err := c.writable(); err != nil {
		return err
	}
	if _, err := c.nc.Write(b); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = fmt.Errorf("the peer does not read: %w", err)
		}
		c.end(c.lost(err))
		return c.Err()
	}
	return nil
}

// writable sets until when what is written now has to be.
func (c *Conn) writable() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	limit := frameTime
	switch {
	case c.err != nil:
		return c.err
	case c.leaving != nil:
		limit = goodbyeTime
	}
	return c.nc.SetWriteDeadline(time.Now().Add(limit))
}
