package agent

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oneway.example/exporter/config"
	"oneway.example/exporter/loan"
	"oneway.example/exporter/probe"
	"oneway.example/tests/await"
)

// fills is a prober of heavy tests that never runs.
type fills struct {
	probe.Prober
	probe.Filling
}

func (f fills) Fills() probe.Filling { return f.Filling }

// heavyJob is a job of a heavy test to a host's port 8620.
func heavyJob(path, name, kind, link, host string) job {
	return jobOf(probe.Target{Path: path, Probe: name}, fills{Filling: probe.Filling{Kind: kind, Link: link, Host: host, Port: 8620}})
}

func jobOf(target probe.Target, p probe.Prober) job {
	j := job{task: &task{}, target: target}
	j.current.Store(&run{runner: p})
	return j
}

func TestTestFromTheTerminalFindsItsLink(t *testing.T) {
	to := func(host, link string) loan.Ask {
		return loan.Ask{Kind: "train", Host: host, Port: 8620, Link: link}
	}
	office := []job{heavyJob("office", "capacity", "train", "uplink", "Core.example.net."), heavyJob("office", "saturate", "saturate", "uplink", "core.example.net")}
	const (
		peers = "paths: [" +
			"{name: a, peer: a.example.net:862, probes: []}, {name: b, peer: '[2001:db8::7]', probes: []}, {name: c, peer: '[2001:db8::8]:862', probes: []}]\n"
		uplink = "links: [{name: uplink}]\n"
	)
	for name, c := range map[string]struct {
		config string
		jobs   []job
		ask    loan.Ask
		want   loan.Place
		says   string
	}{
		"its own test":         {jobs: office, ask: to("core.example.net", ""), want: loan.Place{Path: "office", Probe: "capacity", Link: "uplink"}},
		"another test":         {jobs: office[1:], ask: to("core.example.net", ""), want: loan.Place{Path: "office", Probe: "train", Link: "uplink"}},
		"the only link":        {jobs: office, ask: to("other.example.net", ""), want: loan.Place{Path: terminal, Probe: "train", Link: "uplink"}},
		"another port":         {jobs: office, ask: loan.Ask{Kind: "train", Host: "core.example.net", Port: 1}, want: loan.Place{Path: terminal, Probe: "train", Link: "uplink"}},
		"the only link listed": {config: uplink + peers, ask: to("a.example.net", ""), want: loan.Place{Path: "a", Probe: "train", Link: "uplink"}},
		"the responder's":      {config: "responder: {}\n", ask: to("x", ""), want: loan.Place{Path: terminal, Probe: "train", Link: "responder"}},
		"no link, a path":      {config: peers, ask: to("2001:db8::7", ""), want: loan.Place{Path: "b", Probe: "train", Link: "b"}},
		"no link, a port":      {config: peers, ask: to("2001:db8::8", ""), want: loan.Place{Path: "c", Probe: "train", Link: "c"}},
		"nothing":              {ask: to("x", ""), want: loan.Place{Path: terminal, Probe: "train", Link: terminal}},
		"nothing, named":       {ask: to("x", "mine"), want: loan.Place{Path: terminal, Probe: "train", Link: "mine"}},
		"named":                {config: uplink + "responder: {link: down}\n", ask: to("x", "down"), want: loan.Place{Path: terminal, Probe: "train", Link: "down"}},
		"unknown": {
			config: uplink, jobs: office, ask: to("core.example.net", "uplnk"), says: "knows no link uplnk, but uplink;",
		},
		"which": {
			config: "links: [{name: lab}]\n", jobs: office, ask: to("x", ""), says: "has the links lab, uplink, and no heavy test to x; say which one this test uses, with --link",
		},
		"which of two": {
			jobs: append(office, heavyJob("radio", "train", "train", "radio", "core.example.net")),
			ask:  to("core.example.net", ""), says: "on the links uplink and radio; say which",
		},
		"that of two": {
			jobs: append(office, heavyJob("radio", "train", "train", "radio", "core.example.net")),
			ask:  to("core.example.net", "radio"), want: loan.Place{Path: "radio", Probe: "train", Link: "radio"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			file, err := config.Parse("x.yml", []byte("clock: {}\n"+c.config))
			p := &plan{config: file, jobs: append(c.jobs, jobOf(probe.Target{}, &fakeProber{}))}
			if err = errors.Join(err, p.shared.decode(file), p.responder.decode(file)); err != nil {
				t.Fatal(err)
			}
			for _, path := range file.Paths {
				p.jobs = append(p.jobs, jobOf(probe.Target{Path: path.Name, Peer: path.Peer}, &fakeProber{}))
			}
			a := &Agent{inForce: p}
			got, err := a.place(c.ask)
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

func TestReloadTakesNoLinkBackThatIsLent(t *testing.T) {
	dir, err := os.MkdirTemp("", "agent") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "agent.sock")
	r := newRigWith(t, newFake(), noPaths+"links: [{name: uplink, budget: 1000}]\n", func(o *Options) { o.Socket = socket })
	var l *loan.Loan
	await.That(t, "the agent listens", func() bool {
		l, err = loan.Dial(t.Context(), socket, loan.Ask{Kind: "train", Host: "x", Port: 8620})
		return !errors.As(err, new(*loan.NoAgentError))
	})
	if err == nil {
		err = l.Take(context.Background(), 0, nil)
	}
	if err == nil {
		err = l.Reserve(600)
	}
	if err != nil {
		t.Fatal(err)
	}
	l.Sending()
	r.wants("oneway_test_running", "uplink", 1)
	r.wants("oneway_data_budget_left_bytes", "uplink", 400)
	r.write(noPaths + "links: [{name: other}]\n")
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	if s := r.Status().Links; len(s) != 2 || !strings.HasPrefix(s[1].Holder, "terminal/train (oneway test, process ") {
		t.Errorf("status is %+v", s)
	}
	r.wants("oneway_test_running", "uplink", 1)
	r.write(noPaths + "links: [{name: uplink, budget: 900}]\n")
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	r.wants("oneway_data_budget_left_bytes", "uplink", 300)
	if err := l.Settle(100, 50); err != nil {
		t.Fatal(err)
	}
	if got := l.Terms(); got.Limit != 900 || got.Left != 750 {
		t.Errorf("terms are %+v", got)
	}
	r.wants("oneway_test_running", "uplink", 0)
	r.stop()
	if _, found := r.value("oneway_test_running", "uplink"); found {
		t.Error("the series outlives the agent")
	}
}
