// Package mesh runs agents of a mesh in namespaces of their own, with the same two files.
package mesh

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"oneway.example/exporter/core/hostport"
	"oneway.example/tests/await"
	"oneway.example/tests/namespace"
	"oneway.example/tests/oneway"
	"oneway.example/tests/process"
)

const web = "127.0.0.1:" + hostport.Agent

// station is an agent in a namespace.
type station struct {
	*process.Process
	http *http.Client
}

// switched makes namespaces whose interfaces eth0, with the addresses 10.77.0.1 and so on, are ports of one switch.
func switched(t *testing.T, n int) (all []netns.NsHandle) {
	t.Helper()
	hub := namespace.New(t)
	bridge := &netlink.Bridge{LinkAttrs: netlink.NewLinkAttrs()}
	bridge.Name = "br0"
	namespace.Do(t, hub, func() { namespace.Check(t, netlink.LinkAdd(bridge)) })
	namespace.Up(t, hub, "br0")
	for i := range n {
		host, port := namespace.New(t), fmt.Sprintf("port%d", i)
		namespace.Veth(t, hub, port, host, "eth0", 0)
		namespace.Up(t, hub, port)
		namespace.Up(t, host, "eth0", fmt.Sprintf("10.77.0.%d/24", i+1))
		namespace.Do(t, hub, func() {
			l, err := netlink.LinkByName(port)
			namespace.Check(t, err)
			namespace.Check(t, netlink.LinkSetMaster(l, bridge))
		})
		all = append(all, host)
	}
	return all
}

// started starts an agent in a namespace.
func started(t *testing.T, ns netns.NsHandle, binary, config string) *station {
	t.Helper()
	net := fmt.Sprintf("--net=/proc/%d/fd/%d", os.Getpid(), int(ns))
	s := &station{
		Process: process.Run(t, exec.Command("nsenter", net, binary, "agent", "--config.file="+config, "--web.listen-address="+web, "--test.socket=")),
		http:    &http.Client{Transport: &http.Transport{DialContext: dialer(t, ns)}},
	}
	t.Cleanup(s.http.CloseIdleConnections)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("an agent: %s", &s.Stderr)
		}
	})
	return s
}

// dialer connects from a namespace.
func dialer(t *testing.T, ns netns.NsHandle) func(context.Context, string, string) (net.Conn, error) {
	return func(_ context.Context, network, address string) (conn net.Conn, err error) {
		// The connection to an address, not to a name, is made by the thread that calls.
		namespace.Do(t, ns, func() {
			conn, err = net.DialTCP(network, nil, net.TCPAddrFromAddrPort(netip.MustParseAddrPort(address)))
		})
		return conn, err
	}
}

// metrics is what it exposes; empty: it does not serve yet.
func (s *station) metrics() string {
	r, err := s.http.Get("http://" + web + "/metrics")
	if err != nil {
		return ""
	}
	defer r.Body.Close()
	text, _ := io.ReadAll(r.Body)
	return string(text)
}

var upPath = regexp.MustCompile(`(?m)^oneway_probe_up\{path="([a-z-]+)",.*\} 1$`)

// up are the paths with replies, in the order of their names.
func (s *station) up() string {
	var paths []string
	for _, m := range upPath.FindAllStringSubmatch(s.metrics(), -1) {
		paths = append(paths, m[1])
	}
	return strings.Join(paths, " ")
}

func TestAgentsWithTheSameFilesMeasureEachOther(t *testing.T) {
	dir := t.TempDir()
	config, hosts := filepath.Join(dir, "oneway.yml"), filepath.Join(dir, "hosts.yml")
	binary, err := oneway.Build(dir)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(config, "clock: {source: static, bound: 1ms}\nreflector: {}\ndefaults: {stamp: {interval: 50ms}}\nmesh: {hosts_file: hosts.yml, probes: [{type: stamp}]}\n")
	const two = "- {name: a, address: 10.77.0.1, labels: {site: north}}\n- {name: b, address: 10.77.0.2, labels: {site: south}}\n"
	write(hosts, two+"- {name: c, address: 10.77.0.3}\n")
	var agents []*station
	for _, ns := range switched(t, 3) {
		agents = append(agents, started(t, ns, binary, config))
	}
	for i, want := range []string{"a-to-b a-to-c", "b-to-a b-to-c", "c-to-a c-to-b"} {
		await.That(t, "the paths "+want+" are up", func() bool { return agents[i].up() == want })
	}
	if want, got := `oneway_path_labels_info{path="a-to-b",site="south",site_pair="north - south"} 1`, agents[0].metrics(); !strings.Contains(got, want) {
		t.Errorf("no %s", want)
	}
	// Without c in the file, the others leave it.
	write(hosts, two)
	r, err := agents[0].http.Post("http://"+web+"/-/reload", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if text, _ := io.ReadAll(r.Body); r.StatusCode != http.StatusOK || agents[0].up() != "a-to-b" {
		t.Errorf("after a reload (%s) the paths are %s", text, agents[0].up())
	}
}
