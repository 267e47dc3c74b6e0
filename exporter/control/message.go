// Package control is the conversation between the two ends of a heavy test: who may
// run what, which stream is sent when, and what came of it.
//
// It runs over one TLS 1.3 connection that the client opens (HTTPS, and then the Upgrade
// "oneway-test/1" of RFC 9110 section 7.8): frames of JSON messages and binary records.
// The connection is the session: when it ends, so does everything, on both sides.
//
//	client                                    responder
//	GET /v1/session, Upgrade, bearer token ->
//	                                       <- 101, Welcome       or 4xx/5xx with a Refusal
//	Open: kind, link, what it will need    ->
//	                                       <- Opened: session, UDP port    or Refusal
//	hello packets over UDP, with the session ->
//	                                       <- challenge over UDP, with a cookie, no longer than the hello
//	Prove: the cookie                      ->
//	                                       <- Proved: the address that streams go to
//	Transfer: id, direction, plan          ->
//	                                       <- Started: the responder's clock
//	  forward: packets, then Sent: how many ->
//	                                       <- Finished, records of what was received
//	  reverse: packets                     <-
//	                                       <- Finished, records of what was sent
//	  with feedback (see below), over UDP:
//	    forward: reports               <-
//	    reverse: orders                      ->
//	Cancel, Close at any time              ->
//	Ping every second                      ->
//	                                       <- Pong
//
// A plan with feedback (stream.Plan.Feedback) is the most that its sender sends, and is
// authorised as such; at which rate within it, the client decides while the stream runs, by
// what the receiver has got so far. That goes over UDP, since TCP falls silent on a way that
// is full: reports of the responder in forward direction, orders of the client in reverse
// (package wire/load). A responder that knows such plans says "Oneway-Offers: feedback" in
// the header of its 101; older ones do not, and would end the session for one.
package control

import (
	"time"

	"oneway.example/exporter/instant"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/stream"
)

// Version is the protocol's. A responder refuses others.
const Version = 1

// DefaultPort is the TCP port of control and the UDP port of test traffic.
const DefaultPort = 8620

// Kind is the kind of test, for limits and logs.
type Kind string

// The kinds.
const (
	Saturate Kind = "saturate"
	Matrix   Kind = "matrix"
	Train    Kind = "train"
)

// Message is one frame of JSON: exactly one field is set.
type Message struct {
	// Of the client.
	Open     *Open     `json:"open,omitempty"`
	Prove    *Prove    `json:"prove,omitempty"`
	Transfer *Transfer `json:"transfer,omitempty"`
	Sent     *Sent     `json:"sent,omitempty"`
	Cancel   *Cancel   `json:"cancel,omitempty"`
	Close    *Close    `json:"close,omitempty"`
	Ping     *Ping     `json:"ping,omitempty"`
	// Of the responder.
	Welcome  *Welcome  `json:"welcome,omitempty"`
	Opened   *Opened   `json:"opened,omitempty"`
	Proved   *Proved   `json:"proved,omitempty"`
	Started  *Started  `json:"started,omitempty"`
	Finished *Finished `json:"finished,omitempty"`
	Refusal  *Refusal  `json:"refusal,omitempty"`
	Pong     *Pong     `json:"pong,omitempty"`
}

// Welcome is the first message: who answers, and what the token allows.
type Welcome struct {
	Version int `json:"version"`
	// Limits of the client's token.
	Limits Limits `json:"limits"`
}

// Limits are what one token may use. Zero: no limit of that kind.
type Limits struct {
	// BytesPerSecond of UDP payload in one direction.
	BytesPerSecond float64 `json:"bytes_per_second,omitempty"`
	// Duration of one transfer.
	Duration time.Duration `json:"duration_ns,omitempty"`
	// Sessions at one time; a responder tells what holds without a limit of the token's own.
	Sessions int `json:"sessions,omitempty"`
	// BytesPerDay of both directions; LeftToday of it is left.
	BytesPerDay int64 `json:"bytes_per_day,omitempty"`
	LeftToday   int64 `json:"left_today_bytes,omitempty"`
}

// Open asks for a session. Link and Kind say what for; Bytes what the whole session
// will move at most, both directions.
type Open struct {
	Version int    `json:"version"`
	Kind    Kind   `json:"kind"`
	Run     string `json:"run"` // the client's id of the run, for the responder's log
	Bytes   int64  `json:"bytes"`
}

// Opened grants it. No other session uses the responder's link until this one ends.
type Opened struct {
	// Session is random; each test packet carries it.
	Session uint64 `json:"session"`
	// Port is the UDP port of test traffic, on the address of the control connection.
	Port uint16 `json:"udp_port"`
	// Host tells whether both ends run on one kernel, and so read one clock: a token of
	// package hostid under Salt.
	Salt uint32 `json:"salt"`
	Host uint32 `json:"host"`
}

