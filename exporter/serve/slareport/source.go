package slareport

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"oneway.example/exporter/agent/pathlabel"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/serve/promapi"
)

// Source is the probe of a path at an agent.
type Source struct {
	// Path and Probe are the names in the agent's configuration, Instance is the label of the agent in Prometheus. Probe and Instance
	// are empty where the options do not select them and several jobs have the same probe.
	Path, Probe, Instance string
	// Target is the last address of the peer in the time of the report. It is empty if the agent knew none.
	Target string
	// Labels are the last labels of the path in that time, such as site.
	Labels map[string]string
	// given are the names of the labels that the agent gives to its paths.
	given map[string]bool
}

// match selects the series of the probe, pathMatch all series of the path.
func (s *Source) match() string {
	if s.Probe == "" {
		return s.pathMatch()
	}
	return s.pathMatch() + "," + metric.Probe + "=" + strconv.Quote(s.Probe)
}

func (s *Source) pathMatch() string {
	match := metric.Path + "=" + strconv.Quote(s.Path)
	if s.Instance != "" {
		match += "," + instance + "=" + strconv.Quote(s.Instance)
	}
	return match
}

// subject names what the options select.
func (o *Options) subject() string {
	if o.Path == "" {
		return "paths"
	}
	return fmt.Sprintf("path %q", o.Path)
}

// end is the end of the report, or now if that is before it.
func (o *Options) end(now time.Time) time.Time {
	if o.To.After(now) {
		return now
	}
	return o.To
}

// find returns the one probe of the path, or each probe of all paths.
func (o *Options) find(ctx context.Context, c *promapi.Client, now time.Time) ([]Source, error) {
	var matchers []string
	for _, l := range [][2]string{{metric.Path, o.Path}, {metric.Probe, o.Probe}, {instance, o.Instance}} {
		if l[1] != "" {
			matchers = append(matchers, l[0]+"="+strconv.Quote(l[1]))
		}
	}
	all, err := c.Series(ctx, metric.ProbeUp.Name+"{"+strings.Join(matchers, ",")+"}", o.From, o.end(now))
	if err != nil {
		return nil, err
	}
	paths, err := o.withoutOnDemand(ctx, c, all, now)
	if err != nil {
		return nil, err
	}
	if len(all) > 0 && len(paths) == 0 {
		return nil, fmt.Errorf("slareport: Prometheus at %s has %s of /probe only, which a report leaves out: each reply counts from 0; add the target to the paths of an agent", c.Name(), o.subject())
	}
	names, err := o.labelNames(ctx, c, paths, now)
	if err != nil {
		return nil, err
	}
	var found []Source
	for _, l := range paths {
		found = append(found, Source{Path: l[metric.Path], Probe: l[metric.Probe], Instance: l[instance], given: names[l[instance]]})
	}
	slices.SortFunc(found, func(a, b Source) int { return strings.Compare(a.match(), b.match()) })
	// Several jobs of one agent are one: shares and quantiles are the same.
	found = slices.CompactFunc(found, func(a, b Source) bool { return a.match() == b.match() })
	switch {
	case len(found) == 0:
		return nil, o.missing(ctx, c)
	case len(found) == 1 || o.Path == "":
		return found, nil
	}
	var words []string
	for _, s := range found {
		words = append(words, fmt.Sprintf("--probe=%s --instance=%s", s.Probe, s.Instance))
	}
	return nil, fmt.Errorf("slareport: path %q has %d series; select one of: %s", o.Path, len(words), strings.Join(words, ", "))
}

// labelNames has the names of the labels that each agent gives to its paths. oneway_path_labels_info has them and, as each series of the
// agent, the labels of the target and external ones. A label of paths is one that has another value there for some path, since it
// precedes an external label.
func (o *Options) labelNames(ctx context.Context, c *promapi.Client, ups []map[string]string, now time.Time) (map[string]map[string]bool, error) {
	all, err := c.Series(ctx, metric.PathLabels.Name, o.From, o.end(now))
	own := map[[3]string]bool{} // instance, name and value
	for _, l := range ups {
		for name, value := range l {
			own[[3]string{l[instance], name, value}] = true
		}
	}
	given := map[string]map[string]bool{}
	for _, l := range all {
		if given[l[instance]] == nil {
			given[l[instance]] = map[string]bool{}
		}
		for name, value := range l {
			if !own[[3]string{l[instance], name, value}] {
				given[l[instance]][name] = true
			}
		}
	}
	return given, err
}

// withoutOnDemand leaves out the series of replies of /probe. Each of these is one measurement, whose counters have no history.
func (o *Options) withoutOnDemand(ctx context.Context, c *promapi.Client, all []map[string]string, now time.Time) ([]map[string]string, error) {
	replies, err := c.Series(ctx, metric.OnDemandSuccess.Name, o.From, o.end(now))
	onDemand := map[[2]string]bool{}
	target := func(l map[string]string) [2]string { return [2]string{l[model.JobLabel], l[instance]} }
	for _, l := range replies {
		onDemand[target(l)] = true
	}
	return slices.DeleteFunc(all, func(l map[string]string) bool { return onDemand[target(l)] }), err
}

// describe finds the target and the labels.
func (s *Source) describe(ctx context.Context, c *promapi.Client, o Options, now time.Time) error {
	target, err := s.last(ctx, c, metric.PathInfo.Name+"{"+s.match()+"}", o, now)
	if err != nil {
		return err
	}
	s.Target = target["peer"]
	labels, err := s.last(ctx, c, metric.PathLabels.Name+"{"+s.pathMatch()+"}", o, now)
	s.Labels = map[string]string{}
	checker := pathlabel.NewChecker(metric.Groups(), nil)
	for name, value := range labels {
		if value != "" && s.given[name] && checker.Check(map[string]string{name: value}) == nil {
			s.Labels[name] = value
		}
	}
	return err
}

// last are the labels of the series that was the last one of a selector in the time of the report.
func (s *Source) last(ctx context.Context, c *promapi.Client, selector string, o Options, now time.Time) (map[string]string, error) {
	length := o.end(now).Sub(o.From)
	step := max(o.Interval, (length / 1000).Truncate(time.Second))
	all, err := c.At(ctx, fmt.Sprintf("topk(1, max_over_time(timestamp(%s)[%s:%s]))", selector, seconds(length), seconds(step)), o.end(now))
	found := map[string]string{}
	for _, one := range all {
		for name, value := range one.Metric {
			found[string(name)] = promapi.Shown(string(value))
		}
	}
	return found, err
}
