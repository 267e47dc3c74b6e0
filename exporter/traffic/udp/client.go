package udp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"oneway.example/exporter/control"
	"oneway.example/exporter/sample"
)

// Client speaks of streams over a control connection: one Prove at a time, and any number of
// transfers. Its methods may be called at the same time. Where a session has ended they
// return control.Client.Err's error.
type Client struct {
	*control.Client
	// Answer is the far end's to Open.
	Answer Answer

	mu      sync.Mutex
	pending map[uint16]*pending // by the transfer's number; Prove's is 0
}

// pending is where the answers about one transfer wait; each channel takes one.
type pending struct {
	direction   sample.Direction
	running     bool // Started has come
	begun, over chan answer
}

// answer is one of the responder's.
type answer struct {
	started  Started
	finished *Finished
	records  []byte
	refusal  *control.Refusal
}

// Open opens a session of this traffic, for the test, run, octets and duration of o.
func Open(ctx context.Context, over *control.Client, o control.Open) (*Client, error) {
	c := &Client{Client: over, pending: make(map[uint16]*pending)}
	o.Traffic = Name
	opened, err := over.Open(ctx, o, c.deliver)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(opened.Answer, &c.Answer); err != nil || c.Answer.Port == 0 || c.Answer.Session == 0 {
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

// Start asks for a transfer. It returns when the responder is ready to receive, or begins to
// send; a *control.Refusal in the error is of this transfer alone, unless Done is closed too.
func (c *Client) Start(ctx context.Context, t Start) (Started, error) {
	if err := t.Check(); err != nil {
		return Started{}, err
	}
	a, err := c.ask(ctx, &t, fmt.Sprintf("transfer %d", t.ID), sayStart, t)
	if errors.As(err, new(*control.Refusal)) {
		c.forget(t.ID)
	}
	return a.started, err
}

// ask says a message, and waits for the first answer to it.
func (c *Client) ask(ctx context.Context, t *Start, what, name string, body any) (answer, error) {
	x := &pending{direction: t.Direction, begun: make(chan answer, 1), over: make(chan answer, 1)}
	c.mu.Lock()
	_, known := c.pending[t.ID]
	if !known {
		c.pending[t.ID] = x
	}
	c.mu.Unlock()
	if known {
		return answer{}, fmt.Errorf("udp: %s is under way: choose another number", what)
	}
	if err := c.Say(name, body); err != nil {
		c.forget(t.ID)
		return answer{}, err
	}
	limit := control.AnswerTime + t.Idle // for a responder that is there
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %v", limit))
	defer cancel()
	return c.await(ctx, what, x.begun)
}

// await waits for one answer, which may be a refusal; what came before the end counts.
func (c *Client) await(ctx context.Context, what string, from <-chan answer) (a answer, err error) {
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

// Sent tells the responder how many packets of a forward transfer were sent.
func (c *Client) Sent(ctx context.Context, id uint16, packets int) error {
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("udp: %s: transfer %d: %w", c.Remote(), id, err)
	}
	return c.Say(saySent, Sent{ID: id, Packets: packets})
}

// Wait waits for the end of a transfer that was started, and returns what the responder saw
// of it. After an error of ctx it may be called again.
func (c *Client) Wait(ctx context.Context, id uint16) (*Finished, []byte, error) {
	c.mu.Lock()
	x := c.pending[id]
	c.mu.Unlock()
	if x == nil {
		return nil, nil, fmt.Errorf("udp: transfer %d was not started", id)
	}
	a, err := c.await(ctx, fmt.Sprintf("transfer %d", id), x.over)
	if err == nil || errors.As(err, new(*control.Refusal)) {
		c.forget(id)
	}
	return a.finished, a.records, err
}

// deliver gives each answer to whom it is for. An answer that nobody waits for breaks the
// protocol.
func (c *Client) deliver(m *control.Say, records []byte) error {
	var (
		proved   Proved
		finished Finished
		refusal  control.Refusal
		a        = answer{records: records}
		into     = map[string]any{sayProved: &proved, sayStarted: &a.started, sayFinished: &finished, sayRefused: &refusal}[m.Name]
	)
	if into == nil {
		return fmt.Errorf("%w: %.40q was not asked for", control.ErrProtocol, m.Name)
	}
	if err := m.Into(into); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	id := a.started.ID + finished.ID + refusal.ID // two of them are zero
	x := c.pending[id]
	if x == nil || (id == 0) != (m.Name == sayProved) {
		return fmt.Errorf("%w: %s was not asked for", control.ErrProtocol, m.Name)
	}
	to, asked := x.begun, !x.running
	switch m.Name {
	case sayFinished:
		to, asked, a.finished = x.over, x.running, &finished
		if asked && ((finished.Received != nil) != (x.direction == sample.Forward) || (finished.Sent != nil) != (x.direction == sample.Reverse)) {
			return fmt.Errorf("%w: finished %d: the responder's end of a %s transfer is wanted", control.ErrProtocol, finished.ID, x.direction)
		}
	case sayRefused:
		if err := refusal.Check(); err != nil {
			return err
		}
		if x.running {
			to = x.over
		}
		asked, a.refusal, refusal.Detail = true, &refusal, control.Printable(refusal.Detail)
	default:
		x.running = true
	}
	if !asked || len(to) > 0 {
		return fmt.Errorf("%w: %s was not asked for", control.ErrProtocol, m.Name)
	}
	to <- a
	return nil
}
