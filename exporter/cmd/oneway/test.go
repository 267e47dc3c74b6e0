package main

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"oneway.example/exporter/linklease"
	"oneway.example/exporter/loadtest"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes/saturation"
	"oneway.example/exporter/probes/sizesweep"
	"oneway.example/exporter/probes/train"
)

const testHelp = `Run a load test now, from the terminal: fill the link and learn its rate and
queue (saturation), measure sizes by rates (size-sweep), or its capacity by packet trains (train).

The remote end must run a load server ("oneway load-server", or an agent with the section
load server), and have made a token for this client ("oneway token new").

Where an agent runs on this host, it leases the test its link: it says so, none of its own
tests runs on that link meanwhile, what is sent counts in the link's quota of the day, and
oneway_test_running is 1, so that alerts wait. The agent listens at a UNIX socket for root,
its own user, and the group that its flag --test.socket-group names. Which link: that of the
agent's own test to the same remote end, or the one that it has; else --link says it. An agent
that ends meanwhile ends no test. Where none runs, the test runs alone, and says so.

Examples:
  sudo oneway test saturation 192.0.2.7 --token-file token --wait 5m
  sudo oneway test train 192.0.2.7 --token-file token --link uplink
  oneway test train 192.0.2.7 --token-file token --no-agent`

// testFlags are what all load tests take.
type testFlags struct {
	directions string
	json       bool
	noAgent    bool
	socket     string
	options    loadtest.Options
	clock      clockFlags
}

// testKind is one kind of test on the command line: kind checks its own options, print
// writes what it found besides the summary.
type testKind struct {
	word, help string
	options    any // a pointer to the probe's own, which the flags set
	flags      []optionFlag
	kind       func(probe.Env, probe.Target, loadtest.Options) (loadtest.Kind, error)
	print      func(out io.Writer, body any) error
}

// sharedTestFlags are those of loadtest.Options.
var sharedTestFlags = []optionFlag{
	{key: "token_file", help: "File with the token that the load server's owner gave you.", shown: "FILE"},
	{key: "pin", help: "sha256:... of the load server's key, as it prints it.", shown: "PIN"},
	{key: "ca_file", help: "Certificates (PEM) that sign the load server's; without this and --pin, the system's.", shown: "FILE"},
	{key: "cert_file", help: "This client's certificate (PEM), if the load server wants one.", shown: "FILE"},
	{key: "key_file", help: "Its key (PEM).", shown: "FILE"},
	{key: "dscp", help: "DiffServ code point, 0..63."},
	{key: "family", help: "any, ipv4 or ipv6."},
	{key: "local", help: "Address to send from."},
	{key: "no_checksum", help: "Leave the UDP checksum out (IPv4), so that damaged packets arrive and are seen."},
	{key: "link", help: "The link that it fills, by its name in the configuration of this host's agent; without it, the agent finds it.", shown: "NAME"},
	{key: "max_wait", name: "wait", help: "How long to wait for the link, here or at the load server, while another test has it."},
	{key: "timeout", help: "End the run after so long; without it, twice what it should take, and a minute.", shown: "DURATION"},
	{key: "drain_timeout", name: "drain", help: "How long after the last packet others are waited for; longer than the link's queue."},
}

func testCommand(app *kingpin.Application) {
	parent := app.Command("test", testHelp)
	for _, k := range []testKind{saturationTest(), sizeSweepTest(), trainTest()} {
		(&testFlags{}).register(parent.Command(k.word, k.help), k)
	}
}

// both is what --direction says if nothing is said.
const both = "both"

func (f *testFlags) register(cmd *kingpin.CmdClause, k testKind) {
	f.options = loadtest.DefaultOptions()
	f.options.MaxWait = 10 * time.Second
	cmd.Arg("host", "Load server: name or address, with an optional :port (8620).").Required().StringVar(&f.options.LoadServer)
	registerOptions(cmd, k.options, k.flags)
	registerOptions(cmd, &f.options, sharedTestFlags)
	cmd.GetFlag("token-file").Required()
	cmd.Flag("direction", "forward (to the load server), reverse or both, one after the other.").Default(both).EnumVar(&f.directions, both, "forward", "reverse")
	cmd.Flag("agent-socket", "Where the agent of this host leases links.").Default(linklease.DefaultSocket).PlaceHolder("PATH").StringVar(&f.socket)
	cmd.Flag("no-agent", "Do not ask the agent of this host: the test may run beside the agent's own on one link, so that neither tells the truth, the quota does not count it, and alerts do not wait for it.").BoolVar(&f.noAgent)
	cmd.Flag("json", "Print the whole result as JSON, with a row a packet.").BoolVar(&f.json)
	f.clock.register(cmd)
	cmd.Action(interruptible(func(ctx context.Context) error { return f.run(ctx, k, os.Stdout, os.Stderr) }))
}

