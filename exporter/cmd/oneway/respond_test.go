package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/control"
	"oneway.example/exporter/responder"
)

func TestRespondPrintsWhereAndThePin(t *testing.T) {
	dir := t.TempDir()
	tokens := filepath.Join(dir, "tokens")
	var made bytes.Buffer
	if err := (&tokenFlags{file: tokens, name: "a"}).run(&made); err != nil {
		t.Fatal(err)
	}
	text, _, _ := strings.Cut(made.String(), "\n")
	f := &respondFlags{listen: []string{"127.0.0.1:0"}, clock: clockFlags{source: "static", bound: time.Millisecond}}
	f.options = responder.Options{TokensFile: tokens, StateDir: dir}
	ctx, cancel := context.WithCancel(t.Context())
	out := &lines{first: make(chan string, 64)}
	ended := make(chan error, 1)
	go func() { ended <- f.run(ctx, out) }()
	at := strings.TrimPrefix(strings.TrimSpace(<-out.first), "responding on tcp and udp ")
	pin := strings.TrimPrefix(strings.TrimSpace(<-out.first), "pin ")
	c, err := control.Dial(t.Context(), control.ClientOptions{Address: at, Pin: pin, Token: text})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Open(t.Context(), control.Open{Version: control.Version, Kind: control.Train, Run: "r", Bytes: 1}); err != nil {
		t.Fatal(err)
	}
	c.Close()
	if _, err := control.Dial(t.Context(), control.ClientOptions{Address: at, Pin: pin, Token: text + "x"}); err == nil {
		t.Error("a wrong token was accepted")
	}
	// The link is free for another session when the first has ended.
	sessions := 1
	for opened := false; !opened; sessions++ {
		next, err := control.Dial(t.Context(), control.ClientOptions{Address: at, Pin: pin, Token: text})
		if err != nil {
			t.Fatal(err)
		}
		_, err = next.Open(t.Context(), control.Open{Version: control.Version, Kind: control.Train, Run: "r2", Bytes: 1})
		if r, ok := errors.AsType[*control.Refusal](err); err != nil && (!ok || r.Reason != control.Busy) {
			t.Fatal(err)
		}
		opened = err == nil
		next.Close()
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	var rest string
	for len(out.first) > 0 {
		rest += <-out.first
	}
	for _, want := range []string{fmt.Sprintf("%d sessions, 0 transfers", sessions), "refused, unauthorised", "ended, closed"} {
		if !strings.Contains(rest, want) {
			t.Errorf("nothing of %q in:\n%s", want, rest)
		}
	}
}

func TestRespondRefusesWhatCannotBe(t *testing.T) {
	for name, f := range map[string]*respondFlags{
		"no directory": {options: responder.Options{TokensFile: "t"}},
		"no tokens":    {options: responder.Options{TokensFile: "absent", StateDir: "."}, clock: clockFlags{source: "none"}},
		"no prefix":    {allow: []string{"x"}, options: responder.Options{StateDir: "."}},
		"no address":   {listen: []string{"x"}, options: responder.Options{StateDir: "."}},
	} {
		err := f.run(t.Context(), &bytes.Buffer{})
		if _, ok := errors.AsType[usageError](err); !ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
