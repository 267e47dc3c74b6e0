// Package traffic is what a type of test traffic is at the remote end of a load test. The life
// of a session, which is authorized, holds a link and uses up quotas, is the load server's, and
// knows no traffic; what is sent and received in it, and in which messages both ends agree on
// that, is the traffic's, and no other's.
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
	"oneway.example/exporter/loadcontrol"
	"oneway.example/exporter/sample"
)

// Type is a type of traffic. The registry (package traffic types) lists those of the remote end.
type Type interface {
	// Name is the word by which a client asks for it.
	Name() string
	// New makes the remote half of one load server. It opens nothing.
	New(env Env) Remote
}

// Env is what a load server leases to its traffic. All fields are set.
type Env struct {
	Log   *slog.Logger
	Clock clock.Monitor
	// Allowed tells whether a source may be answered.
	Allowed func(netip.Addr) bool
}

// Remote is a type's half at one load server.
type Remote interface {
	// Listen opens what sessions share beside one of the addresses of control, on the same
	// port number. shut frees it: after Run, or before it, where another type cannot listen there.
	Listen(at netip.AddrPort) (shut func(), err error)
	// Run serves what Listen has opened until ctx ends, which is no error.
	Run(ctx context.Context) error
	// Discarded counts the packets that belonged to no session and were left alone, by the
	// reason: all reasons, from the beginning.
	Discarded() map[string]uint64
	// Open begins the traffic of a session; answer is for the client.
	Open(host Host, parameters json.RawMessage) (s Session, reply any, refusal *loadcontrol.Refusal)
}

// ErrSilent says that a session's client is silent, and taken to have vanished.
var ErrSilent = errors.New("loadserver: the client has vanished")

// Session is the traffic of one session at the remote end.
type Session interface {
	// Hear does what a message asks for, and does not wait for what it begins. It is called by
	// one goroutine, before Close. A refusal ends the session.
	Hear(m *loadcontrol.Say) *loadcontrol.Refusal
	// Close ends all that runs, and returns when nothing does.
	Close()
}

// Bucket is what a token's rate allows in one direction, in bytes of payload.
type Bucket struct {
	// Level may be moved at once, and is Depth at the most. Below zero it is owed.
	Level, Depth float64
	// Rate is what Level gains a second.
	Rate float64
}

// Draw takes traffic from a bucket, and returns the level at the traffic's end. An error takes
// nothing: it says why the traffic must not be. A draw with an error is tried again from a full
// bucket, of which nothing is taken, to learn when to come back.
type Draw func(b Bucket) (left float64, err error)

// Host is what the load server does for the traffic of one session. Its methods may be called
// at the same time.
type Host interface {
	// Local and Remote are the ends of the control connection.
	Local() netip.AddrPort
	Remote() netip.AddrPort
	// Limits are those of the client's token as they are now; a refusal if it was revoked.
	Limits() (loadcontrol.Limits, *loadcontrol.Refusal)
	// Take takes bytes of payload of what the session may still move, and refuses what is
	// beyond that; fewer than 0 are given back.
	Take(bytes int64) *loadcontrol.Refusal
	// Spend has draw take bytes of payload from what the token's rate allows in a direction, in all
	// its sessions together, for traffic that lasts so long from now on. It is to be asked for all that
	// is moved; where the token has no rate, draw is not called. An error of draw is the refusal's detail.
	Spend(d sample.Direction, lasts time.Duration, draw Draw) *loadcontrol.Refusal
	// Moved counts what was moved, in bytes of payload and of the headers of IP and above; of traffic for which
	// Spend was asked for a time, all at its end: if that is early, only this counts for the token's rate.
	Moved(d sample.Direction, payload, headers int64)
	// Begun counts a part of the traffic, such as a transfer.
	Begun()
	// Busy says until when the traffic lasts, as planned; zero: nothing runs. A session in
	// which nothing runs for a while is ended.
	Busy(until time.Time)
	// Say says a message to the client: see loadcontrol.Conn.Say.
	Say(name string, body any, data []byte) error
	// Refused counts a refusal of a part of the traffic, and says it to the client under a name.
	Refused(name string, r *loadcontrol.Refusal) error
	// End ends the session: with a *loadcontrol.Refusal, or with ErrSilent.
	End(why error)
	// Listen opens one more TCP socket for the session, on a free port of the load server's range
	// at the address of control. Control of o is called before it is bound. Connections come from
	// sources that are allowed. The session's end closes it.
	Listen(o net.ListenConfig) (net.Listener, error)
}
