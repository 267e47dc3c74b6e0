// Package probeoptions decodes the options of probes for tests as an agent does: from the text
// of a configuration.
package probeoptions

import (
	"errors"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oneway.example/exporter/agent/config"
	"oneway.example/exporter/clocks/static"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/load/loadsession"
	"oneway.example/exporter/probe"
)

// Configured makes a prober of these options, one a line, and returns their errors.
func Configured(t *testing.T, of probe.Type, options string) error {
	t.Helper()
	var text strings.Builder
	text.WriteString("paths:\n  - name: p\n    peer: 192.0.2.1:862\n    probes:\n      - type: " + of.Name() + "\n")
	for line := range strings.Lines(options) {
		text.WriteString("        " + line)
	}
	c, err := config.Parse("o.yml", []byte(text.String()+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	env := probe.Env{Log: slog.New(slog.DiscardHandler), Sink: metric.Discard{}, Clock: static.New(time.Millisecond, metric.Discard{})}
	_, err = of.New(env, probe.Target{Path: "p", Probe: of.Name(), Peer: "192.0.2.1"}, c.Paths[0].Probes[0].Options.DecodeAll)
	return err
}

// Accepted checks that a type accepts these options, and none, and that it proposes key for misspelled, an unknown one.
func Accepted(t *testing.T, of probe.Type, options, misspelled, key string) {
	t.Helper()
	for _, o := range []string{options, ""} {
		if err := Configured(t, of, o); err != nil {
			t.Errorf("%q: %v", o, err)
		}
	}
	if err := Configured(t, of, misspelled+": [64]\n"); err == nil || !strings.Contains(err.Error(), `did you mean "`+key+`"?`) {
		t.Errorf("unknown key: %v", err)
	}
}

// Refused checks the errors of a table of options.
func Refused(t *testing.T, of probe.Type, table map[string]string) {
	t.Helper()
	for options, want := range table {
		err := Configured(t, of, options)
		if wrong, ok := errors.AsType[*probe.OptionError](err); !ok || wrong.Error() != want {
			t.Errorf("%q: %v\nwant %s", options, err, want)
		}
	}
}

// Example checks that the options of each load-test probe of a type in the example configuration, with the #
// removed from its settings, are the defaults. The test's directory is that of a probe.
func Example[O any](t *testing.T, of probe.Type, defaults O) {
	t.Helper()
	text, err := os.ReadFile("../../../deploy/oneway.yml")
	if err != nil {
		t.Fatal(err)
	}
	kind := "      - type: " + of.Name() + "\n"
	head, block, found := strings.Cut(string(text), kind)
	if !found {
		t.Fatal("the probe is not in the example")
	}
	end := regexp.MustCompile(`(?m)^ *- `).FindStringIndex(block) // the next item of a list
	if end == nil {
		end = []int{len(block)}
	}
	settings := regexp.MustCompile(`(?m)^( *)#([a-z_]+: )`).ReplaceAllString(block[:end[0]], "$1$2")
	c, err := config.Parse("oneway.yml", []byte(head+kind+settings+block[end[0]:]))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range c.Paths {
		for _, one := range path.Probes {
			if one.Type == of.Name() {
				shared, got := loadsession.DefaultOptions(), *new(O)
				if err := one.Options.DecodeAll(&shared, &got); err != nil {
					t.Error(err)
				}
				if diff := cmp.Diff(defaults, got); diff != "" {
					t.Errorf("the example and the defaults differ:\n%s", diff)
				}
			}
		}
	}
}
