package rules

import (
	"os/exec"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"oneway.example/exporter/agent"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/serve/runbook"
	"oneway.example/tests/commands"
	"oneway.example/tests/expr"
	"oneway.example/tests/oneway"
)

// runbookURL is the template of every alert's runbook_url, before the alert's name.
const runbookURL = `{{ with printf "oneway:runbooks:url{instance=%q} or on () oneway:runbooks:url" $labels.instance | query | sortByLabel "url" }}{{ (first .).Labels.url }}{{ else }}http://{{ or $labels.instance "localhost:9862" }}/runbooks{{ end }}/`

func TestEveryAlertHasARunbookAndEveryRunbookAnAlert(t *testing.T) {
	names := map[string]bool{}
	for _, a := range alerts(t) {
		names[a.Alert] = true
		if runbook.Text(a.Alert) == "" {
			t.Errorf("%s: no file exporter/serve/runbook/%s.md", a.Alert, a.Alert)
		}
		if got, want := a.Annotations["runbook_url"], runbookURL+a.Alert; got != want && a.Alert != "OnewayThresholdsMissing" { // its address has no rule
			t.Errorf("%s: runbook_url %s, want %s", a.Alert, got, want)
		}
	}
	for _, name := range runbook.Names() {
		if !names[name] {
			t.Errorf("%s.md is of no alert", name)
		}
	}
}

// A command with a metric, an address of the web server, or a field of the status that does not exist finds nothing.
func TestCommandsOfRunbooksNameWhatExists(t *testing.T) {
	rules, _ := load(t)
	families, records := table(), recorded(rules)
	paths := []string{"/-/ready", "/-/reload", "/-/incident", "/api/v1/status", "/metrics", "/runs"}
	fields := map[string]bool{}
	jsonFields(reflect.TypeFor[agent.Status](), fields, map[reflect.Type]bool{})
	probeFields := map[string]bool{}
	for f := range reflect.TypeFor[agent.ProbeStatus]().Fields() {
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		probeFields[key] = true
	}
	ofProbe := regexp.MustCompile(`\.probes\[\] \| \{([^}]*)\}`) // {probe: .name, health}: some fields by their own name
	address := regexp.MustCompile(`http://(?:REMOTE-)?AGENT(/[^ '?|]*)`)
	field := regexp.MustCompile(`\.([a-z_]+)`)
	checked := 0
	for _, name := range runbook.Names() {
		for _, c := range commands.Extract([]byte(runbook.Text(name))) {
			command := c.Text
			for _, m := range address.FindAllStringSubmatch(command, -1) {
				if checked++; !slices.Contains(paths, m[1]) {
					t.Errorf("%s: %s: the agent does not serve %s", name, command, m[1])
				}
			}
			if _, filter, ok := strings.Cut(command, "/api/v1/status | jq "); ok {
				for _, m := range field.FindAllStringSubmatch(filter, -1) {
					if checked++; !fields[m[1]] {
						t.Errorf("%s: %s: the status has no field %s", name, command, m[1])
					}
				}
				if m := ofProbe.FindStringSubmatch(filter); m != nil {
					for item := range strings.SplitSeq(m[1], ",") {
						_, value, renamed := strings.Cut(item, ": .")
						if !renamed {
							value = strings.TrimSpace(item)
						}
						if checked++; !probeFields[value] {
							t.Errorf("%s: %s: a probe of the status has no field %s", name, command, value)
						}
					}
				}
			}
			if query, ok := strings.CutPrefix(command, "promtool query instant http://PROMETHEUS "); ok {
				for _, s := range expr.Selectors(query) {
					if checked++; !exists(s.Name, families, records) {
						t.Errorf("%s: %s: %s is neither exported nor recorded", name, command, s.Name)
					}
				}
			}
			if _, lines, ok := strings.Cut(command, "| grep '"); ok {
				for family := range strings.SplitSeq(strings.Trim(lines, "'"), `\|`) {
					prefix, _, _ := strings.Cut(strings.TrimPrefix(family, "^"), ".*")
					found := false
					for known := range families {
						found = found || strings.HasPrefix(known, prefix)
					}
					if checked++; !found || !strings.HasPrefix(family, "^oneway_") {
						t.Errorf("%s: %s: no family begins with %s", name, command, prefix)
					}
				}
			}
		}
	}
	if checked < 100 {
		t.Errorf("checked %d names: fewer than there are", checked)
	}
}

