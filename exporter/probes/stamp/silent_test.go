package stamp

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/net/tstamp"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/reflector"
	"oneway.example/tests/await"
)

// TestTargetThatIsDownHasLossOfOne: it replies, then it is stopped. The direction of its losses is not known, but the
// loss of round trips is, in both profiles.
func TestTargetThatIsDownHasLossOfOne(t *testing.T) {
	t.Parallel()
	for _, profile := range []metric.Profile{metric.Full, metric.Slim} {
		b := newTestbed(t, reflector.Options{})
		at, stopReflector := b.reflect(t, netip.MustParseAddrPort("127.0.0.1:0"))
		sink := &metrictest.Sink{}
		b.env.Sink, b.env.Profile = sink, profile
		o := DefaultOptions()
		o.Interval, o.Window, o.LossTimeout = 10*time.Millisecond, time.Second, 100*time.Millisecond
		made, err := NewType().NewProber(b.env, probe.Target{Path: "p", Probe: "stamp", Peer: at.String()}, o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- made.Run(ctx) }()
		loss := func(want float64) func() bool {
			return func() bool {
				v, ok := sink.Value(metric.RoundTripLossRatio, "p", "stamp")
				return ok && v == want
			}
		}
		await.That(t, "no loss while it replies", loss(0))
		stopReflector()
		await.That(t, "loss of 1 while it is down", loss(1))
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// TestUnreachablePeerHasARemedy: errors that ICMP reports name what to do.
func TestUnreachablePeerHasARemedy(t *testing.T) {
	for err, want := range map[error]string{
		syscall.ECONNREFUSED: "`oneway reflect`", syscall.EHOSTUNREACH: "`ip route get 192.0.2.7`", syscall.ENETUNREACH: "`ip route get 192.0.2.7`",
	} {
		f := newSessionFixture(t, time.Millisecond, nil)
		v := f.snapshot()
		v.peer, v.peerError = netip.MustParseAddrPort("192.0.2.7:862"), err
		if got := v.silence(); !strings.Contains(got, want) || !strings.Contains(got, err.Error()) {
			t.Errorf("%v: %s", err, got)
		}
		v.peerError = fmt.Errorf("this host does not send to it: %w", fmt.Errorf("tstamp: send: %w", err))
		_, detail := v.failure()
		if got := v.silence() + "\n" + detail; strings.Contains(got, "tstamp") || !strings.Contains(got, "send: "+err.Error()) {
			t.Errorf("%v: the text has the name of a package: %s", err, got)
		}
	}
}

// TestSilenceOfLargePacketsMayBeTheMTU: a router that drops them may send no message.
func TestSilenceOfLargePacketsMayBeTheMTU(t *testing.T) {
	for payload, want := range map[int]bool{172: false, 1172: false, 1472: true} {
		f := newSessionFixture(t, time.Millisecond, nil)
		v := f.snapshot()
		o := *v.opts
		o.Size = payload
		v.opts, v.peer = &o, netip.MustParseAddrPort("192.0.2.7:862")
		if got := v.silence(); strings.Contains(got, "an MTU of the path below the 1500 bytes of its packets (lower payload_bytes to see)") != want {
			t.Errorf("%d: %s", payload, got)
		}
	}
}

// TestICMPMessageNamesItsCause: an errno stands for several messages with different remedies.
func TestICMPMessageNamesItsCause(t *testing.T) {
	host, router := netip.MustParseAddr("192.0.2.7"), netip.MustParseAddr("198.51.100.1")
	host6 := netip.MustParseAddr("2001:db8::7")
	for name, c := range map[string]struct {
		e    tstamp.ICMPError
		want []string
	}{
		"net prohibited":    {tstamp.ICMPError{Offender: host, Type: 3, Code: 9, Err: syscall.ENETUNREACH}, []string{"a firewall at 192.0.2.7 rejects UDP port 862 (ICMP administratively prohibited)"}},
		"host prohibited":   {tstamp.ICMPError{Offender: router, Type: 3, Code: 10, Err: syscall.EHOSTUNREACH}, []string{"a firewall at 198.51.100.1 rejects UDP port 862 (ICMP administratively prohibited)"}},
		"admin prohibited":  {tstamp.ICMPError{Offender: host, Type: 3, Code: 13, Err: syscall.EHOSTUNREACH}, []string{"a firewall at 192.0.2.7 rejects UDP port 862"}},
		"prohibited, IPv6":  {tstamp.ICMPError{Peer: netip.AddrPortFrom(host6, 862), Offender: host6, Type: 1, Code: 1, Err: syscall.EACCES}, []string{"a firewall at 2001:db8::7 rejects UDP port 862"}},
		"policy, IPv6":      {tstamp.ICMPError{Peer: netip.AddrPortFrom(host6, 862), Offender: host6, Type: 1, Code: 5, Err: syscall.EACCES}, []string{"a firewall at 2001:db8::7 rejects"}},
		"port, of the peer": {tstamp.ICMPError{Offender: host, Type: 3, Code: 3, Err: syscall.ECONNREFUSED}, []string{"connection refused: no reflector listens there, or the host's firewall rejects UDP port 862", "`oneway reflect`"}},
		"port, of a router": {tstamp.ICMPError{Offender: router, Type: 3, Code: 3, Err: syscall.ECONNREFUSED}, []string{"a firewall at 198.51.100.1 rejects UDP port 862"}},
		"host unreachable":  {tstamp.ICMPError{Offender: router, Type: 3, Code: 1, Err: syscall.EHOSTUNREACH}, []string{"no route to host (ICMP host unreachable from 198.51.100.1): is the host up?"}},
		"host, of this":     {tstamp.ICMPError{Offender: netip.MustParseAddr("127.0.0.1"), Type: 3, Code: 1, Err: syscall.EHOSTUNREACH}, []string{"ICMP host unreachable from 127.0.0.1), this host: it sought the address on its own link", "`ip route get 192.0.2.7` shows no via", "prefix length"}},
		"host, of itself":   {tstamp.ICMPError{Offender: host, Type: 3, Code: 1, Err: syscall.EHOSTUNREACH}, []string{"ICMP host unreachable from 192.0.2.7", "its firewall rejects UDP port 862"}},
		"MTU":               {tstamp.ICMPError{Offender: router, Type: 3, Code: 4, Err: syscall.EMSGSIZE, MTU: 1400}, []string{"ICMP fragmentation needed from 198.51.100.1", "MTU is 1400 bytes", "payload_bytes"}},
		"MTU unknown":       {tstamp.ICMPError{Offender: router, Type: 3, Code: 4, Err: syscall.EMSGSIZE}, []string{"MTU is smaller than the packets"}},
		"TTL":               {tstamp.ICMPError{Offender: router, Type: 11, Code: 0, Err: syscall.EHOSTUNREACH}, []string{"ICMP time to live exceeded from 198.51.100.1", "raise ttl"}},
		"hop limit":         {tstamp.ICMPError{Peer: netip.AddrPortFrom(host6, 862), Offender: host6, Type: 3, Code: 0, Err: syscall.EHOSTUNREACH}, []string{"ICMP hop limit exceeded", "raise ttl"}},
		"unknown code":      {tstamp.ICMPError{Type: 12, Code: 1, Err: syscall.EPROTO}, []string{"protocol error (ICMP type 12, code 1)"}},
	} {
		f := newSessionFixture(t, time.Millisecond, nil)
		v := f.snapshot()
		if !c.e.Peer.IsValid() {
			c.e.Peer = netip.AddrPortFrom(host, 862)
		}
		v.peer, v.peerError = c.e.Peer, c.e
		for _, want := range c.want {
			if got := v.silence(); !strings.Contains(got, want) {
				t.Errorf("%s: %s; want %q", name, got, want)
			}
		}
	}
}
