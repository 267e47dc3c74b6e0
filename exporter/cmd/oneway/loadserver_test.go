package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"oneway.example/exporter/core/option"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/loadserver"
	"oneway.example/exporter/load/traffictypes/udptraffic"
	"oneway.example/tests/await"
)

func TestLoadServerPrintsItsAddressAndPin(t *testing.T) {
	dir := t.TempDir()
	tokens := filepath.Join(dir, "tokens")
	var made bytes.Buffer
	if err := (&tokenFlags{file: tokens, name: "a"}).run(&made, io.Discard); err != nil {
		t.Fatal(err)
	}
	text, _, _ := strings.Cut(made.String(), "\n")
	f := &loadServerFlags{serveFlags: serveFlags{listen: []string{"127.0.0.1:0"}, clock: staticClock(time.Millisecond)}}
	f.options = loadserver.Options{TokensFile: tokens, StateDir: dir}
	ctx, cancel := context.WithCancel(t.Context())
	out := &lines{first: make(chan string, 64)}
	ended := make(chan error, 1)
	go func() { ended <- f.run(ctx, out) }()
	at := strings.TrimPrefix(strings.TrimSpace(<-out.first), "listening on tcp and udp ")
	pin := strings.TrimPrefix(strings.TrimSpace(<-out.first), "pin ")
	c, err := loadcontrol.Dial(t.Context(), loadcontrol.ClientOptions{Address: at, Pin: pin, Token: text})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Open(t.Context(), loadcontrol.Open{Traffic: udptraffic.Name, Test: "train", Run: "r", Bytes: 1, Duration: time.Second}, nil); err != nil {
		t.Fatal(err)
	}
	c.Close()
	if _, err := loadcontrol.Dial(t.Context(), loadcontrol.ClientOptions{Address: at, Pin: pin, Token: text + "x"}); err == nil {
		t.Error("a wrong token was accepted")
	}
	// The link is free for another session after the first has ended; until then the refusal counts as well.
	var refusal error
	if !await.Within(await.Timeout, func() bool {
		next, err := loadcontrol.Dial(t.Context(), loadcontrol.ClientOptions{Address: at, Pin: pin, Token: text})
		if err == nil {
			_, err = next.Open(t.Context(), loadcontrol.Open{Traffic: udptraffic.Name, Test: "train", Run: "r2", Bytes: 1, Duration: time.Second}, nil)
			next.Close()
		}
		refusal = err
		r, refused := errors.AsType[*loadcontrol.Refusal](err)
		return err == nil || !refused || r.Reason != loadcontrol.Busy && r.Reason != loadcontrol.TooMany
	}) || refusal != nil {
		t.Fatal(refusal)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	var rest string
	for len(out.first) > 0 {
		rest += <-out.first
	}
	for _, want := range []string{"2 sessions, 0 transfers", "refused, unauthorized", "ended, closed"} {
		if !strings.Contains(rest, want) {
			t.Errorf("no %q in:\n%s", want, rest)
		}
	}
}

func TestLoadServerRefusesInvalidOptions(t *testing.T) {
	for name, f := range map[string]*loadServerFlags{
		"no directory": {options: loadserver.Options{TokensFile: "t"}},
		"no tokens":    {options: loadserver.Options{TokensFile: "absent", StateDir: "."}, serveFlags: serveFlags{clock: clockFlags{source: "none"}}},
		"no prefix":    {serveFlags: serveFlags{allow: []string{"x"}}, options: loadserver.Options{StateDir: "."}},
		"no address":   {serveFlags: serveFlags{listen: []string{"x"}}, options: loadserver.Options{StateDir: "."}},
	} {
		err := f.run(t.Context(), &bytes.Buffer{})
		if _, ok := errors.AsType[usageError](err); !ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPermittedSourceMustBeANetworkOfItsFamily(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.0/24": "", "::/0": "",
		"::ffff:192.0.2.0/120": `--allow is "::ffff:192.0.2.0/120"; write it as an IPv4 network`,
		"192.0.2.1":            `--allow is "192.0.2.1"; it must be a network with a prefix length, such as 192.0.2.0/24 or 2001:db8::/32`,
	} {
		f := serveFlags{allow: []string{text}}
		if _, _, err := f.addresses(); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestLoadServerAcceptsARangeOfPorts(t *testing.T) {
	app := kingpin.New("oneway", "").Terminate(nil)
	loadServerCommand(app)
	if got, want := app.GetCommand("load-server").GetFlag("ports").Model().Default, fmt.Sprintf("%d-%d", loadcontrol.DefaultPort+1, loadcontrol.DefaultPort+20); !slices.Equal(got, []string{want}) {
		t.Errorf("the default is %q, want %q", got, want)
	}
	if got := run(app, []string{"load-server", "--tokens-file=absent", "--ports=9-8"}); got != exitUsage {
		t.Errorf("status %d, want %d", got, exitUsage)
	}
	var o loadserver.Options
	if err := (textFlag{&o.Ports}).Set("9000-9010"); err != nil || o.Ports != (option.Ports{First: 9000, Last: 9010}) {
		t.Errorf("%v, %v", o.Ports, err)
	}
}
