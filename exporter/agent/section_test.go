package agent

import (
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneway.example/exporter/agent/config"
	"oneway.example/exporter/clocks"
	"oneway.example/exporter/core/document"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/output"
	"oneway.example/exporter/probe/report"
	"oneway.example/exporter/probes"
	"oneway.example/exporter/watchers"
	"oneway.example/exporter/watchers/gpsd"
	"oneway.example/exporter/watchers/pps"
	"oneway.example/tests/badfiles"
	"oneway.example/tests/documents"
)

// TestBadSectionsStateTheExpectation reads the expected messages from the last lines of the files, where they are without
// the name of the file.
func TestBadSectionsStateTheExpectation(t *testing.T) {
	badfiles.Run(t, 50, func(t *testing.T, name string) error {
		types := typesWith(newFake())
		types.Outputs = []output.Type{newFakeOutputs()}
		_, _, err := Check(Options{ConfigFile: name, Types: types})
		if _, ok := errors.AsType[config.Problems](err); !ok {
			t.Fatalf("error is %v, want Problems", err)
		}
		return err
	})
}

func TestLoadTestIsRefusedOnDemand(t *testing.T) {
	_, _, err := Check(Options{ConfigFile: "x.yml", Types: typesWith(probes.All()...), Load: func(file string) (*config.Config, error) {
		return config.Parse(file, []byte("on_demand: {targets: [192.0.2.0/24], modules: [{type: saturation}]}"))
	}})
	if err == nil || !strings.Contains(err.Error(), `on_demand.modules[0].type is "saturation", a load test; on-demand probes are light, since every client of the web server could fill the link. `+
		`Give the load test a path and a schedule, or use "oneway test"`) {
		t.Error(err)
	}
}

// decoded are the sections of a configuration; sections that need no other file are planned.
func decoded(t *testing.T, c *config.Config) *plan {
	t.Helper()
	p := newPlan(c, Types{Clocks: clocks.All()})
	for _, s := range p.sections() {
		if err := s.decode(c); err != nil {
			t.Fatal(err)
		}
	}
	if found := p.shared.plan(c, nil); found != nil {
		t.Fatal(found)
	}
	return p
}

