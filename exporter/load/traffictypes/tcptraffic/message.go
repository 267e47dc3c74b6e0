// Package tcptraffic is the traffic of bulk TCP transfers: its messages, the local half, which performs transfers in
// both directions and joins what both ends know, and the remote half.
//
//	client                                    load server
//	Open                                   ->
//	                                       <- Opened
//	transfer: id, plan                     ->
//	                                       <- listening: ports, cookie; or refused
//	a connection for each flow, which sends the cookie and the flow's index ->
//	                                       <- started: the load server's clock
//	  payload, in the direction of the plan
//	  forward: sent, when the client has ended ->
//	                                       <- finished: its clock, and records of its end
//	cancel at any time                     ->
//	alive, every two seconds               <->
//
// Transfers are performed one after another, or overlap. The client opens all connections, so that both
// directions work through NAT. The sending end writes messages until the plan's time or bytes are over: after its
// bytes it closes the stream and waits for the receiver; after its time it resets the connection, so that no full
// send buffer keeps the link. A flow whose messages have an interval closes the stream after its time too. Either end
// stops a transfer without progress for Plan.Idle. Without messages and payload of the client the load server ends the
// session (traffic.IdleTimeout, Plan.Outage), and so does the client when the load server is silent, or during a transfer its control
// connection alone. Both ends sample the kernel's state of each connection.
//
// A token's rate limits the payload: the sending end paces its segments, and the load server sends and reads no
// faster. Its data limits include retransmissions, headers and acknowledgments.
package tcptraffic

import (
	"fmt"
	"slices"
	"time"

	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/net/tcpsocket"
	"oneway.example/exporter/probe/endclock"
)

// Name of this type of traffic.
const Name = "tcp"

// Names of messages. The content of refused is a loadcontrol.Refusal.
const (
	sayTransfer  = "transfer"
	sayListening = "listening"
	sayStarted   = "started"
	saySent      = "sent"
	sayCancel    = "cancel"
	sayAlive     = "alive"
	sayFinished  = "finished"
	sayRefused   = "refused"
)

// Limits of a plan.
const (
	MaxFlows    = 64
	MaxMessage  = 4 << 20
	MaxDuration = 24 * time.Hour
	MinInterval = time.Millisecond
	// MaxInterval is that of messages.
	MaxInterval = time.Minute
	// MaxSamples limits the records of a transfer, all flows together.
	MaxSamples = 1 << 16
	MinIdle    = 100 * time.Millisecond
	MaxIdle    = loadcontrol.MaxIdle
	maxBytes   = 1 << 50 // exceeds those of any session
)

// Flow is one connection of a transfer. SendBuffer, CongestionControl and PacingRate apply to the sending
// end, ReceiveBuffer to the receiving end, the other options to both.
type Flow struct {
	tcpsocket.Options
	// MessageBytes is the size of each write, 1 to MaxMessage.
	MessageBytes int `json:"message_bytes"`
	// MessageInterval is the time between writes; zero: each follows the previous one at once. A write that the
	// socket holds back holds back the later ones. After the plan's duration the sender closes the stream, and waits for
	// the receiver as after its bytes.
	MessageInterval time.Duration `json:"message_interval_ns,omitempty"`
}

// CheckName returns an *option.Error of a key with the name of a congestion control, unless a kernel may have it.
func CheckName(key, name string) error {
	if name == "" || (tcpsocket.Options{CongestionControl: name}).Check() != nil {
		return option.Errorf(key, "is %q; it must be a name of the kernel, such as cubic", name)
	}
	return nil
}

// at returns the options at one end.
func (f Flow) at(sends bool) tcpsocket.Options {
	o := f.Options
	if sends {
		o.ReceiveBuffer = 0
	} else {
		o.SendBuffer, o.CongestionControl, o.PacingRate = 0, "", 0
	}
	return o
}

// listening returns the options that the listening socket must have before the handshake.
func (f Flow) listening(sends bool) tcpsocket.Options {
	o := f.at(sends)
	return tcpsocket.Options{ReceiveBuffer: o.ReceiveBuffer, MSS: o.MSS, DSCP: o.DSCP}
}

