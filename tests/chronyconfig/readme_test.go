package chronyconfig

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/agent"
	"oneway.example/exporter/agent/config"
	"oneway.example/exporter/clocks"
	"oneway.example/exporter/families"
	"oneway.example/exporter/watchers"
)

// row is a line of the README's table: | you have | [folder](folder/) | kind | from .. to | why |
type row struct {
	folder, kind string
	least, most  time.Duration
}

var rowLine = regexp.MustCompile("^\\| [^|]+ \\| \\[([a-z-]+)\\]\\(([a-z-]+)/README\\.md\\) \\| `([a-z]+)` \\| ([0-9.]+ [a-z]+) \\.\\. ([0-9.]+ [a-z]+) \\|")

// table is the README's table, in its order.
func table(t *testing.T) (rows []row) {
	t.Helper()
	for line := range strings.Lines(read(t, filepath.Join(root, "README.md"))) {
		m := rowLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		r := row{folder: m[1], kind: m[3]}
		if m[1] != m[2] {
			t.Errorf("the table names folder %s as %s", m[2], m[1])
		}
		for i, to := range []*time.Duration{&r.least, &r.most} {
			d, err := time.ParseDuration(strings.ReplaceAll(m[4+i], " ", ""))
			if err != nil {
				t.Fatalf("%s: %v", r.folder, err)
			}
			*to = d
		}
		rows = append(rows, r)
	}
	if len(rows) == 0 {
		t.Fatal("the README has no table")
	}
	return rows
}

func TestTableNamesEveryFolderOnce(t *testing.T) {
	var named []string
	for _, r := range table(t) {
		named = append(named, r.folder)
	}
	slices.Sort(named)
	if want := folders(t); !slices.Equal(named, want) {
		t.Errorf("the table names %v, want %v", named, want)
	}
	for _, kind := range []string{"pps", "nmea", "ptp", "ntp"} {
		if !slices.ContainsFunc(table(t), func(r row) bool { return r.kind == kind }) {
			t.Errorf("no folder has the kind %s", kind)
		}
	}
}

// Each folder has an error budget, line by line with its source.
func TestEveryFolderHasAnErrorBudgetWithSources(t *testing.T) {
	for _, folder := range folders(t) {
		page := read(t, filepath.Join(root, folder, "README.md"))
		_, quota, found := strings.Cut(page, "| what | how large | where it goes | source |\n")
		if !found {
			t.Errorf("%s has no error budget", folder)
			continue
		}
		lines := 0
		for line := range strings.Lines(quota) {
			cells := strings.Split(strings.TrimSpace(line), "|")
			if len(cells) != 6 {
				break
			}
			if lines++; strings.TrimSpace(cells[4]) == "" {
				t.Errorf("%s: line without source: %s", folder, line)
			}
		}
		if lines < 5 {
			t.Errorf("%s: error budget of %d lines", folder, lines)
		}
	}
}

// link is a relative link of Markdown.
var link = regexp.MustCompile(`\]\(([a-z.][^)#:]*)\)`)

func TestLinksAreValid(t *testing.T) {
	for _, name := range files(t, "*.md", "*/*.md") {
		for _, m := range link.FindAllStringSubmatch(read(t, name), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(name), m[1])); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// Every file is named by the page of its folder, or by one at the top.
func TestEveryFileIsNamedByAPage(t *testing.T) {
	var top string
	for _, name := range files(t, "*.md") {
		top += read(t, name)
	}
	for _, name := range files(t, "*/*") {
		base := filepath.Base(name)
		page := top
		if own, err := os.ReadFile(filepath.Join(filepath.Dir(name), "README.md")); err == nil {
			page += string(own)
		}
		if base != "README.md" && !strings.Contains(page, base) {
			t.Errorf("no page names %s", name)
		}
	}
}

// snippet is a configuration of the agent in a page.
type snippet struct {
	where string
	clock daemon
}

// daemon has the options of a clock section that name chronyd's sockets.
type daemon struct {
	Address   string         `yaml:"address"`
	SocketDir string         `yaml:"socket_dir"`
	Others    config.Section `yaml:",rest"`
}

// snippets are the blocks marked yaml. A block is a clock section; the other required sections are added.
func snippets(t *testing.T, name string) (all []snippet) {
	t.Helper()
	blocks := strings.Split(read(t, name), "```yaml\n")
	for _, block := range blocks[1:] {
		text, _, closed := strings.Cut(block, "```")
		if !closed {
			t.Fatalf("%s: unclosed code block", name)
		}
		if !strings.Contains(text, "reflector:") && !strings.Contains(text, "paths:") {
			text += "reflector:\n  listen: [\":862\"]\n"
		}
		file := filepath.Join(t.TempDir(), "oneway.yml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := config.Load(file)
		if err == nil {
			_, _, err = agent.Check(agent.Options{ConfigFile: file, Types: agent.Types{Clocks: clocks.All(), Watchers: watchers.All()}})
		}
		one := snippet{where: name}
		if err == nil {
			err = c.Clock.Decode(&one.clock)
		}
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, text)
			continue
		}
		all = append(all, one)
	}
	return all
}

func TestAgentAcceptsEverySnippet(t *testing.T) {
	with := map[string]int{}
	for _, name := range files(t, "*.md", "*/README.md") {
		with[filepath.Base(filepath.Dir(name))] += len(snippets(t, name))
	}
	for _, folder := range folders(t) {
		if with[folder] == 0 {
			t.Errorf("%s has no configuration of the agent", folder)
		}
	}
}

// Metrics in the pages exist in the metric table.
func TestPagesNameRealMetrics(t *testing.T) {
	names := regexp.MustCompile(`\boneway_[a-z_]+\b`)
	known := metricNames()
	found := 0
	for _, page := range files(t, "*.md", "*/*.md", "*/*.conf") {
		for _, n := range names.FindAllString(read(t, page), -1) {
			if found++; !known[n] {
				t.Errorf("%s: unknown metric %s", page, n)
			}
		}
	}
	if found < 5 {
		t.Errorf("pages name %d metrics, want more", found)
	}
}

func metricNames() map[string]bool {
	names := map[string]bool{}
	for _, group := range families.All() {
		for _, d := range group.Descs {
			names[d.Name] = true
		}
	}
	return names
}
