package agent

import (
	"context"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oneway.example/exporter/agent/linklease"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/link"
	"oneway.example/exporter/probes"
	"oneway.example/tests/await"
)

// sends is a light prober that never runs.
type sends struct {
	probe.Prober
	to netip.Addr
}

func (s sends) Address() netip.Addr { return s.to }

func lightJob(path, peer string) job {
	addr, _ := netip.ParseAddr(peer)
	return jobOf(probe.Target{Path: path, Probe: "stamp"}, sends{to: addr})
}

// sharedLinks has load tests on the links radio and cable of path "loaded".
func sharedLinks() *plan {
	return &plan{
		links: map[string][]string{"a": {"uplink", "core"}, "b": {"core"}, "c": {"access"}, "d": {"radio", "access"}},
		jobs: []job{
			lightJob("a", "192.0.2.1"), loadTestJob("a", "saturation", "saturation", "uplink", "x"), lightJob("b", "192.0.2.2"), lightJob("c", "192.0.2.3"),
			lightJob("d", ""), loadTestJob("loaded", "train", "train", "radio", "x"), loadTestJob("loaded", "other", "train", "cable", "x"), lightJob("alone", "2001:db8::1"),
		},
	}
}

func TestLoadTestAffectsThePathsOverItsLinks(t *testing.T) {
	for name, c := range map[string]struct {
		use  link.Use
		want []string
	}{
		"all links of its path":              {link.Use{Link: "uplink", Path: "a"}, []string{"a", "b"}},
		"its own link and its path's":        {link.Use{Link: "access", Path: "b"}, []string{"a", "b", "c", "d"}},
		"not the other load test's link":     {link.Use{Link: "cable", Path: "loaded"}, []string{"loaded"}},
		"a link that only a load test names": {link.Use{Link: "radio", Path: terminal}, []string{"d", "loaded"}},
		"a path without a link":              {link.Use{Link: "alone", Path: terminal}, []string{"alone"}},
		"a path with links and its name":     {link.Use{Link: "b", Path: terminal}, nil},
		"a session of the load server":       {link.Use{Link: "load_server", Peer: netip.MustParseAddr("192.0.2.2")}, []string{"a", "b"}},
		"on the load server's link":          {link.Use{Link: "access", Peer: netip.MustParseAddr("192.0.2.9")}, []string{"c", "d"}},
		"by the address of IPv6":             {link.Use{Link: "load_server", Peer: netip.MustParseAddr("2001:db8::1")}, []string{"alone"}},
		"nothing":                            {link.Use{Link: "load_server", Path: terminal}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			table := link.NewTable(nil)
			paths := newTestedPaths(table, metric.Discard{}, nil)
			paths.put(sharedLinks())
			table.Fill(c.use)
			if got := slices.Sorted(maps.Keys(paths.affected())); !slices.Equal(got, c.want) {
				t.Errorf("affected are %q, want %q", got, c.want)
			}
		})
	}
}

// The path of a removed series gets none again, and the others keep theirs.
func TestTimesOfTestsAndLinksContinueOverAReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, sink := link.NewTable(nil), &metrictest.Sink{}
		paths := newTestedPaths(table, sink, nil)
		paths.put(sharedLinks())
		table.Fill(link.Use{Link: "core", Path: terminal})() // between two calls of publish
		ended := float64(time.Now().UnixNano()) / 1e9
		time.Sleep(time.Second) // simulated time (synctest)
		paths.publish()
		wants := func(want map[string]float64, links int) {
			t.Helper()
			if got := sink.All(metric.PathTested); !maps.Equal(got, want) {
				t.Errorf("times are %v, want %v", got, want)
			}
			if got := sink.All(metric.PathLinkInfo); len(got) != links {
				t.Errorf("links are %v, want %d", got, links)
			}
		}
		wants(map[string]float64{"a": ended, "b": ended}, 8)
		next := sharedLinks()
		next.jobs = next.jobs[2:] // without a
		next.links = map[string][]string{"b": {"core"}}
		paths.put(next)
		wants(map[string]float64{"b": ended}, 3)
		paths.publish()
		wants(map[string]float64{"b": ended}, 3)
		time.Sleep(time.Minute) // simulated time (synctest)
		end := table.Fill(link.Use{Link: "core"})
		time.Sleep(time.Second) // simulated time (synctest)
		paths.publish()
		wants(map[string]float64{"b": ended + 62}, 3)
		end()
		if got := len(sink.History(metric.PathLinkInfo, "b", "core")); got != 2 {
			t.Errorf("the link of b was set %d times, want twice in one series", got)
		}
		paths.put(&plan{})
		if n := sink.Open(); n != 0 {
			t.Errorf("%d series are left", n)
		}
	})
}

