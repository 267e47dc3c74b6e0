package control

import (
	"context"
	"fmt"

	"oneway.example/exporter/sample"
)

// route gives each answer to whom it is for, until the connection has ended. An answer that
// nobody waits for breaks the protocol.
func (c *Client) route() {
	defer close(c.routed)
	for {
		m, records, err := c.conn.Read(context.Background())
		if err != nil {
			return
		}
		if err := c.deliver(&m, records); err != nil {
			c.conn.end(c.conn.lost(err))
		}
	}
}

func (c *Client) deliver(m *Message, records []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case m.Opened != nil && c.opened != nil:
		c.opened <- *m.Opened
		c.opened = nil
	case m.Proved != nil && c.proved != nil:
		c.proved <- *m.Proved
		c.proved = nil
	case m.Started != nil:
		x := c.transfers[m.Started.ID]
		if x == nil || x.running {
			return fmt.Errorf("%w: started: transfer %d was not asked for", ErrProtocol, m.Started.ID)
		}
		x.running = true
		x.started <- *m.Started
	case m.Finished != nil:
		x := c.transfers[m.Finished.ID]
		if x == nil || !x.running || len(x.finished) > 0 {
			return fmt.Errorf("%w: finished: transfer %d is not under way", ErrProtocol, m.Finished.ID)
		}
		if (x.direction == sample.Forward) != (m.Finished.Received != nil) {
			return fmt.Errorf("%w: finished %d: the responder's end of a %s transfer is wanted", ErrProtocol, m.Finished.ID, x.direction)
		}
		x.finished <- ending{m.Finished, records}
	case m.Refusal != nil:
		x := c.transfers[m.Refusal.ID]
		if x == nil || len(x.refused) > 0 {
			return fmt.Errorf("%w: refusal: transfer %d is not under way", ErrProtocol, m.Refusal.ID)
		}
		m.Refusal.Detail = printable(m.Refusal.Detail)
		x.refused <- m.Refusal
	default:
		return fmt.Errorf("%w: %s was not asked for", ErrProtocol, m.name())
	}
	return nil
}
