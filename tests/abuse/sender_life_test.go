package abuse

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes/stamp"
	"oneway.example/exporter/reflector"
)

// TestReplayedReplyOfAnEarlierSessionIsIgnored: the reflector is restarted; then one recorded reply, to the opening
// statistics query of its first session, is replayed. A sender that accepts it discards every later valid reply as one
// of an earlier session.
func TestReplayedReplyOfAnEarlierSessionIsIgnored(t *testing.T) {
	for i := range 8 {
		restarts, host := i/2, []string{"127.0.0.1", "::1"}[i%2]
		t.Run(fmt.Sprintf("%d restarts/%s", restarts, host), func(t *testing.T) {
			t.Parallel()
			s := newSenders(t, metric.Discard{})
			at := netip.AddrPortFrom(netip.MustParseAddr(host), 0)
			begin := func() (stop func()) {
				ro := reflector.Options{Listen: []netip.AddrPort{at}, RatePackets: -1, Keys: []*stampfmt.Key{s.key.Clone()}, RequireKey: true}
				r, err := reflector.New(ro, reflector.Env{Log: s.env.Log, Sink: metric.Discard{}, Clock: s.env.Clock})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(context.Background())
				done := make(chan error, 1)
				go func() { done <- r.Run(ctx) }()
				<-r.Started()
				at = r.Addrs()[0]
				return func() { cancel(); <-done }
			}
			stop := begin()
			local := listen(t, netip.AddrPortFrom(netip.MustParseAddr(host), 0))
			remote, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(at))
			if err != nil {
				t.Fatal(err)
			}
			var mu sync.Mutex
			var sender netip.AddrPort
			var first []byte
			go func() {
				b := make([]byte, 1<<16)
				for number := 0; ; number++ {
					n, from, err := local.ReadFromUDPAddrPort(b)
					if err != nil {
						return
					}
					mu.Lock()
					sender = from
					mu.Unlock()
					for i := range restarts {
						if number == 60*(i+1) {
							stop()
							stop = begin()
						}
					}
					if number == 250 {
						_, _ = local.WriteToUDPAddrPort(first, from)
					}
					_, _ = remote.Write(b[:n])
				}
			}()
			go func() {
				b := make([]byte, 1<<16)
				for {
					n, err := remote.Read(b)
					if errors.Is(err, net.ErrClosed) {
						return
					}
					if err != nil {
						continue
					}
					mu.Lock()
					if first == nil {
						first = append([]byte(nil), b[:n]...)
					}
					to := sender
					mu.Unlock()
					_, _ = local.WriteToUDPAddrPort(b[:n], to)
				}
			}()
			o := stamp.DefaultOptions()
			o.Size, o.Interval, o.LossTimeout, o.KeyFile = 260, 10*time.Millisecond, time.Second, s.keyFile
			p, err := s.kind.NewProber(s.env, probe.Target{Path: "p", Probe: "stamp", Peer: local.LocalAddr().String()}, o)
			if err != nil {
				t.Fatal(err)
			}
			r, err := p.Measure(t.Context(), 500, func(stamp.Report) {})
			if err != nil {
				t.Fatal(err)
			}
			local.Close()
			remote.Close()
			stop()
			t.Logf("rt %d; forward received %d lost %d outstanding %d; reverse received %d late %d", r.RoundTrip.Received, *r.Forward.Received, *r.Forward.Lost, *r.Forward.Outstanding, *r.Reverse.Received, *r.Reverse.Late)
			if *r.Reverse.Late > 0 || *r.Forward.Outstanding > 0 {
				t.Error("the replayed reply makes the sender discard valid ones")
			}
		})
	}
}

// lives is a reflector that the test restarts.
type lives struct {
	t    *testing.T
	s    *senders
	at   netip.AddrPort
	open bool // no key is required
	stop func()
}

func (l *lives) begin() {
	l.t.Helper()
	ro := reflector.Options{Listen: []netip.AddrPort{l.at}, RatePackets: -1}
	if !l.open {
		ro.Keys, ro.RequireKey = []*stampfmt.Key{l.s.key.Clone()}, true
	}
	r, err := reflector.New(ro, reflector.Env{Log: l.s.env.Log, Sink: metric.Discard{}, Clock: l.s.env.Clock})
	if err != nil {
		l.t.Error(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	<-r.Started()
	l.at = r.Addrs()[0]
	l.stop = sync.OnceFunc(func() { cancel(); <-done })
}
