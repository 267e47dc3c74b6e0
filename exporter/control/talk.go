package control

import (
	"errors"
	"fmt"
	"os"
	"time"

	"oneway.example/exporter/sample"
)

// read takes what the peer says, until the connection ends.
func (c *Conn) read() {
	var buf []byte
	for {
		e, err := c.next(&buf)
		if err == nil {
			err = c.take(e)
		}
		if err != nil {
			c.end(err)
			return
		}
	}
}

// next reads one message and the records that belong to it.
func (c *Conn) next(buf *[]byte) (e event, err error) {
	kind, payload, err := c.readFrame(buf)
	if err != nil {
		return event{}, c.lost(err)
	}
	if kind != frameMessage {
		return event{}, c.lost(fmt.Errorf("%w: records that nothing announced", ErrProtocol))
	}
	m, err := decode(payload)
	if err != nil {
		return event{}, c.lost(err)
	}
	e = event{message: m}
	if m.Finished != nil && c.client {
		e.records, err = c.records(buf, m.Finished.Records)
	}
	return e, err
}

// records collects what a Finished has announced. Pings may come between. The memory grows
// with what comes, not with what was announced.
func (c *Conn) records(buf *[]byte, announced int64) (records []byte, err error) {
	for int64(len(records)) < announced {
		kind, payload, err := c.readFrame(buf)
		if err != nil {
			return nil, c.lost(err)
		}
		if kind == frameRecords {
			if records = append(records, payload...); int64(len(records)) > announced {
				return nil, c.lost(fmt.Errorf("%w: %d octets of records, and %d were announced", ErrProtocol, len(records), announced))
			}
			continue
		}
		m, err := decode(payload)
		if err != nil {
			return nil, c.lost(err)
		}
		if m.Ping == nil && m.Pong == nil {
			return nil, c.lost(fmt.Errorf("%w: %s among the records", ErrProtocol, m.name()))
		}
		if err := c.take(event{message: m}); err != nil {
			return nil, err
		}
	}
	return records, nil
}

// readFrame reads a frame and notes how long it takes.
func (c *Conn) readFrame(buf *[]byte) (kind byte, payload []byte, err error) {
	kind, payload, err = readFrame(c.in, *buf, func() { c.under(time.Now()) })
	c.under(time.Time{})
	*buf = payload
	return kind, payload, err
}

// under notes since when a frame is under way. What watch waits for now comes before the end
// of its time.
func (c *Conn) under(since time.Time) {
	c.mu.Lock()
	c.patience.frame = since
	c.mu.Unlock()
}

// take deals with a message or hands it to Read. An error ends the connection.
func (c *Conn) take(e event) error {
	m := &e.message
	if !m.says(!c.client) {
		return c.lost(fmt.Errorf("%w: this side says %s, not the peer", ErrProtocol, m.name()))
	}
	switch {
	case m.Ping != nil:
		c.mu.Lock()
		c.owed = max(c.owed, m.Ping.Seq)
		c.mu.Unlock()
		wake(c.speak)
		return nil
	case m.Pong != nil:
		c.mu.Lock()
		asked := c.patience.answer(m.Pong.Seq)
		c.mu.Unlock()
		if !asked {
			return c.lost(fmt.Errorf("%w: pong %d to no ping", ErrProtocol, m.Pong.Seq))
		}
		wake(c.sooner)
		return nil
	case m.Close != nil:
		return ErrClosed
	case m.Refusal != nil && m.Refusal.ID == 0:
		m.Refusal.Detail = printable(m.Refusal.Detail)
		return fmt.Errorf("control: %s: %w", c.remote, m.Refusal)
	}
	c.loads(m)
	select {
	case c.inbox <- e:
		return nil
	default:
		return c.lost(fmt.Errorf("%w: more than %d messages at once", ErrProtocol, inboxMessages))
	}
}