// run tests and prints. Ctrl-C ends it; what was found is printed.
func (f *testFlags) run(ctx context.Context, k testKind, out, progress io.Writer) error {
	if f.directions != both {
		f.options.Directions = []string{f.directions}
	}
	env, stop, err := environment(f.clock)
	if err != nil {
		return err
	}
	defer stop()
	target := probe.Target{Path: strings.Trim(f.options.LoadServer, "[]"), Probe: k.word, Peer: f.options.LoadServer}
	live, begin := newLiveLine(progress), time.Now()
	lessor, err := f.lessor(ctx, env.Links, &target, live.say)
	if err != nil {
		return err
	}
	kind, err := k.kind(env, target, f.options)
	if err != nil {
		return asUsage(err, append(k.flags, sharedTestFlags...)...)
	}
	outcome, err := loadtest.Once(ctx, env, target, f.options, kind, lessor, func(p loadtest.Progress) {
		live.show(progressLine(p, time.Since(begin)))
	})
	live.clear()
	if outcome == nil {
		return asUsage(err, append(k.flags, sharedTestFlags...)...)
	}
	if printErr := f.print(out, k, outcome); printErr != nil {
		return errors.Join(err, printErr)
	}
	return err
}

// print writes what there is of an outcome, also of one that did not complete.
func (f *testFlags) print(out io.Writer, k testKind, o *loadtest.Outcome) error {
	if f.json {
		return printJSON(out, o)
	}
	if o.Body == nil {
		return nil
	}
	if err := printSummary(out, o); err != nil {
		return err
	}
	if err := k.print(out, o.Body); err != nil {
		return err
	}
	return printLines(out, o.Notes)
}

const testSaturationHelp = `Fill the link with UDP, one direction after the other.

Mode fixed offers one rate, which must be more than the link carries: what comes
through is its rate, and what a full queue adds to the delay of the idle link is the
queue's delay; its size is between what the packets that came through and those that were
dropped met. sweep raises the rate step by step and finds where loss begins; each step is a
burst from an idle link, so that a token bucket, full again, lets more through than it
sustains. search adjusts the rate by delay and loss while one stream runs without a pause
(RFC 9097) and finds what the link sustains when it is full.
Rates and sizes count IP packets, header included, no link layer.

Examples:
  oneway test saturation server.example.net --token-file token --pin sha256:...
  oneway test saturation 192.0.2.7 --token-file token --forward 5Mbit --reverse 12Mbit --duration 5m
  oneway test saturation 192.0.2.7 --token-file token --mode sweep --direction reverse --reverse 3Mbit
  oneway test saturation 192.0.2.7 --token-file token --json > run.json

Exit status: 0 completed, 1 not (the reason is printed, with what was found), 2 usage.`

// saturationTest has its flags in the order of the help.
func saturationTest() testKind {
	o := saturation.DefaultOptions()
	return testKind{
		word: "saturation", help: testSaturationHelp, print: printSaturation, options: &o,
		flags: []optionFlag{
			{key: "mode", help: "fixed, sweep or search."},
			{key: "rate.forward", name: "forward", help: "Rate to offer to the load server, the most of a sweep or search."},
			{key: "rate.reverse", name: "reverse", help: "The same from it."},
			{key: "packet_bytes", help: "Size of the IP packets."},
			{key: "duration", help: "How long each direction is loaded (fixed, search)."},
			{key: "skip", help: "First and last part of the load that says nothing about a full queue."},
			{key: "idle.duration", name: "idle", help: "Time before the load, and again after it, in which single packets find the empty link's delay (fixed)."},
			{key: "idle.interval", help: "Time between those packets, at the mean."},
			{key: "together", help: "Load both directions at the same time (fixed)."},
			{key: "sweep.from.forward", help: "Lowest rate of a sweep to the load server; without it, a tenth of --forward.", shown: "RATE"},
			{key: "sweep.from.reverse", help: "The same from it.", shown: "RATE"},
			{key: "sweep.factor", help: "Each rate of a sweep is so many times the one before."},
			{key: "sweep.step", name: "step", help: "How long each rate of a sweep lasts."},
			{key: "sweep.max_loss", help: "Share of the packets that a step of a sweep may lose and still be lossless, 0..1."},
			{key: "sweep.beyond", help: "So many lossy steps in a row end a sweep; 0: none does."},
			{key: "search.from.forward", help: "Lowest rate of a search to the load server.", shown: "RATE"},
			{key: "search.from.reverse", help: "The same from it.", shown: "RATE"},
			{key: "search.step", help: "Time from one report of a search's receiver to the next."},
			{key: "search.lower", help: "Delay variation below which the rate of a search grows."},
			{key: "search.upper", help: "Delay variation above which it shrinks."},
		},
		kind: func(_ probe.Env, _ probe.Target, shared loadtest.Options) (loadtest.Kind, error) {
			return saturation.NewKind(shared, o)
		},
	}
}

