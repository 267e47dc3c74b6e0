package loadcontrol

import (
	"context"
	"errors"
	"fmt"
	"net/http"
)

// Test packets of the light kind beside the load: a session may have one reflector (STAMP, authenticated mode) at the
// load server, for the address of the control connection. An HTTP header of the upgrade offers it, which older clients
// ignore and without which newer ones do not ask: a message that a peer does not know ends the session.
const (
	offersHeader  = "Oneway-Offers"
	offersReflect = "reflect"

	// ReflectBytes is the largest payload of a packet to the reflector, and of its replies: an authenticated statistics
	// query of package probes/stamp.
	ReflectBytes = 260
	// reflectRate is the most packets a second, and reflectShare the most of the token's rate that they may take.
	reflectRate  = 200
	reflectShare = 0.1
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
	return int(min(reflectRate, reflectShare*l.BytesPerSecond/ReflectBytes))
}

// UDPHeaderBytes returns the bytes of IP and UDP headers of a packet, IP options and extensions excluded.
func UDPHeaderBytes(ipv6 bool) int64 {
	if ipv6 {
		return 48
	}
	return 28
}

// ErrNoReflector means that the load server does not offer a reflector.
var ErrNoReflector = errors.New("loadcontrol: the load server has an older version, without reflectors in sessions")

// OffersReflector reports whether the load server has reflectors.
func (c *Client) OffersReflector() bool { return c.offers }

// offered reports whether a response to the upgrade offers a reflector.
func offered(h http.Header) bool { return h.Get(offersHeader) == offersReflect }

// Reflect requests a reflector for packets of the session, once after Open. The error is ErrNoReflector, a *Refusal, or
// that of the connection.
func (c *Client) Reflect(ctx context.Context, r Reflect) (Reflecting, error) {
	if !c.offers {
		return Reflecting{}, ErrNoReflector
	}
	ctx, cancel := context.WithTimeoutCause(ctx, ReplyTimeout, fmt.Errorf("loadcontrol: %s: reflect: no reply within %v", c.Remote(), ReplyTimeout))
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
