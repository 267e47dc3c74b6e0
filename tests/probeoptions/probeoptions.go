// Package probeoptions decodes the options of probes for tests as an agent does: from the text
// of a configuration.
package probeoptions

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/agent/config"
	"oneway.example/exporter/clocks/static"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/probe"
)

// Configured makes a prober of these options, one a line, and returns their errors.
func Configured(t *testing.T, of probe.Type, options string) error {
	t.Helper()
	var text strings.Builder
	text.WriteString("paths:\n  - name: p\n    peer: 192.0.2.1\n    probes:\n      - type: " + of.Name() + "\n")
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
		if wrong, ok := errors.AsType[*option.Error](err); !ok || wrong.Error() != want {
			t.Errorf("%q: %v\nwant %s", options, err, want)
		}
	}
}
