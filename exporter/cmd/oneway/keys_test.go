package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/agent"
	"oneway.example/exporter/probe"
	"oneway.example/tests/await"
	"oneway.example/tests/freeport"
)

// keyStatus is what the status says of keys.
type keyStatus struct {
	Reflector struct {
		KeyFaults *struct {
			Packets uint64           `json:"rejected_packets"`
			Sources []agent.KeyFault `json:"sources"`
		} `json:"key_faults"`
	} `json:"reflector"`
	Paths []agent.PathStatus `json:"paths"`
}

// status is the agent's status.
func (w *whole) status() (s keyStatus) {
	w.t.Helper()
	body, err := getPage(w.url + "/api/v1/status")
	if err == nil {
		err = json.Unmarshal([]byte(body), &s)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// reload makes it read its configuration again.
func (w *whole) reload() {
	w.t.Helper()
	got, err := http.Post(w.url+"/-/reload", "", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	defer got.Body.Close()
	if text, _ := io.ReadAll(got.Body); got.StatusCode != http.StatusOK {
		w.t.Fatalf("reload: %s: %s", got.Status, text)
	}
}

// TestBothEndsSayThatItIsTheKey runs agents with keys that do not fit, and changes one of them in the middle.
func TestBothEndsSayThatItIsTheKey(t *testing.T) {
	dir := t.TempDir()
	key := func(name, secret string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	ours, other, rotated := key("ours", "the secret of both"), key("other", "another secret"), key("rotated", "the secret of both")
	const clock = "clock: {source: static, bound: 1us}\n"
	requires, bare, rotates := freeport.Address(t), freeport.Address(t), freeport.Address(t)
	far := map[string]*whole{
		requires: startWhole(t, fmt.Sprintf("%sreflector: {listen: [%q], key_file: %q, require_key: true}\n", clock, requires, ours)),
		bare:     startWhole(t, fmt.Sprintf("%sreflector: {listen: [%q]}\n", clock, bare)),
		rotates:  startWhole(t, fmt.Sprintf("%sreflector: {listen: [%q], key_file: %q}\n", clock, rotates, rotated)),
	}
	config := clock + "paths:\n"
	path := func(name, peer, keyFile string) {
		if keyFile != "" {
			keyFile = fmt.Sprintf(", key_file: %q", keyFile)
		}
		config += fmt.Sprintf("  - {name: %s, peer: %q, probes: [{type: stamp, interval: 50ms, window: 1s, loss_timeout: 200ms%s}]}\n", name, peer, keyFile)
	}
	path("differ", requires, other)
	path("none", requires, "")
	path("bare", bare, ours)
	path("bare-too", bare, ours)
	path("rotates", rotates, ours)
	path("nobody", freeport.Address(t), ours)
	near := startWhole(t, config)
	reasons := func() map[string]string {
		all := map[string]string{}
		for _, p := range near.status().Paths {
			all[p.Name] = string(p.Probes[0].Health) + ": " + p.Probes[0].Reason
		}
		return all
	}
	becomes := func(name, want string) {
		t.Helper()
		if !await.Within(await.Timeout, func() bool { return strings.Contains(reasons()[name], want) }) {
			t.Errorf("%s: %q, want %q", name, reasons()[name], want)
		}
	}
	sees := func(reflector, want string) {
		t.Helper()
		waitFor(t, far[reflector].url+"/", func(page string) bool { return strings.Contains(page, "127.0.0.1 ("+want+")") })
		if k := far[reflector].status().Reflector.KeyFaults; k == nil || len(k.Sources) != 1 || k.Sources[0].Reason != want || k.Packets < 3 {
			t.Errorf("status of %s: %+v", reflector, k)
		}
	}
	becomes("differ", "down: the reflector at udp "+requires+" rejects our key; use the same key file at both ends")
	becomes("none", "down: the reflector at udp "+requires+" requires a key, and this path has none")
	becomes("bare", "down: the reflector at udp "+bare+" has no key, and this path has one")
	becomes("bare-too", "down: the reflector at udp "+bare+" has no key, and this path has one")
	becomes("nobody", "connection refused: no reflector listens there")
	becomes("rotates", "up: ")
	sees(bare, "it has a key and this reflector has none")
	if k := far[rotates].status().Reflector.KeyFaults; k != nil {
		t.Errorf("the reflector with the right key: %+v", k)
	}
	key("rotated", "a new secret")
	far[rotates].reload()
	becomes("rotates", "rejects our key")
	sees(rotates, "it has another key")
	key("ours", "a new secret")
	near.reload()
	becomes("rotates", "up: ")
}

func TestProbeSaysThatItIsTheKey(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("the secret of both\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	at := freeport.Address(t)
	startWhole(t, fmt.Sprintf("clock: {source: static, bound: 1us}\nreflector: {listen: [%q], key_file: %q, require_key: true}\n", at, file))
	f := stampFlags(probeFlags{host: at, count: 3})
	f.clock.source, f.options.Interval, f.options.LossTimeout = "none", 10*time.Millisecond, 100*time.Millisecond
	err := f.run(t.Context(), io.Discard, io.Discard)
	if want := "no reply that is valid in 100ms: the reflector at udp " + at + " requires a key"; !errors.Is(err, probe.ErrNoReply) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}
