package faults

import (
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/hostport"
	"oneway.example/exporter/core/sample"
	"oneway.example/tests/lab"
	"oneway.example/tests/loadsite"
	"oneway.example/tests/program"
)

// forbid makes a host's firewall drop matching packets of its programs; send(2) fails with EPERM. mend
// removes the rule.
func forbid(t *testing.T, host *lab.Host, match string) (mend func()) {
	t.Helper()
	return nft(t, host, "inet", "output", match)
}

func nft(t *testing.T, host *lab.Host, family, hook, match string) (mend func()) {
	t.Helper()
	return nftRule(t, host, family, hook, match+" drop")
}

// nftRule is nft with any statement.
func nftRule(t *testing.T, host *lab.Host, family, hook, rule string) (mend func()) {
	t.Helper()
	if _, err := exec.LookPath("nft"); err != nil {
		t.Skipf("SKIPPED, NOT PASSED: nft is missing: %v (package nftables)", err)
	}
	run(t, host, "nft", fmt.Sprintf("add table %[1]s refuse; add chain %[1]s refuse out { type filter hook %[2]s priority 0; }; add rule %[1]s refuse out %[3]s", family, hook, rule))
	return func() { run(t, host, "nft", "delete table "+family+" refuse") }
}

// run runs a command on a host, which must succeed.
func run(t *testing.T, host *lab.Host, name string, args ...string) {
	t.Helper()
	if out, err := host.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v: %s", name, args, err, out)
	}
}

// route adds a route of a kind that refuses packets to an address (ip-route(8)).
func route(t *testing.T, host *lab.Host, kind string, to netip.Addr) (mend func()) {
	t.Helper()
	family := "-6"
	if to.Is4() {
		family = "-4"
	}
	one := netip.PrefixFrom(to, to.BitLen()).String()
	run(t, host, "ip", family, "route", "add", kind, one)
	return func() { run(t, host, "ip", family, "route", "del", kind, one) }
}

// wide is a link without loss: its queue holds all that a test sends, as a sender whose host has stalled
// sends its late packets at once.
func wide() lab.Options {
	link := lab.Link{Rate: 100e6, Delay: time.Millisecond, Queue: 10_000_000}
	return lab.Options{Profile: lab.Profile{Name: "wide", Forward: link, Reverse: link}, SpareOthers: true}
}

const stampPort = hostport.Reflector

// refusing is an agent with paths of both families to a reflector over two networks, on which a host
// refuses for a time to send.
type refusing struct {
	*site
	agent, remote *loadsite.Agent
	targets       map[string]netip.Addr
}

func newRefusing(t *testing.T) *refusing {
	t.Helper()
	s := newSite(t, wide())
	server := s.Network.Server
	r := &refusing{site: s, targets: map[string]netip.Addr{
		"wan4": server.Addr4, "wan6": server.Addr6, "lan4": server.LAN4, "lan6": server.LAN6,
	}}
	r.remote = s.AgentOn(t, server, fmt.Sprintf("reflector: {listen: [\":%d\"]}\n", stampPort))
	config := "paths:\n"
	for name, to := range r.targets {
		config += fmt.Sprintf("  - {name: %s, peer: %q, probes: [{type: stamp, interval: 20ms, loss_timeout: 2s}]}\n", name, netip.AddrPortFrom(to, stampPort))
	}
	r.agent = s.AgentOn(t, s.Network.Client, config)
	r.measured(t)
	return r
}

func (r *refusing) of(t *testing.T, metric, path string, labels ...string) float64 {
	t.Helper()
	return loadsite.Sum(r.agent.Metrics(t, metric), append(labels, `path="`+path+`"`)...)
}

func (r *refusing) received(t *testing.T, path string) float64 {
	t.Helper()
	return r.of(t, "oneway_packets_received_total", path, `direction="reverse"`)
}

// measured waits until all paths are up, and more packets of each have arrived than are sent within the
// loss timeout, which is long for a busy machine.
func (r *refusing) measured(t *testing.T) {
	t.Helper()
	before := map[string]float64{}
	for path := range r.targets {
		before[path] = r.received(t, path)
	}
	for path, n := range before {
		program.Eventually(t, path+" is measured", func() bool {
			return r.of(t, "oneway_probe_up", path) == 1 && r.received(t, path) > n+120
		})
	}
}

func (r *refusing) down(t *testing.T, paths []string) {
	t.Helper()
	for _, path := range paths {
		program.Eventually(t, path+" is down", func() bool { return r.of(t, "oneway_probe_up", path) == 0 })
	}
}

