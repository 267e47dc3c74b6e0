package config

import (
	"fmt"
	"path/filepath"

	"go.yaml.in/yaml/v3"
)

// Link is what heavy tests share and must not fill at once. One that is used
// without being listed has no budget.
type Link struct {
	// Name is the metric label `link`, unique in a file; see NamePattern.
	Name string `yaml:"name"`
	// Budget is how many IP octets heavy tests may move over it each local day, both
	// directions; 0: no limit.
	Budget Bytes `yaml:"budget"`
}

// Reports says where the reports of heavy tests' runs are kept.
type Reports struct {
	// Dir; default: reports in the state directory; empty: none are kept.
	Dir string `yaml:"dir"`
	// MaxBytes is how much all of them may take; default 256MB.
	MaxBytes Bytes `yaml:"max_bytes"`
	// MaxRuns is how many are kept; default 1000.
	MaxRuns int `yaml:"max_runs"`
}

// Defaults and limits of reports.
const (
	defaultReportBytes = 256_000_000
	defaultReportRuns  = 1000
	minReportBytes     = 64 << 10
	maxReportRuns      = 100_000
	reportsInState     = "reports"
)

// checkState fills in where things are kept.
func (d *decoder) checkState(c *Config, root *yaml.Node, at atFunc) {
	given := func(key string) bool { return at("reports") != root && at("reports", key) != at("reports") }
	if at("state_dir") != root && c.StateDir == "" {
		d.fail(at("state_dir"), "state_dir", "is empty; name a directory, such as /var/lib/oneway, or leave the key out")
	}
	r := &c.Reports
	switch {
	case given("dir") && r.Dir == "":
		d.fail(at("reports", "dir"), "reports.dir", "is empty; name a directory, such as /var/lib/oneway/reports, or leave the key out")
	case at("reports") != root && r.Dir == "" && c.StateDir == "":
		d.fail(at("reports"), "reports.dir", "is missing; without state_dir reports need it")
	}
	if given("max_bytes") && r.MaxBytes < minReportBytes {
		d.fail(at("reports", "max_bytes"), "reports.max_bytes", "is %d; it must be at least 64KiB", r.MaxBytes)
	}
	if given("max_runs") {
		d.count(at("reports", "max_runs"), "reports.max_runs", r.MaxRuns, 1, maxReportRuns)
	}
	c.StateDir, r.Dir = d.absolute(c.StateDir), d.absolute(r.Dir)
	if r.Dir == "" && c.StateDir != "" {
		r.Dir = filepath.Join(c.StateDir, reportsInState)
	}
	if r.MaxBytes == 0 {
		r.MaxBytes = defaultReportBytes
	}
	if r.MaxRuns == 0 {
		r.MaxRuns = defaultReportRuns
	}
}

// absolute makes a path of the file one of the working directory.
func (d *decoder) absolute(name string) string {
	if name == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(d.dir, name)
}

func (d *decoder) checkLinks(links []Link, root *yaml.Node) {
	if len(links) == 0 {
		return
	}
	list := child(root, "links")
	for list.Kind == yaml.AliasNode {
		list = list.Alias
	}
	seen := map[string]int{}
	for i, l := range links {
		n, key := list.Content[i], fmt.Sprintf("links[%d]", i)
		switch first, twice := seen[l.Name]; {
		case child(n, "name") == n:
			d.fail(n, key+".name", "is missing; every link needs one")
		case twice:
			d.fail(child(n, "name"), key+".name", "is %q, which links[%d] has already; names must differ", l.Name, first)
		default:
			d.checkName(child(n, "name"), key+".name", l.Name)
			seen[l.Name] = i
		}
		if child(n, "budget") != n && l.Budget == 0 {
			d.fail(child(n, "budget"), key+".budget", "is 0; leave the key out for no limit, and do not configure heavy tests if none are wanted")
		}
	}
}
