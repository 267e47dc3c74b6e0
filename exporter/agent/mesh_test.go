package agent

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/agent/mesh"
	"oneway.example/exporter/probe"
	"oneway.example/tests/await"
)

// hostsFile has n hosts in sites of ten.
func hostsFile(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "- {name: h%02d, address: 192.0.2.%d, labels: {site: s%d}}\n", i, i+1, i/10)
	}
	return b.String()
}

// TestFiftyHostsWithOneConfigurationMakeTheMesh plans all agents: each finds itself, and the graph is that of the shape.
func TestFiftyHostsWithOneConfigurationMakeTheMesh(t *testing.T) {
	const hosts = 50
	for shape, edges := range map[string]int{
		"shape: full":                      hosts * (hosts - 1),
		"shape: ring":                      hosts * 2,
		"shape: neighbors\n  neighbors: 6": hosts * 6,
		"shape: site":                      5*10*9 + 5*4,
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, "oneway.yml")
		text := "version: 1\nclock:\n  source: none\ndefaults:\n  fake: {interval: 5s}\nmesh:\n  hosts_file: hosts.yml\n  probes: [{type: fake}, {type: fake, name: b}]\n  " + shape + "\n"
		if lines := strings.Count(text, "\n"); lines > 10 {
			t.Errorf("the configuration has %d lines", lines)
		}
		for name, content := range map[string]string{file: text, filepath.Join(dir, "hosts.yml"): hostsFile(hosts)} {
			if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		graph := map[string]bool{}
		for i := range hosts {
			self := fmt.Sprintf("h%02d", i)
			s, paths, err := Check(Options{
				ConfigFile: file, Types: typesWith(newFake()), machine: func() mesh.Machine { return mesh.Machine{Name: self + ".example.net"} },
			})
			if err != nil || s.Meshed != len(paths) || s.Probes != 2*len(paths) {
				t.Fatalf("%s of %s: %+v, %v", self, shape, s, err)
			}
			for _, p := range paths {
				from, to, _ := strings.Cut(p.Name, "-to-")
				if from != self || p.Labels["site"] != fmt.Sprintf("s%c", to[1]) || !slices.Equal(p.Probes, []string{"fake", "b"}) {
					t.Fatalf("%s has %+v", self, p)
				}
				graph[p.Name] = true
			}
		}
		if len(graph) != edges {
			t.Errorf("%s has %d paths, want %d", shape, len(graph), edges)
		}
		for name := range graph {
			from, to, _ := strings.Cut(name, "-to-")
			if !graph[to+"-to-"+from] {
				t.Errorf("%s: %s has no reverse", shape, name)
			}
		}
	}
}