const testSizeSweepHelp = `Measure every combination of packet sizes and packet rates (the sizes and rates of the D-ITG report).

A cell is one size at one rate in one direction. What the sender could not send is
told apart from what the path lost. mean |IPDV| is the mean absolute difference in delay of
packets sent one after the other (RFC 5481). Cells that the token's limits do not allow are left out.

Examples:
  oneway test size-sweep server.example.net --token-file token --pin sha256:...
  oneway test size-sweep 192.0.2.7 --token-file token --size 64 --size 1500 --rate 100 --rate 1000
  oneway test size-sweep 192.0.2.7 --token-file token --cell 10s --repetitions 20 --json > size-sweep.json

Exit status: 0 completed, 1 not (the reason is printed, with what was found), 2 usage.`

func sizeSweepTest() testKind {
	o := sizesweep.DefaultOptions()
	o.CellDuration = 2 * time.Second
	return testKind{
		word: "size-sweep", help: testSizeSweepHelp, print: printSizeSweep, options: &o,
		flags: []optionFlag{
			{key: "packet_bytes", name: "size", help: "Size of the IP packets; repeatable."},
			{key: "packet_rates", name: "rate", help: "Packets a second; repeatable."},
			{key: "cell_duration", name: "cell", help: "How long each cell is loaded."},
			{key: "repetitions", help: "How often each cell is measured."},
			{key: "seed", help: "Of the order of the cells; 0: by chance."},
		},
		kind: func(env probe.Env, target probe.Target, shared loadtest.Options) (loadtest.Kind, error) {
			return sizesweep.NewKind(env, target, shared, o)
		},
	}
}

const testTrainHelp = `Learn the path's capacity from packet trains, which the slowest link spreads.

A train in which something else has set the packets' distances says nothing and is
sent again; where too few are left there is no capacity, but the reason why. The path's MTU
is found first, and trains of larger packets are marked.

Examples:
  oneway test train server.example.net --token-file token --pin sha256:...
  oneway test train 192.0.2.7 --token-file token --size 1472 --size 800 --trains 10 --interval 200ms
  oneway test train 192.0.2.7 --token-file token --json > trains.json

Exit status: 0 completed, 1 not (the reason is printed, with what was found), 2 usage.`

func trainTest() testKind {
	o := train.DefaultOptions()
	o.TrainInterval, o.GroupPause = 200*time.Millisecond, time.Second
	return testKind{
		word: "train", help: testTrainHelp, print: printTrain, options: &o,
		flags: []optionFlag{
			{key: "payload_bytes", name: "size", help: "UDP payload of the packets; repeatable."},
			{key: "trains", help: "Clean trains wanted of each size."},
			{key: "train_packets", name: "packets", help: "Packets in a train."},
			{key: "long_train_packets", name: "long", help: "Packets in three long trains, which look for a token bucket; 0: none."},
			{key: "train_interval", name: "interval", help: "From train to train."},
			{key: "group", help: "So many trains are sent one after the other, before a pause."},
			{key: "group_pause", name: "pause", help: "Silence after each group of trains."},
			{key: "repeats", help: "How many trains of a size may be discarded and sent again."},
			{key: "min_clean", help: "How many clean trains a capacity needs; without it, a third of --trains."},
			{key: "path_mtu", help: "Search for the path's MTU."},
			{key: "max_mtu_bytes", help: "The largest that is tried, in bytes of IP packet."},
		},
		kind: func(_ probe.Env, _ probe.Target, shared loadtest.Options) (loadtest.Kind, error) {
			return train.NewKind(shared, o)
		},
	}
}
