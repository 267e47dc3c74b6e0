// Package loadcontrol is the control protocol of load tests: authorization, and the messages of the
// test's traffic, whose content it does not interpret.
//
// It uses one TLS 1.3 connection that the client opens (HTTPS with the Upgrade of Protocol, RFC
// 9110 section 7.8), with frames of JSON messages and binary data. The connection is the session:
// its end is the end of the session at both ends.
//
//	client                                    load server
//	GET /v1/session, Upgrade, bearer token ->
//	                                       <- 101, Welcome       or 4xx/5xx with a Refusal
//	Open: traffic, its parameters, the most
//	bytes and time that it will take      ->
//	                                       <- Opened: the traffic's reply    or Refusal
//	say: a message of the traffic         -> and <-, bytes with those of the load server
//	Reflect, once                         ->
//	                                       <- Reflecting: the port and the key of a reflector, or a Refusal in it
//	Close at any time                      ->
//	                                       <- Refusal at any time, and the end
//
// This package has no idle timeout: a queue that a test fills can delay a message by its whole
// length, and no message is needed while a stream runs. The traffic has its own idle timeouts, based
// on the packets it receives.
package loadcontrol

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"oneway.example/exporter/core/errtext"
	"oneway.example/exporter/core/hostport"
	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/core/strictjson"
)

// DefaultPort is the TCP port of control and the UDP port of test traffic.
const DefaultPort = hostport.LoadServer

// MaxIdle is the longest time that a session waits for packets after the last one was sent, and for progress.
const MaxIdle = 2 * time.Minute

// Message is one JSON message of a frame: exactly one field is set.
type Message struct {
	// Sent by the client.
	Open    *Open    `json:"open,omitempty"`
	Reflect *Reflect `json:"reflect,omitempty"`
	Close   *Close   `json:"close,omitempty"`
	// Sent by the load server.
	Welcome    *Welcome    `json:"welcome,omitempty"`
	Opened     *Opened     `json:"opened,omitempty"`
	Reflecting *Reflecting `json:"reflecting,omitempty"`
	Refusal    *Refusal    `json:"refusal,omitempty"`
	// Sent by both.
	Traffic *TrafficMessage `json:"traffic,omitempty"`
}

// Welcome is the first message: the limits of the token.
type Welcome struct {
	// Limits of the client's token.
	Limits Limits `json:"limits"`
}

// Limits of one token. Zero: no limit.
type Limits struct {
	// BytesPerSecond is payload of UDP and TCP in one direction.
	BytesPerSecond float64 `json:"bytes_per_second,omitempty"`
	// Duration of one transfer.
	Duration time.Duration `json:"duration_ns,omitempty"`
	// Sessions at one time; Welcome has the load server's default if the token has no limit.
	Sessions int `json:"sessions,omitempty"`
	// BytesPerDay in both directions together, of which LeftToday are left.
	BytesPerDay int64 `json:"bytes_per_day,omitempty"`
	LeftToday   int64 `json:"left_today_bytes,omitempty"`
}

// CheckDuration refuses a transfer that takes longer than the limit, if there is one; nil: it is permitted.
func (l Limits) CheckDuration(d time.Duration) *Refusal {
	if l.Duration <= 0 || d <= l.Duration {
		return nil
	}
	return &Refusal{Reason: TimeLimit, Detail: fmt.Sprintf("the transfer takes %v; the token allows %v: %s", d, l.Duration, AboveLimit("duration"))}
}

// AboveLimit is what to do where a test needs more than a limit of its token allows; key is the limit in the tokens file.
func AboveLimit(key string) string { return "reduce the test, or " + RaiseLimit(key) }

// RaiseLimit is what to do where a limit of the token is too low for any result.
func RaiseLimit(key string) string {
	return "let the operator of the load server raise " + key + "= of this token in its tokens_file"
}

// LeftOfDay returns LeftToday, or without a limit of the day the largest number.
func (l Limits) LeftOfDay() int64 {
	if l.BytesPerDay == 0 {
		return math.MaxInt64
	}
	return l.LeftToday
}

