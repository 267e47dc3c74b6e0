package oneway_clock

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oneway.example/exporter/clocks"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/watchers"
	"oneway.example/telegraf-plugins/internal/external"
	"oneway.example/telegraf-plugins/internal/logs"
)

// TestSampleConfigHasOptionsOfTheAgent removes the comments of the options of source chrony, gpsd and pps.
func TestSampleConfigHasOptionsOfTheAgent(t *testing.T) {
	c := New()
	var all strings.Builder
	for line := range strings.Lines(c.SampleConfig()) {
		if setting, found := strings.CutPrefix(strings.TrimSpace(line), "# "); found && strings.ContainsAny(setting, "=[") && !strings.HasPrefix(setting, "bound") {
			line = setting + "\n"
		}
		all.WriteString(line)
	}
	file := filepath.Join(t.TempDir(), "all.conf")
	if err := os.WriteFile(file, []byte(all.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := external.Load("oneway_clock", c, file); err != nil {
		t.Fatalf("%v\n%s", err, &all)
	}
	for _, key := range []string{"source", "address", "interval", "socket_dir", "max_clock_error", "trust_local", "gpsd", "pps"} {
		if _, ok := c.Clock[key]; !ok {
			t.Errorf("no %s in %v", key, c.Clock)
		}
	}
	if c.Interval != New().Interval {
		t.Errorf("interval is %v", c.Interval)
	}
	for _, source := range clocks.All() {
		_, described := source.Document()
		for _, d := range option.All(described...) {
			if !strings.Contains(sampleConfig, d.Range()) {
				t.Errorf("%s of %s is %s, which the sample does not say", d.Key, source.Name(), d.Range())
			}
			if d.Key == "interval" && c.Clock[d.Key] != option.String(d.Default()) {
				t.Errorf("%s of %s is %v, want %s", d.Key, source.Name(), c.Clock[d.Key], option.String(d.Default()))
			}
		}
	}
	for _, watcher := range watchers.All() {
		given, _ := c.Clock[watcher.Name()].(map[string]any)
		_, described := watcher.Document()
		for _, d := range option.All(described...) {
			if got, found := given[d.Key]; !found || got != option.String(d.Default()) {
				t.Errorf("%s of %s is %v, want %s", d.Key, watcher.Name(), got, option.String(d.Default()))
			}
		}
		if name := watcher.(interface{ DefaultName() string }).DefaultName(); given["name"] != name {
			t.Errorf("the name of %s is %v, want %s", watcher.Name(), given["name"], name)
		}
	}
	c.Log = logs.New(&strings.Builder{}, 0)
	if err := c.Init(); err != nil {
		t.Error(err)
	}
}

// TestReadmeHasTheSampleConfig holds the copy that Telegraf's conventions want.
func TestReadmeHasTheSampleConfig(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(readme), "```toml @sample.conf\n"+sampleConfig+"```\n") {
		t.Error("README.md differs from sample.conf; go generate copies it")
	}
}
