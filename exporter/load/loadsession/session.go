// Package loadsession has the sessions of load tests with a load server of this program, which are one way to perform a run
// (package loadtest): the control connection, the token and its limits, the type of traffic, and a reflector for the packets
// during the load. A Kind decides what is sent and evaluates it.
//
//	loadcontrol.Dial -> Welcome: the token's limits -> Traffic.Connect -> Kind.Perform -> Close
package loadsession

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/ipheader"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/probe"
)

// Kind is a type of load test with a load server, whose sessions are of type S.
type Kind[S Session] interface {
	// Kind, Bytes, Duration and Publish are those of a loadtest.Test.
	Kind() string
	Bytes(left int64) int64
	Duration() time.Duration
	Publish(v *loadtest.Values, r *loadtest.Run)
	// Traffic returns the local half of the traffic.
	Traffic() Traffic[S]
	// Perform performs a run in a session, as a loadtest.Session does.
	Perform(ctx context.Context, s S, r *loadtest.Run) error
}

// Fitter is implemented by a Kind that adapts a run to the token's limits. Without it, a run
// that exceeds the token's bytes of the day is refused.
type Fitter interface {
	// Fit gets the token's limits and the bytes of IP and UDP headers of a packet, before the session
	// is opened: after Bytes and before Perform. It returns the most IP bytes that the run will send,
	// which are announced instead of Bytes; 0 if nothing fits, and the load server may then
	// refuse.
	Fit(limits loadcontrol.Limits, overhead int) int64
}

// Undisturbed is implemented by a Kind whose result the packets of others change: no light packets are sent during its load.
type Undisturbed interface {
	// Undisturbed does nothing.
	Undisturbed()
}

// Traffic is the local half of a type of traffic.
type Traffic[S Session] interface {
	// Counters returns the counters to which Account adds.
	Counters() []loadtest.Counter
	// Connect opens a session. Convert errors of c.Client with c.Failed.
	Connect(ctx context.Context, c *Conn) (S, error)
}

// Session is the traffic of one session.
type Session interface {
	// Account adds to the outcome what was sent, also of a run that failed, and to the counters.
	Account(o *loadtest.Outcome, s *metric.Scope)
	// Close releases the resources of the traffic; the control connection is closed already.
	Close()
}

// Conn is a control connection on which a session can be opened.
type Conn struct {
	*loadtest.Attempt
	Client  *loadcontrol.Client
	Options *Options
	// Announced are the IP bytes of the load, for which the session is opened.
	Announced int64
	// Loaded is Attempt.Loaded, or does nothing.
	Loaded func(d sample.Direction, from, to instant.Time)

	kind, address string
}

// Open is the request for the session, with all fields but Traffic and Parameters.
func (c *Conn) Open() loadcontrol.Open {
	return loadcontrol.Open{Test: c.kind, Run: c.Run, Bytes: c.Announced + c.LightBytes(), Duration: c.Timeout}
}

// Failed converts an error of opening a session into the error of the run.
func (c *Conn) Failed(ctx context.Context, err error) error { return failed(ctx, c.address, err) }

func failed(ctx context.Context, address string, err error) error {
	if ctx.Err() != nil {
		return loadtest.WithCause(ctx, err)
	}
	if refusal, ok := errors.AsType[*loadcontrol.Refusal](err); ok {
		return Refused(&loadcontrol.ServerError{Address: address, Err: refusal})
	}
	return &loadtest.Failure{Reason: runreason.Unreachable, Err: err}
}

// Refused returns a *loadtest.Failure of an error that is a refusal of the load server; other errors are returned as they are.
func Refused(err error) error {
	refusal, ok := errors.AsType[*loadcontrol.Refusal](err)
	if !ok || errors.As(err, new(*loadtest.Failure)) {
		return err
	}
	reason := runreason.Find(string(refusal.Reason))
	f := &loadtest.Failure{Reason: reason.Name, Err: err, Refused: !reason.Ends}
	if !reason.Refusal { // labels are a fixed set
		f.Reason = runreason.BadRequest
	}
	if reason.Retried {
		f.RetryAfter = max(refusal.RetryAfter, time.Second)
	}
	return f
}

// kindOf is a Kind whose methods a struct may have with a field of it.
type kindOf[S Session] interface{ Kind[S] }

// test is the loadtest.Test of a Kind.
type test[S Session] struct {
	kindOf[S]
	options Options
	host    string
	port    uint16
}

// NewTest checks the options and returns the test of a path. It opens nothing.
func NewTest[S Session](target probe.Target, o Options, k Kind[S]) (loadtest.Test, error) {
	host, port, err := o.checked(target)
	if err != nil {
		return nil, err
	}
	return &test[S]{k, o, host, port}, nil
}

// Remote is the load server.
func (t *test[S]) Remote() (host string, port uint16) { return t.host, t.port }

// Directions are those of the options.
func (t *test[S]) Directions() []sample.Direction { return t.options.directions }

