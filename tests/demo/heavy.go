package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"oneway.example/tests/lab"
)

const responderPort = 8620

// responderConfig makes the server the far end of heavy tests.
const responderConfig = `responder:
  listen: ["%s"]
  tokens_file: %s
state_dir: %s
`

// heavyProbes fill the link, one after the other: twice what each direction carries,
// and trains of the sizes of the EvDO report. The idle link is looked at with packets that
// even the slowest link of the profiles carries one by one.
const heavyProbes = `      - type: saturate
        every: %[1]s
        token_file: %[2]s
        pin: %[3]s
        rate: {forward: %[4]s, reverse: %[5]s}
        duration: 14s
        skip: 4s
        idle: {duration: 20s, interval: 200ms}
        max_wait: 10m
      - type: train
        every: %[1]s
        token_file: %[2]s
        pin: %[3]s
        trains: 5
        train_packets: %[6]d
        train_interval: 100ms
        group_pause: 0s
        repeats: 10
        max_wait: 10m
        timeout: 6m
`

// matrixProbe is for those who stay and look.
const matrixProbe = `      - type: matrix
        every: %[1]s
        token_file: %[2]s
        pin: %[3]s
        packet_bytes: [64, 512, 1500]
        packet_rates: [20, 100, 500]
        cell_duration: 2s
        max_wait: 10m
`

// prepareHeavy makes a token and returns what the server's configuration needs.
func (s *stack) prepareHeavy(binary string, server *lab.Host) (string, error) {
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
	return fmt.Sprintf(responderConfig, netip.AddrPortFrom(server.Addr4, responderPort), tokens, filepath.Join(s.dir, "server-state")), nil
}

func (s *stack) token() string { return filepath.Join(s.dir, "token") }

func removeIfThere(file string) error {
	if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// limited tells whether the link has rates, without which there is nothing to fill.
func limited(p lab.Profile) bool { return p.Forward.Rate > 0 && p.Reverse.Rate > 0 }

// load fills the link and returns what that has found.
func (s *stack) load(ctx context.Context, out io.Writer, profile lab.Profile) ([]row, error) {
	if err := s.fill(ctx, profile); err != nil {
		return nil, err
	}
	rows, err := s.collectHeavy(ctx, profile)
	if err != nil {
		return nil, err
	}
	if err := s.printTrains(ctx, out, profile); err != nil {
		return nil, err
	}
	return rows, s.resume(ctx, profile)
}

// fill has the client's agent run heavy probes in place of the light ones, which would take
// their share of a slow link, and waits until each has run once. All else was measured
// before: a full link delays and loses what runs beside.
func (s *stack) fill(ctx context.Context, profile lab.Profile) error {
	probes, err := s.heavyProbes(ctx, profile, heavyProbes, "10s")
	if err != nil {
		return err
	}
	light, _, _ := strings.Cut(s.configs["client"], "      - type: stamp")
	quiet, _, _ := strings.Cut(s.configs["server"], "paths:")
	if err := errors.Join(s.reload(ctx, "server", quiet), s.reload(ctx, "client", light+probes)); err != nil {
		return err
	}
	step("filling the link: probe saturate with twice the rate of each direction, then probe train")
	return s.untilRuns(ctx, "saturate", "train")
}

// resume has all probes run side by side, for those who stay and look.
func (s *stack) resume(ctx context.Context, profile lab.Profile) error {
	probes, err := s.heavyProbes(ctx, profile, heavyProbes+matrixProbe, "5m")
	if err != nil {
		return err
	}
	return errors.Join(s.reload(ctx, "server", s.configs["server"]), s.reload(ctx, "client", s.configs["client"]+probes))
}

func (s *stack) heavyProbes(ctx context.Context, profile lab.Profile, format, every string) (string, error) {
	pin, err := s.pin(ctx)
	if err != nil {
		return "", err
	}
	twice := func(l lab.Link) string { return fmt.Sprintf("%dbit", 2*l.Rate) }
	return fmt.Sprintf(format, every, s.token(), pin, twice(profile.Forward), twice(profile.Reverse), trainPackets(profile)), nil
}

// trainPackets makes a train last 30 ms on the faster direction, within the probe's 25 of the
// EvDO report and its most of 200: on a fast link, 25 packets are over before an emulated
// link's jitter has evened out.
func trainPackets(p lab.Profile) int {
	const long, bits = 0.03, 1500 * 8
	return min(max(25, int(long*float64(max(p.Forward.Rate, p.Reverse.Rate))/bits)), 200)
}

// pin is the server's, as its agent tells it.
func (s *stack) pin(ctx context.Context) (string, error) {
	body, err := get(ctx, s.agents["server"]+"/api/v1/status")
	if err != nil {
		return "", err
	}
	var status struct {
		Responder struct {
			Pin   string `json:"pin"`
			Error string `json:"error"`
		} `json:"responder"`
	}
	if err := json.Unmarshal(body, &status); err != nil {
		return "", err
	}
	if status.Responder.Pin == "" {
		return "", fmt.Errorf("the server's responder has no pin: %s", status.Responder.Error)
	}
	return status.Responder.Pin, nil
}

// reload puts another configuration in force.
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

// longestRun is the most that both probes may take: trains over a slow link are long.
const longestRun = 8 * time.Minute

// untilRuns waits until each probe has completed a run.
func (s *stack) untilRuns(ctx context.Context, probes ...string) error {
	begin := time.Now()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		waiting, err := s.runs(ctx, probes)
		if err != nil {
			return err
		}
		if len(waiting) == 0 {
			return nil
		}
		if time.Since(begin) > longestRun {
			return fmt.Errorf("no completed run of %v within %v", waiting, longestRun)
		}
		if isTerminal(os.Stdout) {
			fmt.Printf("\r   %3.0f s, waiting for %s  ", time.Since(begin).Seconds(), strings.Join(waiting, " and "))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-s.ended:
			return err
		case <-ticker.C:
		}
	}
}

// runs are the probes that have not completed a run; one that has failed is an error.
func (s *stack) runs(ctx context.Context, probes []string) (waiting []string, err error) {
	all, err := s.query(ctx, `oneway_probe_runs_total{`+selector+`} > 0`)
	if err != nil {
		return nil, err
	}
	completed := map[string]bool{}
	for _, r := range all {
		switch r.Metric["result"] {
		case "completed":
			completed[r.Metric["probe"]] = true
		case "skipped":
		default:
			return nil, fmt.Errorf("a run of %s: %s, %s; see the client agent's log", r.Metric["probe"], r.Metric["result"], r.Metric["reason"])
		}
	}
	for _, p := range probes {
		if !completed[p] {
			waiting = append(waiting, p)
		}
	}
	return waiting, nil
}