// Plan is a transfer: flows in one direction that begin together.
type Plan struct {
	Direction sample.Direction `json:"direction"`
	Flows     []Flow           `json:"flows"`
	// Duration is the longest time of sending. Bytes is the payload after which all flows together end
	// earlier; 0: none.
	Duration time.Duration `json:"duration_ns"`
	Bytes    int64         `json:"bytes,omitempty"`
	// Most limits the IP bytes of both directions: the transfer then ends. What TCP retransmits afterwards is beyond it.
	Most int64 `json:"most_ip_bytes"`
	// Interval is that of samples; in the first TraceFor it is TraceInterval.
	Interval      time.Duration `json:"interval_ns"`
	TraceFor      time.Duration `json:"trace_for_ns,omitempty"`
	TraceInterval time.Duration `json:"trace_interval_ns,omitempty"`
	// Idle ends a transfer without progress.
	Idle time.Duration `json:"idle_ns"`
	// Outage is the longest interruption of the path that the session survives during the transfer, at both ends; below
	// traffic.IdleTimeout: that.
	Outage time.Duration `json:"outage_ns,omitempty"`
	// Short: the time of a flow begins with its handshake, which must end within Duration, and in forward direction the
	// client sends without waiting for the message started.
	Short bool `json:"-"`
	// Discard: the receiving end does not copy the payload to user space (MSG_TRUNC).
	Discard bool `json:"discard,omitempty"`
	// Stamps: both ends record timestamps of sampled bytes of the first stampedFlows flows (package tcpstamp), if their
	// kernels have them.
	Stamps bool `json:"stamps,omitempty"`
}

// byTime reports whether flows end by the plan's duration, without a wait for the receiver.
func (p *Plan) byTime() bool {
	return p.Bytes == 0 && !slices.ContainsFunc(p.Flows, func(f Flow) bool { return f.MessageInterval > 0 })
}

// sending returns the longest time of a sending end.
func (p *Plan) sending() time.Duration {
	if p.byTime() || p.Bytes > 0 {
		return p.Duration
	}
	return longest(p)
}

// samples returns the most samples of a flow.
func (p *Plan) samples() int {
	n := 2 + p.Duration/p.Interval
	if p.TraceFor > 0 {
		n += min(p.TraceFor, p.Duration) / p.TraceInterval
	}
	return int(n)
}

// firstWait returns the time until a rate in bytes a second, 0: none, allows the first message of each flow.
func (p *Plan) firstWait(rate float64) time.Duration {
	if rate <= 0 {
		return 0
	}
	all := int64(0)
	for _, f := range p.Flows {
		all += int64(f.MessageBytes)
	}
	return time.Duration(float64(max(0, all-loadcontrol.MinBurstBytes)) / rate * float64(time.Second))
}

// stampedFlows limits the flows of a transfer with stamps, and so their records.
const stampedFlows = 4

// stamped reports whether a flow has stamps.
func (p *Plan) stamped(flow int) bool { return p.Stamps && flow < stampedFlows }

// allSamples returns the most samples of all flows.
func (p *Plan) allSamples() int { return p.samples() * len(p.Flows) }

