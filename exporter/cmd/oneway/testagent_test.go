package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/exporter-toolkit/web"

	"oneway.example/exporter/agent/linklease"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/load/loadsession"
	"oneway.example/exporter/probe/link"
	"oneway.example/exporter/probes/saturation"
	"oneway.example/exporter/probes/tcpshort"
	"oneway.example/tests/await"
	"oneway.example/tests/freeport"
)

// host is this host with a load server, and optionally an agent.
type host struct {
	*whole
	address, pin, token string
	dir, socket         string
	stop                func()
}

// newHost makes a host without an agent.
func newHost(t *testing.T) *host {
	t.Helper()
	dir, err := os.MkdirTemp("", "oneway") // the path of a UNIX socket has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	h := &host{dir: dir, socket: filepath.Join(dir, "agent.sock")}
	h.address, h.pin, h.token = remoteEnd(t)
	return h
}

// office is a configuration with a load test to the load server that is never due.
func (h *host) office(quota string) string {
	return fmt.Sprintf(`clock: {source: none}
state_dir: %s
links: [{name: uplink, quota_bytes: %s}, {name: lab}]
paths: [{name: office, peer: 127.0.0.1, probes: [{type: saturation, every: 168h, windows: ["sun 00:00-00:01"], link: uplink, load_server: %q, token_file: %s, pin: %q, rate: {forward: 1Mbit, reverse: 1Mbit}}]}]
`, h.dir, quota, h.address, h.token, h.pin)
}

// agent starts an agent that runs until the end of the test or stop.
func (h *host) agent(t *testing.T, config string) {
	t.Helper()
	at := freeport.Address(t)
	h.whole = &whole{t: t, file: write(t, config), url: "http://" + at}
	f := &agentFlags{
		classic: true, native: true,
		config: h.file, socket: h.socket,
		web: &web.FlagConfig{WebListenAddresses: &[]string{at}, WebSystemdSocket: new(bool), WebConfigFile: new(string)},
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f.run(ctx, slog.New(slog.DiscardHandler)) }()
	h.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the agent ended with %v", err)
		}
	})
	t.Cleanup(h.stop)
	waitFor(t, h.url+"/-/ready", func(string) bool { return true })
	await.That(t, "the agent listens on its socket", func() bool {
		c, err := net.Dial("unix", h.socket) // the file exists before
		if err == nil {
			err = c.Close()
		}
		return err == nil
	})
}

// reporter stores the lines that a test writes to standard error.
type reporter struct{ await.Text }

// says waits until the test has written this text.
func (r *reporter) says(t *testing.T, what string) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("written:\n%s", r)
		}
	})
	await.That(t, fmt.Sprintf("%q is written", what), func() bool { return strings.Contains(r.String(), what) })
}

// running is one `oneway test`.
type running struct {
	said  *reporter
	stop  func() // has the effect of Ctrl-C
	ended chan error
}

// load starts a test of the given number of seconds at 125 kB/s, forward.
func (h *host) load(t *testing.T, seconds int, change func(*testFlags, *loadsession.Options)) *running {
	t.Helper()
	k := kindOf("saturation")
	o := k.Own.(*saturation.Options)
	o.Rate = option.PerDirection{Forward: 125_000, Reverse: 125_000}
	o.Duration, o.Skip = time.Duration(seconds)*time.Second, 200*time.Millisecond
	o.Idle.Duration, o.Idle.Interval = 200*time.Millisecond, 20*time.Millisecond
	return h.start(t, k, change)
}

// start starts a test, forward.
func (h *host) start(t *testing.T, k testKind, change func(*testFlags, *loadsession.Options)) *running {
	t.Helper()
	f := &testFlags{directions: "forward", agent: true, socket: h.socket, host: h.address, clock: clockFlags{source: "none"}}
	o := k.Shared.(*loadsession.Options)
	o.TokenFile, o.Pin, o.MaxWait, o.DrainTimeout = h.token, h.pin, 30*time.Second, time.Second
	if change != nil {
		change(f, o)
	}
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	r := &running{said: &reporter{}, stop: stop, ended: make(chan error, 1)}
	go func() { r.ended <- f.run(ctx, k, io.Discard, r.said) }()
	return r
}

