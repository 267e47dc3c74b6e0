package config

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestBadFilesSayWhatWouldBeRight reads the expected messages from the files,
// where they stand in the last lines, without the file's name.
func TestBadFilesSayWhatWouldBeRight(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.yml")
	if err != nil || len(files) < 40 {
		t.Fatalf("%d bad files, err %v", len(files), err)
	}
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			content, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for line := range strings.Lines(string(content)) {
				if message, ok := strings.CutPrefix(strings.TrimSpace(line), "# ERROR "); ok {
					want = append(want, name+message)
				}
			}
			if len(want) == 0 {
				t.Fatal("the file does not say what error is expected")
			}
			_, err = Load(name)
			if _, ok := errors.AsType[Problems](err); !ok {
				t.Fatalf("error is %v, want Problems", err)
			}
			if diff := cmp.Diff(strings.Join(want, "\n"), err.Error()); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAllFeaturesAreRead(t *testing.T) {
	got, err := Load("testdata/good/all.yml")
	if err != nil {
		t.Fatal(err)
	}
	probes := []Probe{{Name: "stamp", Type: "stamp"}, {Name: "slow", Type: "stamp"}}
	want := &Config{
		File: "testdata/good/all.yml",
		Clock: Clock{
			Source: ClockStatic, Bound: 20 * time.Microsecond, Interval: time.Second,
			GPSD: &GPSD{Address: "127.0.0.1:2947", Device: "/dev/ttyACM0", Name: "gps0"},
			PPS:  &PPS{Device: "/dev/pps0", Edge: EdgeClear, Name: "roof"},
		},
		CalibrationFile: "testdata/good/stamps.yml",
		StateDir:        "testdata/good/state",
		Links:           []Link{{Name: "uplink", Budget: 500_000_000}, {Name: "lab"}},
		Reports:         Reports{Dir: "/var/lib/oneway/reports", MaxBytes: 64 << 20, MaxRuns: 50},
		Reflector: &Reflector{
			Listen:    []Listen{{Port: 862}, {Addr: netip.IPv6Loopback(), Port: 1862}},
			KeyFile:   "testdata/good/secret.key",
			RateLimit: RateLimit{PacketsPerSecond: 100},
			Hardware:  "eth0",
			Allow:     []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::/32")},
		},
		Responder: &Responder{
			Listen:     []Listen{{Addr: netip.MustParseAddr("192.0.2.7"), Port: 8620}},
			TokensFile: "testdata/good/tokens", CertFile: "testdata/good/cert.pem", KeyFile: "testdata/good/key.pem", ClientCAFile: "/etc/ca.pem",
			Link: "uplink", MaxConnections: 100, MaxSessions: 10,
			Allow: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")},
		},
		Paths: []Path{
			{Name: "one", Peer: "192.0.2.1", Probes: probes},
			{Name: "two", Peer: "[2001:db8::1]:8620", Probes: probes},
			{Name: "three", Peer: "_host.example.net:1862", Probes: probes},
			{Name: "four", Peer: "2001:db8::1", Probes: probes},
		},
	}
	opts := []cmp.Option{cmpopts.IgnoreTypes(Options{}), cmpopts.IgnoreUnexported(Config{}), cmp.Comparer(func(a, b netip.Addr) bool { return a == b }), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })}
	if diff := cmp.Diff(want, got, opts...); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var o struct {
		Interval time.Duration
		KeyFile  string `yaml:"key_file"`
	}
	if err := got.Paths[2].Probes[1].Options.Decode(&o); err != nil {
		t.Fatal(err)
	}
	if o.Interval != 10*time.Second || o.KeyFile != "testdata/good/secret.key" {
		t.Errorf("merged options are %+v", o)
	}
}

func TestMinimalFilesGetDefaults(t *testing.T) {
	c, err := Parse("x.yml", []byte("reflector: {}"))
	if err != nil {
		t.Fatal(err)
	}
	if c.Clock.Source != ClockChrony || len(c.Reflector.Listen) != 1 || c.Reflector.Listen[0] != (Listen{Port: 862}) {
		t.Errorf("got %+v, %+v", c.Clock, c.Reflector)
	}
	if c, err := Parse("x.yml", []byte("responder: {tokens_file: t}")); err != nil || len(c.Responder.Listen) != 1 || c.Responder.Listen[0] != (Listen{Port: 8620}) {
		t.Errorf("a responder alone: %+v, %v", c, err)
	}
	if _, err := Parse("x.yml", []byte("paths: []")); err != nil {
		t.Errorf("a list of paths that is empty on purpose: %v", err)
	}
}

