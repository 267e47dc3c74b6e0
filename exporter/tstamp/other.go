//go:build !linux

package tstamp

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"

	"oneway.example/exporter/instant"
	"oneway.example/exporter/sample"
)

// Conn is a UDP socket with user-space time stamps: other systems' stamps are
// not taken up yet. DSCP, TTL and Source of a packet are not honoured here.
type Conn struct {
	udp     *net.UDPConn
	closed  atomic.Bool
	sendMu  sync.Mutex
	pending *pending
	alarm   alarm

	sent, sendErrors, received atomic.Uint64
}

// Open makes a socket bound to local, of its address family.
func Open(local netip.AddrPort, _ Options) (*Conn, error) {
	if !local.Addr().IsValid() {
		return nil, errors.New("tstamp: no local address")
	}
	network := "udp4"
	if local.Addr().Unmap().Is6() {
		network = "udp6"
	}
	udp, err := net.ListenUDP(network, net.UDPAddrFromAddrPort(local))
	if err != nil {
		return nil, fmt.Errorf("tstamp: open %v: %w", local, err)
	}
	return &Conn{udp: udp, pending: newPending(1, 4096, false), alarm: alarm{file: udp}}, nil
}

// LocalAddr is the address bound to.
func (c *Conn) LocalAddr() netip.AddrPort { return c.udp.LocalAddr().(*net.UDPAddr).AddrPort() }

// Close frees the socket; Receive then returns net.ErrClosed.
func (c *Conn) Close() error {
	if c.closed.Swap(true) {
		return net.ErrClosed
	}
	return c.udp.Close()
}

// Send hands packets to the system, one by one, and sets their At.
func (c *Conn) Send(out []Out) (sent int, err error) {
	c.sendMu.Lock()
	defer c.sendMu.Unlock()
	for i := range out {
		o := &out[i]
		o.At = instant.Now()
		if _, err := c.udp.WriteToUDPAddrPort(o.Payload, o.Peer); err != nil {
			c.sendErrors.Add(1)
			return i, fmt.Errorf("tstamp: send to %v: %w", o.Peer, err)
		}
		c.sent.Add(1)
		c.pending.mu.Lock()
		c.pending.deliver(&slot{cookie: o.Cookie, at: o.At}, sample.Stamp{At: o.At, Origin: sample.User})
		c.pending.mu.Unlock()
	}
	c.alarm.ring()
	return len(out), nil
}

// SendAs is Send: manners are not honoured here, but that unstamped packets bring no
// stamps, and that one to be cut is refused.
func (c *Conn) SendAs(m Manner, out []Out) (sent int, err error) {
	if !m.Unstamped {
		return c.Send(out)
	}
	for i := range out {
		o := &out[i]
		if o.Segment > 0 {
			return i, fmt.Errorf("tstamp: send to %v: %w", o.Peer, syscall.EINVAL)
		}
		o.At = instant.Now()
		if _, err := c.udp.WriteToUDPAddrPort(o.Payload, o.Peer); err != nil {
			c.sendErrors.Add(1)
			return i, fmt.Errorf("tstamp: send to %v: %w", o.Peer, err)
		}
		c.sent.Add(1)
	}
	return len(out), nil
}

// Coalesce does nothing here: packets are read one by one.
func (c *Conn) Coalesce(bool) error { return errors.ErrUnsupported }

// Batch is what a Receive brings, with the memory it needs.
type Batch struct {
	In     []In
	Tx     []TxStamp
	Errors []PeerError

	bytes []byte
	each  int
}

// NewBatch makes room; here a Receive brings one packet at most.
func NewBatch(packets, bytesEach int) *Batch {
	packets, bytesEach = max(packets, 1), max(bytesEach, 1)
	return &Batch{In: make([]In, 0, 1), Tx: make([]TxStamp, 0, 4*packets), bytes: make([]byte, bytesEach+1), each: bytesEach}
}

// Receive waits for a packet or transmit stamps.
func (c *Conn) Receive(b *Batch) error {
	for {
		b.In, b.Errors = b.In[:0], b.Errors[:0]
		c.pending.mu.Lock()
		b.Tx = c.pending.done.popInto(b.Tx[:0])
		c.pending.mu.Unlock()
		if len(b.Tx) > 0 {
			return nil
		}
		n, peer, err := c.udp.ReadFromUDPAddrPort(b.bytes)
		at := instant.Now()
		var late interface{ Timeout() bool }
		switch {
		case c.closed.Load():
			return net.ErrClosed
		case errors.As(err, &late) && late.Timeout():
			c.alarm.stop()
			continue
		case errors.Is(err, syscall.ECONNREFUSED):
			continue
		case err != nil:
			return fmt.Errorf("tstamp: receive: %w", err)
		}
		c.received.Add(1)
		b.In = append(b.In, In{
			Payload: b.bytes[:min(n, b.each)], Peer: peer, At: at, Truncated: n > b.each,
			Stamp: sample.Stamp{At: at, Origin: sample.User},
		})
		return nil
	}
}

// Stamps appends the transmit stamps that are there by now, without waiting.
func (c *Conn) Stamps(into []TxStamp) []TxStamp {
	c.pending.mu.Lock()
	defer c.pending.mu.Unlock()
	return c.pending.done.popInto(into)
}

// Stats returns the counts so far.
func (c *Conn) Stats() Stats {
	s := Stats{Sent: c.sent.Load(), SendErrors: c.sendErrors.Load(), Received: c.received.Load()}
	s.RxStamps[sample.User] = s.Received
	c.pending.mu.Lock()
	defer c.pending.mu.Unlock()
	s.TxStamps = c.pending.txStamps
	return s
}
