package stack

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
)

// stack is everything that runs.
type stack struct {
	// monitoring is the network of all servers; gateway is this process in it.
	monitoring, gateway string
	a, b, link          *service
	alertmanager        *service
	influx              *service
	stores              []*store
	alerts              *webhook
	// configA is the configuration of a without load tests.
	configA string
}

// agentConfig: both hosts read this machine's clock, which their own daemons measure by their own pulses.
const agentConfig = `version: 1
clock:
  source: chrony
  gpsd: {address: "127.0.0.1:2947", device: /dev/gnss0}
  pps: {device: /dev/pps0}
state_dir: /var/lib/oneway
reflector: {listen: ["%s:862"]}
%spaths:
  - name: %s
    peer: "%s"
    probes: [{type: stamp, interval: 50ms}]
`

// loadServer is the remote end of load tests.
const loadServer = `load_server: {tokens_file: tokens}
`

const (
	addressA, addressB = "10.77.0.1", "10.77.0.2"
	pathA, pathB       = "a-to-b", "b-to-a"
)

// Links between the agents. A busy machine delays packets, too: a blow-up is longer than that.
const (
	healthy = "name: healthy\nforward: {rate: 20Mbit, delay: 20ms}\nreverse: {rate: 20Mbit, delay: 20ms}\n"
	blownUp = "name: blown-up\nforward: {rate: 20Mbit, delay: 1500ms}\nreverse: {rate: 20Mbit, delay: 20ms}\n"
)

// startStack starts the hosts and all servers.
func startStack(t *testing.T) *stack {
	t.Helper()
	s := &stack{}
	s.monitoring, _, s.gateway = newNetwork(t, "1-servers")
	client, clientNet, _ := newNetwork(t, "2-link-of-a")
	server, serverNet, _ := newNetwork(t, "3-link-of-b")
	s.link = spec{
		name: "link", image: "link", programs: []string{"build/stack/link"}, networks: []string{client, server, s.monitoring}, admin: true, ports: []string{"8080/tcp"},
		env:   map[string]string{"CLIENT_NET": clientNet, "SERVER_NET": serverNet, "PROFILE": "/stack/first.yaml"},
		files: map[string]string{"/stack/first.yaml": healthy},
	}.start(t)
	s.link.serves(t, "8080", "/counts")
	s.startInflux(t)
	tokens, token := newToken(t)
	b := agent("b", server, serverNet, addressB, s.monitoring, fmt.Sprintf(agentConfig, addressB, loadServer, pathB, addressA))
	b.files["/stack/tokens"] = tokens
	maps.Copy(b.files, telegrafFiles)
	b.env["TELEGRAF"] = "yes"
	s.configA = fmt.Sprintf(agentConfig, addressA, influxOutput, pathA, addressB)
	a := agent("a", client, clientNet, addressA, s.monitoring, s.configA)
	a.files["/stack/token"] = token
	s.a, s.b = a.start(t), b.start(t)
	for _, h := range []*service{s.a, s.b} {
		h.serves(t, "9862", "/-/healthy")
	}
	s.alerts = newWebhook(t, s.gateway)
	s.startAlertmanager(t)
	s.startStores(t)
	return s
}

// agent is a host with an agent; subnet is that of its network to the link.
func agent(name, linkNetwork, subnet, address, monitoring, config string) spec {
	return spec{
		name: name, image: "agent", networks: []string{linkNetwork, monitoring}, admin: true, pulse: true,
		programs: []string{
			"build/stack/oneway-telegraf", "build/stack/oneway-clock-telegraf", "build/telegraf-1.39.0/telegraf",
			"build/stack/oneway-pulse", "tests/pulse/host/start.sh", "tests/pulse/host/chrony.conf",
		},
		ports: []string{"9862/tcp", "9863/tcp"},
		env:   map[string]string{"LINK_NET": subnet, "LINK_ADDRESS": address + "/24"},
		files: map[string]string{"/stack/oneway.yml": config},
	}
}

// newToken is a token for load tests: the line of the load server's file, and the client's file.
func newToken(t *testing.T) (tokens, token string) {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command(filepath.Join(root, "build/oneway"), "token", "new", "--name=a", "--file="+dir+"/tokens", "--out="+dir+"/token")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v: %s", cmd.Args, err, out)
	}
	for name, into := range map[string]*string{"tokens": &tokens, "token": &token} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		*into = string(text)
	}
	return tokens, token
}

// reconfigure lets agent a run with another configuration, which it must accept.
func (s *stack) reconfigure(t *testing.T, config string) {
	t.Helper()
	if err := s.a.CopyToContainer(t.Context(), []byte(config), "/stack/oneway.yml", 0o600); err != nil {
		t.Fatal(err)
	}
	s.a.run(t, "/stack/oneway", "check-config", "/stack/oneway.yml")
	s.a.run(t, "pkill", "-HUP", "-x", "oneway")
}

// newNetwork makes a bridge, until the test ends. Docker publishes a container's ports in its network whose name is the
// first in the alphabet.
func newNetwork(t *testing.T, name string) (full, subnet, gateway string) {
	t.Helper()
	//nolint:staticcheck // deprecated for network.New, which chooses the name
	n, err := testcontainers.GenericNetwork(t.Context(), testcontainers.GenericNetworkRequest{
		NetworkRequest: testcontainers.NetworkRequest{Name: "oneway-stack-" + os.Getenv("ONEWAY_STACK_RUN") + "-" + name, Driver: "bridge", Labels: labels()},
	})
	if err != nil {
		t.Fatalf("network %s: %v", name, err)
	}
	t.Cleanup(func() {
		if keep() {
			return
		}
		if err := n.Remove(context.Background()); err != nil {
			t.Errorf("network %s: %v", name, err)
		}
	})
	full = n.(*testcontainers.DockerNetwork).Name
	docker, err := testcontainers.NewDockerClientWithOpts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer docker.Close()
	found, err := docker.NetworkInspect(t.Context(), full, client.NetworkInspectOptions{})
	if err != nil || len(found.Network.IPAM.Config) == 0 {
		t.Fatalf("network %s: %v, want one with a subnet: %v", full, found.Network.IPAM.Config, err)
	}
	c := found.Network.IPAM.Config[0]
	return full, c.Subnet.String(), c.Gateway.String()
}

// setLink changes the link between the agents.
func (s *stack) setLink(t *testing.T, profile string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, s.link.url(t, "8080")+"/profile", strings.NewReader(profile))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if text, _ := io.ReadAll(response.Body); response.StatusCode != http.StatusOK {
		t.Fatalf("link: %s: %s", response.Status, text)
	}
}

// read is a file of the checkout.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
