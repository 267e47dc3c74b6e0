// Package pathlabel checks the labels that a configuration gives to paths, such as site and region, and publishes them as
// oneway_path_labels_info.
package pathlabel

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/output/point"
)

// Limits of the labels of a path, of the names of all paths, and of the characters of a value: each label is part of a
// series of each path.
const (
	MaxLabels = 16
	MaxNames  = 32
	MaxRunes  = 128
	// maxName limits the letters, digits and _ of a name.
	maxName = 64
)

// namePattern is the form of names that every query language accepts without quotes.
var namePattern = regexp.MustCompile(fmt.Sprintf(`^[a-zA-Z][a-zA-Z0-9_]{0,%d}$`, maxName-1))

// Checker checks the labels of the paths of one configuration. Make one with NewChecker.
type Checker struct {
	names, reserved map[string]bool
	groups          []metric.Group
	tables          []*record.Schema
}

// NewChecker reserves the labels of the families of these groups, and those that Prometheus adds to targets, histograms and alerts: a join
// would replace them. The pair of sites is a label of Publish. It reserves the tags and fields of points of these groups and tables, too: labels are tags there.
func NewChecker(groups []metric.Group, tables []*record.Schema) *Checker {
	c := &Checker{names: map[string]bool{}, reserved: map[string]bool{}, groups: groups, tables: tables}
	for _, name := range []string{"job", "instance", "le", "quantile", "alertname", "alertstate", "severity", metric.SitePairL} {
		c.reserved[name] = true
	}
	for _, g := range groups {
		for _, d := range g.Descs {
			for _, l := range d.Labels {
				c.reserved[l] = true
			}
		}
	}
	return c
}

// isReserved reports whether a name is reserved.
func (c *Checker) isReserved(name string) bool {
	reserved, known := c.reserved[name]
	if !known {
		reserved = point.Reserved(c.groups, c.tables, name)
		c.reserved[name] = reserved
	}
	return reserved
}

// Check reports wrong labels of one path as *option.Error, with keys such as "labels.site".
func (c *Checker) Check(labels map[string]string) error {
	var errs []error
	if len(labels) > MaxLabels {
		errs = append(errs, option.Errorf("labels", "has %d labels; a path may have %d", len(labels), MaxLabels))
	}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		key := "labels." + name
		switch value := labels[name]; {
		case !namePattern.MatchString(name) || strings.Contains(name, "__"):
			errs = append(errs, option.Errorf(key, "is no name of a label; it must begin with a letter, and have at most %d letters, digits and single _", maxName))
		case c.isReserved(name):
			errs = append(errs, option.Errorf(key, "has the name of a label of metrics or targets, or of a field of points; choose another, such as path_%s", name))
		case CheckValue(key, value) != nil:
			errs = append(errs, CheckValue(key, value))
		case !c.names[name] && len(c.names) == MaxNames:
			errs = append(errs, option.Errorf(key, "is the name of one more label; all paths together may have %d names", MaxNames))
		default:
			c.names[name] = true
		}
	}
	return errors.Join(errs...)
}

// CheckValue reports a wrong value of a label as *option.Error with this key.
func CheckValue(key, value string) error {
	if value == "" || utf8.RuneCountInString(value) > MaxRunes || strings.ContainsFunc(value, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return option.Errorf(key, "is %q; it must be text of 1 to %d printable characters", value, MaxRunes)
	}
	return nil
}

// Path is a path with its labels.
type Path struct {
	Name   string
	Labels map[string]string
}

// Series are the published labels. The zero value has none. It is not safe for concurrent use.
type Series struct{ open []metric.Series }

// Publish replaces the series by those of these paths: all have the labels of each. Without any label there are no series. own is the site of this
// agent: a path to another site has both as metric.SitePairL. Empty: it is not known, and no path has this label.
func (s *Series) Publish(sink metric.Sink, own string, paths []Path) {
	names := map[string]bool{}
	for _, p := range paths {
		for name := range p.Labels {
			names[name] = true
		}
		if pairOf(own, p.Labels[metric.SiteL]) != "" {
			names[metric.SitePairL] = true
		}
	}
	sorted := slices.Sorted(maps.Keys(names))
	sink.Update(func() {
		for _, one := range s.open {
			one.Close()
		}
		s.open = nil
		if len(sorted) == 0 {
			return
		}
		d := metric.PathLabels.With(sorted...)
		for _, p := range paths {
			values := []string{p.Name}
			for _, name := range sorted {
				value := p.Labels[name]
				if name == metric.SitePairL {
					value = pairOf(own, p.Labels[metric.SiteL])
				}
				values = append(values, value)
			}
			one := sink.Series(d, values...)
			one.Set(1)
			s.open = append(s.open, one)
		}
	})
}

// pairOf is two sites in one order, so that the paths of both directions have the same pair; empty: they are one site, or one is not known.
func pairOf(own, other string) string {
	if own == "" || other == "" || own == other {
		return ""
	}
	return min(own, other) + metric.SitePairSeparator + max(own, other)
}

// Text is the labels in a line, in the order of names.
func Text(labels map[string]string) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		all = append(all, fmt.Sprintf("%s=%s", name, labels[name]))
	}
	return strings.Join(all, ",")
}
