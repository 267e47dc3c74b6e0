package oneway_clock

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oneway.example/telegraf-plugins/internal/external"
	"oneway.example/telegraf-plugins/internal/logs"
)

// TestSampleConfigHasOptionsOfTheAgent removes the comments of the options of source chrony, gpsd and pps.
func TestSampleConfigHasOptionsOfTheAgent(t *testing.T) {
	c := New()
	var all strings.Builder
	for line := range strings.Lines(c.SampleConfig()) {
		if option, found := strings.CutPrefix(strings.TrimSpace(line), "# "); found && strings.ContainsAny(option, "=[") && !strings.HasPrefix(option, "bound") {
			line = option + "\n"
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
