package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"oneway.example/tests/lab"
)

// stack is everything that the demo has started.
type stack struct {
	network    *lab.Lab
	dir        string
	processes  []*process
	stops      []func()
	prometheus string // base URL
	agents     map[string]string
	grafana    string
	ended      chan error
	// configs are the agents' configurations while the path is measured without load.
	configs map[string]string
	pace    time.Duration
}

// process is one child; its output is in a file of the demo's directory.
type process struct {
	name string
	cmd  *exec.Cmd
	log  string
	done chan struct{}
}

const (
	agentPort     = 9862
	reflectorPort = 862
	// scrapeEvery is short so that the table is ready in two minutes.
	scrapeEvery = time.Second
)

// raise starts the agents, Prometheus and, if GRAFANA_HOME names one, Grafana.
func raise(ctx context.Context, network *lab.Lab, profile lab.Profile, o options) (*stack, error) {
	s := &stack{network: network, pace: pace(profile), agents: map[string]string{}, configs: map[string]string{}, ended: make(chan error, 8)}
	dir, err := filepath.Abs(filepath.Dir(o.report))
	if err != nil {
		return s, err
	}
	s.dir = dir
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return s, err
	}
	binary, err := filepath.Abs(o.binary)
	if err != nil {
		return s, err
	}
	for _, end := range []struct {
		host *lab.Host
		peer *lab.Host
		path string
	}{{network.Client, network.Server, "client-to-server"}, {network.Server, network.Client, "server-to-client"}} {
		responder := ""
		if end.host == network.Server {
			if responder, err = s.prepareHeavy(binary, end.host); err != nil {
				return s, err
			}
		}
		if err := s.agent(binary, end.host, end.peer, end.path, responder); err != nil {
			return s, err
		}
	}
	if err := s.startPrometheus(ctx); err != nil {
		return s, err
	}
	return s, s.startGrafana(ctx)
}

// agentConfig: both hosts share this machine's clock, so its offset to itself
// is nothing and the configured bound only covers the reading of it.
const agentConfig = `clock:
  source: static
  bound: 20us
reflector:
  listen: ["%s"]
paths:
  - name: %s
    peer: "%s"
    probes:
`

const stampProbe = `      - type: stamp
        interval: %v
        loss_timeout: 2s
        window: 5s
`

// pace is the interval of the light probes: that of a voice call, or longer where these
// themselves would load the link. Each direction carries the questions of one agent and the
// answers to the other.
func pace(p lab.Profile) time.Duration {
	const voice, bits, most = 20 * time.Millisecond, 2 * (172 + 28) * 8, 0.15
	interval := voice
	for _, l := range []lab.Link{p.Forward, p.Reverse} {
		if l.Rate > 0 {
			interval = max(interval, time.Duration(bits/(most*float64(l.Rate))*1e9))
		}
	}
	return interval.Round(time.Millisecond)
}

func (s *stack) configFile(name string) string { return filepath.Join(s.dir, name+".yml") }

func (s *stack) agent(binary string, host, peer *lab.Host, path, responder string) error {
	step("starting the agent on %s (%s): UDP %d answers, path %q measures", host.Name, host.Addr4, reflectorPort, path)
	config := s.configFile(host.Name)
	text := responder + fmt.Sprintf(agentConfig, netip.AddrPortFrom(host.Addr4, reflectorPort), path, netip.AddrPortFrom(peer.Addr4, reflectorPort))
	text += fmt.Sprintf(stampProbe, s.pace)
	s.configs[host.Name] = text
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		return err
	}
	inside := fmt.Sprintf("127.0.0.1:%d", agentPort)
	cmd := host.Command(binary, "agent", "--config.file="+config, "--web.listen-address="+inside)
	if err := s.start(host.Name+" agent", cmd); err != nil {
		return err
	}
	at, stop, err := host.Publish("127.0.0.1:0", inside)
	if err != nil {
		return err
	}
	s.stops = append(s.stops, stop)
	s.agents[host.Name] = "http://" + at.String()
	return nil
}

// start runs a child that must not end before the demo does.
func (s *stack) start(name string, cmd *exec.Cmd) error {
	p := &process{name: name, cmd: cmd, log: filepath.Join(s.dir, filepath.Base(cmd.Path)+"-"+name+".log"), done: make(chan struct{})}
	out, err := os.Create(p.log)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	// A child must not outlive the demo, even one that was killed.
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	// Ctrl-C is for the demo, which then ends its children in order.
	cmd.SysProcAttr.Setpgid = true
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	s.processes = append(s.processes, p)
	go func() {
		err := cmd.Wait()
		if err == nil {
			err = errors.New("exit status 0")
		}
		close(p.done)
		select {
		case s.ended <- fmt.Errorf("%s ended: %w; its last words are in %s", name, err, p.log):
		default:
		}
	}()
	return nil
}

// stop ends everything, last started first.
func (s *stack) stop() error {
	var errs []error
	for _, p := range slices.Backward(s.processes) {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-p.done:
		case <-time.After(10 * time.Second):
			errs = append(errs, fmt.Errorf("%s did not end in 10 s and was killed", p.name))
			_ = p.cmd.Process.Kill()
			<-p.done
		}
	}
	for _, f := range s.stops {
		f()
	}
	return errors.Join(errs...)
}

// wait shows progress until the measuring time is over.
func (s *stack) wait(ctx context.Context, d time.Duration) error {
	step("measuring for %v", d)
	end := time.Now().Add(d)
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	terminal := isTerminal(os.Stdout)
	for left := d; left > 0; left = time.Until(end) {
		if terminal {
			fmt.Printf("\r   %3.0f s left ", left.Seconds())
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-s.ended:
			return err
		case <-ticker.C:
		}
	}
	if terminal {
		fmt.Print("\r                 \r")
	}
	return nil
}
