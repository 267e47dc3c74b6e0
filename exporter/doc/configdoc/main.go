// Command configdoc writes deploy/oneway.yml, the commented configuration: the template beside it, and the options of all clock sources,
// outputs, probes, the reflector and the load server from their descriptions.
package main

import (
	_ "embed"
	"fmt"
	"os"
	"strings"

	"oneway.example/exporter/clocks"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/load/loadserver"
	"oneway.example/exporter/outputs"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes"
	"oneway.example/exporter/reflector"
	"oneway.example/exporter/watchers"
)

//go:generate go run . ../../../deploy/oneway.yml

//go:embed oneway.yml.tmpl
var template string

func main() {
	if err := os.WriteFile(os.Args[1], []byte(text()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "configdoc:", err)
		os.Exit(1)
	}
}

// text is the commented configuration.
func text() string {
	var sources block
	for _, one := range clocks.All() {
		if described, ok := one.(option.Described); ok {
			sources.options(2, nil, described)
		}
	}
	var stores block
	for _, one := range outputs.All() {
		doc, options := one.(option.Documented).Document()
		stores.comment(2, doc)
		stores.line(2, "#- type: "+one.Name())
		stores.comment(4, `The label "output" of its metrics, and the directory in state_dir/outputs.`)
		stores.line(4, "#name: "+one.Name())
		stores.options(4, nil, options...)
	}
	var watches block
	for _, one := range watchers.All() {
		doc, options := one.(option.Documented).Document()
		watches.comment(2, doc)
		watches.line(2, "#- type: "+one.Name())
		watches.line(4, "#name: "+one.Name())
		watches.options(4, nil, options...)
	}
	var reflects, serves block
	reflects.options(2, nil, &reflector.Options{})
	serves.options(2, nil, &loadserver.Options{})
	light, tests := byKind()
	return strings.NewReplacer(
		"{{clocks}}", sources.String(), "{{outputs}}", stores.String(), "{{watchers}}", watches.String(), "{{reflector}}", reflects.String(), "{{load_server}}", serves.String(),
		"{{light}}", light, "{{load_tests}}", tests,
	).Replace(template)
}

// byKind are the options of the light probe of the example, and the paths with the other types.
func byKind() (light, others string) {
	var first, tests block
	tests.comment(2, "Load tests, which fill the link on purpose. The peer runs a load server (see above), and gives this agent a token; a test needs its link, "+
		"here and at the remote end, and its data quota. The first test lists the options of all of them.")
	tests.line(2, "- name: branch-to-core")
	tests.line(4, "peer: core.example.net")
	tests.line(4, "probes:")
	begun := false
	for _, one := range probes.All() {
		doc, options := one.(option.Documented).Document()
		if _, fills := one.(probe.LoadTest); !fills {
			first.options(8, nil, options...)
			continue
		}
		tests.comment(6, doc)
		tests.line(6, "- type: "+one.Name())
		required := one.(interface{ RequiredKeys() []string }).RequiredKeys()
		if begun { // the first one has the shared options
			for _, d := range option.All(options[0]) {
				for _, key := range required {
					if d.Key == key {
						tests.line(8, key+": "+shown(d))
					}
				}
			}
			options = options[1:]
		}
		begun = true
		tests.options(8, required, options...)
	}
	return first.String(), tests.hidden(2)
}