// These alerts fire for a path without a day of history, too: there is no series that is computed from the baseline then.
func TestRunbooksOfDelayAndLossFindTheDelayWithoutHistory(t *testing.T) {
	for _, name := range []string{"OnewayDelayBlowUp", "OnewayLossHigh"} {
		if !slices.ContainsFunc(commands.Extract([]byte(runbook.Text(name))), func(c commands.Command) bool {
			return slices.ContainsFunc(expr.Selectors(strings.TrimPrefix(c.Text, "promtool query instant http://PROMETHEUS ")), func(s expr.Selector) bool {
				return s.Name == metric.DelayMin.Name
			})
		}) {
			t.Errorf("%s: each query of the delay needs a baseline", name)
		}
	}
}

// A sender that does everything right gets no reply for these reasons.
func TestRunbookOfASilentPeerNamesWhatItsReflectorSays(t *testing.T) {
	text := runbook.Text("OnewayProbeFailing")
	for _, name := range metric.ReflectorPackets.Values.Names(metric.ResultL) {
		if strings.HasPrefix(name, "reflected") || slices.Contains([]string{"corrupted", "repeated", "bad_address", "loop"}, name) {
			continue
		}
		if !strings.Contains(text, "`"+name+"`") {
			t.Errorf("the runbook does not name %s", name)
		}
	}
}

// A policer limits one class: its losses are of one probe, and at regular intervals; packets of mtr are of another class.
func TestRunbookOfLossTellsAPolicerOfOneClass(t *testing.T) {
	text := runbook.Text("OnewayLossHigh")
	for _, words := range []string{"Only one probe of the path", "well below 1", "`-Q` and four times the probe's `dscp` (184 for 46)"} {
		if !strings.Contains(text, words) {
			t.Errorf("the runbook does not say: %s", words)
		}
	}
}

// A reflector that replies may be the end that loses: its replies take another way.
func TestRunbookOfASilentPeerReadsItsCounts(t *testing.T) {
	text := runbook.Text("OnewayProbeFailing")
	for _, words := range []string{"- Both grow: ", "Neither grows: ", "prefix length", "two hosts may have the address"} {
		if !strings.Contains(text, words) {
			t.Errorf("the runbook does not say: %s", words)
		}
	}
}

// jsonFields collects the names of a type's fields in JSON.
func jsonFields(of reflect.Type, out map[string]bool, seen map[reflect.Type]bool) {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice || of.Kind() == reflect.Map {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || seen[of] {
		return
	}
	seen[of] = true
	for f := range of.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		out[name] = true
		jsonFields(f.Type, out, seen)
	}
}

// The program itself tells which commands and flags it has.
func TestOnewayCommandsOfRunbooksExist(t *testing.T) {
	binary, err := oneway.Build(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	inline := regexp.MustCompile("`(oneway [a-z][^`]*)`")
	help, checked := map[string]string{}, 0
	for _, name := range runbook.Names() {
		var lines []string
		for _, c := range commands.Extract([]byte(runbook.Text(name))) {
			lines = append(lines, c.Text)
		}
		for _, m := range inline.FindAllStringSubmatch(runbook.Text(name), -1) {
			lines = append(lines, m[1])
		}
		for _, line := range lines {
			words := strings.Fields(line)
			if words[0] != "oneway" || strings.HasSuffix(line, ".") { // a reply of the web server is a sentence
				continue
			}
			command := words[1:2]
			if words[1] == "test" || words[1] == "token" {
				command = words[1:min(3, len(words))]
			}
			key := strings.Join(command, " ")
			if help[key] == "" {
				out, err := exec.CommandContext(t.Context(), binary, append(slices.Clone(command), "--help")...).CombinedOutput()
				if err != nil {
					t.Errorf("%s: %s: %v: %s", name, line, err, out)
				}
				help[key] = string(out)
			}
			checked++
			for _, flag := range words[1:] {
				flag, _, _ = strings.Cut(flag, "=")
				if strings.HasPrefix(flag, "--") && !regexp.MustCompile(regexp.QuoteMeta(flag)+`\b`).MatchString(help[key]) {
					t.Errorf("%s: %s: oneway %s has no flag %s", name, line, key, flag)
				}
			}
		}
	}
	if checked < 10 {
		t.Errorf("checked %d commands: fewer than there are", checked)
	}
}