func TestTestFromTheTerminalTakesTheLinkOfItsPath(t *testing.T) {
	dir, err := os.MkdirTemp("", "agent") // the path of a UNIX socket has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "agent.sock")
	path := func(name, peer, links string) string {
		return "- {name: " + name + ", peer: " + peer + ", link: " + links + ", probes: [{type: fake}]}\n"
	}
	yaml := "clock: {source: static, bound: 1ms}\npaths:\n" + path("a", "192.0.2.1", "[uplink, core]") + path("b", "192.0.2.2", "core") + path("c", "192.0.2.3", "other")
	r := newRigWith(t, newFake(), yaml, func(o *Options) { o.Socket = socket })
	var l *linklease.Lease
	await.That(t, "the agent leases", func() bool {
		l, err = linklease.Dial(t.Context(), socket, linklease.Test{Kind: "train", Host: "192.0.2.1", Port: 8620})
		return err == nil
	})
	if err := l.Acquire(context.Background(), 0, nil); err != nil {
		t.Fatal(err)
	}
	if got := l.Terms().Link; got != "uplink" {
		t.Errorf("the link is %s, want the first of the path", got)
	}
	name := metric.PathTested.Name
	if len(r.shared.tested.affected()) > 0 {
		t.Error("a test that sends nothing yet affects paths")
	}
	l.BeginSending()
	await.That(t, "both paths over its links are tested", func() bool {
		_, a := r.value(name, "a")
		_, b := r.value(name, "b")
		return a && b
	})
	if _, found := r.value(name, "c"); found {
		t.Error("a path over another link is tested")
	}
	if err := l.Settle(1, 1); err != nil {
		t.Fatal(err)
	}
}

// A load test without a link of its own, or with an empty one, uses the first of its path, and begins anew when that changes. Light probes continue.
func TestLoadTestUsesTheFirstLinkOfItsPath(t *testing.T) {
	const loadTest = "{name: NAME, peer: 192.0.2.1, LINKprobes: [{type: stamp}, {type: train, token_file: token}, {name: own, type: train, token_file: token, link: lab}, {name: empty, type: train, token_file: token, link: ''}]}\n"
	file := filepath.Join(t.TempDir(), "oneway.yml")
	if err := os.WriteFile(filepath.Join(filepath.Dir(file), "token"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	write := func(links string) {
		t.Helper()
		yaml := "clock: {source: static, bound: 1ms}\npaths: [" + strings.NewReplacer("NAME", "a", "LINK", links).Replace(loadTest) + "]\n"
		if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("")
	a, err := New(Options{ConfigFile: file, Types: typesWith(probes.All()...)})
	if err != nil {
		t.Fatal(err)
	}
	defer a.release()
	before := a.inForce
	for _, c := range []struct {
		links, want string
		kept        bool
	}{{"", "a", true}, {"link: uplink, ", "uplink", false}, {"link: [uplink, core], ", "uplink", true}, {"link: [core, uplink], ", "core", false}} {
		write(c.links)
		p, err := a.plan()
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range []int{1, 3} {
			if got := p.jobs[i].running().(probe.LinkUser).UsedLink().Link; got != c.want {
				t.Errorf("%q: load test %d uses link %s, want %s", c.links, i, got, c.want)
			}
		}
		if got := p.jobs[2].running().(probe.LinkUser).UsedLink().Link; got != "lab" {
			t.Errorf("%q: the load test with a link uses link %s", c.links, got)
		}
		for i, kept := range []bool{true, c.kept, true, c.kept} {
			if before.jobs[i].same(p.jobs[i].task) != kept {
				t.Errorf("%q: probe %d is kept: %t, want %t", c.links, i, !kept, kept)
			}
		}
		before = p
	}
}
