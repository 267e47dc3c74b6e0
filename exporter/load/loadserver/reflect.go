package loadserver

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"syscall"

	"oneway.example/exporter/core/errtext"
	"oneway.example/exporter/core/ipheader"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/reflector"
)

const (
	// reflectKeyBytes is the length of a session's random secret.
	reflectKeyBytes = 32
	// reflectSessions is the most STAMP sessions of a session's reflector: a client has one, and a new one if its NAT
	// changes.
	reflectSessions = 4
	// reflectRequests of a session are tried: each searches a port. A client sends one.
	reflectRequests = 8
	// reflectBuffer is the receive buffer of its socket: of the packets of more than a second at the highest rate.
	reflectBuffer = 256 << 10
)

// reflecting is the reflector of one session.
type reflecting struct {
	reflector *reflector.Reflector
	stop      context.CancelFunc
	ended     chan error
	headers   int64 // of a packet
}

// reflect opens the session's reflector. Whatever prevents it ends only the request, not the session.
func (s *session) reflect(m *loadcontrol.Reflect) {
	reply, refusal := s.openReflector(m)
	if refusal != nil {
		s.r.counts.request(refusal.Reason)
		reply = loadcontrol.Reflecting{Refusal: refusal}
	}
	_ = s.conn.Write(loadcontrol.Message{Reflecting: &reply}) // an error ends the connection, and Read returns it
}

func (s *session) openReflector(m *loadcontrol.Reflect) (reply loadcontrol.Reflecting, refusal *loadcontrol.Refusal) {
	s.reflectRequests++
	limits, refusal := s.Limits()
	switch {
	case refusal != nil:
		return reply, refusal
	case s.reflectRequests > reflectRequests:
		return reply, loadcontrol.Reject("the session has asked %d times for a reflector", reflectRequests)
	case s.reflecting != nil:
		return reply, loadcontrol.Reject("the session has a reflector already")
	case m.Bytes <= 0 || m.Bytes > maxAnnounced:
		return reply, loadcontrol.Reject("bytes is %d; it must be the most payload to be reflected, above 0", m.Bytes)
	case limits.ReflectRate() < 1:
		return reply, &loadcontrol.Refusal{Reason: loadcontrol.RateLimit, Detail: "the token's rate is too low for test packets during the load"}
	}
	if refusal := s.Take(2 * m.Bytes); refusal != nil {
		return reply, refusal
	}
	reply.Key = make([]byte, reflectKeyBytes)
	_, _ = rand.Read(reply.Key) // never fails (Go 1.24)
	remote := s.Remote().Addr().WithZone("")
	rate, burst := limits.ReflectLimit()
	o := reflector.Options{
		Keys: []*stampfmt.Key{stampfmt.NewKey(reply.Key)}, RequireKey: true, RatePackets: rate, RateBurst: burst, MaxReplyBytes: uint64(m.Bytes),
		MaxRequestBytes: probe.LightBytes, NoRejections: true, MaxSessions: reflectSessions, MemoryLimit: -1, ReceiveBufferBytes: reflectBuffer,
		Allow: []netip.Prefix{netip.PrefixFrom(remote, remote.BitLen())},
	}
	var err error
	if s.reflecting, err = s.r.runReflector(o, s.Local().Addr()); err != nil {
		_ = s.Take(-2 * m.Bytes) // returns them
		s.r.env.Log.Warn("Session has no reflector", "token", s.token.Name, "run", s.run, "err", err)
		return reply, &loadcontrol.Refusal{Reason: loadcontrol.TooMany, Detail: fmt.Sprintf("no UDP port of %v is free for test packets during the load: %s", s.r.options.Ports, errtext.Words(err)), RetryAfter: tooManyWait}
	}
	s.reflecting.headers = int64(ipheader.WithIP(remote.Is6(), ipheader.UDP))
	reply.Port = s.reflecting.reflector.Addrs()[0].Port()
	return reply, nil
}

// runReflector runs a reflector on the first free port of the range, and returns when its socket is open.
func (r *LoadServer) runReflector(o reflector.Options, at netip.Addr) (*reflecting, error) {
	var refused error
	for port := range r.options.Ports.All() {
		o.Listen = []netip.AddrPort{netip.AddrPortFrom(at, port)}
		one, err := reflector.New(o, reflector.Env{Log: slog.New(slog.DiscardHandler), Sink: metric.Discard{}, Clock: r.env.Clock})
		if err != nil {
			return nil, err
		}
		ctx, stop := context.WithCancel(context.Background())
		x := &reflecting{reflector: one, stop: stop, ended: make(chan error, 1)}
		go func() { x.ended <- one.Run(ctx) }()
		select {
		case <-one.Started():
			return x, nil
		case refused = <-x.ended:
			stop()
		}
		if !errors.Is(refused, syscall.EADDRINUSE) {
			break
		}
	}
	return nil, refused
}

// endReflecting ends the session's reflector and charges the replies and their requests. Other packets did not have the
// client's key and address, and are not charged to its token.
func (s *session) endReflecting() {
	x := s.reflecting
	if x == nil {
		return
	}
	x.stop()
	if err := <-x.ended; err != nil {
		s.r.env.Log.Warn("Reflector of a session failed", "token", s.token.Name, "run", s.run, "err", err)
	}
	st := x.reflector.Stats()
	for _, d := range sample.Directions() {
		s.charge(d, int64(st.ReplyBytes), int64(st.Answered())*x.headers)
	}
}