// lossless fails if packets are counted as lost: the link has no loss. On the paths whose interface was
// down one reply may have been outstanding.
func (r *refusing) lossless(t *testing.T, downed ...string) {
	t.Helper()
	for _, d := range sample.Directions() {
		if c, _ := r.Network.Counts(d); c.DroppedQueue > 0 {
			t.Fatalf("the link lost packets: %+v", c)
		}
		for path := range r.targets {
			if n := r.of(t, "oneway_packets_lost_total", path, `direction="`+d.String()+`"`); n > 1 || n > 0 && (d == sample.Forward || !slices.Contains(downed, path)) {
				t.Errorf("%s %s: %v packets are counted as lost", path, d, n)
			}
		}
	}
}

// unsendable is the log text of a path whose packets are refused.
const unsendable = "this host cannot send its packets"

// Packets that this host refuses are counted with the reason, on their path only. They are no loss, and
// the path is measured again when the host sends again.
func TestPacketsThatThisHostRefusesAreNoLossOfThePath(t *testing.T) {
	t.Parallel()
	wan := []string{"wan4", "wan6"}
	for name, c := range map[string]struct {
		refuse        func(t *testing.T, r *refusing) (mend func())
		paths         []string
		reason, words string
	}{
		"firewall": {func(t *testing.T, r *refusing) func() {
			return forbid(t, r.Network.Client, fmt.Sprintf("oifname wan0 udp dport %d", stampPort))
		}, wan, "not_permitted", "operation not permitted"},
		"queue": {func(t *testing.T, r *refusing) func() {
			return nft(t, r.Network.Client, "netdev", "egress device wan0", fmt.Sprintf("udp dport %d", stampPort))
		}, wan, "send_buffer_full", "no buffer space available"},
		"prohibit":    {byRoutes("prohibit"), wan, "not_permitted", "permission denied"},
		"unreachable": {byRoutes("unreachable"), wan, "unreachable", "no route to host"},
		"blackhole":   {byRoutes("blackhole"), wan, "send_error", "invalid argument"},
		"interface":   {interfaceDown, []string{"lan4", "lan6"}, "unreachable", "network is unreachable"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRefusing(t)
			mend := c.refuse(t, r)
			r.down(t, c.paths)
			status := string(r.agent.Get(t, "/api/v1/status"))
			if n := strings.Count(status, "this host does not send to it: "); n != len(c.paths) || strings.Count(status, c.words) != n {
				t.Errorf("%d reasons are in the status, want %d of %q:\n%s", n, len(c.paths), c.words, status)
			}
			mend()
			r.measured(t)
			program.Eventually(t, "the end is logged", func() bool {
				return strings.Count(r.agent.Stderr.String(), "is over") >= len(c.paths)
			})
			for path := range r.targets {
				// One scrape, as a busy machine skips more for lateness at any time.
				skipped := r.agent.Metrics(t, "oneway_probe_schedule_skipped_total")
				of := func(labels ...string) float64 { return loadsite.Sum(skipped, append(labels, `path="`+path+`"`)...) }
				reason := of(`reason="` + c.reason + `"`)
				if all := of() - of(`reason="late"`); all != reason || slices.Contains(c.paths, path) != (reason > 100) {
					t.Errorf("%s: %v packets were skipped for the reason %s, %v for all but lateness", path, reason, c.reason, all)
				}
				told := 0
				for line := range strings.Lines(r.agent.Stderr.String()) {
					if strings.Contains(line, "path="+path+" ") && strings.Contains(line, unsendable) {
						told++
					}
				}
				if want := map[bool]int{true: 2}[slices.Contains(c.paths, path)]; told != want {
					t.Errorf("%s: %d lines in the log, want %d", path, told, want)
				}
			}
			if name == "interface" {
				r.lossless(t, c.paths...)
			} else {
				r.lossless(t)
			}
		})
	}
}

func byRoutes(kind string) func(*testing.T, *refusing) func() {
	return func(t *testing.T, r *refusing) func() {
		four, six := route(t, r.Network.Client, kind, r.targets["wan4"]), route(t, r.Network.Client, kind, r.targets["wan6"])
		return func() { four(); six() }
	}
}

func interfaceDown(t *testing.T, r *refusing) func() {
	host := r.Network.Client
	run(t, host, "sh", "-c", "echo 1 >/proc/sys/net/ipv6/conf/lan0/keep_addr_on_down")
	run(t, host, "ip", "link", "set", "lan0", "down")
	return func() { run(t, host, "ip", "link", "set", "lan0", "up") }
}

// Replies that the reflector's host refuses are no loss: they keep their sequence numbers.
func TestRepliesThatTheRemoteHostRefusesAreNoLossOfThePath(t *testing.T) {
	r := newRefusing(t)
	wan := []string{"wan4", "wan6"}
	mend := forbid(t, r.Network.Server, fmt.Sprintf("oifname wan0 udp sport %d", stampPort))
	r.down(t, wan)
	mend()
	r.measured(t)
	r.lossless(t)
	failed := loadsite.Sum(r.remote.Metrics(t, "oneway_reflector_packets_total"), `result="send_failed"`)
	if why := loadsite.Sum(r.remote.Metrics(t, "oneway_send_errors_total"), `reason="not_permitted"`); failed < 100 || why != failed {
		t.Errorf("%v replies were refused, %v by the firewall", failed, why)
	}
	if n := strings.Count(r.remote.Stderr.String(), "This host cannot send replies"); n != 1 || strings.Count(r.remote.Stderr.String(), "level=WARN") != 1 {
		t.Errorf("want one line in the log:\n%s", &r.remote.Stderr)
	}
}

