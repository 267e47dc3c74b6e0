package mixed

import (
	"context"
	"errors"
	"net/netip"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/traffictypes/tcptraffic"
	"oneway.example/exporter/load/traffictypes/udptraffic"
)

// Test is a load test with streams of UDP packets and TCP transfers.
type Test interface {
	// Perform runs the test with calls of Transfer of both sessions: see loadtest.Flow.
	Perform(ctx context.Context, u *udptraffic.Session, t *tcptraffic.Session, r *loadtest.Run) error
}

// Near returns the local half of the traffic for one test.
func Near(t Test) loadtest.Traffic { return local{test: t} }

// NearOptional is Near for a test of TCP that can do without UDP: where no UDP packet gets a reply, Perform gets a nil session of
// UDP. A session announces no more than the token has left. The UDP packets count as no load.
func NearOptional(t Test) loadtest.Traffic { return local{t, true} }

type local struct {
	test     Test
	optional bool
}

// Counters creates those of the UDP part; TCP has none.
func (local) Counters(s *metric.Scope, directions []sample.Direction) {
	udptraffic.NewLocal(nil).Counters(s, directions)
}

// Connect opens a session with both parts.
func (n local) Connect(ctx context.Context, d *loadtest.ControlConn) (loadtest.Flow, error) {
	o := d.Open
	o.Traffic = Name
	if n.optional {
		if limits := d.Client.Welcome().Limits; limits.BytesPerDay > 0 && limits.LeftToday > 0 {
			o.Bytes = min(o.Bytes, limits.LeftToday)
		}
		o.Bytes += d.Beside
	}
	clients, err := d.Client.OpenParts(ctx, o, udptraffic.Name, tcptraffic.Name)
	if err != nil {
		return nil, d.Failed(ctx, &loadtest.RemoteError{Err: err, Package: "loadcontrol"})
	}
	f := &flow{test: n.test}
	connect := func(part int, t loadtest.Traffic) (loadtest.Flow, error) {
		one := *d
		one.Client = clients[part]
		if n.optional && part == 0 {
			one.Loaded = nil
		}
		return t.Connect(ctx, &one)
	}
	if f.udp, err = connect(0, udptraffic.NewLocal(ofUDP{f})); err != nil {
		failure, ok := errors.AsType[*loadtest.Failure](err)
		if !n.optional || !ok || failure.Reason != loadtest.ReasonNoTraffic {
			return nil, err
		}
		f.udp = nil
	}
	if f.tcp, err = connect(1, tcptraffic.Near(ofTCP{f})); err != nil {
		if f.udp != nil {
			f.udp.Close()
		}
		return nil, err
	}
	return f, nil
}

// flow is a test with its sessions. Each part gives its session to its test: ofUDP, and then ofTCP.
type flow struct {
	test     Test
	udp, tcp loadtest.Flow
	streams  *udptraffic.Session // nil: UDP does not pass
}

type (
	ofUDP struct{ *flow }
	ofTCP struct{ *flow }
)

func (o ofUDP) Perform(ctx context.Context, s *udptraffic.Session, r *loadtest.Run) error {
	o.streams = s
	return o.tcp.Perform(ctx, r)
}

func (o ofTCP) Perform(ctx context.Context, s *tcptraffic.Session, r *loadtest.Run) error {
	return o.test.Perform(ctx, o.streams, s, r)
}

func (f *flow) Remote() netip.AddrPort { return f.tcp.Remote() }

func (f *flow) Perform(ctx context.Context, r *loadtest.Run) error {
	return f.parts()[0].Perform(ctx, r)
}

// parts are those that are connected; the last one is TCP.
func (f *flow) parts() []loadtest.Flow {
	if f.udp == nil {
		return []loadtest.Flow{f.tcp}
	}
	return []loadtest.Flow{f.udp, f.tcp}
}

func (f *flow) Follow(to func(loadtest.Progress)) {
	for _, part := range f.parts() {
		part.Follow(to)
	}
}

// Account adds the bytes of both parts.
func (f *flow) Account(o *loadtest.Outcome, s *metric.Scope) {
	for _, part := range f.parts() {
		part.Account(o, s)
	}
}

func (f *flow) Close() {
	for _, part := range f.parts() {
		part.Close()
	}
}
