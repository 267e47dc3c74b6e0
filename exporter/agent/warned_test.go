package agent

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"oneway.example/exporter/agent/config"
)

// Each warning is logged when a configuration first has it, wherever it stands in the file.
func TestWarningsAreLoggedOnce(t *testing.T) {
	var out bytes.Buffer
	a := &Agent{log: slog.New(slog.NewTextHandler(&out, nil))}
	warning := func(line int, text string) *config.Problem {
		return &config.Problem{File: "f.yml", Line: line, Key: "k", Text: text}
	}
	for i, c := range []struct {
		warnings config.Problems
		want     int
	}{
		{config.Problems{warning(1, "one")}, 1},
		{config.Problems{warning(2, "one")}, 1},
		{config.Problems{warning(1, "one"), warning(2, "two")}, 2},
		{nil, 2},
		{config.Problems{warning(1, "one")}, 3},
	} {
		a.warn(&plan{summary: Summary{Warnings: c.warnings}})
		if n := strings.Count(out.String(), "level=WARN"); n != c.want {
			t.Errorf("step %d: %d warnings in the log, want %d:\n%s", i, n, c.want, &out)
		}
	}
}
