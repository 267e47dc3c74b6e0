package udptraffic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadcontrol"
)

// Client is the client end of a session of streams: one Prove at a time, and any number of transfers.
// Its methods are safe for concurrent use. After the end of the session they return the error of
// loadcontrol.Client.Err.
type Client struct {
	*loadcontrol.Client
	// Reply of the load server to Open.
	Reply Reply

	mu      sync.Mutex
	pending map[uint16]*pending // by the transfer's ID; 0 is Prove
}

// pending has the channels for the replies to one transfer; each has capacity 1.
type pending struct {
	direction   sample.Direction
	running     bool // Started was received
	begun, over chan reply
}

// reply is a reply of the load server.
type reply struct {
	started  Started
	finished *Finished
	records  []byte
	refusal  *loadcontrol.Refusal
}

// Open opens a session of this traffic with the test, run, bytes and duration of o.
func Open(ctx context.Context, over *loadcontrol.Client, o loadcontrol.Open) (*Client, error) {
	c := &Client{Client: over, pending: make(map[uint16]*pending)}
	o.Traffic = Name
	opened, err := over.Open(ctx, o, c.deliver)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(opened.Reply, &c.Reply); err != nil || c.Reply.Port == 0 || c.Reply.Session == 0 {
		return nil, c.Wrap(errors.New("reply to open has no port or no session"))
	}
	return c, nil
}

// Prove sends the cookie of the challenge that was received over UDP.
func (c *Client) Prove(ctx context.Context, cookie []byte) error {
	_, err := c.request(ctx, &Start{}, loadcontrol.ReplyTimeout, "prove", msgProve, Prove{Cookie: cookie})
	if err == nil {
		c.removePending(0)
	}
	return err
}

// Start requests a transfer. It returns when the load server is ready to receive or begins to send.
// A *loadcontrol.Refusal in the error refuses this transfer only, unless Done is closed too.
func (c *Client) Start(ctx context.Context, t Start) (Started, error) {
	if err := t.Check(); err != nil {
		return Started{}, err
	}
	a, err := c.request(ctx, &t, t.Idle+grace, fmt.Sprintf("transfer %d", t.ID), msgStart, t) // the load server may wait for Idle
	if errors.As(err, new(*loadcontrol.Refusal)) {
		c.removePending(t.ID)
	}
	return a.started, err
}

// request sends a message and waits for the first reply to it, for limit at most.
func (c *Client) request(ctx context.Context, t *Start, limit time.Duration, what, name string, body any) (reply, error) {
	x := &pending{direction: t.Direction, begun: make(chan reply, 1), over: make(chan reply, 1)}
	c.mu.Lock()
	_, known := c.pending[t.ID]
	if !known {
		c.pending[t.ID] = x
	}
	c.mu.Unlock()
	if known {
		return reply{}, fmt.Errorf("udptraffic: %s is in progress: use another id", what)
	}
	if err := c.SendMessage(name, body); err != nil {
		c.removePending(t.ID)
		return reply{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no reply within %v", limit))
	defer cancel()
	return c.await(ctx, what, x.begun)
}

// await waits for one reply or refusal; a reply received before the end of the session counts.
func (c *Client) await(ctx context.Context, what string, from <-chan reply) (a reply, err error) {
	select {
	case a = <-from:
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-c.Done():
		select {
		case a = <-from:
		default:
			return a, c.Err()
		}
	}
	if a.refusal != nil {
		err = a.refusal
	}
	if err != nil {
		err = c.Wrap(fmt.Errorf("%s: %w", what, err))
	}
	return a, err
}

func (c *Client) removePending(id uint16) {
	c.mu.Lock()
	delete(c.pending, id)
	c.mu.Unlock()
}

// Sent reports the number of packets sent of a forward transfer.
func (c *Client) Sent(ctx context.Context, id uint16, packets int) error {
	if err := context.Cause(ctx); err != nil {
		return c.Wrap(fmt.Errorf("transfer %d: %w", id, err))
	}
	return c.SendMessage(msgSent, Sent{ID: id, Packets: packets})
}

// Cancel ends a transfer early; Wait returns the load server's records so far.
func (c *Client) Cancel(id uint16) error { return c.SendMessage(msgCancel, Cancel{ID: id}) }

// Wait waits for the end of a started transfer and returns the load server's records of it. It may be
// called again after an error of ctx.
func (c *Client) Wait(ctx context.Context, id uint16) (*Finished, []byte, error) {
	c.mu.Lock()
	x := c.pending[id]
	c.mu.Unlock()
	if x == nil {
		return nil, nil, fmt.Errorf("udptraffic: transfer %d was not started", id)
	}
	a, err := c.await(ctx, fmt.Sprintf("transfer %d", id), x.over)
	if err == nil || errors.As(err, new(*loadcontrol.Refusal)) {
		c.removePending(id)
	}
	return a.finished, a.records, err
}

// deliver passes each reply to its waiter. An unexpected reply violates the
// protocol.
func (c *Client) deliver(m *loadcontrol.TrafficMessage, records []byte) error {
	var (
		proved   Proved
		finished Finished
		refusal  loadcontrol.Refusal
		a        = reply{records: records}
		into     = map[string]any{msgProved: &proved, msgStarted: &a.started, msgFinished: &finished, msgRefused: &refusal}[m.Name]
	)
	if into == nil {
		return fmt.Errorf("%w: unexpected %.40q", loadcontrol.ErrProtocol, m.Name)
	}
	if err := m.Into(into); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	id := a.started.ID + finished.ID + refusal.ID // at most one of them is not zero
	x := c.pending[id]
	if x == nil || (id == 0) != (m.Name == msgProved) {
		return fmt.Errorf("%w: unexpected %s", loadcontrol.ErrProtocol, m.Name)
	}
	to, requested := x.begun, !x.running
	switch m.Name {
	case msgFinished:
		to, requested, a.finished = x.over, x.running, &finished
		if requested && ((finished.Received != nil) != (x.direction == sample.Forward) || (finished.Sent != nil) != (x.direction == sample.Reverse)) {
			return fmt.Errorf("%w: finished %d: it must have the load server's records of a %s transfer only", loadcontrol.ErrProtocol, finished.ID, x.direction)
		}
	case msgRefused:
		if err := refusal.Check(); err != nil {
			return err
		}
		if x.running {
			to = x.over
		}
		requested, a.refusal, refusal.Detail = true, &refusal, loadcontrol.Printable(refusal.Detail)
	default:
		x.running = true
	}
	if !requested || len(to) > 0 {
		return fmt.Errorf("%w: unexpected %s", loadcontrol.ErrProtocol, m.Name)
	}
	to <- a
	return nil
}
