package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"oneway.example/exporter/core/document"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/loadserver"
	"oneway.example/exporter/load/loadsession"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/net/tcpsocket"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes/message"
	"oneway.example/exporter/probes/tcp"
	"oneway.example/exporter/probes/tcpshort"
	"oneway.example/exporter/probes/tcpsweep"
	"oneway.example/exporter/probes/train"
	"oneway.example/tests/documents"
	"oneway.example/tests/freeport"
)

func TestProgressLineHasShareBytesAndTimeLeft(t *testing.T) {
	for _, c := range []struct {
		p     loadtest.Progress
		since time.Duration
		want  string
	}{
		{loadtest.Progress{Phase: "waiting for the link"}, time.Second, "[                        ]   0 %  waiting for the link"},
		{
			loadtest.Progress{Phase: "forward: load", Share: 0.25, Bytes: 12_300_000},
			10 * time.Second, "[######                  ]  25 %  forward: load, 12.3 MB  30s left",
		},
		{loadtest.Progress{Phase: "writing", Share: 1}, time.Minute, "[########################] 100 %  writing"},
		{loadtest.Progress{Phase: "late", Share: 1.5}, time.Minute, "[########################] 100 %  late"},
	} {
		if got := progressLine(c.p, c.since, 80); got != c.want {
			t.Errorf("%+v:\n got %q\nwant %q", c.p, got, c.want)
		}
	}
}

func TestSummaryHasAColumnPerDirection(t *testing.T) {
	o := &loadtest.Outcome{Run: &loadtest.Run{ID: "id", Kind: "train", Remote: "192.0.2.7:8620", Summary: []probe.Result{
		{Quantity: "capacity", Direction: "forward", Value: "2.5 Mb/s"},
		{Quantity: "capacity", Direction: "reverse", Value: "unknown: " + strings.Repeat("because ", 20)},
		{Quantity: "working delay", Direction: "forward", Value: "round trip idle 44 ms, working 101 ms"},
		{Quantity: "working delay", Direction: "reverse", Value: "idle 14.2 ms, working 38.5 ms; R 92 -> 91"},
		{Quantity: "after", Direction: "reverse", Value: "one two three four five six seven"},
		{Quantity: "cells", Value: "4 of 4"},
	}}, Result: loadtest.Completed, ForwardBytes: 1_500_000}
	t.Setenv("COLUMNS", "78")
	var out bytes.Buffer
	if err := printSummary(&out, o); err != nil {
		t.Fatal(err)
	}
	want := `train to 192.0.2.7:8620, id: completed, 1.5 MB forward, 0 B reverse

                 forward                        reverse
  capacity       2.5 Mb/s                       unknown: because because
                                                because because because
                                                because because because
                                                because because because
                                                because because because
                                                because because because
                                                because because because
  working delay  round trip idle 44 ms,         idle 14.2 ms, working 38.5 ms;
                 working 101 ms                 R 92 -> 91
  after                                         one two three four five six
                                                seven
  cells          4 of 4

`
	if out.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", out.String(), want)
	}
}

