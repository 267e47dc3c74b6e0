package loadtest

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"

	"oneway.example/exporter/core/option"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/tests/capture"
	"oneway.example/tests/lab"
	"oneway.example/tests/loadsite"
	"oneway.example/tests/program"
)

// Two agents with all functions that send, one with paths and load tests and one with reflector and load
// server: their hosts send only to the addresses in SECURITY.md, and look up only configured
// names.
func TestNothingElseIsSent(t *testing.T) {
	s := newSite(t, loadsite.OverSlow())
	client, server := s.Network.Client, s.Network.Server
	for _, way := range [][]string{{"-4", server.Addr4.String()}, {"-6", server.Addr6.String()}} {
		if out, err := client.Command("ip", way[0], "route", "add", "default", "via", way[1]).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	fromClient, fromServer := watch(t, client), watch(t, server)
	reflect := netip.AddrPortFrom(server.Addr4, stampfmt.Port)
	s.AgentOn(t, server, fmt.Sprintf("reflector: {listen: [%q]}\n", reflect))
	a := s.Agent(t, "links: [{name: uplink}]\npaths:\n"+
		fmt.Sprintf("  - {name: near, peer: %q, probes: [{type: stamp, interval: 20ms}]}\n", server.Addr4)+
		"  - {name: away, peer: peer.invalid, probes: [{type: stamp, interval: 20ms}]}\n"+
		s.Path("far", "rate: {forward: 5Mbit, reverse: 10Mbit}", "duration: 1s"))
	program.Eventually(t, "a load test has run, and packets came back", func() bool {
		return loadsite.Sum(a.Metrics(t, "oneway_probe_runs_total"), `path="far"`) > 0 && loadsite.Sum(a.Metrics(t, "oneway_packets_received_total"), `path="near"`) > 100
	})
	program.Eventually(t, "a name is looked up", func() bool { return len(fromClient.sent(t).names) > 0 })

	told := fromClient.sent(t)
	told.mayBe(t, func(p capture.Sent) bool {
		return p.To == s.At || (p.To == reflect || beside(p.To, server.Addr4)) && p.Protocol == unix.IPPROTO_UDP
	})
	for name := range told.names {
		if !strings.HasPrefix(name, "peer.invalid.") { // with the search domains of the host's resolv.conf
			t.Errorf("the client looks up %q, which is not configured", name)
		}
	}
	answered := fromServer.sent(t)
	answered.mayBe(t, func(p capture.Sent) bool {
		return p.To.Addr() == client.Addr4 && (p.From == s.At || (p.From == reflect || beside(p.From, server.Addr4)) && p.Protocol == unix.IPPROTO_UDP)
	})
	if len(answered.names) > 0 {
		t.Errorf("the server looks up %v, but no name is configured", answered.names)
	}
	for _, to := range []netip.AddrPort{reflect, s.At} {
		if told.to[to] == 0 || answered.from[to] == 0 {
			t.Errorf("%d packets to %v were seen, and %d from there", told.to[to], to, answered.from[to])
		}
	}
}

// beside reports whether an address is that of a session's reflector, for the packets during a load test.
func beside(a netip.AddrPort, server netip.Addr) bool {
	ports := option.LoadServerPorts()
	return a.Addr() == server && a.Port() >= ports.First && a.Port() <= ports.Last
}

// sent has the numbers of packets of a host by address, without DNS requests, and the requested
// names.
type sent struct {
	host     string
	others   map[capture.Sent]int
	to, from map[netip.AddrPort]int
	names    map[string]int
}

// watcher captures the packets that a host sends.
type watcher struct {
	*capture.Watch
	seen sent
}

// watch starts the capture.
func watch(t *testing.T, host *lab.Host) *watcher {
	t.Helper()
	w := &watcher{seen: sent{host.Name, map[capture.Sent]int{}, map[netip.AddrPort]int{}, map[netip.AddrPort]int{}, map[string]int{}}}
	err := host.Do(func() (err error) {
		w.Watch, err = capture.NewWatch()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

// sent returns the packets so far; it fails if the capture missed some.
func (w *watcher) sent(t *testing.T) sent {
	t.Helper()
	if err := w.Each(func(p capture.Sent, payload []byte) { w.seen.add(t, p, payload) }); err != nil {
		t.Fatal(err)
	}
	return w.seen
}

// add counts a packet, except those of the kernel (ICMP, IGMP).
func (s *sent) add(t *testing.T, p capture.Sent, payload []byte) {
	t.Helper()
	const dns = 53
	switch {
	case p.Protocol == unix.IPPROTO_ICMP, p.Protocol == unix.IPPROTO_ICMPV6, p.Protocol == unix.IPPROTO_IGMP, p.Protocol == unix.IPPROTO_HOPOPTS:
	case p.To.String() == loadsite.AgentAddress, p.From.String() == loadsite.AgentAddress: // requests of the test
	case p.Protocol == unix.IPPROTO_UDP && p.To.Port() == dns:
		var q dnsmessage.Parser
		if _, err := q.Start(payload); err != nil {
			t.Fatal(err)
		}
		request, err := q.Question()
		if err != nil {
			t.Fatal(err)
		}
		s.names[request.Name.String()]++
	default:
		s.others[p]++
		s.to[p.To]++
		s.from[p.From]++
	}
}

// mayBe fails for packets that are not allowed.
func (s *sent) mayBe(t *testing.T, allowed func(capture.Sent) bool) {
	t.Helper()
	for p, n := range s.others {
		if !allowed(p) {
			t.Errorf("the %s sends, %d times: %v", s.host, n, p)
		}
	}
}
