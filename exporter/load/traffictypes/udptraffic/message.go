// Package udptraffic is the traffic of streams of UDP test packets at given times (package stream): its
// messages, the local half, which transfers streams in both directions and joins the records of both
// ends, and the remote half.
//
//	client                                    load server
//	Open                                   ->
//	                                       <- Opened: session, UDP port
//	hello packets over UDP, with the session ->
//	                                       <- challenge over UDP, with a cookie, no longer than the hello
//	prove: the cookie                      ->
//	                                       <- proved: the address that streams go to
//	  from then on, over UDP:              <- a new cookie, when the last one returned is 5 s old
//	    hello packets with it              ->
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
// A plan with feedback (stream.Plan.Feedback) is the most that its sender sends, and is authorized as
// such. During the stream the client adjusts the rate within it, by the reports of the receiver. These
// messages use UDP, since TCP stalls on a full path.
//
// Each end detects the other by its packets. Each sends two hello packets a second while it
// sends no stream, or one with longer pauses, and ten, which request a reply, while none arrives. A load server that
// receives nothing from the client for 3 s pauses its stream (consent), and after 10 s ends the session; it does both as well without a cookie
// of the last 30 s. A client that
// receives nothing of a reverse stream, or nothing at all, for 10 s ends the run; and one to whom only the control
// connection is silent, 10 s after a message was due: a reply, or the records the drain timeout after the planned end of
// a stream. After an interruption of the path, TCP has as long again.
package udptraffic

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"oneway.example/exporter/core/ipheader"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/stream"
	"oneway.example/exporter/load/traffic"
	"oneway.example/exporter/probe/endclock"
)

// Name of this type of traffic.
const Name = "udp"

// Names of messages; the struct has the same name. The content of refused is a loadcontrol.Refusal.
const (
	msgProve    = "prove"
	msgProved   = "proved"
	msgStart    = "start"
	msgStarted  = "started"
	msgSent     = "sent"
	msgCancel   = "cancel"
	msgFinished = "finished"
	msgRefused  = "refused"
)

// Reply is the load server's reply to Open.
type Reply struct {
	// Session is random; each test packet has it.
	Session uint64 `json:"session"`
	// Port is the UDP port of test traffic, on the address of the control connection.
	Port uint16 `json:"udp_port"`
	endclock.Kernel
}

// Prove has the cookie of a challenge, and so proves the address to which that was sent.
type Prove struct {
	Cookie []byte `json:"cookie"`
}

// Proved has the address to which streams are sent.
type Proved struct {
	Address string `json:"address"`
}

// Start requests a transfer, which is one stream. The client chooses the ID, unique in the session;
// test packets have it.
type Start struct {
	ID        uint16           `json:"id"`
	Direction sample.Direction `json:"direction"`
	Plan      stream.Plan      `json:"plan"`
	// Idle is the idle timeout after all was sent: packets that have not arrived then are lost;
	// 100 ms to two minutes.
	Idle time.Duration `json:"idle_ns"`
}

// Limits of Start.Idle.
const (
	MinIdle = 100 * time.Millisecond
	MaxIdle = loadcontrol.MaxIdle
)

// Check validates the ID, direction, plan and Idle of a transfer, but not whether the token allows
// it.
func (t *Start) Check() error {
	switch {
	case t.ID == 0:
		return errors.New("udptraffic: transfer 0: want 1 to 65535")
	case t.Direction != sample.Forward && t.Direction != sample.Reverse:
		return fmt.Errorf("udptraffic: transfer %d: direction %d: want 0, forward, or 1, reverse", t.ID, t.Direction)
	case t.Idle < MinIdle || t.Idle > MaxIdle:
		return fmt.Errorf("udptraffic: transfer %d: idle %v: want %v to %v", t.ID, t.Idle, MinIdle, MaxIdle)
	}
	if err := t.Plan.Check(); err != nil {
		return fmt.Errorf("udptraffic: transfer %d: %w", t.ID, err)
	}
	return nil
}

// length returns the longest planned time of the stream; one without intervals takes as long as the
// sending host needs.
func (t *Start) length(most time.Duration) time.Duration {
	if _, unpaced := t.Plan.PeakRate(); !unpaced {
		return t.Plan.Duration()
	}
	if most > 0 {
		return most
	}
	return stream.MaxDuration
}

// Timeouts of the ends.
const (
	// Outage is the longest interruption of the path that a stream survives.
	Outage = traffic.IdleTimeout
	// grace is the time for control messages after a stream: they wait in the queue that the stream
	// has filled, and for retransmissions of TCP.
	grace = time.Minute
)

// Started reports that the load server is ready to receive, or begins to send.
type Started struct {
	ID    uint16         `json:"id"`
	Clock endclock.State `json:"clock"`
}

// Sent reports that the client has sent all packets of a forward transfer.
type Sent struct {
	ID      uint16 `json:"id"`
	Packets int    `json:"packets"`
}

// Cancel ends a transfer early; the load server sends its records so far.
type Cancel struct {
	ID uint16 `json:"id"`
}

// Finished is the end of a transfer; the records of the load server's packets are its binary data.
// Exactly one of Sent and Received is set.
type Finished struct {
	ID       uint16           `json:"id"`
	Clock    endclock.State   `json:"clock"`
	Sent     *stream.Sent     `json:"sent,omitempty"`
	Received *stream.Received `json:"received,omitempty"`
	// Error is why it ended early; empty: it did not.
	Error string `json:"error,omitempty"`
}

// gap returns the longest time between two packets of a plan.
func gap(p stream.Plan) (most time.Duration) {
	for _, s := range p.Segments {
		most = max(most, s.Pause+s.Interval)
	}
	return max(most, p.Feedback)
}

// fitsAnyPath reports whether nearly every path carries all packets of a plan.
func fitsAnyPath(p stream.Plan) bool {
	return !slices.ContainsFunc(p.Segments, func(s stream.Segment) bool { return s.PayloadBytes+ipheader.MaxUDP > ipheader.AnyPathBytes })
}
