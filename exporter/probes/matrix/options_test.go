package matrix

import (
	"errors"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oneway.example/exporter/config"
	"oneway.example/exporter/heavy"
	"oneway.example/exporter/metric"
	"oneway.example/exporter/probe"
)

// build makes a prober from options as they are written.
func build(t *testing.T, yaml string) error {
	t.Helper()
	text := "paths:\n  - name: p\n    peer: h\n    probes:\n      - type: matrix\n"
	for line := range strings.Lines(yaml) {
		text += "        " + line
	}
	c, err := config.Parse("o.yml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	env := probe.Env{Log: slog.New(slog.DiscardHandler), Sink: metric.Discard{}}
	_, err = New().New(env, probeTarget(), c.Paths[0].Probes[0].Options.Decode)
	return err
}

func TestOptionsOfTheProbeAndOfAllHeavyTestsStandTogether(t *testing.T) {
	if err := build(t, "packet_bytes: [64, 1500]\npacket_rates: [100]\ncell_duration: 1s\nrepetitions: 20\nseed: 3\nevery: 1h\ndirections: [reverse]\n"); err != nil {
		t.Error(err)
	}
	if err := build(t, ""); err != nil {
		t.Error("the defaults:", err)
	}
}

func TestWrongOptionsSayWhatWouldBeRight(t *testing.T) {
	for yaml, want := range map[string]string{
		"packet_bytes: []\n":                  "packet_bytes is empty; it needs one value at the least",
		"packet_bytes: [64, 20]\n":            "packet_bytes[1] is 20; it must be between 60 and 9000",
		"packet_bytes: [64, 64]\n":            "packet_bytes[1] is 64 for the second time",
		"packet_rates: [0]\n":                 "packet_rates[0] is 0; it must be between 1 and 100000",
		"packet_rates: [100, 1000000]\n":      "packet_rates[1] is 1000000; it must be between 1 and 100000",
		"cell_duration: 1ms\n":                "cell_duration is 1ms; it must be between 100ms and 10m0s",
		"cell_duration: 5m\n":                 "cell_duration is 5m0s, 3000000 packets at the highest rate; 2000000 are the most",
		"repetitions: 0\n":                    "repetitions is 0; it must be between 1 and 100",
		"every: 1s\n":                         "every is 1s; it must be between 10s and 168h0m0s",
		"packet_rates: [1,2,3,4,5,6,7,8,9]\n": "packet_bytes times packet_rates are 54 cells; 48 are the most",
	} {
		err := build(t, yaml)
		var wrong *probe.OptionError
		if !errors.As(err, &wrong) || wrong.Error() != want {
			t.Errorf("%q: %v\nwant %s", yaml, err, want)
		}
	}
	if err := build(t, "packet_byte: [64]\n"); err == nil || !strings.Contains(err.Error(), `did you mean "packet_bytes"?`) {
		t.Errorf("unknown key: %v", err)
	}
}

func TestSeedIsAnotherForEachRunUnlessGiven(t *testing.T) {
	o := DefaultOptions()
	if a, b := o.seed(), o.seed(); a == b || a == 0 {
		t.Errorf("two runs have the seeds %d and %d", a, b)
	}
	o.Seed = 12
	if o.seed() != 12 || o.CellDuration != 10*time.Second {
		t.Errorf("seed %d", o.seed())
	}
}

// TestExampleShowsTheDefaults takes the # away from the settings of this probe in the
// example configuration.
func TestExampleShowsTheDefaults(t *testing.T) {
	text, err := os.ReadFile("../../../deploy/oneway.yml")
	if err != nil {
		t.Fatal(err)
	}
	head, block, found := strings.Cut(string(text), "      - type: matrix\n")
	if !found {
		t.Fatal("the probe is not in the example")
	}
	// Settings end with the next item of a list.
	end := regexp.MustCompile(`(?m)^ *- `).FindStringIndex(block)
	if end == nil {
		end = []int{len(block)}
	}
	settings := regexp.MustCompile(`(?m)^( *)#([a-z_]+: )`).ReplaceAllString(block[:end[0]], "$1$2")
	c, err := config.Parse("oneway.yml", []byte(head+"      - type: matrix\n"+settings+block[end[0]:]))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range c.Paths {
		for _, one := range p.Probes {
			if one.Type != "matrix" {
				continue
			}
			shared, got := heavy.DefaultOptions(), Options{}
			if err := heavy.Decode(one.Options.Decode, &shared, &got); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(DefaultOptions(), got); diff != "" {
				t.Errorf("the example and the defaults differ:\n%s", diff)
			}
		}
	}
}
