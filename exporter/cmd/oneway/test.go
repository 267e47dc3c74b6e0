package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"oneway.example/exporter/agent/linklease"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes"
)

// testHelp is the help text, with the tests that send no light packets.
const testHelp = `Run a load test from the terminal.

A load test saturates the link, or sends as much as an application would, to measure throughput, queueing,
capacity and what TCP achieves.

For a test with the flag --token-file the remote end must run a load server ("oneway load-server", or an
agent with the section load_server) and provide a token for this client ("oneway token new").

If an agent runs on this host, the test leases its link from the agent and prints this:
none of the agent's tests runs on that link meanwhile, the bytes sent count in the link's
quota of the day, oneway_test_running is 1, and alerts of loss and delay of the paths over
the link do not start. The agent listens on a UNIX socket for root, its own user, and the
group of its flag --test.socket-group. Each test's flag --link tells which link it is. If the
agent ends, the test continues. Without an agent, the test runs alone and prints this.

Every test%s also sends light test packets during the load, and for %v before it, to a
reflector that the load server opens for the session on one of its UDP ports (see its flag --ports). "Working delay"
compares the delay during the load with the delay of the idle link, and the R factor that a concurrent call
would get.

Examples:
  sudo oneway test saturation 192.0.2.7 --token-file token --max-wait 5m --rate-forward 5Mbit --rate-reverse 12Mbit
  sudo oneway test train 192.0.2.7 --token-file token --link uplink
  oneway test train 192.0.2.7 --token-file token --no-agent`

// testFlags are the flags of all load tests.
type testFlags struct {
	directions string
	json       jsonFlag
	agent      bool
	socket     string
	host       string
	clock      clockFlags
}

// testKind is one kind of load test on the command line.
type testKind struct {
	name, word string // name is that of the type, word the command
	*loadtest.CommandLine
}

// flagOf is the flag of a key, or the word for the remote end.
func (k testKind) flagOf(key string) string {
	if key == k.RemoteKey {
		key = probe.PeerKey
	}
	return flagOf(key)
}

// missing is the error of required options that have no value.
func (k testKind) missing() error {
	given := func(key string) bool {
		return slices.ContainsFunc(option.All(k.Shared), func(d option.Description) bool {
			return d.Key == key && !reflect.ValueOf(d.Pointer()).Elem().IsZero()
		})
	}
	var errs []error
	for _, r := range k.Required {
		errs = append(errs, r.Check(given))
	}
	return errors.Join(errs...)
}

// testKinds are those of the commands, in the order of the help text.
func testKinds() (all []testKind) {
	for _, t := range probes.All() {
		if c, ok := t.(loadtest.Commander); ok {
			all = append(all, testKind{t.Name(), strings.ReplaceAll(t.Name(), "_", "-"), c.Command()})
		}
	}
	return all
}

func testCommand(app *kingpin.Application) {
	kinds := testKinds()
	var alone []string
	for _, k := range kinds {
		if !k.LightPackets {
			alone = append(alone, k.word)
		}
	}
	except := ""
	if len(alone) > 0 {
		except = " except " + strings.Join(alone, ", ")
	}
	parent := app.Command("test", fmt.Sprintf(testHelp, except, loadtest.IdleTime))
	for _, k := range kinds {
		(&testFlags{}).register(parent.Command(k.word, k.Help), k)
	}
}

// Values of --direction with both directions; both is the default.
const (
	both           = "both"
	reverseForward = "reverse-forward"
)