// finish waits for the end of the test and returns its lines.
func (r *running) finish(t *testing.T) (string, error) {
	t.Helper()
	select {
	case err := <-r.ended:
		return r.said.String(), err
	case <-time.After(time.Minute):
		t.Fatalf("the test has not ended\n%s", r.said)
		return "", nil
	}
}

// gauge is a value of a metric of the agent.
func (h *host) gauge(d *metric.Desc, labels ...string) float64 {
	m := find(h.scrape()[d.Name], labels...)
	return m.GetGauge().GetValue() + m.GetCounter().GetValue()
}

func (h *host) wants(d *metric.Desc, want float64, labels ...string) {
	h.t.Helper()
	await.That(h.t, fmt.Sprintf("%s of %v is %v", d.Name, labels, want), func() bool { return h.gauge(d, labels...) == want })
}

func TestTestWithoutAnAgentReportsThatItRunsAlone(t *testing.T) {
	h := newHost(t)
	if said, err := h.load(t, 1, nil).finish(t); err != nil || !strings.HasPrefix(said, "No agent runs on this host (") || !strings.Contains(said, "the link is not reserved") {
		t.Errorf("%q, %v", said, err)
	}
	if said, err := h.load(t, 1, func(f *testFlags, _ *loadsession.Options) { f.agent = false }).finish(t); err != nil || said != "" {
		t.Errorf("%q, %v", said, err)
	}
}

// The word of a command has a hyphen where the type in a configuration has an underscore.
func TestTestCountsAsThatOfTheAgentOfTheSameType(t *testing.T) {
	h := newHost(t)
	h.agent(t, strings.NewReplacer("type: saturation", "name: pages, type: tcp_short", ", rate: {forward: 1Mbit, reverse: 1Mbit}", "").Replace(h.office("1GB")))
	k := kindOf("tcp-short")
	o := k.Own.(*tcpshort.Options)
	o.FlowBytes, o.Repetitions = []option.Bytes{1000}, 8
	if said, err := h.start(t, k, nil).finish(t); err != nil || !strings.Contains(said, "leases link uplink, for path office and probe pages: ") {
		t.Errorf("%q, %v", said, err)
	}
}

