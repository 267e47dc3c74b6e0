// Package loadcontrol is the conversation between the two ends of a load test: who may run
// what, and the messages of the test's traffic, which it carries and does not know.
//
// It runs over one TLS 1.3 connection that the client opens (HTTPS, and then the Upgrade
// "oneway-test/2" of RFC 9110 section 7.8): frames of JSON messages and of bytes.
// The connection is the session: when it ends, so does everything, on both sides.
//
//	client                                    load server
//	GET /v1/session, Upgrade, bearer token ->
//	                                       <- 101, Welcome       or 4xx/5xx with a Refusal
//	Open: traffic, its parameters, the most
//	bytes and time that it will take      ->
//	                                       <- Opened: the traffic's reply    or Refusal
//	Say: a message of the traffic's        -> and <-, bytes with those of the load server
//	Close at any time                      ->
//	                                       <- Refusal at any time, and the end
//
// Control does not tell whether a peer that says nothing is alive: a queue that a test fills
// keeps words back for as long as it is long, and nothing need be said while a stream runs.
// The traffic knows what it hears of its peer, and how long it may be silent.
package loadcontrol

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// DefaultPort is the TCP port of control and the UDP port of test traffic.
const DefaultPort = 8620

// Message is one frame of JSON: exactly one field is set.
type Message struct {
	// Of the client.
	Open  *Open  `json:"open,omitempty"`
	Close *Close `json:"close,omitempty"`
	// Of the load server.
	Welcome *Welcome `json:"welcome,omitempty"`
	Opened  *Opened  `json:"opened,omitempty"`
	Refusal *Refusal `json:"refusal,omitempty"`
	// Of both.
	Say *Say `json:"say,omitempty"`
}

// Welcome is the first message: who answers, and what the token allows.
type Welcome struct {
	// Limits of the client's token.
	Limits Limits `json:"limits"`
}

// Limits are what one token may use. Zero: no limit of that kind.
type Limits struct {
	// BytesPerSecond of UDP payload in one direction.
	BytesPerSecond float64 `json:"bytes_per_second,omitempty"`
	// Duration of one transfer.
	Duration time.Duration `json:"duration_ns,omitempty"`
	// Sessions at one time; a load server tells what holds without a limit of the token's own.
	Sessions int `json:"sessions,omitempty"`
	// BytesPerDay of both directions; LeftToday of it is left.
	BytesPerDay int64 `json:"bytes_per_day,omitempty"`
	LeftToday   int64 `json:"left_today_bytes,omitempty"`
}

// Open asks for a session of one type of traffic.
type Open struct {
	// Traffic is the type's name, and Parameters what it wants to know, of its own form.
	Traffic    string          `json:"traffic"`
	Parameters json.RawMessage `json:"parameters,omitempty"`
	// Test and Run are the kind of test and the client's id of the run, for the load server's log.
	Test string `json:"test,omitempty"`
	Run  string `json:"run"`
	// Bytes is what the whole session moves at most, both directions; Duration how long it
	// lasts at most.
	Bytes    int64         `json:"bytes"`
	Duration time.Duration `json:"duration_ns"`
}

// Opened grants it. No other session uses the load server's link until this one ends.
type Opened struct {
	// Reply is the traffic's, of its own form.
	Reply json.RawMessage `json:"answer,omitempty"`
}

// Say is a message of the traffic's: what it is called, and its content. Bytes of binary
// content may follow it in its frame; only a load server's has some.
type Say struct {
	Name string          `json:"name"`
	Body json.RawMessage `json:"body,omitempty"`
}

// Into reads the content. Its errors wrap ErrProtocol.
func (s *Say) Into(body any) error {
	if err := strict(s.Body, body); err != nil {
		return fmt.Errorf("%w: %.40s: %w", ErrProtocol, s.Name, err)
	}
	return nil
}

// Close is the client's good-bye.
type Close struct{}

// Refusal says no, why, and when to come back.
type Refusal struct {
	// ID is that of the part of the traffic that is refused, such as a transfer; 0: the session
	// is, and ends.
	ID     uint16 `json:"id,omitempty"`
	Reason Reason `json:"reason"`
	// Detail is a sentence for people.
	Detail string `json:"detail"`
	// RetryAfter is when it may be tried again; zero: not as it is.
	RetryAfter time.Duration `json:"retry_after_ns,omitempty"`
}

// Reason is why something is refused; its words are values of the metric label reason.
type Reason string

// The reasons.
const (
	Unauthorized Reason = "unauthorized" // no token, or none that is known
	WrongVersion Reason = "wrong_version"
	BadRequest   Reason = "bad_request"   // it makes no sense
	Busy         Reason = "busy"          // another session uses the link
	TooMany      Reason = "too_many"      // connections, or sessions of the token
	RateLimit    Reason = "rate_limit"    // more a second than the token allows
	TimeLimit    Reason = "time_limit"    // longer than the token allows
	DayLimit     Reason = "day_limit"     // more a day than the token allows
	Unsaved      Reason = "unsaved"       // what a day allows cannot be saved at the remote end: its disk is full, or read-only
	Unproved     Reason = "unproved"      // a stream to an address that has proved nothing
	ShuttingDown Reason = "shutting_down" // try again soon
)

