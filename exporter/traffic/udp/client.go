package udp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"oneway.example/exporter/loadcontrol"
	"oneway.example/exporter/sample"
)

// Client speaks of streams over a control connection: one Prove at a time, and any number of
// transfers. Its methods may be called at the same time. Where a session has ended they
// return loadcontrol.Client.Err's error.
type Client struct {
	*loadcontrol.Client
	// Reply is the remote end's to Open.
	Reply Reply

	mu      sync.Mutex
	pending map[uint16]*pending // by the transfer's number; Prove's is 0
}

// pending is where the replies about one transfer wait; each channel takes one.
type pending struct {
	direction   sample.Direction
	running     bool // Started has come
	begun, over chan reply
}

// reply is one of the load server's.
type reply struct {
	started  Started
	finished *Finished
	records  []byte
	refusal  *loadcontrol.Refusal
}

// Open opens a session of this traffic, for the test, run, bytes and duration of o.
func Open(ctx context.Context, over *loadcontrol.Client, o loadcontrol.Open) (*Client, error) {
	c := &Client{Client: over, pending: make(map[uint16]*pending)}
	o.Traffic = Name
	opened, err := over.Open(ctx, o, c.deliver)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(opened.Reply, &c.Reply); err != nil || c.Reply.Port == 0 || c.Reply.Session == 0 {
		return nil, fmt.Errorf("udp: %s: opened without a port or a session", c.Remote())
	}
	return c, nil
}

// Prove shows the cookie of the challenge that came over UDP.
func (c *Client) Prove(ctx context.Context, cookie []byte) error {
	_, err := c.ask(ctx, &Start{}, "prove", sayProve, Prove{Cookie: cookie})
	if err == nil {
		c.forget(0)
	}
	return err
}

// Start asks for a transfer. It returns when the load server is ready to receive, or begins to
// send; a *loadcontrol.Refusal in the error is of this transfer alone, unless Done is closed too.
func (c *Client) Start(ctx context.Context, t Start) (Started, error) {
	if err := t.Check(); err != nil {
		return Started{}, err
	}
	a, err := c.ask(ctx, &t, fmt.Sprintf("transfer %d", t.ID), sayStart, t)
	if errors.As(err, new(*loadcontrol.Refusal)) {
		c.forget(t.ID)
	}
	return a.started, err
}

// ask says a message, and waits for the first reply to it.
func (c *Client) ask(ctx context.Context, t *Start, what, name string, body any) (reply, error) {
	x := &pending{direction: t.Direction, begun: make(chan reply, 1), over: make(chan reply, 1)}
	c.mu.Lock()
	_, known := c.pending[t.ID]
	if !known {
		c.pending[t.ID] = x
	}
	c.mu.Unlock()
	if known {
		return reply{}, fmt.Errorf("udp: %s is under way: choose another number", what)
	}
	if err := c.Say(name, body); err != nil {
		c.forget(t.ID)
		return reply{}, err
	}
	limit := loadcontrol.ReplyTime + t.Idle // for a load server that is there
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no reply within %v", limit))
	defer cancel()
	return c.await(ctx, what, x.begun)
}

// await waits for one reply, which may be a refusal; what came before the end counts.
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
		err = fmt.Errorf("udp: %s: %s: %w", c.Remote(), what, err)
	}
	return a, err
}

func (c *Client) forget(id uint16) {
	c.mu.Lock()
	delete(c.pending, id)
	c.mu.Unlock()
}

// Sent tells the load server how many packets of a forward transfer were sent.
func (c *Client) Sent(ctx context.Context, id uint16, packets int) error {
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("udp: %s: transfer %d: %w", c.Remote(), id, err)
	}
	return c.Say(saySent, Sent{ID: id, Packets: packets})
}

// Wait waits for the end of a transfer that was started, and returns what the load server saw
// of it. After an error of ctx it may be called again.
func (c *Client) Wait(ctx context.Context, id uint16) (*Finished, []byte, error) {
	c.mu.Lock()
	x := c.pending[id]
	c.mu.Unlock()
	if x == nil {
		return nil, nil, fmt.Errorf("udp: transfer %d was not started", id)
	}
	a, err := c.await(ctx, fmt.Sprintf("transfer %d", id), x.over)
	if err == nil || errors.As(err, new(*loadcontrol.Refusal)) {
		c.forget(id)
	}
	return a.finished, a.records, err
}

// deliver gives each reply to whom it is for. A reply that nobody waits for breaks the
// protocol.
func (c *Client) deliver(m *loadcontrol.Say, records []byte) error {
	var (
		proved   Proved
		finished Finished
		refusal  loadcontrol.Refusal
		a        = reply{records: records}
		into     = map[string]any{sayProved: &proved, sayStarted: &a.started, sayFinished: &finished, sayRefused: &refusal}[m.Name]
	)
	if into == nil {
		return fmt.Errorf("%w: %.40q was not asked for", loadcontrol.ErrProtocol, m.Name)
	}
	if err := m.Into(into); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	id := a.started.ID + finished.ID + refusal.ID // two of them are zero
	x := c.pending[id]
	if x == nil || (id == 0) != (m.Name == sayProved) {
		return fmt.Errorf("%w: %s was not asked for", loadcontrol.ErrProtocol, m.Name)
	}
	to, asked := x.begun, !x.running
	switch m.Name {
	case sayFinished:
		to, asked, a.finished = x.over, x.running, &finished
		if asked && ((finished.Received != nil) != (x.direction == sample.Forward) || (finished.Sent != nil) != (x.direction == sample.Reverse)) {
			return fmt.Errorf("%w: finished %d: the load server's end of a %s transfer is wanted", loadcontrol.ErrProtocol, finished.ID, x.direction)
		}
	case sayRefused:
		if err := refusal.Check(); err != nil {
			return err
		}
		if x.running {
			to = x.over
		}
		asked, a.refusal, refusal.Detail = true, &refusal, loadcontrol.Printable(refusal.Detail)
	default:
		x.running = true
	}
	if !asked || len(to) > 0 {
		return fmt.Errorf("%w: %s was not asked for", loadcontrol.ErrProtocol, m.Name)
	}
	to <- a
	return nil
}