// test --help: the agent's link, its quota, and oneway_test_running.
func TestTestBesideAnAgentHasItsLinkItsQuotaAndItsMetric(t *testing.T) {
	h := newHost(t)
	h.agent(t, h.office("10MB"))
	office := []string{"office", "saturation", "uplink"}
	first := h.load(t, 60, nil)
	h.wants(metric.TestRunning, 1, office...)
	if !strings.Contains(first.said.String(), "leases link uplink, for path office and probe saturation: 10 MB of today's quota of 10 MB are left") {
		t.Errorf("written: %q", first.said)
	}
	h.wants(metric.QuotaUsed, 0, "uplink")
	await.That(h.t, "bytes are reserved", func() bool { return h.gauge(metric.QuotaLeft, "uplink") < 10e6 })
	second := h.load(t, 1, nil)
	second.said.says(t, "Waiting for link uplink, for at most 30s: office/saturation (oneway test, process ")
	if _, err := h.load(t, 1, func(_ *testFlags, o *loadsession.Options) { o.MaxWait = 0 }).finish(t); err == nil ||
		!strings.Contains(err.Error(), "link uplink was not free in 0s, it is held by office/saturation (oneway test") || !strings.Contains(err.Error(), "--max-wait") {
		t.Errorf("error is %v", err)
	}
	// The remote end has one link only, so a refusal by the remote end shows that the local link was leased.
	if _, err := h.load(t, 1, func(_ *testFlags, o *loadsession.Options) { o.Link, o.MaxWait = "lab", 0 }).finish(t); err == nil || strings.Contains(err.Error(), "uplink") {
		t.Errorf("error of a test on another link is %v", err)
	}
	// The prober of the same path is restarted meanwhile.
	if err := os.WriteFile(h.file, []byte(strings.Replace(h.office("20MB"), "168h", "167h", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	h.wants(metric.QuotaLimit, 20e6, "uplink")
	h.wants(metric.TestRunning, 1, office...)
	first.stop()
	if said, err := first.finish(t); err == nil || !strings.Contains(said, "of today's quota of 20 MB are left") {
		t.Errorf("%q, %v", said, err)
	}
	if said, err := second.finish(t); err != nil || !strings.Contains(said, "leases link uplink") {
		t.Errorf("%q, %v", said, err)
	}
	h.wants(metric.TestRunning, 0, office...)
	sent := h.gauge(metric.RunBytes, "office", "saturation", "forward")
	if sent < 120_000 || sent > 62*130_000 {
		t.Errorf("%v bytes were sent, want those of one second and a part of 60 s at 125 kB/s", sent)
	}
	sent += h.gauge(metric.RunBytes, "office", "saturation", "reverse") // replies to the light packets during the load
	h.wants(metric.QuotaUsed, sent, "uplink")
	h.wants(metric.QuotaLeft, 20e6-sent, "uplink")
}

func TestExhaustedQuotaIsNotAnUnlimitedQuota(t *testing.T) {
	links := link.NewTable(nil)
	b := &lessee{links: links}
	for _, c := range []struct{ limit, left, want int64 }{{100, 0, 0}, {100, 40, 40}, {100, 0, 0}, {0, 0, math.MaxInt64}, {7, 7, 7}} {
		if err := b.mirror(linklease.Terms{Labels: linklease.Labels{Link: "uplink"}, Limit: c.limit, Left: c.left}); err != nil {
			t.Fatal(err)
		}
		if got := links.Usage("uplink").Left; got != c.want {
			t.Errorf("%+v: %d bytes are left", c, got)
		}
	}
}

func TestTestBeyondTheAgentsQuotaDoesNotRun(t *testing.T) {
	h := newHost(t)
	h.agent(t, h.office("8MB"))
	said, err := h.load(t, 100, nil).finish(t)
	if err == nil || !strings.Contains(err.Error(), "the data quota of uplink (quota_bytes under links in the agent's configuration) has 8 MB left, ") || !strings.Contains(err.Error(), "renewed at") {
		t.Errorf("%q, %v", said, err)
	}
	h.wants(metric.QuotaUsed, 0, "uplink")
	if n := h.gauge(metric.RunBytes, "office", "saturation", "forward"); n != 0 {
		t.Errorf("%v bytes were sent", n)
	}
	if _, err := h.load(t, 1, func(_ *testFlags, o *loadsession.Options) { o.Link = "uplnk" }).finish(t); err == nil ||
		!strings.Contains(err.Error(), `knows no link uplnk; did you mean "uplink"?`) || !strings.Contains(err.Error(), "--no-agent") {
		t.Errorf("error is %v", err)
	}
}

func TestTestOutlivesItsAgentAndTheNextLeasesAgain(t *testing.T) {
	h := newHost(t)
	h.agent(t, h.office("10MB"))
	one := h.load(t, 60, nil)
	h.wants(metric.TestRunning, 1, "office", "saturation", "uplink")
	h.stop()
	one.said.says(t, "has ended, or has taken link uplink back: this test goes on")
	h.agent(t, h.office("10MB"))
	h.wants(metric.TestRunning, 1, "office", "saturation", "uplink")
	one.said.says(t, "leases link uplink again")
	one.stop()
	if said, err := one.finish(t); err == nil || !strings.Contains(said, "of today's quota of 10 MB are left") {
		t.Errorf("%q, %v", said, err)
	}
	h.wants(metric.TestRunning, 0, "office", "saturation", "uplink")
	// The first agent did not see the end of the test and counts all reserved bytes as used.
	if used := h.gauge(metric.QuotaUsed, "uplink"); used < 60*125_000 || used > 10e6 {
		t.Errorf("%v bytes are used, want those of 60 s at 125 kB/s", used)
	}
}
