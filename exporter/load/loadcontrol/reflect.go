package loadcontrol

import (
	"context"
	"fmt"

	"oneway.example/exporter/probe"
)

// Test packets of the light kind during the load: a session may have one reflector (STAMP, authenticated mode) at the
// load server, for the address of the control connection.
const (
	// reflectRate is the most packets a second, and reflectShare the most of the token's rate that they may take.
	reflectRate  = 200
	reflectShare = 0.1
	// reflectQueries is the most queries a second.
	reflectQueries = 2
)

// Reflect requests a reflector for at most so much payload in each direction, which is taken from the bytes that Open
// announced.
type Reflect struct {
	Bytes int64 `json:"bytes"`
}

// Reflecting is the reply: the reflector runs until the session ends, or Refusal has the reason why there is none. The
// session continues in either case.
type Reflecting struct {
	// Port is the UDP port at the address of the control connection.
	Port uint16 `json:"port,omitempty"`
	// Key is the shared secret of the session's packets.
	Key     []byte   `json:"key,omitempty"`
	Refusal *Refusal `json:"refusal,omitempty"`
}

// minKeyBytes is the least length of Reflecting.Key.
const minKeyBytes = 16

func (r *Reflecting) check() error {
	switch {
	case r.Refusal != nil:
		return r.Refusal.Check()
	case r.Port == 0 || len(r.Key) < minKeyBytes:
		return fmt.Errorf("%w: reflecting has port %d and a key of %d bytes; want a port and at least %d bytes", ErrProtocol, r.Port, len(r.Key), minKeyBytes)
	}
	return nil
}

// ReflectRate returns the most packets a second to a reflector with these limits of the token; below 1 there is none.
func (l Limits) ReflectRate() int {
	if l.BytesPerSecond <= 0 {
		return reflectRate
	}
	return int(min(reflectRate, reflectShare*l.BytesPerSecond/probe.LightBytes))
}

// ReflectLimit returns how many packets a second the reflector accepts, and how many beyond that at once. What it rejects is lost to the
// sender, so both are above ReflectRate: the sender also queries its counts, and sends one packet in each interval at a random time, so that
// two may follow each other at once, beside what the path delays.
func (l Limits) ReflectLimit() (rate, burst int) {
	rate = l.ReflectRate()
	return rate + reflectQueries, rate/4 + 2 + reflectQueries
}

// Reflect requests a reflector for packets of the session, once after Open. The error is a *Refusal, or the one of the
// connection.
func (c *Client) Reflect(ctx context.Context, r Reflect) (Reflecting, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, ReplyTimeout, c.Wrap(fmt.Errorf("reflect: no reply within %v", ReplyTimeout)))
	defer cancel()
	if err := c.Write(Message{Reflect: &r}); err != nil {
		return Reflecting{}, err
	}
	select {
	case reply := <-c.reflecting:
		if reply.Refusal != nil {
			reply.Refusal.Detail = Printable(reply.Refusal.Detail)
			return Reflecting{}, reply.Refusal
		}
		return reply, nil
	case <-c.Done():
		return Reflecting{}, c.Err()
	case <-ctx.Done():
		return Reflecting{}, context.Cause(ctx)
	}
}

// reflects passes the reply to Reflect. A second one violates the protocol.
func (c *Client) reflects(r *Reflecting) error {
	select {
	case c.reflecting <- *r:
		return nil
	default:
		return fmt.Errorf("%w: unexpected reflecting", ErrProtocol)
	}
}
