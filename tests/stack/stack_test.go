package stack

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/network"
)

// stack is everything that runs.
type stack struct {
	// monitoring is the network of all servers; gateway is this process in it.
	monitoring, gateway string
	a, b, link          *service
	alertmanager        *service
	stores              []*store
	alerts              *webhook
}

// agentConfig: both hosts read this machine's clock.
const agentConfig = `version: 1
clock: {source: static, bound: 20us}
state_dir: /var/lib/oneway
reflector: {listen: ["%s:862"]}
paths:
  - name: %s
    peer: "%s"
    probes: [{type: stamp, interval: 50ms}]
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

// raise starts the hosts and all servers.
func raise(t *testing.T) *stack {
	t.Helper()
	s := &stack{}
	s.monitoring, _, s.gateway = newNetwork(t)
	client, clientNet, _ := newNetwork(t)
	server, serverNet, _ := newNetwork(t)
	s.link = spec{
		name: "link", image: "link", program: "stack/link", networks: []string{client, server, s.monitoring}, admin: true, ports: []string{"8080/tcp"},
		env:   map[string]string{"CLIENT_NET": clientNet, "SERVER_NET": serverNet, "PROFILE": "/stack/first.yaml"},
		files: map[string]string{"/stack/first.yaml": healthy},
	}.start(t)
	s.link.serves(t, "8080", "/counts")
	s.b = agent("b", server, serverNet, addressB, s.monitoring, fmt.Sprintf(agentConfig, addressB, pathB, addressA)).start(t)
	s.a = agent("a", client, clientNet, addressA, s.monitoring, fmt.Sprintf(agentConfig, addressA, pathA, addressB)).start(t)
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
		name: name, image: "agent", program: "oneway", networks: []string{linkNetwork, monitoring}, admin: true, ports: []string{"9862/tcp"},
		env:   map[string]string{"LINK_NET": subnet, "LINK_ADDRESS": address + "/24"},
		files: map[string]string{"/stack/oneway.yml": config},
	}
}

// newNetwork makes a bridge, until the test ends.
func newNetwork(t *testing.T) (name, subnet, gateway string) {
	t.Helper()
	n, err := network.New(t.Context(), network.WithLabels(labels()))
	if err != nil {
		t.Fatalf("network: %v", err)
	}
	t.Cleanup(func() {
		if keep() {
			return
		}
		if err := n.Remove(context.Background()); err != nil {
			t.Errorf("network: %v", err)
		}
	})
	docker, err := testcontainers.NewDockerClientWithOpts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer docker.Close()
	found, err := docker.NetworkInspect(t.Context(), n.ID, client.NetworkInspectOptions{})
	if err != nil || len(found.Network.IPAM.Config) == 0 {
		t.Fatalf("network %s: %v, want one with a subnet: %v", n.Name, found.Network.IPAM.Config, err)
	}
	c := found.Network.IPAM.Config[0]
	return n.Name, c.Subnet.String(), c.Gateway.String()
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