// If a host refuses packets of a stream and of its control connection for two seconds of five, the run continues:
// they are counted as refused, and none as lost. With so few of the planned packets it is incomplete.
func TestStreamThatAHostRefusesIsNoLossOfThePath(t *testing.T) {
	t.Parallel()
	udp := func(t *testing.T, h *lab.Host, _ netip.Addr) func() { return forbid(t, h, "meta l4proto udp") }
	all := func(t *testing.T, h *lab.Host, _ netip.Addr) func() { return forbid(t, h, "meta l4proto {tcp, udp}") }
	prohibit := func(t *testing.T, h *lab.Host, to netip.Addr) func() { return route(t, h, "prohibit", to) }
	for name, c := range map[string]struct {
		direction sample.Direction
		v6        bool
		refuse    func(*testing.T, *lab.Host, netip.Addr) func()
	}{
		"the client's firewall, IPv4":           {sample.Forward, false, udp},
		"the client's firewall, all, IPv6":      {sample.Forward, true, all},
		"the client's routes, IPv6":             {sample.Forward, true, prohibit},
		"the load server's firewall, IPv6":      {sample.Reverse, true, udp},
		"the load server's firewall, all, IPv4": {sample.Reverse, false, all},
		"the load server's routes, IPv4":        {sample.Reverse, false, prohibit},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, wide())
			from, to := s.Network.Client, s.Network.Server
			if c.direction == sample.Reverse {
				from, to = to, from
			}
			at := to.Addr4
			if c.v6 {
				at = to.Addr6
				s.LoadServer.Kill(t)
				s.At = netip.AddrPortFrom(s.Network.Server.Addr6, s.At.Port())
				s.Respond(t)
			}
			client := s.saturation(t, "--direction="+c.direction.String(), "--duration=5s", "--drain-timeout=5s")
			entered := func(more int) func() bool {
				before, _ := s.Network.Counts(c.direction)
				return func() bool { now, _ := s.Network.Counts(c.direction); return int(now.Entered-before.Entered) > more }
			}
			program.Eventually(t, "the stream", entered(500))
			mend := c.refuse(t, from, at)
			<-time.After(2 * time.Second)
			again := entered(200)
			mend()
			program.Eventually(t, "the stream goes on", again)
			r := client.Finish(t, 1)
			if r.Outcome != "incomplete" || len(r.Transfers) != 1 || !strings.Contains(r.Error, "did not send") || !strings.Contains(r.Error, "its kernel refused") {
				t.Fatalf("%s, %s: %s", r.Outcome, r.Reason, r.Error)
			}
			n := r.Transfers[0].Counts
			t.Logf("%+v; %q", n, r.Notes)
			if n.Refused < 100 || n.Lost != 0 || n.Arrived != n.Sent {
				t.Errorf("%+v: want refused packets, and none lost", n)
			}
			if told := strings.Count(s.LoadServer.Stderr.String(), "cannot send packets of the stream"); told != int(c.direction) {
				t.Errorf("%d lines in the load server's log, want %d:\n%s", told, c.direction, &s.LoadServer.Stderr)
			}
			notes := strings.Join(r.Notes, "\n")
			if !strings.Contains(notes, "the sending host's kernel refused to send") || strings.Contains(notes, "cannot keep the rate") {
				t.Errorf("the notes do not have the reason why they were not sent: %q", r.Notes)
			}
		})
	}
}

// A scrape whose response the host refuses fails, and the next one succeeds.
func TestScrapeGetsAResponseAgainAfterAFirewallRefusedIt(t *testing.T) {
	s := newSite(t, wide())
	a := s.Agent(t, "paths: []\n")
	mend := forbid(t, s.Network.Client, "tcp sport "+hostport.Agent)
	a.HTTP.Timeout = time.Second
	if r, err := a.HTTP.Get("http://" + loadsite.AgentAddress + "/metrics"); err == nil {
		r.Body.Close()
		t.Error("the firewall passed a scrape")
	}
	mend()
	a.HTTP.Timeout = program.Timeout
	a.HTTP.CloseIdleConnections()
	if len(a.Metrics(t, "oneway_build_info")) == 0 {
		t.Error("no metrics")
	}
	if strings.Contains(a.Stderr.String(), "level=ERROR") {
		t.Errorf("the log: %s", &a.Stderr)
	}
}
