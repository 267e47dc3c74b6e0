package errtext_test

import (
	"errors"
	"flag"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneway.example/exporter/core/errtext"
)

func TestTextsOfErrorsHaveNoPackages(t *testing.T) {
	for text, want := range map[string]string{
		"stamp: open udp 10.0.0.9:0: cannot assign":                    "open udp 10.0.0.9:0: cannot assign",
		"--token-file cannot be used: keyfile: open a: no such file":   "--token-file cannot be used: open a: no such file",
		"load server h:8620: TLS: tls: failed to verify: x509: no SAN": "load server h:8620: TLS: failed to verify: no SAN",
		"forward transfer: stream: tstamp: send: no route":             "forward transfer: send: no route",
		"reflector: no key":       "reflector: no key", // a section of the configuration
		"the target: 3 packets":   "the target: 3 packets",
		"loadserver: a\nquota: b": "a\nb",
		"":                        "",
	} {
		if got := errtext.Words(errors.New(text)); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if got := errtext.WordsWithin("chrony", errors.New("chrony: dial unix: no reply")); got != "dial unix: no reply" {
		t.Errorf("within a text about chrony: %q", got)
	}
	var out strings.Builder
	log := slog.New(errtext.Handler{Handler: slog.NewTextHandler(&out, nil)}).With("err", errors.New("quota: a")).WithGroup("g")
	log.Info("stamp: x", "err", errors.New("stamp: b"), "n", 1)
	if got := out.String(); !strings.Contains(got, `msg="stamp: x" err=a g.err=b g.n=1`) {
		t.Errorf("logged %q", got)
	}
}

var update = flag.Bool("update", false, "rewrite packages.txt")

// TestPackagesAreThoseOfTheSource: the lists have each package whose errors begin with its name, and no other one.
func TestPackagesAreThoseOfTheSource(t *testing.T) {
	clause, text := regexp.MustCompile(`(?m)^package (\w+)$`), regexp.MustCompile(`(Errorf\(|errors\.New\()?"([a-z0-9]+): `)
	found := map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, d os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name := clause.FindStringSubmatch(string(content))[1]
		for _, begin := range text.FindAllStringSubmatch(string(content), -1) {
			switch of := begin[2]; {
			case of == name:
				found[name] = true
			case begin[1] != "" && strings.Contains(name, of):
				t.Errorf("%s: an error begins with %q, want the whole name of its package, %s", path, of, name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range errtext.Kept() {
		if !found[name] {
			t.Errorf("errtext keeps %s, and no package of this name begins a text with it: remove it", name)
		}
		delete(found, name)
	}
	names := slices.Sorted(maps.Keys(found))
	if *update {
		if err := os.WriteFile("packages.txt", []byte(strings.Join(names, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if diff := cmp.Diff(errtext.Packages(), names); diff != "" {
		t.Errorf("packages.txt differs from the source; go generate ./exporter/core/errtext writes it (-is +want):\n%s", diff)
	}
}