func parsed(t *testing.T, name, yaml string) *plan {
	t.Helper()
	c, err := config.Parse(name, []byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	return decoded(t, c)
}

func TestAllSectionsAreRead(t *testing.T) {
	c, err := config.Load("testdata/good/all.yml")
	if err != nil {
		t.Fatal(err)
	}
	p := decoded(t, c)
	if s := p.clock; s.Source != "static" || option.Settings(s.options[1][0])["bound_seconds"] != 20e-6 {
		t.Errorf("clock is %+v", s)
	}
	s := p.shared
	if s.stateDir != "testdata/good/state" || s.reports.Dir != "/var/lib/oneway/reports" || s.reports.MaxBytes != 64<<20 || s.reports.MaxRuns != 50 {
		t.Errorf("shared is %+v", s)
	}
	if l := s.links; len(l) != 2 || l[0].Name != "uplink" || l[0].Quota != 500_000_000 || l[1].Name != "lab" || l[1].Quota != 0 {
		t.Errorf("links are %+v", l)
	}
	addrs := cmp.Comparer(func(a, b netip.Addr) bool { return a == b })
	prefixes := []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::/32")}
	r := p.reflector
	if diff := cmp.Diff(option.Listens{{Port: 862}, {Addr: netip.IPv6Loopback(), Port: 1862}}, r.Listen, addrs); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if r.KeyFile != "testdata/good/secret.key" || r.RateLimit.PacketsPerSecond != 100 || r.options.Hardware != "eth0" || !slices.Equal(r.options.Allow, prefixes) {
		t.Errorf("reflector is %+v", r)
	}
	f := p.loadServer
	if diff := cmp.Diff(option.Listens{{Addr: netip.MustParseAddr("192.0.2.7"), Port: 8620}}, f.Listen, addrs); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	o := f.options
	if o.TokensFile != "testdata/good/tokens" || o.CertFile != "testdata/good/cert.pem" || o.KeyFile != "testdata/good/key.pem" || o.ClientCAFile != "/etc/ca.pem" ||
		o.Ports != (option.Ports{First: 9000, Last: 9010}) || o.Link != "uplink" || o.MaxConnections != 100 || o.MaxSessions != 10 || !slices.Equal(o.Allow, prefixes[:1]) {
		t.Errorf("load server is %+v", o)
	}
}

func TestSectionsHaveDefaults(t *testing.T) {
	p := parsed(t, "x.yml", "reflector: {}\nload_server: {tokens_file: t}\nclock: {gpsd: {}, pps: {}}")
	if p.clock.Source != "chrony" || len(p.reflector.Listen) != 1 || p.reflector.Listen[0] != (option.Listen{Port: 862}) {
		t.Errorf("got %+v, %+v", p.clock, p.reflector)
	}
	if len(p.loadServer.Listen) != 1 || p.loadServer.Listen[0] != (option.Listen{Port: 8620}) {
		t.Errorf("load server is %+v", p.loadServer)
	}
}

func TestWatchersOfTheClockAreReadWithDefaults(t *testing.T) {
	for clock, want := range map[string][2]any{
		"gpsd: {}, pps: {}": {gpsd.Details{Name: "gps0", Address: "127.0.0.1:2947", Fix: "unknown"}, pps.Details{Name: "pps0", Device: "/dev/pps0", Edge: "assert"}},
		"gpsd: {name: a, address: \"h:1\"}, pps: {name: a, device: /dev/p, edge: clear}": {
			gpsd.Details{Name: "a", Address: "h:1", Fix: "unknown"}, pps.Details{Name: "a", Device: "/dev/p", Edge: "clear"},
		},
	} {
		a, err := New(Options{ConfigFile: "x.yml", Types: typesWith(), Load: func(file string) (*config.Config, error) {
			return config.Parse(file, []byte("clock: {"+clock+"}"))
		}})
		if err != nil {
			t.Fatal(err)
		}
		a.release()
		s := a.Status()
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		documents.Valid(t, document.Status, text)
		if diff := cmp.Diff(want, [2]any{s.Receiver, s.Pulse}); diff != "" || len(s.Watchers) != 2 || s.Watchers[0].Type != "gpsd" {
			t.Errorf("%s (-want +got):\n%s", clock, diff)
		}
	}
}

func TestClockOfChronyIsReadWhole(t *testing.T) {
	p := parsed(t, "x.yml", "clock: {socket_dir: /run/oneway, max_clock_error: 1e-5, trust_local: true}\npaths: []")
	want := map[string]any{"address": "", "interval_seconds": 1.0, "socket_dir": "/run/oneway", "max_clock_error": option.Ratio(1e-5), "trust_local": true}
	if diff := cmp.Diff(want, option.Settings(p.clock.options[0][0])); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestReportsAreKeptInTheStateDirectoryByDefault(t *testing.T) {
	for yaml, want := range map[string]string{
		"paths: []":                         "",
		"paths: []\nstate_dir: /var/oneway": "/var/oneway/reports",
		"paths: []\nstate_dir: s\nreports: {dir: r, max_runs: 7}": "/etc/oneway/r",
	} {
		r := parsed(t, "/etc/oneway/x.yml", yaml).shared.reports
		if r.Dir != want || r.MaxBytes != 256_000_000 || r.MaxRuns != report.DefaultMaxRuns && r.MaxRuns != 7 {
			t.Errorf("%s: got %+v", yaml, r)
		}
	}
}

// TestExampleHasEveryKeyOfTheSections compares the example with the structs of the sections.
func TestExampleHasEveryKeyOfTheSections(t *testing.T) {
	example, err := os.ReadFile("../../deploy/oneway.yml")
	if err != nil {
		t.Fatal(err)
	}
	p := newPlan(&config.Config{}, Types{Clocks: clocks.All()})
	into := []any{&p.clock, &p.reflector.Section, &p.reflector.options, &p.reflector.RateLimit, &p.loadServer.Section, &p.loadServer.options, &p.shared.reports}
	for _, kind := range clocks.All() {
		_, own := structsOf(kind)
		into = append(into, own...)
	}
	for _, kind := range watchers.All() {
		_, own := structsOf(kind)
		into = append(into, own...)
	}
	for _, one := range into {
		for _, key := range config.Keys(one) {
			if !regexp.MustCompile(`\b` + key + ":").Match(example) {
				t.Errorf("%T: %s is not in the example", one, key)
			}
		}
	}
}