// loads follows, in what either side says, which transfers load the path.
func (c *Conn) loads(m *Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case m.Transfer != nil:
		if m.Transfer.Check() == nil {
			l := loadOf(m.Transfer)
			if c.client && m.Transfer.Direction == sample.Forward {
				l.sends = time.Now().Add(m.Transfer.Plan.Duration())
			}
			c.patience.begin(m.Transfer.ID, l)
		}
	case m.Finished != nil:
		c.patience.end(m.Finished.ID, time.Now())
	case m.Refusal != nil && m.Refusal.ID != 0:
		c.patience.drop(m.Refusal.ID)
	default:
		return
	}
	wake(c.sooner)
	wake(c.speak)
}

// Write says a message. A Finished with records needs WriteFinished. It waits while the peer
// does not read, and returns Err's error when the connection ends.
func (c *Conn) Write(m Message) error {
	if m.Finished != nil && m.Finished.Records != 0 {
		return errors.New("control: a Finished with records is for WriteFinished")
	}
	return c.write(&m, nil)
}

// WriteFinished says how a transfer ended; f.Records is set to the length of the records.
func (c *Conn) WriteFinished(f Finished, records []byte) error {
	f.Records = int64(len(records))
	return c.write(&Message{Finished: &f}, records)
}

func (c *Conn) write(m *Message, records []byte) error {
	if !m.says(c.client) {
		return fmt.Errorf("control: the peer says %s, not this side", m.name())
	}
	b, err := encode(m)
	if err != nil {
		return err
	}
	c.order.enter()
	defer c.order.leave()
	c.loads(m)
	if err := c.writeFrame(frameMessage, b); err != nil {
		return err
	}
	for len(records) > 0 {
		n := min(len(records), chunkBytes)
		if err := c.writeFrame(frameRecords, records[:n]); err != nil {
			return err
		}
		records = records[n:]
	}
	return nil
}

const (
	// chunkBytes of records go into a frame, so that pings come between.
	chunkBytes = 16 << 10
	// recordBytes is written at a time, and so the longest record of TLS. A peer hears
	// nothing of a record before it has all of it; on a link of 64 kb/s this takes 0.3 s.
	recordBytes = 2 << 10
)

// writeFrame writes one frame. An error ends the connection.
func (c *Conn) writeFrame(kind byte, payload []byte) error {
	c.frame.enter()
	defer c.frame.leave()
	by, err := c.writeBy()
	if err != nil {
		return err
	}
	if err := c.nc.SetWriteDeadline(by); err != nil {
		c.end(c.lost(err))
		return c.Err()
	}
	c.out = appendFrame(c.out[:0], kind, payload)
	for rest := c.out; len(rest) > 0; {
		n := min(len(rest), recordBytes)
		if _, err := c.nc.Write(rest[:n]); err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				err = fmt.Errorf("the peer does not read: %w", err)
			}
			c.end(c.lost(err))
			return c.Err()
		}
		rest = rest[n:]
		c.mu.Lock()
		c.wrote = time.Now()
		c.mu.Unlock()
	}
	return nil
}

// ping answers the peer's pings, and asks where this side has said nothing for a while.
func (c *Conn) ping() {
	timer := time.NewTimer(PingEvery)
	defer timer.Stop()
	for {
		select {
		case <-c.done:
			return
		case <-c.speak:
		case <-timer.C:
		}
		next, err := c.pingOnce()
		if err != nil {
			return // the connection has ended
		}
		timer.Reset(next)
	}
}

// pingOnce says what is due, and returns when to look again.
func (c *Conn) pingOnce() (next time.Duration, err error) {
	c.mu.Lock()
	owed := c.owed
	c.owed = 0
	c.mu.Unlock()
	if owed > 0 {
		if err := c.say(&Message{Pong: &Pong{Seq: owed}}); err != nil {
			return 0, err
		}
	}
	c.mu.Lock()
	due := c.patience.wants() || time.Since(c.wrote) >= c.patience.every()
	var seq uint64
	if due {
		seq = c.patience.ask()
	}
	c.mu.Unlock()
	if due {
		if err := c.say(&Message{Ping: &Ping{Seq: seq}}); err != nil {
			return 0, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	every := c.patience.every()
	return every - min(time.Since(c.wrote), every-time.Millisecond), nil
}

// say writes a ping or a pong, which may stand between the records of a message.
func (c *Conn) say(m *Message) error {
	b, err := encode(m)
	if err != nil {
		return err
	}
	return c.writeFrame(frameMessage, b)
}
