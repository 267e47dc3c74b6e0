package stack

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	tcexec "github.com/testcontainers/testcontainers-go/exec"

	"oneway.example/tests/await"
)

// label marks the containers and networks of a run, so that run.sh removes what a killed test leaves.
const label = "oneway.stack"

func labels() map[string]string { return map[string]string{label: os.Getenv("ONEWAY_STACK_RUN")} }

// spec is a container to start.
type spec struct {
	name string
	// image is a directory of images, none: the base; programs are the files of the checkout that its Dockerfile copies.
	image    string
	programs []string
	networks []string
	command  []string
	env      map[string]string
	files    map[string]string
	ports    []string
	// admin is for a host that changes its interfaces, pulse for one with the emulated pulse (tests/pulse).
	admin, pulse bool
}

// service is a started container.
type service struct {
	testcontainers.Container
	name string
}

// start runs a container until the test ends.
func (s spec) start(t *testing.T) *service {
	t.Helper()
	init := true
	request := testcontainers.ContainerRequest{
		Image:          "oneway-stack/base",
		Cmd:            s.command,
		Env:            s.env,
		Labels:         labels(),
		Networks:       s.networks,
		NetworkAliases: map[string][]string{},
		ExposedPorts:   s.ports,
		ConfigModifier: func(c *container.Config) { c.Hostname = s.name },
		HostConfigModifier: func(c *container.HostConfig) {
			c.Init = &init // PID 1 passes signals on: a stop takes no 10 s
			c.PortBindings = network.PortMap{}
			for _, port := range s.ports {
				// One address: Docker 20.10 gives those of both families different ports, and testcontainers takes either.
				c.PortBindings[network.MustParsePort(port)] = []network.PortBinding{{HostIP: netip.MustParseAddr("127.0.0.1")}}
			}
			if s.admin {
				c.CapAdd = []string{"NET_ADMIN", "NET_RAW", "SYS_NICE"}
			}
			if s.pulse {
				// Not privileged, which asks for all capabilities: dockerd itself may not have them.
				c.CapAdd = append(c.CapAdd, "SYS_ADMIN", "SYS_PTRACE", "SYS_TIME", "MKNOD")
				c.SecurityOpt = []string{"seccomp=unconfined"}
			}
		},
	}
	for _, n := range s.networks {
		request.NetworkAliases[n] = []string{s.name}
	}
	if s.image != "" {
		request.Image, request.FromDockerfile = "", s.build(t)
	}
	for path, text := range s.files {
		request.Files = append(request.Files, testcontainers.ContainerFile{Reader: strings.NewReader(text), ContainerFilePath: path, FileMode: 0o600})
	}
	c, err := testcontainers.GenericContainer(t.Context(), testcontainers.GenericContainerRequest{ContainerRequest: request, Started: true})
	started := &service{c, s.name}
	if c != nil {
		t.Cleanup(func() { started.end(t) })
	}
	if err != nil {
		t.Fatalf("container %s: %v", s.name, err)
	}
	return started
}

// build makes the context of an image, of its directory and its programs.
func (s spec) build(t *testing.T) testcontainers.FromDockerfile {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("images", s.image))); err != nil {
		t.Fatal(err)
	}
	for _, name := range s.programs {
		program, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatalf("%v: run \"make stack-test\", which builds it", err)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(name)), program, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return testcontainers.FromDockerfile{Context: dir, Repo: "oneway-stack/" + s.image, Tag: "latest", KeepImage: true}
}

// end writes the log to build/stack/logs and removes the container.
func (s *service) end(t *testing.T) {
	ctx := context.Background() // the test's has ended
	dir := filepath.Join(root, "build/stack/logs")
	if r, err := s.Logs(ctx); err == nil {
		text, _ := io.ReadAll(r)
		_ = os.MkdirAll(dir, 0o755)
		if err := os.WriteFile(filepath.Join(dir, s.name+".log"), text, 0o644); err != nil {
			t.Error(err)
		}
	}
	if keep() {
		return
	}
	if err := s.Terminate(ctx, testcontainers.StopTimeout(time.Second)); err != nil {
		t.Errorf("container %s: %v", s.name, err)
	}
}

// url is the address of a port, for this process.
func (s *service) url(t *testing.T, port string) string {
	t.Helper()
	address, err := s.PortEndpoint(t.Context(), port+"/tcp", "http")
	if err != nil {
		t.Fatalf("container %s: port %s: %v", s.name, port, err)
	}
	return address
}

// serves waits until a GET succeeds.
func (s *service) serves(t *testing.T, port, path string) {
	t.Helper()
	await.That(t, s.name+" serves", func() bool {
		address, err := s.PortEndpoint(t.Context(), port+"/tcp", "http")
		if err != nil {
			return false
		}
		response, err := http.Get(address + path)
		if err != nil {
			return false
		}
		response.Body.Close()
		return response.StatusCode < 300
	}, s.tail(t))
}

// run executes a command in the container and returns its output.
func (s *service) run(t *testing.T, command ...string) string {
	t.Helper()
	status, output, err := s.Exec(t.Context(), command, tcexec.Multiplexed())
	if err != nil {
		t.Fatalf("container %s: %v: %v", s.name, command, err)
	}
	text, err := io.ReadAll(output)
	if err != nil || status != 0 {
		t.Fatalf("container %s: %v: status %d, %v: %s", s.name, command, status, err, text)
	}
	return string(text)
}

// kill ends the container's processes with SIGKILL.
func (s *service) kill(t *testing.T) {
	t.Helper()
	docker, err := testcontainers.NewDockerClientWithOpts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer docker.Close()
	if _, err := docker.ContainerKill(t.Context(), s.GetContainerID(), client.ContainerKillOptions{Signal: "KILL"}); err != nil {
		t.Fatalf("container %s: %v", s.name, err)
	}
}

// startAgain starts a killed container, with its files.
func (s *service) startAgain(t *testing.T) {
	t.Helper()
	if err := s.Start(t.Context()); err != nil {
		t.Fatalf("container %s: %v", s.name, err)
	}
}

// tail is a fmt.Stringer of the end of its log, read when it is printed.
func (s *service) tail(t *testing.T) tail { return tail{s, t} }

type tail struct {
	s *service
	t *testing.T
}

func (l tail) String() string {
	r, err := l.s.Logs(l.t.Context())
	if err != nil {
		return err.Error()
	}
	text, _ := io.ReadAll(r)
	return string(text[max(0, len(text)-4000):])
}

// getJSON reads a reply.
func getJSON(t *testing.T, address string, into any) {
	t.Helper()
	response, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode == http.StatusOK {
		err = json.Unmarshal(text, into)
	}
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v: %.300s", address, response.Status, err, text)
	}
}

// merged are the files of all maps.
func merged(all ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range all {
		maps.Copy(out, m)
	}
	return out
}
