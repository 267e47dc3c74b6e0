package tcpdelay

import (
	"time"

	"oneway.example/exporter/core/tcpstamp"
)

// State is whether connections are split.
type State uint8

// The states. Unknown: see Verdict.Reason.
const (
	Unknown State = iota
	EndToEnd
	Split
)

// String is the state in words.
func (s State) String() string {
	if s > Split {
		return "invalid"
	}
	return [...]string{"cannot tell", "no", "yes"}[s]
}

// Reason is why the state is Unknown: a value of the metric label reason.
type Reason string

// The reasons.
const (
	NoStamps      Reason = "no_stamps"     // an end has no timestamps of the stream
	NoClocks      Reason = "clocks"        // the clocks have no error bound, and no other evidence suffices
	FewSamples    Reason = "few_samples"   // too few bytes have an acknowledgment and an arrival
	NoHandshake   Reason = "no_timestamps" // the arrived SYN is not known, or has no timestamp
	NoUDP         Reason = "no_udp"        // the SYN was rewritten, and no UDP packets give a round trip to compare with
	Contradiction Reason = "contradiction" // the SYN, and the round trips of TCP and of UDP, say different things
)

// Evidence is what is known of the connections of one direction. Zero: absent.
type Evidence struct {
	// Stamped is the number of samples with timestamps of both ends; Tested, Early and Lead are those of Result.
	Stamped, Tested, Early int
	Lead                   time.Duration
	// Client and Server are the handshake as each end knows it; nil: it does not.
	Client, Server *tcpstamp.Handshake
	// Synchronized: the clocks have an error bound.
	Synchronized bool
	// TCPRoundTrip is the least time from the transmission of data to its acknowledgment: the kernel's least round-trip
	// time has that of the handshake, too.
	// ReceiverRoundTrip is that of the receiver's kernel, from its acknowledgments to the data that echo their timestamp,
	// in steps of 1 ms.
	TCPRoundTrip, ReceiverRoundTrip time.Duration
	// UDPRoundTrip is the sum of the least one-way delays of UDP packets in both directions over the idle path.
	UDPRoundTrip time.Duration
	// DataRoundTrip is the sum of the least one-way delays of TCP data in both directions. The round trip of UDP is longer if
	// UDP takes another way.
	DataRoundTrip time.Duration
	// AckRoundTrip is the sum of Result.Lag of both directions of a run, if each is of at least LeastLags bytes, and AckError
	// how much the offset of the clocks may have changed between them: else it cancels. End to end it is a round trip of
	// the path. Of a proxy, acknowledgments come earlier by its round trip to the receiver, in both directions
	// together by a round trip of the path: the sum is zero or less, wherever the proxy stands.
	AckRoundTrip, AckError time.Duration
	AckKnown               bool
	// ElsewhereSplit: connections of the same run in the other direction are split for certain.
	ElsewhereSplit bool
}

// Limits of evidence.
const (
	// LeastEarly is the least number of early acknowledgments that prove a split.
	LeastEarly = 3
	// LeastTested is the least number of tested bytes without an early acknowledgment that exclude it.
	LeastTested = 20
	// A round trip is clearly shorter than another one if it is shorter by this ratio and time.
	shorterRatio = 0.7
	shorterTime  = 300 * time.Microsecond
	// LeastLags is the least number of bytes in each direction for Evidence.AckRoundTrip, and ackSlack its error besides
	// AckError.
	LeastLags = 10
	ackSlack  = 2*lagError + 100*time.Microsecond
	// slackTSval is what a timestamp may differ besides its error: a SYN may have been sent again.
	slackTSval = 50
)

// Identity is whether the SYN that arrived at the server is the one that the client sent.
type Identity uint8

// The identities.
const (
	IdentityUnknown Identity = iota
	SameSYN                  // its timestamp value is that of the client's connection, whose offset is random
	RewrittenSYN             // it has another timestamp value, or another window scale
)

// String is the identity in words.
func (i Identity) String() string {
	if i > RewrittenSYN {
		return "invalid"
	}
	return [...]string{"unknown", "the client's", "rewritten"}[i]
}

// Identity compares the handshakes of both ends.
func (e *Evidence) Identity() Identity {
	c, s := e.Client, e.Server
	if c == nil || s == nil {
		return IdentityUnknown
	}
	// A client whose server has no window scale does not know the one that its own SYN had.
	unscaled := c.OwnScale < 0 && c.PeerScale < 0 && s.OwnScale < 0
	scales := (unscaled || c.OwnScale == s.PeerScale) && c.PeerScale == s.OwnScale
	switch {
	case !scales, c.Timestamps != s.Timestamps:
		return RewrittenSYN
	case !s.SYN || !c.Timestamps:
		return IdentityUnknown
	}
	off := int64(int32(s.TSval - c.TSval))
	if max(off, -off) <= int64(c.TSvalError)+int64(s.TSvalError)+slackTSval {
		return SameSYN
	}
	return RewrittenSYN
}

