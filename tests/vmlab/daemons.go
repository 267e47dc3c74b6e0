package vmlab

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"oneway.example/tests/vmlab/record"
)

// Names of processes and feeds in the guests.
const (
	chronydName = "chronyd"
	agentName   = "agent"
	pulseName   = "pulse"
	pulseSocket = "/run/chrony.pulse.sock"
)

// pulseRefclock is a pulse with its second, as gpsd sends it to chronyd over SOCK, 16
// times as often and polled every 2 s instead of every 16 s: all of chronyd's time
// constants are shorter by the same factor. delay is twice the largest systematic error of a
// receiver; this one's samples are the truth with noise, which chronyd measures.
const pulseRefclock = "refclock SOCK " + pulseSocket + " refid PPS poll 1 filter 16 precision 1e-6 delay 2e-6"

// Write puts a file into the guest's directory and returns its path in the guest.
func (h *Host) Write(name, text string) (string, error) {
	if err := os.WriteFile(filepath.Join(h.Dir, name), []byte(text), 0o644); err != nil {
		return "", fmt.Errorf("vmlab: %w", err)
	}
	return filepath.Join(record.Dir, name), nil
}

// Chronyd starts chronyd with these lines of configuration added to the common ones.
// clockprecision, because chronyd takes the duration of a clock reading for
// its resolution: here some 20 us for a system call, of a clock that counts nanoseconds. The
// uncertainty of a reading is in the samples, where chronyd measures it.
func (h *Host) Chronyd(lines ...string) error {
	lines = append([]string{
		"bindcmdaddress /run/chrony/chronyd.sock", "pidfile /run/chrony/chronyd.pid", "cmdport 0", "port 0", "clockprecision 1e-6",
	}, lines...)
	conf, err := h.Write("chrony.conf", strings.Join(lines, "\n")+"\n")
	if err != nil {
		return err
	}
	return h.start(chronydName, "chronyd", "-d", "-u", "root", "-f", conf)
}

func (h *Host) start(name string, args ...string) error {
	_, err := h.Do(record.Command{Do: record.Start, Name: name, Args: args})
	return err
}

// KillChronyd sends SIGKILL and waits for its end.
func (h *Host) KillChronyd() error { return h.kill(chronydName, syscall.SIGKILL) }

func (h *Host) kill(name string, s syscall.Signal) error {
	if _, err := h.Do(record.Command{Do: record.Signal, Name: name, By: int64(s)}); err != nil {
		return err
	}
	_, err := h.Do(record.Command{Do: record.Wait, Name: name})
	return err
}

// Pulse feeds chronyd 16 samples of the truth a second.
func (h *Host) Pulse(leap uint32) error {
	return h.Feed(record.Feed{Name: pulseName, Socket: pulseSocket, Every: time.Second / 16, Leap: leap})
}

// Feed feeds chronyd.
func (h *Host) Feed(f record.Feed) error {
	_, err := h.Do(record.Command{Do: record.FeedOn, Feed: &f})
	return err
}

// NoPulse stops the pulse.
func (h *Host) NoPulse() error {
	_, err := h.Do(record.Command{Do: record.FeedOff, Name: pulseName})
	return err
}

// Step moves the clock at once.
func (h *Host) Step(by time.Duration) error {
	_, err := h.Do(record.Command{Do: record.Step, By: int64(by)})
	return err
}

// Run runs a command to its end and returns its output.
func (h *Host) Run(args ...string) (string, error) {
	return h.Do(record.Command{Do: record.Run, Args: args})
}

// agentClock is the clock section of both agents.
const agentClock = `clock:
  source: chrony
  address: unix:///run/chrony/chronyd.sock
`

// localConfig sends a packet every 5 ms, a quarter of a guest's rate without loss:
// a processor that has slept for 20 ms needs 40 us more to send, which is part of the bound.
const localConfig = agentClock + localPaths

// receiverConfig is that of a host with a receiver: with a gpsd that does not run
// OnewayGNSSSilent fires. The path "strict" accepts no delay with a bound above 150 ms: its
// packets are not judged, only its metrics.
const receiverConfig = agentClock + `  gpsd: {address: "127.0.0.1:2947"}
` + localPaths + `  - name: strict
    peer: ` + RemoteAddress + `
    probes:
      - type: stamp
        interval: 200ms
        max_bound: 150ms
`

const localPaths = `paths:
  - name: ` + record.JudgedPath + `
    peer: ` + RemoteAddress + `
    probes:
      - type: stamp
        interval: 5ms
`

const remoteConfig = agentClock + remoteReflector

const remoteReflector = `reflector:
  listen: ["0.0.0.0:862"]
`

// StopAgent ends it as a service manager does.
func (h *Host) StopAgent() error { return h.kill(agentName, syscall.SIGTERM) }

// self is the guest's own program, anywhere on the host: files below /tmp
// of the host are not visible in the guest.
const self = "/proc/1/exe"

// Agent starts oneway's agent with this configuration.
func (h *Host) Agent(config string) error {
	file, err := h.Write("oneway.yml", config)
	if err != nil {
		return err
	}
	return h.start(agentName, self, "agent", file, record.Dir)
}