func TestRefusedTrainsArePrintedAsSuch(t *testing.T) {
	fragmented, rate, bound := true, 312_500.0, 1_500.0
	var out bytes.Buffer
	err := printTables(&out, &train.Result{Directions: []*train.Direction{{DirectionName: "forward", Sizes: []*train.Size{
		{PayloadBytes: 1472, PacketBytes: 1500, Median: &rate, Bound: &bound, P5: &rate, P95: &rate, Fragmented: &fragmented, Trains: map[string]int{"clean": 30, "lost": 2}},
		{PayloadBytes: 800, PacketBytes: 828, Refusal: "x", Trains: map[string]int{"sender_pace": 9}},
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"2.5 Mb/s", "±", "± 0.012 Mb/s", "30 clean, 2 with lost packets", "fragmented", "9 sent too slowly"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestCellsOfASweepArePrintedWithTheirBuffersAndModels(t *testing.T) {
	var out bytes.Buffer
	full := tcpsweep.MeasuredCell{
		DirectionName: "reverse", Used: "cubic", Throughput: &[3]float64{1e6, 1.25e6, 1.5e6}, RTT: &[3]float64{0.1, 0.2, 0.3}, RTTMin: new(0.094),
		Retransmitted: new(0.01), Limit: "receive_window", Send: tcpsocket.Buffer{Asked: 1 << 20, Effective: 416 << 10, Clipped: true}, Receive: tcpsocket.Buffer{Effective: 128 << 10},
		Repetitions: []tcpsweep.Repetition{{Models: &tcp.Models{Throughput: map[string]float64{"mathis": 2.5e6}}}},
	}
	if err := printTables(&out, &tcpsweep.Result{Cells: []tcpsweep.MeasuredCell{full, {DirectionName: "forward"}}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"10 Mb/s", "8 Mb/s", "12 Mb/s", "200 ms", "94.000 ms", "1.00 %", "receive window", "1024 KiB (416 KiB, limited)", "auto (128 KiB)", "20 Mb/s", "forward"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// kindOf is the command of this name.
func kindOf(word string) testKind {
	all := testKinds()
	return all[slices.IndexFunc(all, func(k testKind) bool { return k.word == word })]
}

// A test has no flags that have no effect on it.
func TestTestsOfTCPHaveNoFlagsOfPackets(t *testing.T) {
	for _, k := range testKinds() {
		cmd := kingpin.New("oneway", "").Command(k.word, "")
		(&testFlags{}).register(cmd, k)
		key := slices.ContainsFunc(option.All(k.Shared), func(d option.Description) bool { return d.Key == "checksum" })
		if has, want := cmd.GetFlag("checksum") != nil, key && !strings.HasPrefix(k.word, "tcp"); has != want {
			t.Errorf("%s has the flag --checksum: %v, want %v", k.word, has, want)
		}
	}
}

func TestHelpOfTestsNamesThoseWithoutLightPackets(t *testing.T) {
	app := kingpin.New("oneway", "")
	testCommand(app)
	help := app.GetCommand("test").Model().Help
	_, after, _ := strings.Cut(help, "Every test except ")
	names, _, found := strings.Cut(after, " also sends light test packets during the load")
	for _, k := range testKinds() {
		if named := slices.Contains(strings.Split(names, ", "), k.word); !found || named == k.LightPackets || k.word == "train" && !named {
			t.Errorf("%s: %s", k.word, help)
		}
	}
}

func TestSizesOfShortFlowsArePrintedWithTheirIntervals(t *testing.T) {
	var out bytes.Buffer
	full := tcpshort.Size{
		Direction: "reverse", FlowBytes: 10_000, Connect: new(0.02), Retransmitted: new(0.01), Unfinished: 1, Flows: make([]tcpshort.Flow, 20),
		Completion: tcpshort.Completion{Least: new(0.04), Median: &tcpshort.Quantile{Value: 0.05, Lower: 0.045, Upper: new(0.055)}, Tail: &tcpshort.Quantile{Value: 0.08, Lower: 0.07}},
	}
	if err := printTables(&out, &tcpshort.Result{Sizes: []tcpshort.Size{full, {Direction: "forward", FlowBytes: 1_000_000}}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"reverse", "10 kB", "50.000 ms", "45.000 ms to 55.000 ms", "80.000 ms", "70.000 ms to -", "40.000 ms", "20.000 ms", "1.00 %", "1 of 20", "1 MB", "0 of 0"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestTransportsOfMessagesArePrintedInOneTable(t *testing.T) {
	var out bytes.Buffer
	err := printTables(&out, &message.Result{Parts: []message.Part{
		{Direction: "forward", Transport: message.UDP, Sent: new(int64(1000)), PerMessage: new(1.0), Offered: new(51_200.0), Throughput: new(50_000.0), Loss: new(0.02), Delay: &message.Delay{Median: new(0.03), Bound: 0.001}},
		{Direction: "forward", Transport: message.TCP, Sent: new(int64(999)), PerMessage: new(0.4), Retransmitted: new(0.01), RTT: &[3]float64{0.05, 0.06, 0.07}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"UDP ", "1000", "1.00", "409.6 kb/s", "400 kb/s", "2.00 %", "30.0 ms ± 1.0 ms", "TCP with Nagle", "0.40", "1.00 %", "60 ms", "50 ms"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// remoteEnd runs a load server on loopback and returns its address, its pin and a file with a token for it.
func remoteEnd(t *testing.T) (address, pin, token string) {
	t.Helper()
	dir := t.TempDir()
	tokens := filepath.Join(dir, "tokens")
	made, secret, err := loadserver.NewToken("test", loadcontrol.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	token = filepath.Join(dir, "token")
	if err := loadserver.AppendToken(tokens, made); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(token, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	address = freeport.Address(t)
	f := &loadServerFlags{serveFlags: serveFlags{listen: []string{address}, clock: clockFlags{source: "none"}}}
	f.options.TokensFile, f.options.StateDir = tokens, dir
	ctx, cancel := context.WithCancel(t.Context())
	out, ended := &announced{lines: make(chan string, 8)}, make(chan error, 1)
	go func() { ended <- f.run(ctx, out) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("loadserver: %v", err)
		}
	})
	for deadline := time.After(30 * time.Second); ; {
		select {
		case line := <-out.lines:
			if p, ok := strings.CutPrefix(line, "pin "); ok {
				return address, strings.TrimSpace(p), token
			}
		case err := <-ended:
			ended <- err
			t.Fatalf("the load server ended: %v", err)
		case <-deadline:
			t.Fatal("the load server does not start")
		}
	}
}

// announced passes on the output of the load server.
type announced struct{ lines chan string }

func (a *announced) Write(b []byte) (int, error) {
	select {
	case a.lines <- string(b):
	default: // the summary at the end is not read
	}
	return len(b), nil
}

func TestLoadTestRunsFromTheTerminal(t *testing.T) {
	address, pin, token := remoteEnd(t)
	k := kindOf("train")
	o, shared := k.Own.(*train.Options), k.Shared.(*loadsession.Options)
	o.PayloadBytes, o.Trains, o.TrainInterval, o.PathMTU = []int{200}, 3, 20*time.Millisecond, true
	f := &testFlags{directions: both, json: jsonFlag{full: true}, host: address, clock: clockFlags{source: "none"}}
	shared.TokenFile, shared.Pin, shared.MaxWait = token, pin, time.Second
	var out, progress bytes.Buffer
	want := loadtest.Completed
	if err := f.run(t.Context(), k, &out, &progress); err != nil {
		// On a busy host the trains leave with gaps, and none may be clean.
		if want = loadtest.Incomplete; !strings.Contains(err.Error(), "nothing was measured") {
			t.Fatalf("%v\n%s", err, out.String())
		}
	}
	var got struct {
		Result  string       `json:"result"`
		Results train.Result `json:"results"`
	}
	documents.Valid(t, document.Test, out.Bytes())
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("%v in\n%s", err, out.String())
	}
	if got.Result != string(want) || len(got.Results.Directions) != 2 {
		t.Errorf("%+v", got)
	}
	if progress.Len() > 0 {
		t.Errorf("%q was written to an output that is not a terminal", progress.String())
	}
}

func TestLoadTestErrorsHaveCauseAndAdvice(t *testing.T) {
	address, pin, token := remoteEnd(t)
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args   []string
		status int
	}{
		"no token":    {[]string{"test", "train", address, "--pin", pin}, exitUsage},
		"empty token": {[]string{"test", "train", address, "--pin", pin, "--token-file", empty, "--clock=none"}, exitUsage},
		"wrong rate":  {[]string{"test", "saturation", address, "--token-file", token, "--rate-forward", "fast"}, exitUsage},
		"wrong size":  {[]string{"test", "size-sweep", address, "--token-file", token, "--packet-bytes", "3", "--clock=none"}, exitUsage},
		"wrong pin": {[]string{
			"test", "train", address, "--pin", "sha256:" + strings.Repeat("0", 64), "--token-file", token, "--clock=none",
		}, exitFailure},
	} {
		t.Run(name, func(t *testing.T) {
			app := kingpin.New("oneway", "").Terminate(nil).UsageWriter(&bytes.Buffer{}).ErrorWriter(&bytes.Buffer{})
			testCommand(app)
			if got := run(app, c.args); got != c.status {
				t.Errorf("status %d, want %d", got, c.status)
			}
		})
	}
}

func TestTwoWayRunIsPrintedOnOneTimeAxis(t *testing.T) {
	var out bytes.Buffer
	err := printTables(&out, &tcp.Result{
		Directions: []*tcp.Direction{
			{Direction: "reverse", Throughput: new(1e6), Flows: []tcp.Flow{{SenderEnd: &tcp.SenderEnd{Sent: 3e6, CongestionControl: "cubic"}, ReceiverEnd: &tcp.ReceiverEnd{Payload: 3e6}}}},
			{Direction: "forward", Throughput: new(2e5), Flows: []tcp.Flow{{Throughput: new(5e4)}, {Throughput: new(1.5e5)}}},
		},
		TwoWay: &tcp.TwoWay{Begin: 1.25, End: 2.5, Bound: 0.022, Directions: [2]tcp.Part{
			{Direction: "reverse", PerSecond: []float64{1e6, 5e5, 1.25e6}}, {Direction: "forward", PerSecond: []float64{0, 2e5, 1e5}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"reverse    1     3 MB      8 Mb/s", "forward    2     -         1.2 Mb/s", "forward sent from 1.250 s ± 0.022 s to 2.500 s ± 0.022 s of reverse",
		"second  reverse  forward", "2       4 Mb/s   1.6 Mb/s",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	out.Reset()
	if err := printTables(&out, &tcp.Result{}); err != nil || out.Len() > 0 {
		t.Errorf("a run without results: %v, %q", err, out.String())
	}
}