// Verdict is the state of connections and, if it is Unknown, why. By names the evidence that decided.
type Verdict struct {
	State  State
	Reason Reason
	By     string
}

// Judge decides.
//
// Split is proved by bytes that were acknowledged to the sender before the receiver had them, beyond the error bound of the
// clocks. If not the client's SYN arrived, it is also decided by AckRoundTrip; without that, if the SYN was rewritten and data
// are acknowledged, or follow acknowledgments, in clearly less than the round trip of UDP, and than that of TCP data, if known:
// UDP may take a longer way than TCP. Routers and NAT do not rewrite timestamps or window scales; a SYN proxy does, but lets
// the data pass.
//
// EndToEnd is decided by AckRoundTrip, or if the client's own SYN arrived, so that nobody ended the connection there, and
// nobody acknowledged data in its place: no byte that could have been acknowledged early was, or data are acknowledged in no
// clearly shorter time than a round trip of UDP.
func (e *Evidence) Judge() Verdict {
	identity := e.Identity()
	switch {
	case e.Early >= LeastEarly:
		return Verdict{State: Split, By: "bytes were acknowledged before they arrived"}
	case e.Early == 0 && e.AckKnown && e.path() > 0 && e.AckRoundTrip > max(e.AckError+ackSlack, e.path()/4):
		return Verdict{State: EndToEnd, By: "in both directions together, acknowledgments follow the bytes after a round trip of the path"}
	case e.acksTooEarly() && identity == SameSYN: // a proxy that keeps the client's SYN, or another way of UDP
		return Verdict{Reason: Contradiction}
	case e.acksTooEarly():
		return Verdict{State: Split, By: "in both directions together, acknowledgments come a round trip of the path too early"}
	case identity == RewrittenSYN && (e.shorter(e.TCPRoundTrip) || e.ReceiverRoundTrip > 0 && e.shorter(e.ReceiverRoundTrip+time.Millisecond)):
		return Verdict{State: Split, By: "the SYN was rewritten, and the round trip of TCP is shorter than that of UDP"}
	case identity == RewrittenSYN && e.ElsewhereSplit:
		return Verdict{State: Split, By: "the SYN was rewritten, and connections of the other direction are split"}
	case e.Early > 0:
		return Verdict{Reason: FewSamples}
	case identity == SameSYN && e.Tested >= LeastTested:
		return Verdict{State: EndToEnd, By: "the client's SYN arrived, and no byte was acknowledged before it arrived"}
	case identity == SameSYN && e.TCPRoundTrip > 0 && e.UDPRoundTrip > 0 && !e.shorter(e.TCPRoundTrip):
		return Verdict{State: EndToEnd, By: "the client's SYN arrived, and the round trip of TCP is not shorter than that of UDP"}
	case identity == RewrittenSYN && e.UDPRoundTrip == 0:
		return Verdict{Reason: NoUDP}
	case identity == RewrittenSYN:
		return Verdict{Reason: Contradiction}
	case e.Stamped == 0:
		return Verdict{Reason: NoStamps}
	case identity == IdentityUnknown:
		return Verdict{Reason: NoHandshake}
	case !e.Synchronized:
		return Verdict{Reason: NoClocks}
	}
	return Verdict{Reason: FewSamples}
}

// acksTooEarly reports whether acknowledgments come in less than a round trip, both directions together.
func (e *Evidence) acksTooEarly() bool {
	return e.AckKnown && e.AckRoundTrip <= e.AckError+ackSlack && e.path() >= 4*(e.AckError+ackSlack)
}

// path is the round trip of the path, or what limits it; 0: unknown.
func (e *Evidence) path() time.Duration {
	if e.UDPRoundTrip > 0 && e.DataRoundTrip > 0 {
		return min(e.UDPRoundTrip, e.DataRoundTrip)
	}
	return max(e.UDPRoundTrip, e.DataRoundTrip)
}

// shorter reports whether a round trip of TCP is clearly shorter than that of the path.
func (e *Evidence) shorter(tcp time.Duration) bool {
	path := e.path()
	return tcp > 0 && e.UDPRoundTrip > 0 && path-tcp > shorterTime && float64(tcp) < shorterRatio*float64(path)
}
