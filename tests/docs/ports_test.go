package docs

import (
	"fmt"
	"go/scanner"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"oneway.example/exporter/core/hostport"
	"oneway.example/exporter/core/option"
)

// defaultPorts are the default ports of the program, as text.
func defaultPorts() []string {
	further := option.LoadServerPorts()
	return []string{fmt.Sprint(hostport.Reflector), fmt.Sprint(hostport.LoadServer), fmt.Sprint(further.First), fmt.Sprint(further.Last), hostport.Agent}
}

// Texts and examples of the program have the default ports by the constants of package hostport.
func TestCodeHasDefaultPortsByTheirConstants(t *testing.T) {
	literal := regexp.MustCompile(`\b(?:` + strings.Join(defaultPorts(), "|") + `)\b`)
	for _, path := range files(t, ".go") {
		if strings.HasSuffix(path, "_test.go") || !strings.HasPrefix(path, filepath.Join(root, "exporter")) || filepath.Base(path) == "hostport.go" {
			continue
		}
		var s scanner.Scanner
		source, set := []byte(read(t, path)), token.NewFileSet()
		s.Init(set.AddFile(path, -1, len(source)), source, nil, 0)
		for at, kind, text := s.Scan(); kind != token.EOF; at, kind, text = s.Scan() {
			if (kind == token.INT || kind == token.STRING) && literal.MatchString(text) {
				t.Errorf("%v: has a default port as a number; use the constants of package hostport", set.Position(at))
			}
		}
	}
}

// otherPorts returns the ports in documents that are no defaults of the program: NTP, chronyd, gpsd, InfluxDB 1 and 3,
// node_exporter, Telegraf's plugin, and an example.
func otherPorts() []string {
	return []string{"123", "323", "2947", "8086", "8181", "9100", "8862", "8622"}
}

// A document has the default ports, and otherPorts, but no further one: after a change of a default the documents
// with the old one fail.
func TestDocumentsHaveTheDefaultPorts(t *testing.T) {
	port := regexp.MustCompile(`(?:[A-Za-z0-9][]"'*]?:|\bports? \(?|-p |--port |(?:UDP|TCP) |\b[0-9]{4} to )([1-9][0-9]{2,4})\b`)
	allowed := slices.Concat(defaultPorts(), otherPorts())
	for _, path := range files(t, ".md") {
		if strings.Contains(path, "CHANGELOG") {
			continue
		}
		for _, m := range port.FindAllStringSubmatch(read(t, path), -1) {
			if !slices.Contains(allowed, m[1]) {
				t.Errorf("%s: %q has another port than the defaults: %v", path, m[0], defaultPorts())
			}
		}
	}
}