// Check validates the plan, but not whether the token allows it.
func (p *Plan) Check() error {
	between := func(what string, v, lo, hi time.Duration) error {
		if v < lo || v > hi {
			return fmt.Errorf("tcptraffic: %s is %v, want %v to %v", what, v, lo, hi)
		}
		return nil
	}
	switch {
	case p.Direction != sample.Forward && p.Direction != sample.Reverse:
		return fmt.Errorf("tcptraffic: direction is %d, want 0, forward, or 1, reverse", p.Direction)
	case len(p.Flows) == 0 || len(p.Flows) > MaxFlows:
		return fmt.Errorf("tcptraffic: %d flows, want 1 to %d", len(p.Flows), MaxFlows)
	case p.Bytes < 0 || p.Bytes > maxBytes || p.Most <= 0 || p.Most > maxBytes:
		return fmt.Errorf("tcptraffic: %d bytes, at most %d IP bytes; want 0 and 1 to %d", p.Bytes, p.Most, int64(maxBytes))
	}
	checks := []error{
		between("duration", p.Duration, MinInterval, MaxDuration),
		between("interval", p.Interval, MinInterval, MaxDuration),
		between("idle timeout", p.Idle, MinIdle, MaxIdle),
		between("outage", p.Outage, 0, MaxIdle),
	}
	if p.TraceFor != 0 {
		checks = append(checks, between("trace", p.TraceFor, 0, MaxDuration), between("interval of the trace", p.TraceInterval, MinInterval, MaxDuration))
	}
	for _, f := range p.Flows {
		if f.MessageBytes < 1 || f.MessageBytes > MaxMessage {
			checks = append(checks, fmt.Errorf("tcptraffic: message of %d bytes, want 1 to %d", f.MessageBytes, MaxMessage))
		}
		checks = append(checks, f.Check(), between("interval of messages", f.MessageInterval, 0, MaxInterval))
	}
	if i := slices.IndexFunc(checks, func(err error) bool { return err != nil }); i >= 0 {
		return checks[i]
	}
	if n := p.samples(); n > MaxSamples/len(p.Flows) {
		return fmt.Errorf("tcptraffic: %d samples of each of %d flows, want at most %d together: lengthen the interval", n, len(p.Flows), MaxSamples)
	}
	return nil
}

// start requests a transfer. The client chooses the ID, unique in the session.
type start struct {
	ID   uint16 `json:"id"`
	Plan Plan   `json:"plan"`
}

// listening has the port of each flow. Each connection begins with the cookie and one byte, the index of its
// flow.
type listening struct {
	ID     uint16   `json:"id"`
	Ports  []uint16 `json:"ports"`
	Cookie []byte   `json:"cookie"`
}

const cookieBytes = 16

// only is the content of sent and cancel.
type only struct {
	ID uint16 `json:"id"`
}

// started has the load server's clock before the transfer.
type started struct {
	ID    uint16         `json:"id"`
	Clock endclock.State `json:"clock"`
}

// finished has what the load server's end did, and its clock after that; the binary data are the records of its flows
// (appendRecords). With an Error no flow has begun.
type finished struct {
	ID    uint16         `json:"id"`
	Clock endclock.State `json:"clock"`
	Flows []FlowEnd      `json:"flows,omitempty"`
	Error string         `json:"error,omitempty"`
}

// Ended is why one end of a flow ended.
type Ended string

// The reasons.
const (
	EndedTime     Ended = "time"     // the plan's duration
	EndedBytes    Ended = "bytes"    // all bytes or messages were sent, and the receiver closed
	EndedClosed   Ended = "closed"   // the sender closed
	EndedReset    Ended = "reset"    // the peer reset the connection
	EndedIdle     Ended = "idle"     // no progress for Plan.Idle
	EndedLimit    Ended = "limit"    // Plan.Most, or a limit of the token
	EndedCanceled Ended = "canceled" // by the client, or the session ended
	EndedFailed   Ended = "failed"   // another error of the socket
)

// String is the reason in words.
func (e Ended) String() string {
	if e == "" {
		return "unknown"
	}
	return string(e)
}

func reasons() []Ended {
	return []Ended{EndedTime, EndedBytes, EndedClosed, EndedReset, EndedIdle, EndedLimit, EndedCanceled, EndedFailed}
}

// Times of a transfer.
const (
	// connectTime is the timeout of all connections of a transfer, proofTime that of one's cookie.
	connectTime = 15 * time.Second
	proofTime   = 5 * time.Second
	// acceptPause is the pause after an accept that failed: the kernel does not tell when a descriptor is free, and accept would fail at once.
	acceptPause = 200 * time.Millisecond
	// drainTime is the idle timeout of a receiving end after the sending end has ended.
	drainTime = 5 * time.Second
	// slack is what a receiving end adds to the plan.
	slack = 5 * time.Second
	// grace is the timeout of control messages, which wait in the queue that a transfer has filled.
	grace = time.Minute
)

// longest returns the longest time of an end of a transfer.
func longest(p *Plan) time.Duration { return p.Duration + p.Idle + slack }
