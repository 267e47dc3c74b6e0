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

	"oneway.example/exporter/core/memlimit"
	"oneway.example/exporter/net/tcpsocket"
)

// Errors of a connection that has ended without a violation of the protocol.
var (
	// ErrClosed: this end called Close, or the client did.
	ErrClosed = errors.New("loadcontrol: connection closed")
	// ErrLost is wrapped if the connection broke.
	ErrLost = errors.New("loadcontrol: connection lost")
)

// KeepAlive is the TCP keep-alive of both ends: it preserves the mapping of a NAT on an idle
// connection, and does not end a connection whose probes a full queue delays for up to an hour.
func KeepAlive() net.KeepAliveConfig {
	return net.KeepAliveConfig{Enable: true, Idle: 30 * time.Second, Interval: 30 * time.Second, Count: 127}
}

const (
	// inboxMessages is the most unread messages; a correct peer does not reach it.
	inboxMessages = 64
	// partBytes is the most bytes of a frame in one read or write.
	partBytes = 16 << 10
	// lastWriteTimeout is the timeout of the last message.
	lastWriteTimeout = 200 * time.Millisecond
)

// Conn is one end of the connection, after the upgrade. It ends itself if the peer violates the
// protocol or sends Close; Done is then closed at once (a load server first tells a violation), and Err returns the reason. Its methods are
// safe for concurrent use.
type Conn struct {
	nc            net.Conn
	in            *bufio.Reader
	client        bool   // this is the client end
	mostBytes     uint32 // most binary data of a received frame; 0 at the load server
	remote, local netip.AddrPort
	received      atomic.Int64 // time of the last received bytes, Unix ns
	// rejected is the last ICMP error of the session's UDP packets; nil without UDP.
	rejected atomic.Pointer[func() error]

	order channelMutex // held while a frame is written

	mu        sync.Mutex
	endReason error // the reason of the end while the last message is written
	err       error

	inbox chan event // closed after the end
	done  chan struct{}
	tasks sync.WaitGroup
}

// event is a received message with its binary content.
type event struct {
	message Message
	data    []byte
}

// newConn starts the connection on nc, of which early bytes are already read.
func newConn(nc net.Conn, early []byte, client bool) *Conn {
	c := &Conn{
		nc: nc, client: client, remote: addrPort(nc.RemoteAddr()), local: addrPort(nc.LocalAddr()),
		order: make(channelMutex, 1), inbox: make(chan event, inboxMessages), done: make(chan struct{}),
	}
	if client {
		c.mostBytes = uint32(memlimit.Buffer(MaxBytes))
	}
	c.received.Store(time.Now().UnixNano())
	c.in = bufio.NewReader(io.MultiReader(bytes.NewReader(early), timedReader{c}))
	c.tasks.Go(c.read)
	return c
}

// channelMutex is a mutex that testing/synctest treats as durably blocking, so that it may be held while
// the peer does not read.
type channelMutex chan struct{}

func (g channelMutex) lock()   { g <- struct{}{} }
func (g channelMutex) unlock() { <-g }

// timedReader reads from the connection and records the time of each read.
type timedReader struct{ c *Conn }

func (h timedReader) Read(b []byte) (int, error) {
	n, err := h.c.nc.Read(b)
	if n > 0 {
		h.c.received.Store(time.Now().UnixNano())
	}
	return n, err
}

// addrPort returns the address of a net.Addr, unmapped; zero if it is not a TCP address.
func addrPort(a net.Addr) netip.AddrPort {
	if t, ok := a.(*net.TCPAddr); ok {
		ap := t.AddrPort()
		return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
	}
	return netip.AddrPort{}
}

// Remote returns the peer's address.
func (c *Conn) Remote() netip.AddrPort { return c.remote }

// Local returns the local address.
func (c *Conn) Local() netip.AddrPort { return c.local }

// Done is closed at the end of the connection.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err returns why the connection ended; nil before its end. It is or wraps ErrClosed, ErrLost,
// ErrProtocol, or at the client a *Refusal.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// LastReceived returns when bytes were last received.
func (c *Conn) LastReceived() time.Time { return time.Unix(0, c.received.Load()) }

// Read returns the next message and its binary content. After the end of the connection it returns
// the messages received before, then the error of Err.
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

// Close ends the connection and returns after its goroutines have ended. A client first sends Close
// to the load server. Closing again is no error.
func (c *Conn) Close() error {
	if c.client && c.limitWrite(ErrClosed) {
		_ = c.write(&Message{Close: &Close{}}, nil) // the end of the connection has the same effect
	}
	c.end(ErrClosed)
	c.tasks.Wait()
	return nil
}

// limitWrite limits the present write to lastWriteTimeout; false if the connection has ended. why becomes the
// reason of the end.
func (c *Conn) limitWrite(why error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return false
	}
	c.endReason = why
	return c.nc.SetWriteDeadline(time.Now().Add(lastWriteTimeout)) == nil
}