func TestUndeclaredLinkOfAHostHasItsPlaceInTheFileOfHosts(t *testing.T) {
	dir := t.TempDir()
	hosts, file := filepath.Join(dir, "hosts.yml"), filepath.Join(dir, "oneway.yml")
	for own, want := range map[string]string{
		", link: uplnk":        hosts + `:1:39: [0].link is "uplnk", which is not in links; did you mean "uplink"?`,
		", link: [uplink, up]": hosts + `:1:48: [0].link[1] is "up", which is not in links; add it there, or use one of uplink`,
		"":                     file + `:2:70: mesh.link is "dsl", which is not in links; add it there, or use one of uplink`,
	} {
		for name, text := range map[string]string{
			hosts: "- {name: a, address: 192.0.2.1" + own + "}\n- {name: b, address: 192.0.2.2}\n- {name: c, address: 192.0.2.3}\n",
			file:  "links: [{name: uplink}]\nmesh: {hosts_file: hosts.yml, self: a, probes: [{type: fake}], link: dsl}\n",
		} {
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := Check(Options{ConfigFile: file, Types: typesWith(newFake())}); err == nil || err.Error() != want {
			t.Errorf("%q\ngot  %v\nwant %s", own, err, want)
		}
	}
}

func TestReloadOfTheHostsChangesOnlyTheirPaths(t *testing.T) {
	hosts := filepath.Join(t.TempDir(), "hosts.yml")
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(hosts, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(hostsFile(4))
	fake := newFake()
	r := newRig(t, fake, "mesh: {hosts_file: "+hosts+", self: h00, probes: [{type: fake}]}\n")
	fake.expect(t, "start h00-to-h01", "start h00-to-h02", "start h00-to-h03")
	if v, ok := r.value("oneway_path_labels_info", "h00-to-h02", "s0"); !ok || v != 1 {
		t.Errorf("labels of a path are %v, %v", v, ok)
	}
	if s := r.Status(); s.Paths[1].Labels["site"] != "s0" {
		t.Errorf("status is %+v", s.Paths[1])
	}
	// One host has another address, one leaves, one comes, and one has other labels only.
	changed := strings.Replace(hostsFile(5), "192.0.2.2,", "192.0.2.99,", 1)
	changed = strings.Replace(changed, "- {name: h03, address: 192.0.2.4, labels: {site: s0}}\n", "", 1)
	write(strings.Replace(changed, "address: 192.0.2.3, labels: {site: s0}", "address: 192.0.2.3, labels: {region: asia}", 1))
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	fake.expect(t, "stop h00-to-h01", "stop h00-to-h03", "start h00-to-h01", "start h00-to-h04")
	if _, ok := r.value("oneway_path_labels_info", "h00-to-h02", "asia"); !ok {
		t.Error("the new label has no series")
	}
	if _, ok := r.value("oneway_path_labels_info", "h00-to-h02", "s0"); ok {
		t.Error("the old label has a series")
	}
	r.stop()
	if _, ok := r.value("oneway_path_labels_info"); ok {
		t.Error("labels have series after the end")
	}
}

// TestHostWithoutItsAddressIsNotUsedYet: DHCP, a VPN, VRRP. Its service starts again; a reload keeps what runs.
func TestHostWithoutItsAddressIsNotUsedYet(t *testing.T) {
	hosts := filepath.Join(t.TempDir(), "hosts.yml")
	if err := os.WriteFile(hosts, []byte(hostsFile(3)), 0o600); err != nil {
		t.Fatal(err)
	}
	fake, types := newFake(), Types{}
	first, second := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	yaml := "mesh: {hosts_file: " + hosts + ", probes: [{type: fake}]}\n"
	present := []netip.Addr{second}
	machine := func() mesh.Machine { return mesh.Machine{Name: "other", Addresses: present} }
	r := newRigWith(t, fake, yaml, func(o *Options) { o.machine, types = machine, o.Types })
	fake.expect(t, "start h01-to-h00", "start h01-to-h02")
	for interval, some := range map[string][]netip.Addr{"7s": nil, "8s": {first, second}} {
		present = some
		r.write(yaml + "defaults: {fake: {interval: " + interval + "}}\n")
		if err := r.Reload(); err != nil {
			t.Fatal(err)
		}
		fake.expect(t, "stop h01-to-h00", "stop h01-to-h02", "start h01-to-h00", "start h01-to-h02")
		_, err := New(Options{ConfigFile: r.options.ConfigFile, Types: types, machine: machine})
		if _, ok := errors.AsType[NotYet](err); !ok {
			t.Errorf("an agent with %v: %v, want NotYet", some, err)
		}
	}
	present = nil
	if err := os.WriteFile(hosts, []byte("- {name: seoul, address: 203.0.113.7}\n- {name: h00, address: 192.0.2.1}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.Reload(); err == nil || !strings.Contains(err.Error(), "nor one of its present addresses (none)") {
		t.Errorf("reload of a file without this host: %v", err)
	}
	if s := r.Status(); len(s.Paths) != 2 {
		t.Errorf("%d paths after it, want 2", len(s.Paths))
	}
	r.write(yaml + "no_key: 1\n")
	if _, err := New(Options{ConfigFile: r.options.ConfigFile, Types: types, machine: machine}); err == nil {
		t.Error("no error of a wrong key")
	} else if _, ok := errors.AsType[NotYet](err); ok {
		t.Errorf("a wrong key is NotYet: %v", err)
	}
}

// TestNameOfAHostThatGivesTheAddressOfAnotherIsTold: a wrong record of DNS. The path would measure the other host without a word.
func TestNameOfAHostThatGivesTheAddressOfAnotherIsTold(t *testing.T) {
	hosts := filepath.Join(t.TempDir(), "hosts.yml")
	const names = "- {name: a, address: 192.0.2.1}\n- {name: b, address: b.example}\n- {name: c, address: '[2001:db8::c]:863'}\n- {name: d, address: 'd.example:863'}\n- {name: e, address: 'e.example'}\n"
	if err := os.WriteFile(hosts, []byte(names), 0o600); err != nil {
		t.Fatal(err)
	}
	own := []netip.Addr{netip.MustParseAddr("192.0.2.9")}
	for wrong, c := range map[string]struct{ b, d, path, want string }{
		"another one of this host": {"192.0.2.9", "192.0.2.4", "a-to-b", "the name b.example of host b has the address 192.0.2.9:862, which is also of host a in hosts.yml"},
		"loopback":                 {"127.0.1.1", "192.0.2.4", "a-to-b", "the name b.example of host b has the address 127.0.1.1:862, which is also of host a in hosts.yml"},
		"own address":              {"192.0.2.1", "192.0.2.4", "a-to-b", "the name b.example of host b has the address 192.0.2.1:862, which is also of host a in hosts.yml"},
		"of another":               {"192.0.2.2", "2001:db8::c", "a-to-d", "the name d.example of host d has the address [2001:db8::c]:863, which is also of host c in hosts.yml"},
		"two names, one port":      {"192.0.2.5", "192.0.2.4", "a-to-e", "the name e.example of host e has the address 192.0.2.5:862, which is also of host b in hosts.yml"},
		"another port":             {"192.0.2.2", "192.0.2.1", "", ""},
	} {
		t.Run(wrong, func(t *testing.T) {
			fake := newFake()
			fake.addresses = map[string]netip.Addr{"b.example": netip.MustParseAddr(c.b), "d.example": netip.MustParseAddr(c.d), "e.example": netip.MustParseAddr("192.0.2.5")}
			var said await.Text
			r := newRigWith(t, fake, "mesh: {hosts_file: "+hosts+", self: a, probes: [{type: fake}]}\n", func(o *Options) {
				o.Log, o.meshPause = slog.New(slog.NewTextHandler(&said, nil)), time.Hour
			})
			await.That(t, "the probers run", func() bool {
				return !slices.ContainsFunc(r.Status().Paths, func(p PathStatus) bool { return p.Probes[0].State != "measuring" })
			})
			r.shared.misnamed.look(r.inForce, own)
			r.shared.misnamed.look(r.inForce, own)
			told := map[string]string{}
			for _, p := range r.Status().Paths {
				if one := p.Probes[0]; one.Cause == probe.CauseOtherHost {
					told[p.Name] = one.Reason
				}
			}
			if c.path == "" {
				if len(told) > 0 || strings.Contains(said.String(), "one address") {
					t.Errorf("%q\n%s", told, &said)
				}
				return
			}
			silent := r.job(0).running().(*fakeProber)
			silent.mu.Lock()
			silent.status.Reason, silent.status.Cause = "it does not reply", "no_reply"
			silent.mu.Unlock()
			if one := r.Status().Paths[0].Probes[0]; c.path == "a-to-b" && (one.Cause != "no_reply" || one.Reason != "it does not reply; "+told[c.path]) {
				t.Errorf("a silent path has %q: %q", one.Cause, one.Reason)
			}
			if len(told) != 1 || !strings.HasPrefix(told[c.path], c.want) || strings.Count(said.String(), "Two hosts of a mesh have one address") != 1 {
				t.Errorf("the status has %q, want %s of %s; the log, which needs one line:\n%s", told, c.want, c.path, &said)
			}
			resolve := func(all map[string]netip.Addr) {
				fake.mu.Lock()
				fake.addresses = all
				fake.mu.Unlock()
				r.shared.misnamed.look(r.inForce, own)
			}
			if resolve(nil); r.shared.misnamed.reason(c.path) == "" || strings.Contains(said.String(), "again") {
				t.Errorf("an address that is not known is another one:\n%s", &said)
			}
			if resolve(map[string]netip.Addr{"b.example": netip.MustParseAddr("192.0.2.2"), "d.example": netip.MustParseAddr("192.0.2.4"), "e.example": netip.MustParseAddr("192.0.2.5")}); !strings.Contains(said.String(), "an address of its own again") {
				t.Errorf("the end is not told:\n%s", &said)
			}
		})
	}
}

func TestReloadSeesNewFilesAndChangedDefaults(t *testing.T) {
	fake := newFake()
	dir := t.TempDir()
	main := func(interval string) string {
		return "include: " + dir + "\ndefaults: {fake: {interval: " + interval + "}}\npaths:\n" +
			"  - {name: a, peer: x, probes: [{type: fake}]}\n  - {name: own, peer: x, probes: [{type: fake, interval: 1s}]}\n"
	}
	r := newRig(t, fake, main("1s"))
	fake.expect(t, "start a", "start own")
	if err := os.WriteFile(filepath.Join(dir, "new.yml"), []byte("paths: [{name: b, peer: x, probes: [{type: fake, interval: 3s}]}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	fake.expect(t, "start b")
	r.write(main("2s"))
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	fake.expect(t, "stop a", "start a")
}

func TestErrorsOfDefaultsAreReportedOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.yml")
	for text, want := range map[string]string{
		"defaults: {fake: {interval: 0s}}\npaths: [{name: a, peer: x, probes: &p [{type: fake}, {type: fake, name: b}]}, {name: b, peer: x, probes: *p}]": "x.yml:1:29: defaults.fake.interval is 0s; it must be above zero",
		"defaults: {fake: {intervl: 1s}, none: {}}\npaths: []": "x.yml:1:19: defaults.fake.intervl is unknown; did you mean \"interval\"?\n" +
			"x.yml:1:39: defaults.none is for a type of probe: it is \"none\"; it must be fake",
		"defaults: {fake: [1]}\npaths: []": "x.yml:1:18: defaults.fake is a list; it must be a mapping",
		"paths: [{name: a, peer: x, labels: {path: b, site: ''}, probes: [{type: fake}]}]": "x.yml:1:43: paths[0].labels.path has the name of a label of metrics or targets, or of a field of points; choose another, such as path_path\n" +
			"x.yml:1:52: paths[0].labels.site is \"\"; it must be text of 1 to 128 printable characters",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, err := Check(Options{ConfigFile: file, Types: typesWith(newFake())})
		if got := strings.ReplaceAll(fmt.Sprint(err), filepath.Dir(file)+"/", ""); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}