// Counters returns the counters of the traffic and of the Kind.
func (t *test[S]) Counters(remote netip.Addr) []loadtest.Counter {
	all := t.Traffic().Counters()
	if c, ok := t.kindOf.(loadtest.Counting); ok {
		all = append(all, c.Counters(remote)...)
	}
	return all
}

// LightPackets returns the options of the packets during the load.
func (t *test[S]) LightPackets() loadtest.LightPackets {
	if _, alone := t.kindOf.(Undisturbed); alone {
		return loadtest.LightPackets{}
	}
	return loadtest.LightPackets{Interval: t.options.WorkingDelayInterval, LossTimeout: t.options.DrainTimeout, DSCP: t.options.DSCP}
}

// connectTimeout is the limit of the time until a session is open.
const connectTimeout = 25 * time.Second

// Open opens a session with the load server.
func (t *test[S]) Open(ctx context.Context, a *loadtest.Attempt) (loadtest.Session, error) {
	address := net.JoinHostPort(t.host, strconv.Itoa(int(t.port)))
	ctx, cancel := context.WithTimeoutCause(ctx, connectTimeout, &loadtest.Failure{
		Reason: runreason.Unreachable, Err: fmt.Errorf("load server %s: no session within %v", address, connectTimeout),
	})
	defer cancel()
	o := &t.options
	token, err := readToken(o.TokenFile)
	if err != nil {
		return nil, &loadtest.Failure{Reason: runreason.Configuration, Err: fmt.Errorf("token_file: %w", err)}
	}
	a.Phase("connecting")
	client, err := loadcontrol.Dial(ctx, loadcontrol.ClientOptions{
		Address: address, Token: token, CAFile: o.CAFile, Pin: o.Pin, CertFile: o.CertFile, KeyFile: o.KeyFile, Local: o.LocalAddr(), Family: o.Family,
	})
	if err != nil {
		return nil, failed(ctx, address, err)
	}
	limits := client.Welcome().Limits
	a.LimitLight("the token", limits.ReflectRate(), a.Bytes, limits.LeftOfDay())
	traffic, err := t.Traffic().Connect(ctx, &Conn{
		Attempt: a, Client: client, Options: o, Announced: t.announced(client, a.Bytes), Loaded: a.Loaded, kind: t.Kind(), address: address,
	})
	if err != nil {
		_ = client.Close() // err is returned
		return nil, err
	}
	return &session[S]{t, client, traffic}, nil
}

// announced are the IP bytes of the load, for which a session is opened: the one decision about them.
func (t *test[S]) announced(c *loadcontrol.Client, bytes int64) int64 {
	if f, ok := t.kindOf.(Fitter); ok {
		if fits := f.Fit(c.Welcome().Limits, ipheader.WithIP(c.Remote().Addr().Is6(), ipheader.UDP)); fits > 0 {
			return min(bytes, fits)
		}
	}
	return bytes
}

// session is the loadtest.Session of a run.
type session[S Session] struct {
	test    *test[S]
	client  *loadcontrol.Client
	traffic S
}

// Remote is the address of the load server.
func (s *session[S]) Remote() string { return s.client.Remote().String() }

// Perform lets the Kind perform the run.
func (s *session[S]) Perform(ctx context.Context, r *loadtest.Run) error {
	err := s.test.Perform(ctx, s.traffic, r)
	if ended := s.endedBy(err); ended != nil && !errors.As(err, new(*loadtest.Failure)) {
		return ended
	}
	return Refused(err)
}

// endedBy is the error of the session if the load server has ended it with a refusal, which the wait for a reply returns first, or Err;
// else nil.
func (s *session[S]) endedBy(err error) error {
	refusal, ok := errors.AsType[*loadcontrol.Refusal](err)
	if !ok || !runreason.Find(string(refusal.Reason)).Ends {
		return nil
	}
	return &loadtest.Failure{Reason: string(refusal.Reason), Err: s.client.Ended(errors.New(refusal.Detail))}
}

// Account adds what the traffic sent.
func (s *session[S]) Account(o *loadtest.Outcome, counters *metric.Scope) {
	s.traffic.Account(o, counters)
}

// Reflect opens the reflector of the session.
func (s *session[S]) Reflect(ctx context.Context, bytes int64) (loadtest.Reflector, error) {
	r, err := s.client.Reflect(ctx, loadcontrol.Reflect{Bytes: bytes})
	if err != nil {
		return loadtest.Reflector{}, err
	}
	return loadtest.Reflector{Peer: netip.AddrPortFrom(s.client.Remote().Addr(), r.Port), Local: s.client.Local().Addr(), Key: r.Key}, nil
}

// Done is closed at the end of the control connection.
func (s *session[S]) Done() <-chan struct{} { return s.client.Done() }

// Err is why the control connection has ended.
func (s *session[S]) Err() error {
	err := s.client.Err()
	if ended := s.endedBy(err); ended != nil {
		return ended
	}
	return s.client.Ended(err)
}

// Close ends the control connection, and then the traffic.
func (s *session[S]) Close() {
	_ = s.client.Close() // the load server ends the session in any case
	s.traffic.Close()
}
