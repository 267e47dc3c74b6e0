package calibration

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneway.example/exporter/core/bound"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
)

func stored(t *testing.T, records ...Record) (path string) {
	t.Helper()
	var table Table
	for _, r := range records {
		if err := table.Put(r); err != nil {
			t.Fatal(err)
		}
	}
	path = filepath.Join(t.TempDir(), "calibration.json")
	if err := table.Save(path); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSavedTableIsLoaded(t *testing.T) {
	a, b := recorded("eth1"), recorded("eth0")
	b.Setup, b.Origin, b.SharedClock, b.Driver = Peer, "hardware", false, ""
	b.Forward.Systematic = -5
	a.Trusted = true
	table, err := Load(stored(t, a, b))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Record{b, a}, table.Records()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if e, ok := table.For("eth0"); !ok || e != b.Errors() {
		t.Errorf("%+v, %v", e, ok)
	}
	if e, ok := table.For("eth2"); ok || e != (bound.Calibration{}) {
		t.Errorf("an interface without a calibration has %+v", e)
	}
}

func TestALaterRecordReplacesThatOfItsInterfaceOnly(t *testing.T) {
	var table Table
	later := recorded("b")
	later.PacketBytes = 64
	for _, r := range []Record{recorded("b"), recorded("c"), recorded("a"), later} {
		if err := table.Put(r); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]Record{recorded("a"), later, recorded("c")}, table.Records()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNoTableCorrectsNothing(t *testing.T) {
	for _, table := range []*Table{nil, {}} {
		if e, ok := table.For("lo"); ok || e != (bound.Calibration{}) || table.Records() != nil || table.Fingerprint() != "" || table.Warnings() != nil {
			t.Errorf("%+v, %v", e, ok)
		}
		table.Export(metric.Discard{})()
	}
}

func TestTrustEndsWhereTheSystemDiffers(t *testing.T) {
	r := recorded("eth0")
	r.Trusted = true
	same := System{Host: "h", Kernel: "6.18", Driver: func(string) string { return "veth" }}
	for name, c := range map[string]struct {
		change  func(*System)
		warning string
	}{
		"same":           {func(*System) {}, ""},
		"another host":   {func(s *System) { s.Host = "g" }, `interface eth0: calibrated on host "h", this is "g"; calibrate again`},
		"another kernel": {func(s *System) { s.Kernel = "7.0" }, `interface eth0: calibrated with kernel "6.18", this is "7.0"; calibrate again`},
		"another driver": {func(s *System) { s.Driver = func(string) string { return "ixgbe" } }, `interface eth0: calibrated with driver "veth", the driver is another one now; calibrate again`},
		"unknown":        {func(s *System) { *s = System{} }, `interface eth0: calibrated on host "h", this is ""; calibrate again`},
	} {
		table := &Table{here: same}
		if err := table.Put(r); err != nil {
			t.Fatal(err)
		}
		c.change(&table.here)
		if got := strings.Join(table.Warnings(), "\n"); got != c.warning {
			t.Errorf("%s: %q", name, got)
		}
		want := r.Errors()
		if c.warning != "" {
			want.Trusted, want.Largest = false, 0
		}
		if e, ok := table.For("eth0"); !ok || e != want {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

func TestFingerprintDistinguishesTablesOfDifferentCorrections(t *testing.T) {
	seen := map[string]string{}
	other := recorded("eth0")
	other.Forward.Systematic++
	other.Reverse.Systematic += 3
	for name, records := range map[string][]Record{"one": {recorded("eth0")}, "two": {recorded("eth0"), recorded("eth1")}, "other": {other}} {
		table, err := Load(stored(t, records...))
		if err != nil {
			t.Fatal(err)
		}
		f := table.Fingerprint()
		if seen[f] != "" {
			t.Errorf("%s and %s have one fingerprint", name, seen[f])
		}
		seen[f] = name
	}
}

func TestMissingFileIsAnErrorOfLoadOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none.json")
	if _, err := Load(path); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), path) {
		t.Error(err)
	}
	if table, err := LoadOrNew(path); err != nil || table.Records() != nil {
		t.Error(table, err)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadOrNew(path); err == nil {
		t.Error("a damaged file was treated as missing")
	}
}

func TestAFailedSaveLeavesTheOldFileAndNothingElse(t *testing.T) {
	var table Table
	dir := t.TempDir()
	path := filepath.Join(dir, "calibration.json")
	if err := os.MkdirAll(filepath.Join(path, "in", "the", "way"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := table.Save(path); err == nil {
		t.Error("a directory was replaced")
	}
	if err := table.Save(filepath.Join(dir, "none", "calibration.json")); err == nil {
		t.Error("a file was saved without its directory")
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
}

func TestSaveKeepsALinkAndLetsOthersRead(t *testing.T) {
	path := stored(t, recorded("eth0"))
	link := filepath.Join(t.TempDir(), "link.json")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if err := (&Table{}).Save(link); err != nil {
		t.Fatal(err)
	}
	if to, err := os.Readlink(link); err != nil || to != path {
		t.Errorf("%q, %v", to, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o644 {
		t.Error(info, err)
	}
	if table, err := Load(path); err != nil || len(table.Records()) != 0 {
		t.Error(table, err)
	}
}

func TestReadersSeeAWholeFileWhileOthersWrite(t *testing.T) {
	one := stored(t, recorded("a"))
	tables := []*Table{{}, {}}
	for i, n := range []int{1, 40} {
		for j := range n {
			if err := tables[i].Put(recorded(strings.Repeat("x", j+1))); err != nil {
				t.Fatal(err)
			}
		}
	}
	var writers sync.WaitGroup
	for _, table := range tables {
		writers.Go(func() {
			for range 50 {
				if err := table.Save(one); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 100 {
		table, err := Load(one)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(table.Records()); n != 1 && n != 40 {
			t.Fatalf("%d records", n)
		}
	}
	writers.Wait()
	if left, err := os.ReadDir(filepath.Dir(one)); err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
}

func TestExportPublishesBothErrorsOfEachInterfaceUntilStopped(t *testing.T) {
	trusted := recorded("eth1")
	trusted.Trusted = true
	table := &Table{here: System{Host: "h", Kernel: "6.18", Driver: func(string) string { return "veth" }}}
	for _, r := range []Record{recorded("eth0"), trusted} {
		if err := table.Put(r); err != nil {
			t.Fatal(err)
		}
	}
	sink := &metrictest.Sink{}
	stop := table.Export(sink)
	want := map[string]float64{
		"oneway_timestamp_calibration_seconds{eth0,systematic}": 2e-6, "oneway_timestamp_calibration_seconds{eth0,random}": 7e-6,
		"oneway_timestamp_calibration_seconds{eth1,systematic}": 2e-6, "oneway_timestamp_calibration_seconds{eth1,random}": 34e-6,
	}
	if diff := cmp.Diff(want, sink.Present("")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	stop()
	if sink.Open() != 0 {
		t.Errorf("left: %v", sink.Present(""))
	}
}
