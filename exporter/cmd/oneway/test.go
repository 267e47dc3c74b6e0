package main

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"oneway.example/exporter/agent/linklease"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/load/loadsession"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes/saturation"
	"oneway.example/exporter/probes/sizesweep"
	"oneway.example/exporter/probes/train"
)

const testHelp = `Run a load test from the terminal: fill the link and measure its rate and queue (saturation),
measure packet sizes by packet rates (size-sweep), measure the capacity by packet trains (train), or
measure what TCP achieves (tcp), also by the sizes of its buffers (tcp-sweep), how long short flows take
(tcp-short), or UDP against TCP with messages of one size (message).

The remote end must run a load server ("oneway load-server", or an agent with the section
load_server) and provide a token for this client ("oneway token new").

If an agent runs on this host, the test leases its link from the agent and prints this:
none of the agent's tests runs on that link meanwhile, the bytes sent count in the link's
quota of the day, oneway_test_running is 1, and alerts of loss and delay of the paths over
the link do not start. The agent listens on a UNIX socket for root, its own user, and the
group of its flag --test.socket-group. The link is the one of the agent's own test to the
same remote end, the first of its path to that host, or the only one that the agent has;
otherwise --link is required. If the agent ends, the test continues. Without an agent, the
test runs alone and prints this.

Light test packets go beside each load but that of trains, and for two seconds before it, to a
reflector that the load server opens for the session on one of its UDP ports (8621 to 8640): "working
delay" is the delay and the rating R of a call that others have meanwhile, against those of the idle link.

Examples:
  sudo oneway test saturation 192.0.2.7 --token-file token --max-wait 5m
  sudo oneway test train 192.0.2.7 --token-file token --link uplink
  oneway test train 192.0.2.7 --token-file token --no-agent`

// testFlags are the flags of all load tests.
type testFlags struct {
	directions string
	json       bool
	agent      bool
	socket     string
	options    loadsession.Options
	clock      clockFlags
}

// testKind is one kind of load test on the command line: print writes its results besides the summary. The others than
// help and print are from its type (testOf).
type testKind struct {
	name, word, help string           // name is that of the type, word the command
	options          option.Described // of the probe, which the flags set
	agent            option.Described // the defaults of the agent
	unused           []string         // keys of loadsession.Options without effect
	test             func(probe.Target, loadsession.Options) (loadtest.Test, error)
	print            func(out io.Writer, body any) error
}

// testOf completes a kind by its type, with these defaults of its flags.
func testOf[O any, P interface {
	*O
	option.Described
}](t loadsession.Type[O], own O, k testKind) testKind {
	agent := t.Defaults()
	k.name, k.word, k.options, k.agent, k.unused = t.TypeName, strings.ReplaceAll(t.TypeName, "_", "-"), P(&own), P(&agent), t.Unused
	k.test = func(target probe.Target, shared loadsession.Options) (loadtest.Test, error) {
		return t.Make(target, shared, own)
	}
	return k
}

// testKinds are those of the commands, in the order of the help text.
func testKinds() []testKind {
	return []testKind{saturationTest(), sizeSweepTest(), trainTest(), tcpTest(), tcpSweepTest(), tcpShortTest(), messageTest()}
}

func testCommand(app *kingpin.Application) {
	parent := app.Command("test", testHelp)
	for _, k := range testKinds() {
		(&testFlags{}).register(parent.Command(k.word, k.help), k)
	}
}

// Values of --direction with both directions; both is the default.
const (
	both           = "both"
	reverseForward = "reverse-forward"
)

func (f *testFlags) register(cmd *kingpin.CmdClause, k testKind) {
	agent := loadsession.DefaultOptions()
	f.options = agent
	f.options.MaxWait = 10 * time.Second
	cmd.Arg("host", "Load server: name or address, with an optional :port (8620).").Required().StringVar(&f.options.LoadServer)
	registerOptions(cmd, k.options, k.agent)
	registerOptions(cmd, &f.options, &agent, k.unused...)
	cmd.GetFlag("token-file").Required()
	cmd.Flag("direction", "Direction: forward (to the load server), reverse, both, one after the other, or reverse-forward, the same in this order.").Default(both).EnumVar(&f.directions, both, "forward", "reverse", reverseForward)
	cmd.Flag("agent-socket", "UNIX socket on which the agent of this host leases links. Default: "+linklease.DefaultSocket+".").Default(linklease.DefaultSocket).PlaceHolder("PATH").StringVar(&f.socket)
	cmd.Flag("agent", "Lease the link from the agent of this host, if one runs. With --no-agent the test may run at the same time as a test of the agent on the same link, which invalidates both; the quota does not count it, and alerts are not inhibited.").Default("true").BoolVar(&f.agent)
	cmd.Flag("json", "Print the complete result as JSON, with a row per packet, or sample of a TCP flow.").BoolVar(&f.json)
	f.clock.register(cmd)
	cmd.Action(interruptible(func(ctx context.Context) error { return f.run(ctx, k, os.Stdout, os.Stderr) }))
}