// Prove shows that the client receives at the address that its hello packets came from.
type Prove struct {
	Cookie []byte `json:"cookie"`
}

// Proved says where streams will be sent.
type Proved struct {
	Address string `json:"address"`
}

// Transfer is one stream. Its ID is the client's, unique in the session; packets carry it.
type Transfer struct {
	ID        uint16           `json:"id"`
	Direction sample.Direction `json:"direction"`
	Plan      stream.Plan      `json:"plan"`
	// Idle is how long nothing may come, after all was sent, until the receiver takes what
	// has not come for lost; 100 ms to two minutes.
	Idle time.Duration `json:"idle_ns"`
}

// Clock is what one end says of its clock: see clock.Quality.
type Clock struct {
	// At is when it was asked.
	At    instant.Time  `json:"at_ns"`
	Bound time.Duration `json:"bound_ns"`
	// Reason is sample.Reason's word; "ok": the bound holds.
	Reason string `json:"reason"`
	// Steps seen so far: two that differ make every delay between them void.
	Steps uint64 `json:"steps"`
}

// Started says that the responder is ready to receive, or that it begins to send.
type Started struct {
	ID    uint16 `json:"id"`
	Clock Clock  `json:"clock"`
}

// Sent says that the client has sent what it will send of a forward transfer.
type Sent struct {
	ID      uint16 `json:"id"`
	Packets int    `json:"packets"`
}

// Cancel ends a transfer early; it is finished as far as it came.
type Cancel struct {
	ID uint16 `json:"id"`
}

// Finished is the end of a transfer; Records octets of binary records follow it, in frames
// of their own. Exactly one of Sent and Received is set.
type Finished struct {
	ID       uint16           `json:"id"`
	Clock    Clock            `json:"clock"`
	Sent     *stream.Sent     `json:"sent,omitempty"`
	Received *stream.Received `json:"received,omitempty"`
	Records  int64            `json:"records_bytes"`
	// Error is why it ended early, in words; empty: it did not.
	Error string `json:"error,omitempty"`
}

// Ping asks for a Pong; each side asks when it has said nothing for PingEvery, or less often
// while a transfer is under way, so as not to use a slow link itself. A
// client that sends a stream and hears nothing for Silence ends the session; others wait for Outage, a responder
// because it does not send a stream to who is silent. While a transfer is under way, and
// shortly after, it is Silence and that transfer's Idle (forward: three times that), if this is longer: words wait in the queue that the test fills,
// and those of the other direction wait for acknowledgements that are in it. So choose an
// Idle that is longer than the longest queue. A connection that is closed or reset ends the
// session at once on both sides, load or not.
type Ping struct {
	// Seq is one more than that of the ping before; the first has 1.
	Seq uint64 `json:"seq"`
}

// Pong answers the Ping of that number, and all before it.
type Pong struct {
	Seq uint64 `json:"seq"`
}

// Times of a session.
const (
	PingEvery = 250 * time.Millisecond
	// Silence: a client that sends a stream notices within a second that its peer has vanished
	// without a word, but for the transfer's Idle.
	Silence = 900 * time.Millisecond
	// Outage: a session in which nothing is sent but words outlasts one of half of it, since TCP's
	// timeouts double. Radio links stand still for seconds: of eight recorded in cars, LTE, UMTS
	// and EVDO, six did for more than a second in every two minutes.
	Outage = 10 * time.Second
)

// Close is the client's good-bye.
type Close struct{}

// Refusal says no, why, and when to come back.
type Refusal struct {
	// ID is that of the transfer that is refused; 0: the session is, and ends.
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
	Unauthorised Reason = "unauthorised" // no token, or none that is known
	WrongVersion Reason = "wrong_version"
	BadRequest   Reason = "bad_request"   // it makes no sense
	Busy         Reason = "busy"          // another session uses the link
	TooMany      Reason = "too_many"      // connections, or sessions of the token
	RateLimit    Reason = "rate_limit"    // more a second than the token allows
	TimeLimit    Reason = "time_limit"    // longer than the token allows
	DayLimit     Reason = "day_limit"     // more a day than the token allows
	Unsaved      Reason = "unsaved"       // what a day allows cannot be saved at the far end: its disk is full, or read-only
	Unproved     Reason = "unproved"      // a stream to an address that has proved nothing
	ShuttingDown Reason = "shutting_down" // try again soon
)

// Reasons lists all values in order.
func Reasons() []Reason {
	return []Reason{Unauthorised, WrongVersion, BadRequest, Busy, TooMany, RateLimit, TimeLimit, DayLimit, Unsaved, Unproved, ShuttingDown}
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
