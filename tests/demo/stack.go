package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"oneway.example/exporter/core/hostport"
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
	// configs are the agents' configurations during the measurement without load.
	configs map[string]string
	pace    time.Duration
	measure time.Duration
	// began is when the client's agent was started.
	began time.Time
	// shown is dir as given by the user.
	shown string
	// trainTable is the table of the last run of probe train.
	trainTable bytes.Buffer
	// swept are the cells of the last run of probe tcp_sweep; logTCP makes the link log segments of TCP.
	swept  []sweptCell
	logTCP *atomic.Bool
	// failures are errors of queries.
	failures []error
}

// process is one child; its output is in a file of the demo's directory.
type process struct {
	name string
	cmd  *exec.Cmd
	log  string
	done chan struct{}
}

const (
	agentPort     = hostport.Agent
	reflectorPort = hostport.Reflector
	// scrapeEvery is short so that the table is ready in two minutes.
	scrapeEvery = time.Second
)

// raise starts the agents, Prometheus and, if GRAFANA_HOME names one, Grafana.
func raise(ctx context.Context, network *lab.Lab, profile lab.Profile, o options) (*stack, error) {
	s := &stack{network: network, pace: pace(profile, o.measure), measure: o.measure, shown: filepath.Dir(o.report), agents: map[string]string{}, configs: map[string]string{}, ended: make(chan error, 8)}
	dir, err := filepath.Abs(filepath.Dir(o.report))
	if err != nil {
		return s, err
	}
	s.dir = dir
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return s, err
	}
	// Reports of an earlier demo are removed.
	if err := os.RemoveAll(filepath.Join(dir, runsDir)); err != nil {
		return s, err
	}
	binary, err := filepath.Abs(o.binary)
	if err != nil {
		return s, err
	}
	loadServer, err := s.prepareLoadTest(binary, network.Server)
	if err != nil {
		return s, err
	}
	// The server first: requests that the client sends before the reflector listens would be lost there, not on the
	// link.
	if err := s.agent(binary, network.Server, network.Client, "server-to-client", profile.Name, loadServer); err != nil {
		return s, err
	}
	if err := s.untilReplies(ctx, "server"); err != nil {
		return s, err
	}
	s.began = time.Now()
	if err := s.agent(binary, network.Client, network.Server, "client-to-server", profile.Name, fmt.Sprintf(clientConfig, filepath.Join(dir, runsDir), filepath.Join(dir, "client-state"))); err != nil {
		return s, err
	}
	if err := s.startPrometheus(ctx); err != nil {
		return s, err
	}
	return s, s.startGrafana(ctx)
}

// agentConfig: both hosts share this machine's clock, so its offset is zero and the configured bound only covers
// reading it. The label is the link's profile: the dashboard Paper shows it beside the values of the papers.
const agentConfig = `clock:
  source: static
  bound: 20us
reflector:
  listen: ["%s"]
paths:
  - name: %s
    peer: "%s"
    labels: {profile: %q}
    probes:
`

// clientConfig keeps the reports of runs after the agent has ended. The link's quota is only shown: no run reaches it.
const clientConfig = `reports: {dir: %q}
state_dir: %q
links: [{name: client-to-server, quota_bytes: 1TB}]
`

const runsDir = "runs"

const stampProbe = `      - type: stamp
        interval: %v
        loss_timeout: %v
        window: %v
        voice_impairments: true
`

// lookWindow is the light probe's window after the table. During the measurement for the table, a window takes all of
// that time: it is the session's first, which starts with packet 0, so that only a few logged packets at its end may be
// in it or not.
const lookWindow = 5 * time.Second

// windowPackets is how many packets the probe stores per window (delay.PDVLimit), less those of a late tick: for longer
// windows it computes variation in parts.
const windowPackets = 2000

// untilReplies waits until an agent's reflector listens.
func (s *stack) untilReplies(ctx context.Context, name string) error {
	return s.until(ctx, "the reflector on "+name, func() error {
		status, err := s.status(ctx, name)
		if err == nil && !status.Reflector.Listening {
			err = fmt.Errorf("it does not listen: %s", status.Reflector.Error)
		}
		return err
	})
}

// pace is the interval of the light probes: that of a voice call, or longer where they would load the link. Each
// direction carries the requests of one agent and the replies to the other. It is also longer if the window would have
// too many packets.
func pace(p lab.Profile, window time.Duration) time.Duration {
	const voice, bits, most = 20 * time.Millisecond, 2 * (172 + 28) * 8, 0.15
	interval := max(voice, window/windowPackets)
	for _, l := range []lab.Link{p.Forward, p.Reverse} {
		if mean := l.MeanRate(); mean > 0 {
			interval = max(interval, time.Duration(bits/(most*float64(mean))*1e9))
		}
	}
	return interval.Round(time.Millisecond)
}

func (s *stack) configFile(name string) string { return filepath.Join(s.dir, name+".yml") }

func (s *stack) agent(binary string, host, peer *lab.Host, path, profile, more string) error {
	step("starting the agent on %s (%s): reflector on UDP port %d, path %q", host.Name, host.Addr4, reflectorPort, path)
	config := s.configFile(host.Name)
	text := more + fmt.Sprintf(agentConfig, netip.AddrPortFrom(host.Addr4, reflectorPort), path, netip.AddrPortFrom(peer.Addr4, reflectorPort), profile)
	text += fmt.Sprintf(stampProbe, s.pace, lossTimeout, s.measure)
	s.configs[host.Name] = text
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		return err
	}
	inside := fmt.Sprintf("127.0.0.1:%s", agentPort)
	cmd := host.Command(binary, "agent", "--test.socket=", "--config.file="+config, "--web.listen-address="+inside)
	if err := s.start(host.Name+"-agent", cmd); err != nil {
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
	p := &process{name: name, cmd: cmd, log: filepath.Join(s.dir, name+".log"), done: make(chan struct{})}
	out, err := os.Create(p.log)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	// A child must end with the demo, even if the demo is killed.
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
		case s.ended <- fmt.Errorf("%s ended: %w; its log is %s", name, err, p.log):
		default:
		}
	}()
	return nil
}

// still returns the error of a child that has ended, also to the next caller.
func (s *stack) still(err error) error {
	select {
	case s.ended <- err:
	default:
	}
	return err
}

// stop ends everything in reverse order of its start.
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

// wait shows progress until the light probe's first window has ended, or its time has passed.
func (s *stack) wait(ctx context.Context) error {
	step("measuring for %v", s.measure)
	const timeout = 20 * time.Second
	end := time.Now().Add(s.measure)
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	terminal := isTerminal(os.Stdout)
	for left := s.measure; left > -timeout; left = time.Until(end) {
		if terminal {
			fmt.Printf("\r   %3.0f s left ", max(left, 0).Seconds())
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-s.ended:
			return s.still(err)
		case <-ticker.C:
		}
		if s.value(ctx, `oneway_round_trip_time_min_seconds{`+selector+`}`) != nil {
			break
		}
	}
	if terminal {
		fmt.Print("\r                 \r")
	}
	return nil
}