func TestClockOfChronyIsReadWhole(t *testing.T) {
	c, err := Parse("x.yml", []byte(`
clock:
  socket_dir: /run/oneway
  max_clock_error: 1e-5
  trust_local: true
  gpsd: {}
  pps: {}
paths: []`))
	if err != nil {
		t.Fatal(err)
	}
	want := Clock{
		Source: ClockChrony, Interval: time.Second, SocketDir: "/run/oneway", MaxClockError: 1e-5, TrustLocal: true,
		GPSD: &GPSD{Address: "127.0.0.1:2947", Name: "gps0"},
		PPS:  &PPS{Device: "/dev/pps0", Edge: EdgeAssert, Name: "pps0"},
	}
	if diff := cmp.Diff(want, c.Clock); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if c, err = Parse("x.yml", []byte("paths: []")); err != nil || c.Clock.GPSD != nil || c.Clock.PPS != nil {
		t.Errorf("a receiver that nobody has configured: %+v, %v", c.Clock, err)
	}
}

func TestReportsAreKeptInTheStateDirectoryByDefault(t *testing.T) {
	for yaml, want := range map[string]Reports{
		"paths: []":                         {MaxBytes: 256_000_000, MaxRuns: 1000},
		"paths: []\nstate_dir: /var/oneway": {Dir: "/var/oneway/reports", MaxBytes: 256_000_000, MaxRuns: 1000},
		"paths: []\nstate_dir: s\nreports: {dir: r, max_runs: 7}": {Dir: "/etc/oneway/r", MaxBytes: 256_000_000, MaxRuns: 7},
	} {
		c, err := Parse("/etc/oneway/x.yml", []byte(yaml))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, c.Reports); diff != "" {
			t.Errorf("%s (-want +got):\n%s", yaml, diff)
		}
	}
}

func TestMissingFileIsNamed(t *testing.T) {
	_, err := Load(filepath.Join(t.TempDir(), "absent.yml"))
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "absent.yml") {
		t.Errorf("error is %v", err)
	}
}

// manyPaths is a file with n paths.
func manyPaths(n int) []byte {
	var b strings.Builder
	b.WriteString("paths:\n")
	for i := range n {
		fmt.Fprintf(&b, "  - name: path-%d\n    peer: host-%d.example.net:862\n    probes:\n      - type: stamp\n        interval: 20ms\n        dscp: 46\n", i, i)
	}
	return []byte(b.String())
}

func TestTenThousandPathsAreRead(t *testing.T) {
	c, err := Parse("many.yml", manyPaths(10_000))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Paths) != 10_000 || c.Paths[9999].Name != "path-9999" {
		t.Errorf("%d paths", len(c.Paths))
	}
}

func BenchmarkParseTenThousandPaths(b *testing.B) {
	content := manyPaths(10_000)
	b.SetBytes(int64(len(content)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse("many.yml", content); err != nil {
			b.Fatal(err)
		}
	}
}

func TestAliasBombIsRefused(t *testing.T) {
	content := "reflector: {}\npaths:\n  - &p {name: a, peer: h, probes: &q [" + strings.Repeat("{type: s},", 3000) + "]}\n" +
		strings.Repeat("  - {name: b, peer: h, probes: *q}\n", 3000)
	_, err := Parse("bomb.yml", []byte(content))
	if err == nil || !strings.Contains(err.Error(), "are aliases used in aliases?") {
		t.Errorf("9,000,000 probes from 150 kB were read; error is %.200v", err)
	}
}

func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*/*.yml")
	if err != nil || len(files) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, name := range files {
		content, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		c, err := Parse("fuzz.yml", content)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "fuzz.yml:") {
				t.Fatalf("error does not name the file: %v", err)
			}
			return
		}
		seen := map[string]bool{}
		for _, p := range c.Paths {
			if p.Name == "" || p.Peer == "" || len(p.Probes) == 0 || seen[p.Name] {
				t.Fatalf("accepted %+v", p)
			}
			seen[p.Name] = true
			for _, probe := range p.Probes {
				var o struct {
					Interval time.Duration
					List     []string
				}
				_ = probe.Options.Decode(&o)
				if a, b := probe.Options.Fingerprint(), probe.Options.Fingerprint(); a != b {
					t.Fatal("the fingerprint changes by itself")
				}
			}
		}
	})
}
