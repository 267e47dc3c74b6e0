// Package rules has the recording rules and alerts for Prometheus, and the thresholds of the alerts: each rule is a value, which
// panels and other rules name by its identifier. exporter/doc/rulefiles writes them to deploy/prometheus/rules.
//
// Expressions take the names of metrics from package metric, and the names of recorded series from their rules: a rename that a
// rule does not follow does not compile.
package rules

import (
	"fmt"
	"strings"
	"time"
)

// Rule is a recording rule or an alert.
type Rule struct {
	// Name is the name of the recorded series, or of the alert.
	Name string
	// Doc is the comment above the rule in its file, in lines as they are written. A rule without one belongs to the comment
	// of the rule before it.
	Doc string
	// Expr is the expression, in PromQL.
	Expr string
	// Labels are the labels that a recording rule adds to its series; those of an alert follow from Alert.
	Labels []Label
	// Alert has what an alert has besides its expression; it is nil for a recording rule.
	Alert *Alert
}

// Series is a recorded series of several rules, each with labels of its own.
type Series struct {
	// Name is the name of the series.
	Name string
	// Rules record the series, and what it is computed from, in this order.
	Rules []Rule
	// Withheld is the name of the series where this one is not recorded because values that are not known could change it; empty: it is
	// always recorded.
	Withheld string
}

// Label is a label of a rule.
type Label struct{ Name, Value string }

// Alert is what the one who is notified reads, and when.
type Alert struct {
	Severity  Severity
	Component Component
	// Absolute marks an alert that is meaningless while a clock is wrong: alertmanager.yml inhibits it by alerts of clocks.
	Absolute bool
	// Always: maintenance does not make it quiet, since it is of no agent.
	Always bool
	// OfSite: a fault of the site of the path, or of the pair of sites, explains the alert, so that OnewaySiteDegraded or OnewaySitePairDegraded fires in its place.
	OfSite bool
	// LooksBack is how long before now the expression has an effect of, where it is longer than AfterMaintenance: the alert is quiet as long after
	// maintenance. Zero: no longer.
	LooksBack time.Duration
	// For is how long the expression must hold before the alert fires; 0 is at once.
	For time.Duration
	// KeepFiringFor is how long the alert fires after the expression holds no more.
	KeepFiringFor time.Duration
	// Summary and Description are texts of the template language of Prometheus. ${for} in Description is For in words.
	Summary, Description string
	// RunbookURL is the address of the runbook if it is not the usual one.
	RunbookURL string
}

// ForText is For in a sentence, such as "5 minutes". For is two minutes or more.
func (a *Alert) ForText() string {
	if a.For == time.Hour {
		return "an hour"
	}
	return fmt.Sprintf("%.0f minutes", a.For.Minutes())
}

// Severity is how soon the alert needs an action.
type Severity string

// The severities.
const (
	Critical Severity = "critical" // now
	Warning  Severity = "warning"  // today
	Info     Severity = "info"     // no action
)

// Component is the part that has the fault. alertmanager.yml routes and inhibits by it.
type Component string

// The components.
const (
	Agent Component = "agent"
	Clock Component = "clock"
	Path  Component = "path"
)

// AllLabels are the labels that the rule sets, in the order in which they are written.
func (r Rule) AllLabels() []Label {
	if r.Alert == nil {
		return r.Labels
	}
	labels := []Label{{"severity", string(r.Alert.Severity)}, {"component", string(r.Alert.Component)}}
	if r.Alert.Absolute {
		labels = append(labels, Label{"owd", "absolute"})
	}
	return labels
}

// Annotations are the annotations of an alert, in the order in which they are written; a recording rule has none.
func (r Rule) Annotations() []Label {
	if r.Alert == nil {
		return nil
	}
	url := r.Alert.RunbookURL
	if url == "" {
		url = runbookURL(r.Name)
	}
	return []Label{{"summary", r.Alert.Summary}, {"description", strings.ReplaceAll(r.Alert.Description, "${for}", r.Alert.ForText())}, {"runbook_url", url}}
}

// Group is a group of rules, which Prometheus evaluates one after the other, in this order.
type Group struct {
	Name string
	// Doc is the comment above the group in its file.
	Doc string
	// Interval is the time between two evaluations.
	Interval time.Duration
	// Offset is the time of each evaluation after a multiple of Interval (eval_offset of vmalert, which Prometheus does not know); 0: any.
	Offset time.Duration
	Rules  []Rule
}

// File is a rule file.
type File struct {
	// Name is the file name, Doc the comment at its head.
	Name, Doc string
	Groups    []Group
}
