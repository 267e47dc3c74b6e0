package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"oneway.example/exporter/core/hostport"
	"oneway.example/tests/lab"
)

const loadServerPort = hostport.LoadServer

// loadServerConfig makes the server the remote end of load tests.
const loadServerConfig = `load_server:
  listen: ["%s"]
  tokens_file: %s
state_dir: %s
`

// saturationProbe offers twice the rate of each direction. Idle packets are sent at a rate that the slowest profile
// carries one by one.
const saturationProbe = `      - type: saturation
        every: %[1]s
        token_file: %[2]s
        pin: %[3]s
        rate: {forward: %[4]s, reverse: %[5]s}
        duration: 14s
        skip: 4s
        idle: {duration: 20s, interval: 200ms}
        max_wait: 10m
`

// trainProbe sends trains of the sizes of the EvDO report.
const trainProbe = `      - type: train
        every: %[1]s
        token_file: %[2]s
        pin: %[3]s
        trains: 5
        train_packets: %[6]d
        train_interval: 100ms
        group_pause: 0s
        max_repeats: 10
        max_wait: 10m
        timeout: 6m
`

// prepareLoadTest makes a token and returns the server's configuration section.
func (s *stack) prepareLoadTest(binary string, server *lab.Host) (string, error) {
	tokens := filepath.Join(s.dir, "tokens")
	if err := errors.Join(removeIfThere(tokens), removeIfThere(s.token())); err != nil {
		return "", err
	}
	out, err := exec.Command(binary, "token", "new", "--file="+tokens, "--name=demo").Output()
	if err != nil {
		return "", fmt.Errorf("oneway token new: %w", err)
	}
	token, _, _ := bytes.Cut(out, []byte("\n"))
	if err := os.WriteFile(s.token(), append(token, '\n'), 0o600); err != nil {
		return "", err
	}
	return fmt.Sprintf(loadServerConfig, netip.AddrPortFrom(server.Addr4, loadServerPort), tokens, filepath.Join(s.dir, "server-state")), nil
}

func (s *stack) token() string { return filepath.Join(s.dir, "token") }