// run runs the test and prints its results. Ctrl-C ends it; the results so far are printed.
func (f *testFlags) run(ctx context.Context, k testKind, out, progress io.Writer) error {
	outcome, err := f.measure(ctx, k, progress)
	if f.json {
		return printed(out, f.document(ctx, k, outcome, err), err)
	}
	if outcome == nil {
		return err
	}
	if printErr := f.print(out, k, outcome); printErr != nil {
		return errors.Join(err, printErr)
	}
	return err
}

// measure runs the test. Without an outcome it did not come to a run.
func (f *testFlags) measure(ctx context.Context, k testKind, progress io.Writer) (*loadtest.Outcome, error) {
	if f.directions != both {
		f.options.Directions = strings.Split(f.directions, "-")
	}
	env, stop, err := environment(f.clock)
	if err != nil {
		return nil, err
	}
	defer stop()
	target := probe.Target{Path: strings.Trim(f.options.LoadServer, "[]"), Probe: k.name, Peer: f.options.LoadServer}
	live, begin := newLiveLine(progress), time.Now()
	defer live.announceEnd(ctx)()
	test, err := k.test(target, f.options)
	if err != nil {
		return nil, asUsage(err)
	}
	lessor, err := f.lessor(ctx, test, env.Links, &target, live.say)
	if err != nil {
		return nil, err
	}
	outcome, err := loadtest.RunOnce(ctx, env, target, f.options.Options, test, lessor, func(p loadtest.Progress) {
		if p.Share <= 0 {
			begin = time.Now() // waiting, connecting and the idle link are no part of the share
		}
		live.show(progressLine(p, time.Since(begin), live.width))
	})
	live.clear()
	if outcome == nil {
		return nil, asUsage(err)
	}
	return outcome, err
}

// print writes the available results of an outcome, also of an incomplete one.
func (f *testFlags) print(out io.Writer, k testKind, o *loadtest.Outcome) error {
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

const testSaturationHelp = `Fill the link with UDP packets, one direction after the other.

Mode fixed offers one rate, which must exceed the rate of the link. The received rate is
the rate of the link, and the delay of the full queue minus that of the idle link is the
queueing delay; the queue size is estimated from the levels that delivered and dropped
packets met. Mode sweep raises the rate step by step and finds the rate at which loss
begins; each step starts on an idle link, so that a refilled token bucket passes more than
its sustained rate. Mode search adjusts the rate of one uninterrupted stream by delay and
loss (RFC 9097) and finds the sustained rate of the full link.

Rates and sizes count IP packets, header included, without the link layer.

Examples:
  oneway test saturation server.example.net --token-file token --pin sha256:...
  oneway test saturation 192.0.2.7 --token-file token --rate-forward 5Mbit --rate-reverse 12Mbit --duration 5m
  oneway test saturation 192.0.2.7 --token-file token --mode sweep --direction reverse --rate-reverse 3Mbit
  oneway test saturation 192.0.2.7 --token-file token --json > run.json

Exit status: 0 completed, 1 not completed (prints the reason and partial results), 2 wrong usage.`

// saturationTest has its flags in the order of the help text.
func saturationTest() testKind {
	return testOf(saturation.New(), saturation.DefaultOptions(), testKind{
		help: testSaturationHelp, print: printSaturation,
	})
}

const testSizeSweepHelp = `Measure every combination of packet sizes and packet rates (defaults from the D-ITG report).

A cell is one size at one rate in one direction. Packets that the sender could not send are
counted separately from packets that the path lost. mean |IPDV| is the mean absolute
difference in delay of consecutive packets (RFC 5481). Cells beyond the token's limits are left out.

Examples:
  oneway test size-sweep server.example.net --token-file token --pin sha256:...
  oneway test size-sweep 192.0.2.7 --token-file token --packet-bytes 64 --packet-bytes 1500 --packet-rates 100 --packet-rates 1000
  oneway test size-sweep 192.0.2.7 --token-file token --cell-duration 10s --repetitions 20 --json > size-sweep.json

Exit status: 0 completed, 1 not completed (prints the reason and partial results), 2 wrong usage.`

func sizeSweepTest() testKind {
	o := sizesweep.DefaultOptions()
	o.CellDuration = 2 * time.Second
	return testOf(sizesweep.New(), o, testKind{
		help: testSizeSweepHelp, print: printSizeSweep,
	})
}

const testTrainHelp = `Measure the capacity of the path by packet trains, which the slowest link disperses.

A train whose packet spacing has another cause is discarded and sent again; with too few
clean trains there is no capacity, and the reason is printed. The path's MTU is measured
first, and trains of larger packets are marked as fragmented.

Examples:
  oneway test train server.example.net --token-file token --pin sha256:...
  oneway test train 192.0.2.7 --token-file token --payload-bytes 1472 --payload-bytes 800 --trains 10 --train-interval 200ms
  oneway test train 192.0.2.7 --token-file token --json > trains.json

Exit status: 0 completed, 1 not completed (prints the reason and partial results), 2 wrong usage.`

func trainTest() testKind {
	o := train.DefaultOptions()
	o.TrainInterval, o.GroupPause = 200*time.Millisecond, time.Second
	return testOf(train.New(), o, testKind{
		help: testTrainHelp, print: printTrain,
	})
}
