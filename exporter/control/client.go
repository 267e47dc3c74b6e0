package control

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"oneway.example/exporter/sample"
)

// AnswerTime is how long a responder that is there may think about Open, Prove and Transfer.
const AnswerTime = 10 * time.Second

// Client is a session as its client sees it: one question at a time for Open and Prove, and
// any number of transfers. Its methods may be called at the same time. Where a session has
// ended they return Err's error.
type Client struct {
	conn     *Conn
	welcome  Welcome
	feedback bool
	routed   chan struct{} // closed when no answer can come any more

	asking gate // one Open or Prove at a time

	mu        sync.Mutex
	opened    chan Opened // of the Open that waits; nil: none
	proved    chan Proved
	transfers map[uint16]*transfer
}

// transfer is where the answers about one transfer wait; each channel takes one.
type transfer struct {
	direction sample.Direction
	running   bool // Started has come
	started   chan Started
	finished  chan ending
	refused   chan *Refusal
}

// ending is a Finished and its records.
type ending struct {
	finished *Finished
	records  []byte
}

func newClient(conn *Conn, w Welcome) *Client {
	c := &Client{conn: conn, welcome: w, routed: make(chan struct{}), asking: newGate(), transfers: make(map[uint16]*transfer)}
	conn.tasks.Go(c.route)
	return c
}

// Welcome is what the responder said first.
func (c *Client) Welcome() Welcome { return c.welcome }

// Feedback tells whether the responder knows plans with feedback (stream.Plan.Feedback). One
// that does not would end the session for such a plan.
func (c *Client) Feedback() bool { return c.feedback }

// Remote is the responder's address.
func (c *Client) Remote() netip.AddrPort { return c.conn.Remote() }

// Local is the address that the connection comes from, as this host sees it.
func (c *Client) Local() netip.AddrPort { return c.conn.Local() }

// Done is closed when the session has ended; nothing may be sent any more then.
func (c *Client) Done() <-chan struct{} { return c.conn.Done() }

// Err says why the session has ended; nil while it has not: see Conn.Err.
func (c *Client) Err() error { return c.conn.Err() }

// Heard notes a sign of the responder's life, see Conn.Heard.
func (c *Client) Heard() { c.conn.Heard() }

// Close ends the session and returns when nothing of it runs any more.
func (c *Client) Close() error { return c.conn.Close() }

// Open asks for the session. A refusal, such as Busy, ends it: dial again later.
func (c *Client) Open(ctx context.Context, o Open) (Opened, error) {
	return ask(ctx, c, &c.opened, "open", Message{Open: &o})
}

// Prove shows the cookie of the challenge that came over UDP.
func (c *Client) Prove(ctx context.Context, cookie []byte) error {
	_, err := ask(ctx, c, &c.proved, "prove", Message{Prove: &Prove{Cookie: cookie}})
	return err
}

// ask says m and waits for its answer, for which *place is the channel while it waits.
func ask[A any](ctx context.Context, c *Client, place *chan A, what string, m Message) (answer A, err error) {
	c.asking.enter()
	defer c.asking.leave()
	answers := make(chan A, 1)
	c.mu.Lock()
	waits := *place != nil
	if !waits {
		*place = answers
	}
	c.mu.Unlock()
	if waits {
		return answer, fmt.Errorf("control: %s: %s was asked before and is not answered", c.Remote(), what)
	}
	if err := c.conn.Write(m); err != nil {
		c.mu.Lock()
		*place = nil
		c.mu.Unlock()
		return answer, err
	}
	return await(ctx, c, what, AnswerTime, answers, nil)
}

// await waits for one answer or a refusal.
func await[A any](ctx context.Context, c *Client, what string, limit time.Duration, answers <-chan A, refused <-chan *Refusal) (answer A, err error) {
	var late <-chan time.Time
	if limit > 0 {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case answer = <-answers:
		return answer, nil
	case r := <-refused:
		return answer, fmt.Errorf("control: %s: %s: %w", c.Remote(), what, r)
	case <-ctx.Done():
		return answer, fmt.Errorf("control: %s: %s: %w", c.Remote(), what, context.Cause(ctx))
	case <-late:
		return answer, fmt.Errorf("control: %s: %s: no answer within %v, though it is there", c.Remote(), what, limit)
	case <-c.routed:
	}
	select { // what came before the end
	case answer = <-answers:
		return answer, nil
	case r := <-refused:
		return answer, fmt.Errorf("control: %s: %s: %w", c.Remote(), what, r)
	default:
		return answer, c.Err()
	}
}

// Start asks for a transfer. It returns when the responder is ready to receive, or begins to
// send; a *Refusal in the error is of this transfer alone, unless Done is closed too.
func (c *Client) Start(ctx context.Context, t Transfer) (Started, error) {
	if err := t.Check(); err != nil {
		return Started{}, err
	}
	x := &transfer{
		direction: t.Direction,
		started:   make(chan Started, 1), finished: make(chan ending, 1), refused: make(chan *Refusal, 1),
	}
	c.mu.Lock()
	_, known := c.transfers[t.ID]
	if !known {
		c.transfers[t.ID] = x
	}
	c.mu.Unlock()
	if known {
		return Started{}, fmt.Errorf("control: transfer %d is under way: choose another number", t.ID)
	}
	if err := c.conn.Write(Message{Transfer: &t}); err != nil {
		c.forget(t.ID)
		return Started{}, err
	}
	started, err := await(ctx, c, fmt.Sprintf("transfer %d", t.ID), AnswerTime+t.Idle, x.started, x.refused)
	if errors.As(err, new(*Refusal)) {
		c.forget(t.ID)
	}
	return started, err
}

func (c *Client) forget(id uint16) {
	c.mu.Lock()
	delete(c.transfers, id)
	c.mu.Unlock()
}

// Sent tells the responder how many packets of a forward transfer were sent.
func (c *Client) Sent(ctx context.Context, id uint16, packets int) error {
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("control: %s: transfer %d: %w", c.Remote(), id, err)
	}
	return c.conn.Write(Message{Sent: &Sent{ID: id, Packets: packets}})
}

// Wait waits for the end of a transfer that was started, and returns what the responder saw
// of it. After an error of ctx it may be called again.
func (c *Client) Wait(ctx context.Context, id uint16) (*Finished, []byte, error) {
	c.mu.Lock()
	x := c.transfers[id]
	c.mu.Unlock()
	if x == nil {
		return nil, nil, fmt.Errorf("control: transfer %d was not started", id)
	}
	end, err := await(ctx, c, fmt.Sprintf("transfer %d", id), 0, x.finished, x.refused)
	if err == nil || errors.As(err, new(*Refusal)) {
		c.forget(id)
	}
	if err != nil {
		return nil, nil, err
	}
	return end.finished, end.records, nil
}

// Cancel ends a transfer early; Wait returns what came of it. An error is Err's, and found
// there.
func (c *Client) Cancel(id uint16) {
	_ = c.conn.Write(Message{Cancel: &Cancel{ID: id}}) // see above
}
