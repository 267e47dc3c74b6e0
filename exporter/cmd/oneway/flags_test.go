package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/document"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes/stamp"
	"oneway.example/tests/documents"
)

func TestListenTakesAddressesOfBothFamilies(t *testing.T) {
	for text, want := range map[string]int{":862": 2, "127.0.0.1:8620": 1, "[::1]:8620": 1} {
		if got, err := parseListen(text); err != nil || len(got) != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "862", "::1:862x", "host:862", ":70000", "127.0.0.1"} {
		if _, err := parseListen(text); err == nil || !strings.HasPrefix(err.Error(), "--listen is ") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// stampTest are the flags of `oneway probe` with their options.
type stampTest struct {
	*probeFlags
	options *stamp.Options
}

func stampFlags(f probeFlags) stampTest {
	f.name, f.measurement = "stamp", stamp.NewType().Terminal()
	own, _ := f.measurement.Options()
	return stampTest{&f, own.(*stamp.Options)}
}

func TestPortFlagJoinsHost(t *testing.T) {
	for _, c := range []struct {
		host string
		port uint16
		want string
	}{{"h", 0, "h"}, {"h", 1, "h:1"}, {"2001:db8::1", 2, "[2001:db8::1]:2"}, {"[2001:db8::1]", 2, "[2001:db8::1]:2"}} {
		if got := peerWithPort(c.host, c.port); got != c.want {
			t.Errorf("%q, %d: %q", c.host, c.port, got)
		}
	}
}

// startReflector runs a reflector until the end of the test and returns its address.
func startReflector(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	f := &reflectFlags{serveFlags: serveFlags{listen: []string{"127.0.0.1:0"}, clock: staticClock(time.Millisecond)}}
	out := &lines{first: make(chan string, 8)}
	done := make(chan error, 1)
	go func() { done <- f.run(ctx, out) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	_, at, ok := strings.Cut(strings.TrimSpace(<-out.first), "listening on udp ")
	if !ok {
		t.Fatal("the reflector did not print its address")
	}
	return at
}

// TestServerWithoutAnAgentTellsTheServiceManagerThatItListens: what starts after its unit may reach it at once.
func TestServerWithoutAnAgentTellsTheServiceManagerThatItListens(t *testing.T) {
	at := filepath.Join(t.TempDir(), "notify")
	manager, err := net.ListenPacket("unixgram", at)
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	t.Setenv("NOTIFY_SOCKET", at)
	startReflector(t)
	manager.SetReadDeadline(time.Now().Add(30 * time.Second))
	text := make([]byte, 100)
	if n, _, err := manager.ReadFrom(text); err != nil || string(text[:n]) != "READY=1" {
		t.Errorf("%q, %v", text[:n], err)
	}
}

// lines passes on the first write.
type lines struct{ first chan string }

func (l *lines) Write(b []byte) (int, error) {
	select {
	case l.first <- string(b):
	default:
	}
	return len(b), nil
}

func TestProbePrintsATableAndJSON(t *testing.T) {
	at := startReflector(t)
	for _, asJSON := range []bool{false, true} {
		f := stampFlags(probeFlags{host: at, count: 20, json: asJSON, clock: staticClock(time.Millisecond)})
		f.options.Interval = 2 * time.Millisecond
		var out, live bytes.Buffer
		if err := f.run(t.Context(), &out, &live); err != nil {
			t.Fatal(err)
		}
		if live.Len() > 0 {
			t.Errorf("a live line was written to an output that is not a terminal: %q", live.String())
		}
		if !asJSON {
			for _, want := range []string{"oneway reflector", "delay p50", "error bound", "± ", "forward", "reverse"} {
				if !strings.Contains(out.String(), want) {
					t.Errorf("no %q in\n%s", want, out.String())
				}
			}
			continue
		}
		checkJSON(t, out.Bytes())
	}
}

// Delays over loopback are microseconds, the clock's error bound is 50 ms.
func TestProbeNotesDelaysBelowTheirBound(t *testing.T) {
	f := stampFlags(probeFlags{host: startReflector(t), count: 20, clock: staticClock(50 * time.Millisecond)})
	f.options.Interval = 2 * time.Millisecond
	var out, live bytes.Buffer
	if err := f.run(t.Context(), &out, &live); err != nil {
		t.Fatal(err)
	}
	if want := "note: forward: 20 delays are smaller than their own error bound"; !strings.Contains(out.String(), want) {
		t.Errorf("no %q in\n%s", want, out.String())
	}
	for line := range strings.Lines(out.String()) {
		if words := strings.Fields(line); len(words) > 3 && words[0] == "delay" && (words[2] == "-" || words[3] == "-") {
			t.Errorf("a delay is not reported: %s", line)
		}
	}
}

func TestUnderscoresOfAnOptionAreHyphensInItsFlag(t *testing.T) {
	f := stampFlags(probeFlags{host: "h", clock: clockFlags{source: "none"}})
	f.options.Interval, f.options.PathMinimum = time.Second, -1
	var out, live bytes.Buffer
	if err := f.run(t.Context(), &out, &live); err == nil || !strings.HasPrefix(err.Error(), "--path-minimum is -1ns; it must be between") {
		t.Error(err)
	}
}

// checkJSON checks the documented keys.
func checkJSON(t *testing.T, text []byte) {
	t.Helper()
	var r map[string]any
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	documents.Valid(t, document.Probe, text)
	if r["result"] != "completed" || r["reason"] != "ok" {
		t.Errorf("result %v, reason %v", r["result"], r["reason"])
	}
	of := func(key, direction string) any {
		by, _ := r[key].(map[string]any)
		return by[direction]
	}
	for _, direction := range []string{"forward", "reverse"} {
		for _, key := range []string{
			"sent_packets", "received_packets", "lost_packets", "duplicated_packets", "reordered_packets", "late_packets", "corrupted_packets",
			"outstanding_packets", "delay_seconds", "ipdv_seconds", "delay_variation_seconds", "jitter_seconds",
		} {
			if of(key, direction) == nil {
				t.Errorf("%s has no %s: %s", key, direction, text)
			}
		}
		delay, _ := of("delay_seconds", direction).(map[string]any)
		for _, key := range []string{"min", "p50", "p95", "p99", "max", "error_bound"} {
			if delay[key] == nil {
				t.Errorf("delay_seconds.%s has no %s", direction, key)
			}
		}
	}
	if timestamps, _ := r["timestamps"].(map[string]any); len(timestamps) != 4 {
		t.Errorf("timestamps: %v", r["timestamps"])
	}
}

func TestProbeWithoutAReplyGivesAdvice(t *testing.T) {
	f := stampFlags(probeFlags{host: "127.0.0.1:9", count: 2, clock: clockFlags{source: "none"}})
	f.options.Interval, f.options.LossTimeout = time.Millisecond, 50*time.Millisecond
	var out, live bytes.Buffer
	err := f.run(t.Context(), &out, &live)
	if !errors.Is(err, probe.ErrNoReply) || !strings.Contains(err.Error(), "oneway reflect") || !strings.Contains(err.Error(), "127.0.0.1:9") {
		t.Error(err)
	}
}

func TestInvalidOptionIsAUsageErrorWithTheFlag(t *testing.T) {
	f := stampFlags(probeFlags{host: "h", clock: clockFlags{source: "none"}})
	f.options.Interval, f.options.LossTimeout = time.Second, time.Hour
	var out, live bytes.Buffer
	err := f.run(t.Context(), &out, &live)
	var usage usageError
	if !errors.As(err, &usage) || !strings.HasPrefix(err.Error(), "--loss-timeout is 1h0m0s") {
		t.Error(err)
	}
}