func (f *testFlags) register(cmd *kingpin.CmdClause, k testKind) {
	host := "The remote end: a name or address."
	if k.RemoteKey != "" {
		host = keyOf(option.All(k.Shared), k.RemoteKey).Doc(k.flagOf)
	}
	cmd.Arg("host", host).Required().StringVar(&f.host)
	registerOptions(cmd, k.flagOf, k.Own, k.AgentOwn)
	registerOptions(cmd, k.flagOf, k.Shared, k.AgentShared, k.Unused...)
	if k.SetDirections != nil {
		cmd.Flag("direction", "Direction: forward (to the remote end), reverse, both, one after the other, or reverse-forward, the same in this order.").Default(both).EnumVar(&f.directions, both, sample.Forward.String(), sample.Reverse.String(), reverseForward)
	}
	cmd.Flag("agent-socket", "UNIX socket on which the agent of this host leases links. Default: "+linklease.DefaultSocket+".").Default(linklease.DefaultSocket).PlaceHolder("PATH").StringVar(&f.socket)
	cmd.Flag("agent", "Lease the link from the agent of this host, if one runs. With --no-agent the test may run at the same time as a test of the agent on the same link, which invalidates both; the quota does not count it, and alerts are not inhibited.").Default("true").BoolVar(&f.agent)
	f.json.register(cmd, "Print the complete result as JSON, with a row per packet, or sample of a TCP flow; --json=summary leaves out the rows.")
	f.clock.register(cmd)
	cmd.Action(interruptible(func(ctx context.Context) error { return f.run(ctx, k, os.Stdout, os.Stderr) }))
}

// run runs the test and prints its results. Ctrl-C ends it; the results so far are printed.
func (f *testFlags) run(ctx context.Context, k testKind, out, progress io.Writer) error {
	outcome, err := f.measure(ctx, k, progress)
	if f.json.wanted() {
		return f.json.printed(out, f.document(ctx, k, outcome, err), err)
	}
	if outcome == nil {
		return err
	}
	if printErr := printOutcome(out, outcome); printErr != nil {
		return errors.Join(err, printErr)
	}
	return err
}

// measure runs the test. Without an outcome it did not come to a run.
func (f *testFlags) measure(ctx context.Context, k testKind, progress io.Writer) (*loadtest.Outcome, error) {
	if err := k.missing(); err != nil {
		return nil, asUsage(err, k.flagOf)
	}
	if k.SetRemote != nil {
		k.SetRemote(f.host)
	}
	if k.SetDirections != nil && f.directions != both {
		k.SetDirections(strings.Split(f.directions, "-"))
	}
	env, stop, err := environment(f.clock)
	if err != nil {
		return nil, err
	}
	defer stop()
	target := probe.Target{Path: strings.Trim(f.host, "[]"), Probe: k.name, Peer: f.host}
	live, begin := newLiveLine(progress), time.Now()
	defer live.announceEnd(ctx)()
	test, err := k.Make(target)
	if err != nil {
		return nil, asUsage(err, k.flagOf)
	}
	lessor, err := f.lessor(ctx, test, k.Run, env.Links, &target, live.say)
	if err != nil {
		return nil, err
	}
	outcome, err := loadtest.RunOnce(ctx, env, target, *k.Run, test, lessor, func(p loadtest.Progress) {
		if p.Share <= 0 {
			begin = time.Now() // waiting, connecting and the idle link are no part of the share
		}
		live.show(progressLine(p, time.Since(begin), live.width))
	})
	live.clear()
	if outcome == nil {
		return nil, asUsage(err, k.flagOf)
	}
	return outcome, err
}

// printOutcome writes the available results of an outcome, also of an incomplete one.
func printOutcome(out io.Writer, o *loadtest.Outcome) error {
	if o.Body == nil {
		return nil
	}
	if err := printSummary(out, o); err != nil {
		return err
	}
	if err := printTables(out, o.Body); err != nil {
		return err
	}
	return printLines(out, o.Notes)
}

// printTables writes the tables of results.
func printTables(out io.Writer, results any) error {
	tabled, ok := results.(loadtest.Tabled)
	if !ok {
		return nil
	}
	for _, one := range tabled.Tables() {
		t := newTable(out, "%s", one.Heading)
		if len(one.Columns) > 0 {
			t.names(one.Columns...)
		}
		t.rows = append(t.rows, one.Rows...)
		if err := t.end(); err != nil {
			return err
		}
	}
	return nil
}