// MinBurstBytes is the least depth of a token's bucket: any rate allows it at once. A train of a capacity test leaves at the rate of
// the link, so that the token's rate limits only the mean over a longer time.
const MinBurstBytes = 256 << 10

// burstSeconds is the time at the token's rate of a deeper bucket.
const burstSeconds = 0.1

// BurstBytes returns the payload that may be sent at once after a pause: the depth of the bucket of BytesPerSecond.
func (l Limits) BurstBytes() float64 {
	if l.BytesPerSecond <= 0 {
		return math.Inf(1)
	}
	return max(MinBurstBytes, l.BytesPerSecond*burstSeconds)
}

// Open requests a session with one type of traffic.
type Open struct {
	// Traffic is the name of the type, and Parameters its own parameters.
	Traffic    string          `json:"traffic"`
	Parameters json.RawMessage `json:"parameters,omitempty"`
	// Test and Run are the kind of test and the client's ID of the run, for the log.
	Test string `json:"test,omitempty"`
	Run  string `json:"run"`
	// Bytes and Duration are the limits of the whole session, in both directions
	// together.
	Bytes    int64         `json:"bytes"`
	Duration time.Duration `json:"duration_ns"`
}

// Opened accepts the session. No other session uses the load server's link until its end.
type Opened struct {
	// Reply of the traffic.
	Reply json.RawMessage `json:"reply,omitempty"`
}

// TrafficMessage is a message of the traffic: its name and content. Binary data may follow it in its frame,
// from the load server only.
type TrafficMessage struct {
	Name string          `json:"name"`
	Body json.RawMessage `json:"body,omitempty"`
}

// Into decodes the content. Its errors wrap ErrProtocol.
func (s *TrafficMessage) Into(body any) error {
	if err := strictjson.Decode(s.Body, body); err != nil {
		return fmt.Errorf("%w: %.40s: %w", ErrProtocol, s.Name, err)
	}
	return nil
}

// Close ends the session; the client sends it.
type Close struct{}

// Refusal rejects a session or a part of its traffic.
type Refusal struct {
	// ID is that of the refused part of the traffic, such as a transfer; 0: the session is
	// refused and ends.
	ID     uint16 `json:"id,omitempty"`
	Reason Reason `json:"reason"`
	// Detail is a sentence for the operator.
	Detail string `json:"detail"`
	// RetryAfter is the time after which a retry may succeed, for the operator; zero: it cannot, or nobody knows. A run waits
	// for it only if runreason.Reason.Retried.
	RetryAfter time.Duration `json:"retry_after_ns,omitempty"`
}

// RejectError is Reject with the words of an error.
func RejectError(err error) *Refusal { return Reject("%s", errtext.Words(err)) }

// Reject refuses a request that does not have what it must have, which the detail says.
func Reject(format string, args ...any) *Refusal {
	return &Refusal{Reason: BadRequest, Detail: fmt.Sprintf(format, args...)}
}

// Reason is the cause of a refusal; its values are those of the metric label reason.
type Reason string

// The reasons; package runreason has their meanings.
const (
	Unauthorized Reason = runreason.Unauthorized
	WrongVersion Reason = runreason.WrongVersion
	BadRequest   Reason = runreason.BadRequest
	Busy         Reason = runreason.Busy
	TooMany      Reason = runreason.TooMany
	RateLimit    Reason = runreason.RateLimit
	TimeLimit    Reason = runreason.TimeLimit
	DayLimit     Reason = runreason.DayLimit
	Unsaved      Reason = runreason.Unsaved
	Unproved     Reason = runreason.Unproved
	ShuttingDown Reason = runreason.ShuttingDown
	Paused       Reason = runreason.RemotePaused
	Lost         Reason = runreason.Lost
)

// Reasons returns all values, in order.
func Reasons() (all []Reason) {
	for _, r := range runreason.All() {
		if r.Refusal {
			all = append(all, Reason(r.Name))
		}
	}
	return all
}