// Refuse sends a refusal of the session and ends the connection after the peer could read it. Err
// then returns r.
func (c *Conn) Refuse(r *Refusal) error {
	last := *r
	last.ID = 0
	c.limitWrite(&last)
	err := c.write(&Message{Refusal: &last}, nil)
	if err == nil {
		// A close with unread input resets the connection (TCP RST), and the peer would lose the
		// refusal; a client closes after a refusal.
		timer := time.NewTimer(lastWriteTimeout)
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

// end ends the connection with err, unless it has ended. It does not wait.
func (c *Conn) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	if c.endReason != nil {
		err = c.endReason // the peer may close first
	}
	c.err = err
	close(c.done)
	_ = c.raw().Close() // Close of crypto/tls may wait 5 s for a peer that does not read
}

// raw is the connection below TLS.
func (c *Conn) raw() net.Conn {
	if t, ok := c.nc.(*tls.Conn); ok {
		return t.NetConn()
	}
	return c.nc
}

// RTT returns the smoothed round-trip time of TCP; zero: it is unknown.
func (c *Conn) RTT() time.Duration { return tcpsocket.RTT(c.raw()) }

// lost wraps an error in ErrLost, except a violation of the protocol.
func (c *Conn) lost(err error) error {
	if errors.Is(err, ErrProtocol) {
		return fmt.Errorf("%w (peer %s)", err, c.remote)
	}
	return fmt.Errorf("%w: %s: %w", ErrLost, c.remote, err)
}

// read receives messages until the connection ends.
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
			c.tellViolation(err)
			c.end(err)
			return
		}
	}
}

// tellViolation sends the client why its message ends the connection; otherwise it would only see that the load server has closed it. It
// discards what the client sends until it closes, as Refuse does, for lastWriteTimeout at most.
func (c *Conn) tellViolation(err error) {
	if c.client || !errors.Is(err, ErrProtocol) || !c.limitWrite(err) {
		return
	}
	if c.write(&Message{Refusal: RejectError(err)}, nil) == nil {
		_ = c.nc.SetReadDeadline(time.Now().Add(lastWriteTimeout))
		_, _ = io.Copy(io.Discard, c.in) // err is the reason of the end in any case
	}
}

// next reads one message and its binary content. The memory grows with the bytes received, not with
// the length in the header.
func (c *Conn) next(buf *[]byte) (e event, err error) {
	if _, err := c.in.Peek(1); err != nil {
		return e, err
	}
	begun := time.Now()
	header, err := c.part(buf, frameHeaderBytes, begun)
	if err != nil {
		return e, err
	}
	length, bytes := binary.BigEndian.Uint32(header), binary.BigEndian.Uint32(header[4:])
	if length == 0 || length > MaxMessageBytes || bytes > c.mostBytes {
		return e, fmt.Errorf("%w: message of %d bytes with %d bytes of data; want 1 to %d and at most %d", ErrProtocol, length, bytes, MaxMessageBytes, c.mostBytes)
	}
	payload, err := c.part(buf, int(length), begun)
	if err != nil {
		return e, err
	}
	if e.message, err = decode(payload); err != nil {
		return e, err
	}
	if !e.message.allowed(!c.client) {
		return e, fmt.Errorf("%w: %s from the wrong end", ErrProtocol, e.message.name())
	}
	if bytes > 0 && e.message.Traffic == nil {
		return e, fmt.Errorf("%w: %s has %d bytes of data, want none", ErrProtocol, e.message.name(), bytes)
	}
	for left := int(bytes); left > 0; left -= len(payload) {
		if payload, err = c.part(buf, min(left, partBytes), time.Now()); err != nil {
			return e, err
		}
		e.data = append(e.data, payload...)
	}
	_ = c.nc.SetReadDeadline(time.Time{}) // messages received before the end are delivered
	return e, nil
}

// part reads n bytes of a frame, until frameTime after begun. The slice is valid until the next
// call.
func (c *Conn) part(buf *[]byte, n int, begun time.Time) ([]byte, error) {
	_ = c.nc.SetReadDeadline(begun.Add(frameTime)) // a read from a closed connection returns an error
	*buf = slices.Grow((*buf)[:0], n)[:n]
	_, err := io.ReadFull(c.in, *buf)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, fmt.Errorf("%w: frame not complete within its time limit", ErrProtocol)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fmt.Errorf("within a frame: %w", io.ErrUnexpectedEOF)
	}
	return *buf, err
}

// take passes a message to Read. An error ends the connection.
func (c *Conn) take(e event) error {
	switch m := &e.message; {
	case m.Close != nil:
		return ErrClosed
	case m.Refusal != nil:
		m.Refusal.Detail = Printable(m.Refusal.Detail)
		return &ServerError{c.remote.String(), m.Refusal}
	}
	select {
	case c.inbox <- e:
		return nil
	default:
		return c.lost(fmt.Errorf("%w: more than %d unread messages", ErrProtocol, inboxMessages))
	}
}

// Write sends a message. It blocks while the peer does not read, and returns the error of Err if
// the connection ends.
func (c *Conn) Write(m Message) error { return c.write(&m, nil) }

// SendOpened accepts the session, with the traffic's reply.
func (c *Conn) SendOpened(reply any) error {
	b, err := json.Marshal(reply)
	if err != nil {
		return fmt.Errorf("loadcontrol: opened: %w", err)
	}
	return c.write(&Message{Opened: &Opened{Reply: b}}, nil)
}

// SendMessage sends a message of the traffic; a load server may add binary content.
func (c *Conn) SendMessage(name string, body any, data []byte) error {
	b, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("loadcontrol: %s: %w", name, err)
	}
	return c.write(&Message{Traffic: &TrafficMessage{Name: name, Body: b}}, data)
}

func (c *Conn) write(m *Message, data []byte) error {
	if !m.allowed(c.client) || c.client && len(data) > 0 {
		return fmt.Errorf("loadcontrol: only the peer may send %s", m.name())
	}
	b, err := encode(m)
	if err != nil {
		return err
	}
	c.order.lock()
	defer c.order.unlock()
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

// writable sets the write deadline.
func (c *Conn) writable() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	limit := frameTime
	switch {
	case c.err != nil:
		return c.err
	case c.endReason != nil:
		limit = lastWriteTimeout
	}
	return c.nc.SetWriteDeadline(time.Now().Add(limit))
}