// Reasons lists all values in order.
func Reasons() []Reason {
	return []Reason{Unauthorized, WrongVersion, BadRequest, Busy, TooMany, RateLimit, TimeLimit, DayLimit, Unsaved, Unproved, ShuttingDown}
}

// Check tells whether the refusal of a peer is sound. Its errors wrap ErrProtocol.
func (r *Refusal) Check() error {
	switch {
	case !slices.Contains(Reasons(), r.Reason):
		return fmt.Errorf("%w: refusal for the reason %.40q, which is none", ErrProtocol, r.Reason)
	case r.RetryAfter < 0:
		return fmt.Errorf("%w: refusal to be tried again in %v", ErrProtocol, r.RetryAfter)
	}
	return nil
}

// Error is the refusal in words.
func (r *Refusal) Error() string {
	s := "refused: " + string(r.Reason)
	if r.Detail != "" {
		s += ": " + r.Detail
	}
	if r.RetryAfter > 0 {
		s += ", try again in " + r.RetryAfter.Round(time.Second).String()
	}
	return s
}

// encode is the message's JSON.
func encode(m *Message) ([]byte, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	b, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("loadcontrol: %s: %w", m.name(), err)
	}
	if len(b) > MaxMessageBytes {
		return nil, fmt.Errorf("loadcontrol: %s takes %d bytes of JSON, want at most %d: plan fewer segments", m.name(), len(b), MaxMessageBytes)
	}
	return b, nil
}

// decode reads a message that came from the network: no unknown field, nothing after it,
// exactly one part, and that one sound. Its errors wrap ErrProtocol.
func decode(b []byte) (m Message, err error) {
	if err := strict(b, &m); err != nil {
		return Message{}, fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	if err := m.check(); err != nil {
		return Message{}, err
	}
	return m, nil
}

// strict reads one JSON value without fields that nobody knows, and nothing after it.
func strict(b []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one JSON value")
	}
	return nil
}

// part is one of a message's fields.
type part struct {
	name               string
	set                bool
	client, loadServer bool // who may say it
}

func (m *Message) parts() [6]part {
	const yes, no = true, false
	return [...]part{
		{"open", m.Open != nil, yes, no},
		{"close", m.Close != nil, yes, no},
		{"welcome", m.Welcome != nil, no, yes},
		{"opened", m.Opened != nil, no, yes},
		{"refusal", m.Refusal != nil, no, yes},
		{"say", m.Say != nil, yes, yes},
	}
}

// name is what the message is, for errors.
func (m *Message) name() string {
	if m.Say != nil {
		return Printable(m.Say.Name)
	}
	for _, p := range m.parts() {
		if p.set {
			return p.name
		}
	}
	return "nothing"
}

// says tells whether the client, or else the load server, may say this.
func (m *Message) says(client bool) bool {
	for _, p := range m.parts() {
		if p.set && (client && !p.client || !client && !p.loadServer) {
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
	switch {
	case set != 1:
		return fmt.Errorf("%w: a message of %d parts, want exactly one", ErrProtocol, set)
	case m.Say != nil && m.Say.Name == "":
		return fmt.Errorf("%w: a message without a name", ErrProtocol)
	case m.Refusal != nil:
		return m.Refusal.Check()
	}
	return nil
}

// A frame is
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                     length of the message                     |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                     length of the bytes                      |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  message ...  bytes ...
//
// one Message in JSON, and the bytes that belong to it, which only a load server's Say has.
// Numbers are big-endian.
const frameHeaderBytes = 8

// Limits of frames. What is longer, or has no message, ends the connection.
const (
	// MaxMessageBytes of JSON; some 600 segments of a plan fit.
	MaxMessageBytes = 64 << 10
	// MaxBytes of a message: 32 for each of 4 Mi packets.
	MaxBytes = 128 << 20
)

// frameTime is how long a message may take once its frame has begun, and each part of its bytes:
// 16 KiB in it are 4 kb/s. A peer that drips bytes is not waited for.
const frameTime = 30 * time.Second

// ErrProtocol is wrapped by the errors about a peer that says what it must not.
var ErrProtocol = errors.New("loadcontrol: protocol violated")

// frame is a message in its frame, but for its bytes.
func frame(message []byte, bytes int) []byte {
	b := binary.BigEndian.AppendUint32(make([]byte, 0, frameHeaderBytes+len(message)), uint32(len(message)))
	b = binary.BigEndian.AppendUint32(b, uint32(bytes))
	return append(b, message...)
}
