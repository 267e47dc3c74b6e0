package rules

import (
	"strconv"

	"oneway.example/exporter/core/metric"
)

// Threshold is a limit of alerts, which users change in oneway-thresholds.yml.
type Threshold struct {
	// Rule records the default, and in a user's copy of the file also a value for a single path.
	Rule
	// Default is the value in the file, in the unit of the name.
	Default float64
	// ByPath records the value in force for each path. It is empty for a threshold that does not depend on the path.
	ByPath Rule

	ofRuns bool // of paths with load tests, else of paths with light probes
}

// limit is a threshold that does not depend on the path. Its doc names the alerts.
func limit(quantity string, value float64, doc string) Threshold {
	return Threshold{Default: value, Rule: Rule{Name: "oneway:threshold:" + quantity, Doc: doc, Expr: decimal(value)}}
}

func decimal(value float64) string { return strconv.FormatFloat(value, 'f', -1, 64) }

func inMillis(seconds float64) string { return decimal(seconds*1e3) + " ms" }

// limitOfPath is a threshold of paths with light probes.
func limitOfPath(quantity string, value float64, doc string) Threshold {
	t := limit(quantity, value, doc)
	t.ByPath = effective(quantity, t.Name, latest(metric.ProbeInterval.Name)+" or "+latest(metric.ProbeUp.Name))
	return t
}

// limitOfRuns is a threshold of paths with load tests.
func limitOfRuns(quantity string, value float64, doc string) Threshold {
	t := limit(quantity, value, doc)
	t.ByPath, t.ofRuns = effective(quantity, t.Name, latest(metric.RunInterval.Name)), true
	return t
}

// effective is the threshold by path, for the paths of an expression: the value of the path if it has one, else the default.
func effective(quantity, threshold, paths string) Rule {
	return Rule{Name: "oneway:path_threshold:" + quantity, Expr: promql(`
max by (path) ($threshold{path!=""})
or on (path)
(group by (path) ($paths) * on () group_left () max($threshold{path=""}))`, names{"threshold": threshold, "paths": paths})}
}

// byPath are the rules of thresholds by path, of load tests or of light probes.
func byPath(ofRuns bool) (all []Rule) {
	for _, t := range thresholds() {
		if t.ByPath.Name != "" && t.ofRuns == ofRuns {
			all = append(all, t.ByPath)
		}
	}
	return all
}
