// Command configdoc writes deploy/oneway.yml, the commented configuration, and its JSON Schema, exporter/doc/schema/config.json, from
// the descriptions of all options. The template beside it has the examples of paths.
package main

import (
	_ "embed"
	"fmt"
	"os"
	"slices"
	"strings"

	"oneway.example/exporter/agent"
	"oneway.example/exporter/agent/config"
	"oneway.example/exporter/clocks"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/outputs"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes"
	"oneway.example/exporter/watchers"
)

//go:generate go run . ../../../deploy/oneway.yml ../schema/config.json

//go:embed oneway.yml.tmpl
var template string

func main() {
	for i, content := range [][]byte{[]byte(text()), schema()} {
		if err := os.WriteFile(os.Args[i+1], content, 0o644); err != nil {
			fmt.Fprintln(os.Stderr, "configdoc:", err)
			os.Exit(1)
		}
	}
}

// text is the commented configuration.
func text() string {
	var path, probe block
	path.options(4, []string{"name", "peer", "probes"}, &config.Path{})
	probe.options(8, []string{"type"}, &config.Probe{})
	return strings.NewReplacer("{{sections}}", sections(), "{{path}}", path.asItem().String(), "{{probe}}", probe.asItem().String(), "{{light}}", lightProbes(), "{{load_tests}}", loadTests()).Replace(template)
}

// sections are all sections of a file; the last one is paths, whose items follow.
func sections() string {
	active := map[string][]string{"version": nil, "clock": {"source"}, "reflector": {"listen"}, "paths": nil}
	described := agent.Sections(clocks.All(), probes.All(), watchers.All())
	var all block
	for i, d := range option.All(&config.Config{}) {
		if i > 0 {
			all.lines = append(all.lines, "")
		}
		all.comment(0, d.Explained())
		shown, isActive := active[d.Key]
		all.line(0, strings.TrimSuffix(mark(isActive)+d.Key+": "+d.Shown(), " "))
		switch d.Key {
		case "outputs":
			for _, one := range outputs.All() {
				all.item(one, one.Name(), `The label "output" of its metrics, and the directory in state_dir/outputs.`)
			}
		case "watchers":
			for _, one := range watchers.All() {
				all.item(one, one.Name(), "")
			}
		case "maintenance":
			all.window(described[d.Key])
		default:
			if d.Shown() == "" {
				all.options(2, shown, described[d.Key]...)
			}
		}
	}
	return all.String()
}

// window writes the keys of a maintenance window, the reason first: each window needs one.
func (b *block) window(structs []option.Described) {
	for _, d := range all(structs) {
		if d.Key == "reason" {
			b.comment(2, d.Explained())
			b.line(2, "#- reason: "+d.Shown())
		}
	}
	for _, d := range all(structs) {
		if d.Key != "reason" {
			b.comment(4, d.Explained())
			b.line(4, "#"+d.Key+": "+d.Shown())
		}
	}
}

// item writes the options of a type of outputs or watchers. named is what its name is; empty: the section says it.
func (b *block) item(kind option.Documented, name, named string) {
	doc, options := kind.Document()
	b.comment(2, doc)
	b.line(2, "#- type: "+name)
	if named != "" {
		b.comment(4, named)
	}
	b.line(4, "#name: "+name)
	b.options(4, nil, options...)
}

// lightOfTemplate is the type of the light probe that the template has active; the other types follow it as comments.
const lightOfTemplate = "stamp"

// lightProbes are the options of the light probe of the template, and the other types of light probes.
func lightProbes() string {
	var first, others block
	for _, one := range probes.All() {
		doc, options := one.Document()
		if _, fills := one.(probe.LoadTest); fills {
			continue
		}
		if one.Name() == lightOfTemplate {
			first.options(8, nil, options...)
			continue
		}
		others.comment(6, doc)
		others.line(6, "#- type: "+one.Name())
		others.options(8, nil, options...)
	}
	first.lines = append(first.lines, others.lines...)
	return first.String()
}

// loadTests is a path with each type of load test.
func loadTests() string {
	var tests block
	tests.comment(2, "Load tests, which fill the link on purpose. Most need a load server (see above) at the peer, and its token; a test needs "+
		"its link, here and at the remote end, and its data quota. An option that several tests share is described at the first of them.")
	tests.line(2, "- name: branch-to-core")
	tests.line(4, "peer: core.example.net")
	tests.line(4, "probes:")
	listed := map[string]bool{}
	for _, one := range probes.All() {
		test, fills := one.(probe.LoadTest)
		if !fills {
			continue
		}
		doc, options := one.Document()
		unused := unusedBy(one)
		if len(unused) > 0 {
			doc += " Without the option " + strings.Join(unused, ", ") + "."
		}
		tests.comment(6, doc)
		tests.line(6, "- type: "+one.Name())
		var required []string
		for _, r := range test.Requirements() {
			required = append(required, r.Key)
		}
		var shared []option.Description
		for _, d := range option.All(options[0]) {
			switch {
			case slices.Contains(unused, d.Key):
				continue
			case !listed[d.Key]:
				shared = append(shared, d)
			case slices.Contains(required, d.Key):
				tests.line(8, d.Key+": "+d.Shown())
			}
			listed[d.Key] = true
		}
		tests.descriptions(8, required, shared)
		tests.options(8, required, options[1:]...)
	}
	return tests.hidden(2)
}

// unusedBy are the keys of options without effect on probes of a type.
func unusedBy(one probe.Type) []string {
	if sharing, ok := one.(probe.Sharing); ok {
		return sharing.UnusedKeys()
	}
	return nil
}
