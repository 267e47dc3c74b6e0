// Package udp is the traffic of streams of UDP test packets at given times (package stream):
// its messages, the client's half, which transfers streams in both directions and joins what
// both ends saw of them, and the remote end's.
//
//	client                                    load server
//	Open                                   ->
//	                                       <- Opened: session, UDP port
//	hello packets over UDP, with the session ->
//	                                       <- challenge over UDP, with a cookie, no longer than the hello
//	prove: the cookie                      ->
//	                                       <- proved: the address that streams go to
//	start: id, direction, plan             ->
//	                                       <- started: the load server's clock, or refused
//	  forward: packets, then sent: how many ->
//	                                       <- finished, records of what was received
//	  reverse: packets                     <-
//	                                       <- finished, records of what was sent
//	  with feedback, over UDP:
//	    forward: reports               <-
//	    reverse: orders                      ->
//	cancel at any time                     ->
//
// A plan with feedback (stream.Plan.Feedback) is the most that its sender sends, and is
// authorized as such; at which rate within it, the client decides while the stream runs, by
// what the receiver has got so far. That goes over UDP, since TCP falls silent on a way that
// is full.
//
// Whether the peer lives, each end tells by the packets. The client says hello twice a second
// where it sends no stream, or one with longer pauses. A load server that hears nothing of it for
// 3 s pauses a stream to it (consent), and after 10 s ends the session. A client takes a
// load server that sends nothing of its stream for 10 s for gone. Who waits for the records of a
// stream waits until that is over as planned, for as long as packets may be on their way, and a
// grace.
package udp

import (
	"errors"
	"fmt"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/instant"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/stream"
)

// Name is the word for this type of traffic.
const Name = "udp"

// Names of messages; that of a struct's is the struct's name. refused has a loadcontrol.Refusal.
const (
	sayProve    = "prove"
	sayProved   = "proved"
	sayStart    = "start"
	sayStarted  = "started"
	saySent     = "sent"
	sayCancel   = "cancel"
	sayFinished = "finished"
	sayRefused  = "refused"
)

// Reply is the remote end's to Open.
type Reply struct {
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

// Start asks for a transfer, one stream. Its ID is the client's, unique in the session;
// packets carry it.
type Start struct {
	ID        uint16           `json:"id"`
	Direction sample.Direction `json:"direction"`
	Plan      stream.Plan      `json:"plan"`
	// Idle is how long nothing may come, after all was sent, until the receiver takes what
	// has not come for lost; 100 ms to two minutes.
	Idle time.Duration `json:"idle_ns"`
}

// Limits of Start.Idle.
const (
	MinIdle = 100 * time.Millisecond
	MaxIdle = 2 * time.Minute
)

// Check tells whether the transfer makes sense: its number, direction, plan and Idle.
// Whether it is allowed is another request.
func (t *Start) Check() error {
	switch {
	case t.ID == 0:
		return errors.New("udp: transfer 0: want 1 to 65535")
	case t.Direction != sample.Forward && t.Direction != sample.Reverse:
		return fmt.Errorf("udp: transfer %d: direction %d: want 0, forward, or 1, reverse", t.ID, t.Direction)
	case t.Idle < MinIdle || t.Idle > MaxIdle:
		return fmt.Errorf("udp: transfer %d: idle %v: want %v to %v", t.ID, t.Idle, MinIdle, MaxIdle)
	}
	if err := t.Plan.Check(); err != nil {
		return fmt.Errorf("udp: transfer %d: %w", t.ID, err)
	}
	return nil
}

// length is how long the stream takes as planned, at the most; one without intervals takes as
// long as the sending host needs.
func (t *Start) length(most time.Duration) time.Duration {
	if _, unpaced := t.Plan.PeakRate(); !unpaced {
		return t.Plan.Duration()
	}
	if most > 0 {
		return most
	}
	return stream.MaxDuration
}

// Times in which an end that is there is heard.
const (
	// Outage is the longest silence that a stream outlasts. Radio links stand still for
	// seconds: of eight recorded in cars, LTE, UMTS and EVDO, six did for more than a second
	// in every two minutes.
	Outage = 10 * time.Second
	// grace is what words may take after a stream: they wait in the queue that it has filled,
	// and where they were lost until TCP says them again.
	grace = time.Minute
)

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

// clockNow is what a monitor says of this host's clock.
func clockNow(m clock.Monitor) Clock {
	at := instant.Now()
	q := m.Quality(at)
	return Clock{At: at, Bound: q.Bound.Error, Reason: q.Bound.Reason.String(), Steps: q.Steps}
}

// Started says that the load server is ready to receive, or that it begins to send.
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

// Finished is the end of a transfer; the records of the load server's packets are its bytes.
// Exactly one of Sent and Received is set.
type Finished struct {
	ID       uint16           `json:"id"`
	Clock    Clock            `json:"clock"`
	Sent     *stream.Sent     `json:"sent,omitempty"`
	Received *stream.Received `json:"received,omitempty"`
	// Error is why it ended early, in words; empty: it did not.
	Error string `json:"error,omitempty"`
}

// gap is the longest time between two packets of a plan.
func gap(p stream.Plan) (most time.Duration) {
	for _, s := range p.Segments {
		most = max(most, s.Pause+s.Interval)
	}
	return max(most, p.Feedback)
}

// Overhead is the bytes of IP and UDP headers of a packet.
func Overhead(ipv6 bool) int {
	if ipv6 {
		return 48
	}
	return 28
}