func removeIfThere(file string) error {
	if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// limited reports whether the link has rates to fill.
func limited(p lab.Profile) bool { return p.Forward.MeanRate() > 0 && p.Reverse.MeanRate() > 0 }

// loadTest is a probe that fills the link, with the function that makes its rows.
type loadTest struct {
	probe, config string
	rows          func(ctx context.Context, p lab.Profile, after time.Time) []row
}

// load runs the load tests one after the other, and returns their rows. Other probes have been measured before: a full
// link delays and drops concurrent packets.
func (s *stack) load(ctx context.Context, profile lab.Profile) (rows []row, err error) {
	s.requestECN()
	s.logTCP.Store(true)
	defer s.logTCP.Store(false)
	for _, t := range []loadTest{{"saturation", saturationProbe, s.saturationRows}, {"train", trainProbe, s.trainRows}, {"tcp", tcpProbe, s.tcpRows}} {
		found, failure := s.repeated(ctx, profile, t)
		rows, err = append(rows, found...), errors.Join(err, failure)
	}
	found, failure := s.sweep(ctx, profile)
	rows, err = append(rows, found...), errors.Join(err, failure)
	if err != nil {
		return rows, err
	}
	return rows, s.resume(ctx, profile)
}

// repeated makes the client's agent run one load test instead of the light probe, which would take its share of a slow
// link. A run with missing values is repeated once; values of the first run are kept. The rows are returned with an
// error, too.
func (s *stack) repeated(ctx context.Context, profile lab.Profile, t loadTest) (rows []row, err error) {
	after := time.Now()
	err = s.only(ctx, profile, t)
	for runs := 1; runs <= 2; runs++ {
		if err == nil {
			err = s.untilRuns(ctx, t.probe, runs)
		}
		found := judged(t.rows(ctx, profile, after))
		rows = merge(rows, found)
		if r := s.lastRun(ctx, t.probe, after); r != nil {
			after = r.End // on a busy machine the next one may have started by now
		}
		unreported := with(rows, statusUnreported)
		if len(unreported) == 0 || err != nil {
			return rows, err
		}
		again := ""
		if runs == 1 {
			again = "; it is repeated once"
		}
		why := found[slices.IndexFunc(found, func(r row) bool { return r.Status == statusUnreported })].Reason
		step("run %d of %s has no value of %s: %s%s", runs, t.probe, strings.Join(unreported, ", "), why, again)
	}
	return rows, nil
}

// only makes the client's agent run a load test, and the server's measure nothing.
func (s *stack) only(ctx context.Context, profile lab.Profile, t loadTest) error {
	probes, err := s.loadTestProbes(ctx, profile, t.config, "10s")
	if err != nil {
		return err
	}
	bare, _, _ := strings.Cut(s.configs["client"], "      - type: stamp")
	quiet, _, _ := strings.Cut(s.configs["server"], "paths:")
	step("filling the link: probe %s", t.probe)
	return errors.Join(s.reload(ctx, "server", quiet), s.reload(ctx, "client", bare+probes))
}

// merge replaces rows without a value by those of a later run.
func merge(old, later []row) []row {
	if old == nil {
		return later
	}
	for i := range old {
		if old[i].Status == statusUnreported {
			old[i] = later[i]
		}
	}
	return old
}

func (s *stack) loadTestProbes(ctx context.Context, profile lab.Profile, format, every string) (string, error) {
	pin, err := s.pin(ctx)
	if err != nil {
		return "", err
	}
	twice := func(l lab.Link) string { return fmt.Sprintf("%dbit", 2*l.MeanRate()) }
	// Not every probe uses all of these: %[n] selects them.
	return strings.NewReplacer(
		"%[1]s", every, "%[2]s", s.token(), "%[3]s", pin, "%[4]s", twice(profile.Forward), "%[5]s", twice(profile.Reverse),
		"%[6]d", fmt.Sprint(trainPackets(profile)), "%[7]d", fmt.Sprint(tcpWindow(profile)),
	).Replace(format), nil
}

// trainPackets makes a train last 30 ms on the faster direction, between the 25 packets of the EvDO report and the
// probe's maximum of 200: on a fast link, 25 packets are too short to average an emulated link's jitter.
func trainPackets(p lab.Profile) int {
	const long, bits = 0.03, 1500 * 8
	return min(max(25, int(long*float64(max(p.Forward.MeanRate(), p.Reverse.MeanRate()))/bits)), 200)
}

// pin is that of the load server, from its agent's status.
func (s *stack) pin(ctx context.Context) (string, error) {
	status, err := s.status(ctx, "server")
	if err == nil && status.LoadServer.Pin == "" {
		err = fmt.Errorf("load server on the server: no pin: %s", status.LoadServer.Error)
	}
	return status.LoadServer.Pin, err
}

// reload activates another configuration.
func (s *stack) reload(ctx context.Context, name, config string) error {
	if err := os.WriteFile(s.configFile(name), []byte(config), 0o644); err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.agents[name]+"/-/reload", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		var text bytes.Buffer
		_, _ = text.ReadFrom(resp.Body)
		return fmt.Errorf("the agent on %s refuses its configuration: %s", name, strings.TrimSpace(text.String()))
	}
	return nil
}

// longestRun is the timeout of a run: trains on a slow link take long. After it, the run's values are missing.
const longestRun = 8 * time.Minute

// untilRuns waits until a probe has had this many runs, of any outcome. Skipped ones do not count: they are repeated.
func (s *stack) untilRuns(ctx context.Context, probe string, runs int) error {
	begin := time.Now()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		had := s.value(ctx, fmt.Sprintf(`sum(oneway_probe_runs_total{%s,probe=%q,result!="skipped"})`, selector, probe))
		if had != nil && *had >= float64(runs) || time.Since(begin) > longestRun {
			return nil
		}
		if isTerminal(os.Stdout) {
			fmt.Printf("\r   %3.0f s, waiting for %s  \r", time.Since(begin).Seconds(), probe)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-s.ended:
			return s.still(err)
		case <-ticker.C:
		}
	}
}
