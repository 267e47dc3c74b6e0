package main

import (
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"oneway.example/exporter/agent"
	"oneway.example/exporter/core/document"
	"oneway.example/exporter/core/lightreason"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/families"
	"oneway.example/exporter/output/promsink"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/report"
	"oneway.example/exporter/probe/target"
	"oneway.example/exporter/probes"
	"oneway.example/exporter/serve/httpd"
	"oneway.example/tests/await"
	"oneway.example/tests/documents"
)

// counting is a light probe as a new directory of exporter/probes has it. It sends nothing, and counts what it would have sent.
type counting struct{}

type countingOptions struct {
	Step           int `yaml:"step"`
	target.Options `yaml:",inline"`
}

func (o *countingOptions) Describe() []option.Description {
	return append([]option.Description{option.Number(&o.Step, 1, 1, 10, "The step of the count.")}, o.Options.Describe()...)
}

type countingValues struct {
	// Reached is the number that was reached.
	Reached uint64 `json:"reached_packets"`
}

func (counting) Name() string { return "counting" }

// Document describes the probe and its options in deploy/oneway.yml.
func (counting) Document() (doc string, options []option.Described) {
	o := option.Defaults[countingOptions]()
	return "A count of what the probe would send.", []option.Described{&o}
}

func (counting) New(env probe.Env, to probe.Target, decode func(...any) error) (probe.Prober, error) {
	o := option.Defaults[countingOptions]()
	if err := decode(&o); err != nil {
		return nil, err
	}
	return &countingProber{env, to}, option.Check(&o)
}

func (counting) StatusValues() any { return countingValues{} }

func (counting) Terminal() probe.Measurement {
	return &countingOnce{option.Defaults[countingOptions](), option.Defaults[countingOptions]()}
}

type countingProber struct {
	env probe.Env
	to  probe.Target
}

func (p *countingProber) Run(ctx context.Context) error {
	scope := p.env.Scope(p.to)
	defer scope.Close()
	scope.Set(metric.ProbeUp, 1)
	<-ctx.Done()
	return nil
}

func (*countingProber) Status() probe.Status {
	return probe.Status{Up: true, State: "measuring", LastSuccess: time.Now(), Results: []probe.Result{{Quantity: "count", Value: "seven"}}, Values: countingValues{7}}
}

type countingOnce struct{ own, agent countingOptions }

func (*countingOnce) Command() probe.Command {
	return probe.Command{Help: "Count.", Host: "Any host.", Letters: map[string]rune{"step": 's'}, Document: "counting", Values: countingValues{}}
}

func (c *countingOnce) Options() (own, agent option.Described) { return &c.own, &c.agent }

func (c *countingOnce) Measure(_ context.Context, _ probe.Env, to probe.Target, count uint64, progress func(string)) (probe.Measured, error) {
	progress("counting")
	reached := count * uint64(c.own.Step)
	if reached == 0 {
		return probe.Measured{Failure: lightreason.NotSent, Values: countingValues{}}, fmt.Errorf("%w: nothing to count", probe.ErrNoReply)
	}
	return probe.Measured{
		Sent: count, Received: count, Table: report.Table{Heading: to.Peer + "\n", Rows: [][]string{{"", "count"}, {"reached", fmt.Sprint(reached)}}},
		Notes: []string{"it counts only"}, Values: countingValues{reached},
	}, option.Check(&c.own)
}

// registeredWith are all registered types, with these types of probes instead of the registered ones.
func registeredWith(types ...probe.Type) agent.Types {
	all := families.Types()
	all.Probes = types
	return all
}

// TestLightProbeOfATypeAloneIsEverywhere: a type that is in the registry is in the configuration, the metrics, the status, the page,
// the terminal and the JSON documents.
func TestLightProbeOfATypeAloneIsEverywhere(t *testing.T) {
	types := append(probes.All(), counting{})
	file := write(t, "clock: {source: static, bound: 20us}\npaths:\n- {name: p, peer: h, probes: [{type: counting, step: 7}]}\n")
	sink := promsink.New(promsink.Options{})
	a, err := agent.New(agent.Options{ConfigFile: file, Types: registeredWith(types...), Sink: sink, Notify: func(string) {}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	server := httptest.NewServer(httpd.Handler(httpd.Options{Source: a, Registry: httpd.NewRegistry(), Sink: sink}))
	defer server.Close()
	get := func(path string) string {
		resp, err := server.Client().Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for path, want := range map[string]string{
		"/metrics": `oneway_probe_up{path="p",probe="counting"} 1`, "/api/v1/status": `"values":{"reached_packets":7}`, "/": "seven",
	} {
		await.That(t, want+" in "+path, func() bool {
			return strings.Contains(strings.NewReplacer("\n", "", " 1", " 1", "  ", "", ": ", ":").Replace(get(path)), strings.ReplaceAll(want, ": ", ":"))
		})
	}
	g := generator(types)
	if text, err := g.Schema(document.Status, "/api/v1/status", agent.Status{}, nil); err != nil {
		t.Error(err)
	} else if err := documents.CheckBy(text, []byte(get("/api/v1/status"))); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	wrong := write(t, "paths:\n- {name: p, peer: h, probes: [{type: counting, step: 11}]}\n")
	if _, _, err := agent.Check(agent.Options{ConfigFile: wrong, Types: registeredWith(types...)}); err == nil || !strings.Contains(err.Error(), "probes[0].step is 11; it must be between 1 and 10") {
		t.Error(err)
	}
}

// measured runs a command of the type counting and returns what it prints.
func measured(t *testing.T, args ...string) (printed string, err error) {
	t.Helper()
	app := kingpin.New("oneway", "").Terminate(nil)
	probeCommands(app, []probe.Type{counting{}})
	out, into, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	os.Stdout = into
	_, err = app.Parse(withSummaryFlag(append([]string{"counting", "h", "--clock=none"}, args...)))
	os.Stdout = stdout
	into.Close()
	text, failed := io.ReadAll(out)
	if failed != nil {
		t.Fatal(failed)
	}
	return string(text), err
}

// undated are the fields that differ between two measurements.
var undated = regexp.MustCompile(`"(time|begin|end)": "[^"]*",?`)

func TestLightProbeOfATypeAloneMeasuresFromTheTerminal(t *testing.T) {
	if text, err := measured(t, "-s", "3", "--count=4"); err != nil || !strings.Contains(text, "reached     12") || !strings.Contains(text, "note: it counts only") {
		t.Errorf("%q, %v", text, err)
	}
	if text, err := measured(t, "--step=11"); err == nil || !strings.HasPrefix(err.Error(), "--step is 11; it must be between 1 and 10") {
		t.Errorf("%q, %v", text, err)
	}
	g := generator(nil)
	of := probeSchemas(t, g, part{"clock": part{"type": "string"}, "count": part{"type": "integer"}}, []probe.Type{counting{}})["counting"]
	for count, want := range map[string]string{"4": `"reached_packets": 4`, "0": `"reason": "not_sent"`} {
		text, err := measured(t, "--json", "--count="+count)
		if (err != nil) != (count == "0") || !strings.Contains(text, want) || documents.KindOf([]byte(text)) != "counting" {
			t.Errorf("count %s: %s, %v", count, text, err)
		}
		if err := documents.CheckBy(of, []byte(text)); err != nil {
			t.Error(err)
		}
		if summary, _ := measured(t, "--json=summary", "--count="+count); undated.ReplaceAllString(summary, "") != undated.ReplaceAllString(text, "") {
			t.Errorf("count %s: --json=summary prints %s, --json %s", count, summary, text)
		}
	}
}
