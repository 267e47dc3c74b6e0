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
		if strings.HasSuffix(path, "_test.go") || !isShipped(path) || filepath.Base(path) == "defaultports.go" {
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

// isShipped tells whether a file is part of the program, of its modules, or of the examples.
func isShipped(path string) bool {
	place, _, _ := strings.Cut(strings.TrimPrefix(filepath.ToSlash(path), root+"/"), "/")
	return !strings.Contains(path, "testdata") && slices.Contains([]string{"chrony-config", "deploy", "exporter", "grafana-dashboards", "telegraf-plugins"}, place)
}

// otherPorts returns the ports in documents and examples that are no defaults of the program: NTP, chronyd, gpsd, InfluxDB 1 and 3,
// node_exporter, Telegraf's plugin and its listener, an example, mail, Alertmanager, Prometheus, VictoriaMetrics, Thanos, Grafana, and the largest port.
func otherPorts() []string {
	return []string{"123", "323", "2947", "8086", "8181", "9100", "8862", "8622", "587", "9093", "9090", "8428", "10901", "10902", "10911", "10912", "19291", "3000", "8186", "65535"}
}

// A document, and each file that is shipped, has the default ports, and otherPorts, but no further one: after a change of a default
// the files with the old one fail.
func TestFilesHaveTheDefaultPorts(t *testing.T) {
	port := regexp.MustCompile(`(?m)(?:[A-Za-z0-9][]"'*]?:|(?:^|[\s"'=(]):|\bports?:? \(?|-p |--port |(?:UDP|TCP) |\b[0-9]{4}(?: to |-))([1-9][0-9]{2,4})\b`)
	variable := regexp.MustCompile(`\$\{[^}]*\}`) // of a shell: ${text:0:300}
	allowed, found := slices.Concat(defaultPorts(), otherPorts()), map[string]int{}
	for _, path := range files(t, "") {
		suffix := filepath.Ext(path)
		switch {
		case strings.Contains(path, "CHANGELOG"), slices.Contains([]string{".go", ".gz", ".png", ".svg", ".sum"}, suffix), suffix != ".md" && !isShipped(path):
			continue
		}
		for _, m := range port.FindAllStringSubmatch(variable.ReplaceAllString(read(t, path), ""), -1) {
			if found[suffix]++; !slices.Contains(allowed, m[1]) {
				t.Errorf("%s: %q has another port than the defaults: %v", path, m[0], defaultPorts())
			}
		}
	}
	for _, suffix := range []string{".md", ".yml", ".conf", ".tmpl", ".json"} {
		if found[suffix] == 0 {
			t.Errorf("no port was found in a file of %s", suffix)
		}
	}
}
