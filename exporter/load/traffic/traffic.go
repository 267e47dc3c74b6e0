// Package traffic is the interface between a load server and a type of test traffic. The load server
// manages the session: authorization, the link and the quotas. The type of traffic defines its
// messages and sends and receives the test traffic.
package traffic

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/core/ctxtime"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/net/sched"
)

// Type is a type of traffic. Package traffictypes lists those of the load server.
type Type interface {
	// Name is the name of the type in a client's Open.
	Name() string
	// New makes the remote half of one load server. It opens nothing.
	New(env Env) Remote
}

// Env is what a load server provides to its traffic. All fields are set.
type Env struct {
	Log   *slog.Logger
	Clock clock.Monitor
	// Allowed returns whether a source is allowed.
	Allowed func(netip.Addr) bool
	// Other returns the half of another type at the same load server, once all are made; nil: it is unknown.
	Other func(name string) Remote
}

// Remote is the half of a type at one load server.
type Remote interface {
	// Listen opens the sockets that sessions share, on the same port number as an address of control.
	// shut closes them: after Run, or before it if another type cannot listen there.
	Listen(at netip.AddrPort) (shut func(), err error)
	// Run serves the sockets of Listen until ctx ends, which is no error.
	Run(ctx context.Context) error
	// Discarded counts packets that belong to no session, by reason; it has all reasons, also
	// those with 0.
	Discarded() map[string]uint64
	// Open starts the traffic of a session; reply is for the client.
	Open(host Host, parameters json.RawMessage) (s Session, reply any, refusal *loadcontrol.Refusal)
}

// ErrIdleTimeout means: the client of a session has reached the idle timeout of the traffic.
var ErrIdleTimeout = errors.New("loadserver: the client reached the idle timeout")

// IdleError is ErrIdleTimeout with what the traffic knows of it.
type IdleError struct {
	// Detail is a sentence for the operator of the client.
	Detail string
}

// Error has the detail.
func (e *IdleError) Error() string { return ErrIdleTimeout.Error() + ": " + e.Detail }

// Unwrap returns ErrIdleTimeout.
func (*IdleError) Unwrap() error { return ErrIdleTimeout }

// IdleTimeout is the longest time without anything from a client, whose session then ends: the client hangs, or the
// path to it is interrupted. Radio links stall for seconds: of eight recorded in cars, LTE, UMTS and EVDO, six stalled
// for over a second in every two minutes.
const IdleTimeout = 10 * time.Second

// WatchInterval is the interval of EndIdle.
const WatchInterval = 250 * time.Millisecond

// EndIdle ends a session with the error of why, which is ErrIdleTimeout, while idle, the time since something came from the
// client, or since its proof expired, is above IdleTimeout, until ctx ends. Each type of traffic runs it for each of its sessions.
func EndIdle(ctx context.Context, host Host, idle func() time.Duration, why func() error) {
	for last := sched.Now(); ctxtime.Sleep(ctx, WatchInterval); last = sched.Now() { // silence has no event to wait for
		// After a time in which this host did not run, what has come meanwhile is not read yet.
		if idle() > IdleTimeout && sched.Now()-last < 2*WatchInterval {
			host.End(why())
		}
	}
}

// Session is the traffic of one session at the remote end.
type Session interface {
	// Handle handles a message and does not wait for what it starts. One goroutine calls it, before
	// Close. A refusal ends the session.
	Handle(m *loadcontrol.TrafficMessage) *loadcontrol.Refusal
	// Close ends the traffic and returns after its goroutines have ended.
	Close()
}

// CheckID refuses the ID of a transfer that is zero or that the session has used; nil: it is right.
func CheckID(id uint16, used map[uint16]bool) *loadcontrol.Refusal {
	if id == 0 || used[id] {
		return loadcontrol.Reject("transfer %d: the id must be above 0 and new", id)
	}
	return nil
}

// Bucket is the token bucket of one direction, in bytes of payload.
type Bucket struct {
	// Level may be sent at once and is at most Depth. It may be negative.
	Level, Depth float64
	// Rate is the increase of Level per second.
	Rate float64
}

// Consume takes traffic from a bucket and returns the level at the traffic's end. On an error it takes
// nothing. The caller then repeats it with a full bucket, and takes nothing from that, to find
// out whether a retry can succeed.
type Consume func(b Bucket) (left float64, err error)

// Host is the load server for the traffic of one session. Its methods are safe for concurrent
// use.
type Host interface {
	// Local and Remote are the addresses of the control connection.
	Local() netip.AddrPort
	Remote() netip.AddrPort
	// Limits returns the present limits of the client's token, or a refusal if it was revoked, which ends the session.
	Limits() (loadcontrol.Limits, *loadcontrol.Refusal)
	// Take takes payload bytes from those announced for the session, or refuses if fewer are left;
	// a negative number returns bytes.
	Take(bytes int64) *loadcontrol.Refusal
	// ConsumeRate calls consume with the token's bucket of a direction, common to all its sessions, for
	// traffic of a duration from now on. It must be called for all traffic; if the token has no rate, it
	// does not call consume. The error of consume is the detail of the refusal. A token that was revoked is refused, and its session
	// ends. Traffic that has to wait for a rate that was lowered after the client was told its limits is refused; the traffic type ends its session.
	ConsumeRate(d sample.Direction, duration time.Duration, consume Consume) *loadcontrol.Refusal
	// CountBytes counts the bytes of payload and of headers from IP up. Call it at the end of traffic with
	// a ConsumeRate of some duration: if that ends early, only these bytes count for the token's rate.
	CountBytes(d sample.Direction, payload, headers int64)
	// CountTransfer counts a part of the traffic, such as a transfer.
	CountTransfer()
	// SetBusy sets the planned end of the traffic; zero: none runs. The load server ends a session
	// that is idle for some time.
	SetBusy(until time.Time)
	// SendMessage sends a message to the client: see loadcontrol.Conn.SendMessage.
	SendMessage(name string, body any, data []byte) error
	// SendRefusal counts a refusal of a part of the traffic, and sends it to the client under a name.
	SendRefusal(name string, r *loadcontrol.Refusal) error
	// End ends the session: with a *loadcontrol.Refusal, or with ErrIdleTimeout. It may be called again.
	End(why error)
	// Listen opens another TCP socket for the session, on a free port of the configured range at the
	// address of control. It calls o.Control before it binds. It accepts connections of allowed
	// sources only. The end of the session closes it.
	Listen(o net.ListenConfig) (net.Listener, error)
}
