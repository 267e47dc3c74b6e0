package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/probes/tcpsweep"
	"oneway.example/tests/lab"
	"oneway.example/tests/vmlab"
	"oneway.example/tests/vmlab/record"
	"oneway.example/tests/vmlab/truth"
)

// Names and addresses of the guests: the local one is the laptop with the modem.
const (
	nearName   = "modem"
	farName    = "campus"
	farAddress = "10.9.0.2"
	serverName = "server"
)

// pair is both guests, and the load server in the remote one.
type pair struct {
	network *vmlab.Network
	guests  [2]*vmlab.Guest // by the direction whose packets they send
	program string          // the path of oneway in the guests
	profile lab.Profile
	pin     string
}

// startPair boots both guests, and makes the path between them.
func startPair(build, dir, logs string) (p *pair, err error) {
	p = &pair{program: filepath.Join(build, "oneway")}
	if p.profile, err = lab.LoadProfile(profileName); err != nil {
		return nil, err
	}
	if p.network, err = vmlab.NewNetwork(nearName, farName); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err, p = errors.Join(err, p.close()), nil
		}
	}()
	line := truth.Calibrate(100*time.Millisecond, 0)
	var errs [2]error
	var starting sync.WaitGroup
	for i, name := range []string{nearName, farName} {
		starting.Go(func() {
			p.guests[i], errs[i] = vmlab.Start(vmlab.Options{
				Name: name, Dir: filepath.Join(dir, name), Logs: filepath.Join(logs, name), Init: filepath.Join(build, "guest"), Preload: filepath.Join(build, "wake.so"),
				Line: line, Processor: i + 1, Network: p.network, Capture: name, Address: fmt.Sprintf("10.9.0.%d/24", i+1),
			})
			if errs[i] == nil {
				errs[i] = prepare(p.guests[i], of(p.profile, sample.Direction(i)))
			}
		})
	}
	starting.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		return p, err
	}
	return p, p.serve()
}

// modules are those of the path, and the variants that the guests' kernel has not built in.
func modules() []string { return []string{"sch_netem", "sch_tbf", "tcp_vegas", "tcp_veno"} }

// prepare makes a guest's end of the path. A connection must not begin with what the kernel remembers of the one before
// it, which may be of another variant.
func prepare(g *vmlab.Guest, l lab.Link) error {
	if _, err := g.Do(record.Command{Do: record.Load, Args: modules()}); err != nil {
		return err
	}
	if out, err := command(g, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/tcp_no_metrics_save"); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return shape(g, l)
}

// serve starts the load server, with a token.
func (p *pair) serve() error {
	local, remote := p.guests[sample.Forward], p.guests[sample.Reverse]
	tokens := filepath.Join(record.Dir, "tokens")
	out, err := command(remote, p.program, "token", "new", "--name=paper", "--file="+tokens)
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	token, _, _ := strings.Cut(out, "\n")
	if err := os.WriteFile(filepath.Join(local.Dir, "token"), []byte(token+"\n"), 0o600); err != nil {
		return err
	}
	if _, err := remote.Do(record.Command{Do: record.Start, Name: serverName, Args: []string{
		p.program, "load-server", "--tokens-file=" + tokens, "--state-dir=" + record.Dir, "--listen=" + fmt.Sprintf("%s:%d", farAddress, loadcontrol.DefaultPort), "--clock=static",
	}}); err != nil {
		return err
	}
	said := ""
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) { // until it listens
		text, err := command(remote, "cat", filepath.Join(record.Dir, serverName+".log"))
		if err != nil {
			return fmt.Errorf("%w: %s", err, text)
		}
		said = text
		for line := range strings.Lines(text) {
			if pin, ok := strings.CutPrefix(line, "pin "); ok && strings.HasSuffix(pin, "\n") {
				p.pin = strings.TrimSpace(pin)
				return nil
			}
		}
	}
	return fmt.Errorf("the load server prints no pin within a minute: %s", said)
}

func (p *pair) close() error {
	var errs [2]error
	var closing sync.WaitGroup
	for i, g := range p.guests {
		if g != nil {
			closing.Go(func() { errs[i] = g.Close() })
		}
	}
	closing.Wait()
	return errors.Join(errs[0], errs[1], p.network.Close())
}

// measured is a cell, its result, and the truth.
type measured struct {
	cell
	result tcpsweep.MeasuredCell
	link   lab.Link // that the payload took
	truth  counters // of the sending end, during the cell
}

// measure runs oneway for one cell.
func (p *pair) measure(c cell, length time.Duration) (*measured, error) {
	link, sender := of(p.profile, c.direction), p.guests[c.direction]
	before, err := count(sender)
	if err != nil {
		return nil, err
	}
	buffer := "auto"
	if c.buffer > 0 {
		buffer = fmt.Sprint(c.buffer)
	}
	args := []string{
		p.program, "test", "tcp-sweep", farAddress, "--token-file=" + filepath.Join(record.Dir, "token"), "--pin=" + p.pin, "--clock=static", "--no-agent", "--json",
		"--direction=" + c.direction.String(), "--congestion-control=" + c.variant, "--send-buffer-bytes=" + buffer,
		"--cell-duration=" + length.String(), "--omit=" + omitted(length).String(), "--repetitions=1", "--max-wait=30s",
	}
	out, err := command(p.guests[sample.Forward], "sh", "-c", strings.Join(args, " ")+" 2>>"+filepath.Join(record.Dir, "client.log"))
	if err != nil {
		return nil, fmt.Errorf("%w: %.2000s", err, out)
	}
	var o struct {
		Results struct {
			Cells []tcpsweep.MeasuredCell `json:"cells"`
		} `json:"results"`
	}
	if err := json.Unmarshal([]byte(out), &o); err != nil {
		return nil, fmt.Errorf("%w in %.2000s", err, out)
	}
	if len(o.Results.Cells) != 1 {
		return nil, fmt.Errorf("%d cells; want 1: %.2000s", len(o.Results.Cells), out)
	}
	time.Sleep(drain(link)) // what the sender left in the queue belongs to this cell
	after, err := count(sender)
	return &measured{c, o.Results.Cells[0], link, after.minus(before)}, err
}
