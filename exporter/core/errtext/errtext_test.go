package errtext_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"oneway.example/exporter/core/errtext"
)

func TestTextsOfErrorsHaveNoPackages(t *testing.T) {
	for text, want := range map[string]string{
		"stamp: open udp 10.0.0.9:0: cannot assign":                    "open udp 10.0.0.9:0: cannot assign",
		"--token-file cannot be used: keyfile: open a: no such file":   "--token-file cannot be used: open a: no such file",
		"load server h:8620: TLS: tls: failed to verify: x509: no SAN": "load server h:8620: TLS: failed to verify: no SAN",
		"forward transfer: stream: tstamp: send: no route":             "forward transfer: send: no route",
		"reflector: no key":     "reflector: no key", // a section of the configuration
		"the target: 3 packets": "the target: 3 packets",
		"loadtest: a\nquota: b": "a\nb",
		"":                      "",
	} {
		if got := errtext.Words(errors.New(text)); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	var out strings.Builder
	log := slog.New(errtext.Handler{Handler: slog.NewTextHandler(&out, nil)}).With("err", errors.New("quota: a")).WithGroup("g")
	log.Info("stamp: x", "err", errors.New("stamp: b"), "n", 1)
	if got := out.String(); !strings.Contains(got, `msg="stamp: x" err=a g.err=b g.n=1`) {
		t.Errorf("logged %q", got)
	}
}

// TestEachPackageThatNamesItselfIsKnown: the errors of a new package have no name of it either.
func TestEachPackageThatNamesItselfIsKnown(t *testing.T) {
	clause := regexp.MustCompile(`(?m)^package (\w+)$`)
	found := 0
	err := filepath.WalkDir("../..", func(path string, d os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name := clause.FindStringSubmatch(string(content))[1]
		if regexp.MustCompile(`(Errorf|errors\.New)\("` + name + `: `).Match(content) {
			if found++; !errtext.Drops(name) && !slices.Contains(errtext.Kept(), name) {
				t.Errorf("%s: add the package %s to errtext", path, name)
			}
		}
		return nil
	})
	if err != nil || found < 50 {
		t.Errorf("%d files, %v", found, err)
	}
}
