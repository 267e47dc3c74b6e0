package agent

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oneway.example/exporter/agent/config"
	"oneway.example/exporter/agent/linklease"
	"oneway.example/exporter/probe"
	"oneway.example/tests/await"
)

// fills is a prober of load tests that never runs.
type fills struct {
	probe.Prober
	probe.LinkUse
}

func (f fills) UsedLink() probe.LinkUse { return f.LinkUse }

// loadTestJob is a job of a load test to port 8620 of a host.
func loadTestJob(path, name, kind, link, host string) job {
	return jobOf(probe.Target{Path: path, Probe: name}, fills{LinkUse: probe.LinkUse{Kind: kind, Link: link, Host: host, Port: 8620}})
}

func jobOf(target probe.Target, p probe.Prober) job {
	j := job{task: &task{target: target}}
	j.current.Store(&run{runner: p})
	return j
}

func TestTestFromTheTerminalFindsItsLink(t *testing.T) {
	to := func(host, link string) linklease.Test {
		return linklease.Test{Kind: "train", Host: host, Port: 8620, Link: link}
	}
	office := []job{loadTestJob("office", "capacity", "train", "uplink", "Core.example.net."), loadTestJob("office", "saturation", "saturation", "uplink", "core.example.net")}
	const (
		peers = "paths: [" +
			"{name: a, peer: a.example.net:862, probes: []}, {name: b, peer: '[2001:db8::7]', probes: []}, {name: c, peer: '[2001:db8::8]:862', probes: []}]\n"
		uplink = "links: [{name: uplink}]\n"
	)
	for name, c := range map[string]struct {
		config string
		jobs   []job
		test   linklease.Test
		want   linklease.Labels
		says   string
	}{
		"its own test":         {jobs: office, test: to("core.example.net", ""), want: linklease.Labels{Path: "office", Probe: "capacity", Link: "uplink"}},
		"another test":         {jobs: office[1:], test: to("core.example.net", ""), want: linklease.Labels{Path: "office", Probe: "train", Link: "uplink"}},
		"the only link":        {jobs: office, test: to("other.example.net", ""), want: linklease.Labels{Path: terminal, Probe: "train", Link: "uplink"}},
		"another port":         {jobs: office, test: linklease.Test{Kind: "train", Host: "core.example.net", Port: 1}, want: linklease.Labels{Path: terminal, Probe: "train", Link: "uplink"}},
		"the only link listed": {config: uplink + peers, test: to("a.example.net", ""), want: linklease.Labels{Path: "a", Probe: "train", Link: "uplink"}},
		"the load server's":    {config: "load_server: {}\n", test: to("x", ""), want: linklease.Labels{Path: terminal, Probe: "train", Link: "load_server"}},
		"no link, a path":      {config: peers, test: to("2001:db8::7", ""), want: linklease.Labels{Path: "b", Probe: "train", Link: "b"}},
		"no link, a port":      {config: peers, test: to("2001:db8::8", ""), want: linklease.Labels{Path: "c", Probe: "train", Link: "c"}},
		"nothing":              {test: to("x", ""), want: linklease.Labels{Path: terminal, Probe: "train", Link: terminal}},
		"nothing, named":       {test: to("x", "mine"), want: linklease.Labels{Path: terminal, Probe: "train", Link: "mine"}},
		"named":                {config: uplink + "load_server: {link: down}\n", test: to("x", "down"), want: linklease.Labels{Path: terminal, Probe: "train", Link: "down"}},
		"unknown": {
			config: uplink, jobs: office, test: to("core.example.net", "uplnk"), says: `knows no link uplnk; did you mean "uplink"?`,
		},
		"which": {
			config: "links: [{name: lab}]\n", jobs: office, test: to("x", ""), says: "has the links lab, uplink, and no load test to x; select one with --link",
		},
		"which of two": {
			jobs: append(office, loadTestJob("radio", "train", "train", "radio", "core.example.net")),
			test: to("core.example.net", ""), says: "on the links uplink and radio; select one",
		},
		"that of two": {
			jobs: append(office, loadTestJob("radio", "train", "train", "radio", "core.example.net")),
			test: to("core.example.net", "radio"), want: linklease.Labels{Path: "radio", Probe: "train", Link: "radio"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			file, err := config.Parse("x.yml", []byte("clock: {}\n"+c.config))
			p := &plan{serves: file.LoadServer.Given(), jobs: append(c.jobs, jobOf(probe.Target{}, &fakeProber{}))}
			if err = errors.Join(err, p.shared.decode(file), p.loadServer.decode(file)); err != nil {
				t.Fatal(err)
			}
			for _, path := range file.Paths {
				p.jobs = append(p.jobs, jobOf(probe.Target{Path: path.Name, Peer: path.Peer}, &fakeProber{}))
			}
			a := &Agent{inForce: p}
			got, err := a.place(c.test)
			if c.says != "" {
				if err == nil || !strings.Contains(err.Error(), c.says) {
					t.Errorf("got %+v, %v", got, err)
				}
				return
			}
			if err != nil || got != c.want {
				t.Errorf("got %+v, %v, want %+v", got, err, c.want)
			}
		})
	}
}

func TestReloadTakesNoLinkBackThatIsLeased(t *testing.T) {
	dir, err := os.MkdirTemp("", "agent") // the path of a UNIX socket has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "agent.sock")
	r := newRigWith(t, newFake(), noPaths+"links: [{name: uplink, quota_bytes: 1000}]\n", func(o *Options) { o.Socket = socket })
	var l *linklease.Lease
	await.That(t, "the agent listens", func() bool {
		l, err = linklease.Dial(t.Context(), socket, linklease.Test{Kind: "train", Host: "x", Port: 8620})
		return !errors.As(err, new(*linklease.NoAgentError))
	})
	if err == nil {
		err = l.Acquire(context.Background(), 0, nil)
	}
	if err == nil {
		err = l.Reserve(600)
	}
	if err != nil {
		t.Fatal(err)
	}
	l.BeginSending()
	r.wants("oneway_test_running", "uplink", 1)
	r.wants("oneway_data_quota_left_bytes", "uplink", 400)
	r.write(noPaths + "links: [{name: other}]\n")
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	if s := r.Status().Links; len(s) != 2 || !strings.HasPrefix(s[1].Holder, "terminal/train (oneway test, process ") {
		t.Errorf("status is %+v", s)
	}
	r.wants("oneway_test_running", "uplink", 1)
	r.write(noPaths + "links: [{name: uplink, quota_bytes: 900}]\n")
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	r.wants("oneway_data_quota_left_bytes", "uplink", 300)
	if err := l.Settle(100, 50); err != nil {
		t.Fatal(err)
	}
	if got := l.Terms(); got.Limit != 900 || got.Left != 750 {
		t.Errorf("terms are %+v", got)
	}
	r.wants("oneway_test_running", "uplink", 0)
	r.stop()
	if _, found := r.value("oneway_test_running", "uplink"); found {
		t.Error("the series is still there after the end of the agent")
	}
}
