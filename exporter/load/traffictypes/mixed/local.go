package mixed

import (
	"context"
	"errors"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadsession"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/traffictypes/tcptraffic"
	"oneway.example/exporter/load/traffictypes/udptraffic"
)

// Local is the local half of the traffic: streams of UDP packets and TCP transfers.
type Local struct {
	// NoUDP: there are TCP transfers only, and the session has a nil UDP.
	NoUDP bool
	// Optional: the test can do without UDP, and its UDP packets count as no load. Where no UDP packet gets a reply, the session
	// has a nil UDP.
	Optional bool
}

// Session has the sessions of both parts.
type Session struct {
	UDP *udptraffic.Session
	TCP *tcptraffic.Session
}

// Counters returns the counters of the UDP part; TCP has none.
func (t Local) Counters() []loadtest.Counter {
	if t.NoUDP {
		return nil
	}
	return udptraffic.Local{}.Counters()
}

// Connect opens a session with both parts.
func (t Local) Connect(ctx context.Context, d *loadsession.Conn) (*Session, error) {
	if t.NoUDP {
		transfers, err := tcptraffic.Local{}.Connect(ctx, d)
		if err != nil {
			return nil, err
		}
		return &Session{TCP: transfers}, nil
	}
	o := d.Open()
	o.Traffic = Name
	clients, err := d.Client.OpenParts(ctx, o, udptraffic.Name, tcptraffic.Name)
	if err != nil {
		return nil, d.Failed(ctx, err)
	}
	part := func(i int) *loadsession.Conn {
		one := *d
		one.Client = clients[i]
		return &one
	}
	s, streams := &Session{}, part(0)
	if t.Optional {
		streams.Loaded = func(sample.Direction, instant.Time, instant.Time) {}
	}
	if s.UDP, err = (udptraffic.Local{}).Connect(ctx, streams); err != nil {
		failure, ok := errors.AsType[*loadtest.Failure](err)
		if !t.Optional || !ok || failure.Reason != runreason.NoTraffic {
			return nil, err
		}
		s.UDP = nil
	}
	transfers := tcptraffic.Local{}
	if s.UDP != nil {
		transfers.Other = s.UDP
	}
	if s.TCP, err = transfers.Connect(ctx, part(1)); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Account adds the bytes of both parts.
func (s *Session) Account(o *loadtest.Outcome, counters *metric.Scope) {
	if s.UDP != nil {
		s.UDP.Account(o, counters)
	}
	s.TCP.Account(o, counters)
}

// Close ends both parts.
func (s *Session) Close() {
	if s.UDP != nil {
		s.UDP.Close()
	}
	if s.TCP != nil {
		s.TCP.Close()
	}
}
