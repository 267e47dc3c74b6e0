package control

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"oneway.example/exporter/sample"
)

// Limits of Transfer.Idle.
const (
	MinIdle = 100 * time.Millisecond
	MaxIdle = 2 * time.Minute
)

// Check tells whether the transfer makes sense: its number, direction, plan and Idle.
// Whether it is allowed is another question.
func (t *Transfer) Check() error {
	switch {
	case t.ID == 0:
		return errors.New("control: transfer 0: want 1 to 65535")
	case t.Direction != sample.Forward && t.Direction != sample.Reverse:
		return fmt.Errorf("control: transfer %d: direction %d: want 0, forward, or 1, reverse", t.ID, t.Direction)
	case t.Idle < MinIdle || t.Idle > MaxIdle:
		return fmt.Errorf("control: transfer %d: idle %v: want %v to %v", t.ID, t.Idle, MinIdle, MaxIdle)
	}
	if err := t.Plan.Check(); err != nil {
		return fmt.Errorf("control: transfer %d: %w", t.ID, err)
	}
	return nil
}

// encode is the message's JSON.
func encode(m *Message) ([]byte, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	b, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("control: %s: %w", m.name(), err)
	}
	if len(b) > MaxMessageBytes {
		return nil, fmt.Errorf("control: %s takes %d octets of JSON, want at most %d: plan fewer segments", m.name(), len(b), MaxMessageBytes)
	}
	return b, nil
}

// decode reads a message that came from the network: no unknown field, nothing after it,
// exactly one part, and that one sound. Its errors wrap ErrProtocol.
func decode(b []byte) (m Message, err error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return Message{}, fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Message{}, fmt.Errorf("%w: more than one JSON value in a frame", ErrProtocol)
	}
	if err := m.check(); err != nil {
		return Message{}, err
	}
	return m, nil
}

// part is one of a message's fields.
type part struct {
	name              string
	set               bool
	client, responder bool // who may say it
}

func (m *Message) parts() [14]part {
	const yes, no = true, false
	return [...]part{
		{"open", m.Open != nil, yes, no},
		{"prove", m.Prove != nil, yes, no},
		{"transfer", m.Transfer != nil, yes, no},
		{"sent", m.Sent != nil, yes, no},
		{"cancel", m.Cancel != nil, yes, no},
		{"close", m.Close != nil, yes, no},
		{"ping", m.Ping != nil, yes, yes},
		{"pong", m.Pong != nil, yes, yes},
		{"welcome", m.Welcome != nil, no, yes},
		{"opened", m.Opened != nil, no, yes},
		{"proved", m.Proved != nil, no, yes},
		{"started", m.Started != nil, no, yes},
		{"finished", m.Finished != nil, no, yes},
		{"refusal", m.Refusal != nil, no, yes},
	}
}

// name is what the message is, for errors.
func (m *Message) name() string {
	for _, p := range m.parts() {
		if p.set {
			return p.name
		}
	}
	return "nothing"
}

// says tells whether the client, or else the responder, may say this.
func (m *Message) says(client bool) bool {
	for _, p := range m.parts() {
		if p.set && (client && !p.client || !client && !p.responder) {
			return false
		}
	}
	return true
}

// check tells whether the message is sound as it is. Its errors wrap ErrProtocol.
func (m *Message) check() error {
	set := 0
	for _, p := range m.parts() {
		if p.set {
			set++
		}
	}
	if set != 1 {
		return fmt.Errorf("%w: a message of %d parts, want exactly one", ErrProtocol, set)
	}
	switch {
	case m.Opened != nil && (m.Opened.Port == 0 || m.Opened.Session == 0):
		return fmt.Errorf("%w: opened without a port or a session", ErrProtocol)
	case m.Started != nil && m.Started.ID == 0, m.Sent != nil && m.Sent.ID == 0, m.Cancel != nil && m.Cancel.ID == 0:
		return fmt.Errorf("%w: %s: transfer 0", ErrProtocol, m.name())
	case m.Sent != nil && m.Sent.Packets < 0:
		return fmt.Errorf("%w: sent %d packets", ErrProtocol, m.Sent.Packets)
	case m.Refusal != nil && !slices.Contains(Reasons(), m.Refusal.Reason):
		return fmt.Errorf("%w: refusal for the reason %.40q, which is none", ErrProtocol, m.Refusal.Reason)
	case m.Refusal != nil && m.Refusal.RetryAfter < 0:
		return fmt.Errorf("%w: refusal to be tried again in %v", ErrProtocol, m.Refusal.RetryAfter)
	case m.Finished != nil:
		return m.Finished.check()
	}
	return nil
}

func (f *Finished) check() error {
	switch {
	case f.ID == 0:
		return fmt.Errorf("%w: finished: transfer 0", ErrProtocol)
	case (f.Sent == nil) == (f.Received == nil):
		return fmt.Errorf("%w: finished %d: exactly one of sent and received is wanted", ErrProtocol, f.ID)
	case f.Records < 0 || f.Records > MaxRecordsBytes:
		return fmt.Errorf("%w: finished %d: %d octets of records, want 0 to %d", ErrProtocol, f.ID, f.Records, MaxRecordsBytes)
	}
	return nil
}