// Check validates a refusal from a peer. Its errors wrap ErrProtocol.
func (r *Refusal) Check() error {
	switch {
	case !slices.Contains(Reasons(), r.Reason):
		return fmt.Errorf("%w: refusal has the unknown reason %.40q", ErrProtocol, r.Reason)
	case r.RetryAfter < 0:
		return fmt.Errorf("%w: retry_after of a refusal is %v; it must not be negative", ErrProtocol, r.RetryAfter)
	}
	return nil
}

// Error has the reason, the detail and the time of a retry.
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

// encode returns the message's JSON.
func encode(m *Message) ([]byte, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	b, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("loadcontrol: %s: %w", m.name(), err)
	}
	if len(b) > MaxMessageBytes {
		return nil, fmt.Errorf("loadcontrol: %s has %d bytes of JSON, want at most %d: plan fewer segments", m.name(), len(b), MaxMessageBytes)
	}
	return b, nil
}

// decode decodes a received message: no unknown field, nothing after it, exactly one part, and that
// valid. Its errors wrap ErrProtocol.
func decode(b []byte) (m Message, err error) {
	if err := strictjson.Decode(b, &m); err != nil {
		return Message{}, fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	if err := m.check(); err != nil {
		return Message{}, err
	}
	return m, nil
}

// part is one of a message's fields.
type part struct {
	name               string
	set                bool
	client, loadServer bool // the ends that may send it
}

func (m *Message) parts() [8]part {
	const yes, no = true, false
	return [...]part{
		{"open", m.Open != nil, yes, no},
		{"reflect", m.Reflect != nil, yes, no},
		{"close", m.Close != nil, yes, no},
		{"welcome", m.Welcome != nil, no, yes},
		{"opened", m.Opened != nil, no, yes},
		{"reflecting", m.Reflecting != nil, no, yes},
		{"refusal", m.Refusal != nil, no, yes},
		{"traffic", m.Traffic != nil, yes, yes},
	}
}

// name returns the name of the message, for errors.
func (m *Message) name() string {
	if m.Traffic != nil {
		return Printable(m.Traffic.Name)
	}
	for _, p := range m.parts() {
		if p.set {
			return p.name
		}
	}
	return "nothing"
}

// allowed returns whether the client, or else the load server, may send this message.
func (m *Message) allowed(client bool) bool {
	for _, p := range m.parts() {
		if p.set && (client && !p.client || !client && !p.loadServer) {
			return false
		}
	}
	return true
}

// check validates the message. Its errors wrap ErrProtocol.
func (m *Message) check() error {
	set := 0
	for _, p := range m.parts() {
		if p.set {
			set++
		}
	}
	switch {
	case set != 1:
		return fmt.Errorf("%w: message has %d parts, want exactly one", ErrProtocol, set)
	case m.Traffic != nil && m.Traffic.Name == "":
		return fmt.Errorf("%w: message has no name", ErrProtocol)
	case m.Refusal != nil:
		return m.Refusal.Check()
	case m.Reflecting != nil:
		return m.Reflecting.check()
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
// one Message in JSON and its binary data, which only a TrafficMessage from a load server may have. Numbers are
// big-endian.
const frameHeaderBytes = 8

// Limits of frames. A frame above them, or without a message, ends the connection.
const (
	// MaxMessageBytes of JSON; a plan of about 600 segments fits.
	MaxMessageBytes = 64 << 10
	// MaxBytes of binary data: 32 for each of 4 Mi packets. A client takes memlimit.Buffer of it: a load server must not end it, with all its other
	// measurements.
	MaxBytes = 128 << 20
)

// frameTime is the timeout of the message of a frame, and of each partBytes of its binary data: at
// least 4 kb/s.
const frameTime = 30 * time.Second

// ErrProtocol is wrapped if the peer violates the protocol.
var ErrProtocol = errors.New("loadcontrol: protocol violated")

// frame returns a frame without its binary data.
func frame(message []byte, bytes int) []byte {
	b := binary.BigEndian.AppendUint32(make([]byte, 0, frameHeaderBytes+len(message)), uint32(len(message)))
	b = binary.BigEndian.AppendUint32(b, uint32(bytes))
	return append(b, message...)
}
