// Package recorded computes the long-term series (exporter/core/rules) of an agent from its scrapes, with the expressions of the rules
// and the query engine of Prometheus. It keeps the scrapes of some days in memory.
//
// On most days an agent is scraped at its full hours only. The rules then have two helps. Counters and histograms have each value twice, at the
// full hour and 1 ms after it, when no packet was sent: rate() and increase() need two values in an hour. And what counts minutes
// takes the minutes from the simulation: see Minutes.
package recorded

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
)

// Names of series of the simulation that replace what hourly scrapes do not have.
const (
	MeasuredMinutes = "history_measured_minutes"
	UpMinutes       = "history_up_minutes"
)

// rule is a recording rule.
type rule struct {
	name, expr string
	labels     []rules.Label
	// hourly is the expression for hours that were scraped at their ends only; empty: expr.
	hourly string
	stored bool
}

// Emit receives the samples of a recorded series, in the order of time. It must not keep points.
type Emit func(l labels.Labels, floats []promql.FPoint, histograms []promql.HPoint) error

// Evaluator evaluates the rules of one agent. Make one with New.
type Evaluator struct {
	engine *promql.Engine
	rules  []rule
	days   []rule // of a local day that is over: rules.DayOver
	wanted map[string]bool
	memory memory
	series map[string]*Series // of rules, by labels
	emit   Emit
}

// New makes an Evaluator of the rules of the long-term series, and of what they read. classic: with the rules of classic buckets, for series
// that have them and no native ones.
func New(emit Emit, classic bool) (*Evaluator, error) {
	parse := parser.NewParser(parser.Options{})
	e := &Evaluator{
		engine: promql.NewEngine(promql.EngineOpts{
			Logger:     slog.New(slog.NewTextHandler(os.Stderr, nil)),
			MaxSamples: 1 << 30, Timeout: time.Hour, LookbackDelta: 5 * time.Minute, EnableAtModifier: true, EnableNegativeOffset: true, Parser: parse,
		}),
		wanted: map[string]bool{MeasuredMinutes: true, UpMinutes: true}, memory: memory{map[string][]*Series{}}, series: map[string]*Series{}, emit: emit,
	}
	for _, f := range rules.Files() {
		for _, g := range f.Groups {
			switch g.Name {
			case "oneway-days":
				for _, r := range g.Rules {
					one := rule{name: r.Name, expr: r.Expr, stored: strings.HasPrefix(r.Name, "oneway:long:")}
					if one.stored {
						e.days = append(e.days, one)
					} else {
						e.rules = append(e.rules, one)
					}
				}
			case "oneway-5m":
				for _, r := range g.Rules {
					// Baselines are of other series.
					if strings.Contains(r.Name, "baseline") || strings.Contains(r.Name, "_bucket:") && !classic || r.Name == rules.DelayFloor1h.Name {
						continue
					}
					e.rules = append(e.rules, rule{name: r.Name, expr: r.Expr, labels: r.Labels, hourly: hourly(r), stored: strings.HasPrefix(r.Name, "oneway:long:")})
				}
			}
		}
	}
	for _, r := range slices.Concat(e.rules, e.days) {
		expr, err := parse.ParseExpr(r.expr)
		if err != nil {
			return nil, fmt.Errorf("recorded: rule %s: %w", r.name, err)
		}
		parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
			if v, ok := n.(*parser.VectorSelector); ok {
				e.wanted[v.Name] = true
			}
			return nil
		})
	}
	return e, nil
}

// hourly is the expression of a rule that counts minutes, for hours that were scraped at their ends only: the minutes of the simulation,
// and all minutes of the hour for an R of the hour.
func hourly(r rules.Rule) string {
	const perHour = " * on (job, instance) group_left (hour, day_type, zone) "
	switch r.Name {
	case rules.LongMeasured.Name:
		return MeasuredMinutes + perHour + rules.FullHour.Name
	case rules.LongUp.Name:
		return UpMinutes + perHour + rules.FullHour.Name
	case rules.LongRBelow70.Name:
		return "60 * (" + metric.VoiceR.Name + " < bool 70)" + perHour + rules.FullHour.Name
	case rules.LongRBelow80.Name:
		return "60 * (" + metric.VoiceR.Name + " < bool 80)" + perHour + rules.FullHour.Name
	}
	return ""
}

// Wants reports whether a rule reads series of this name.
func (e *Evaluator) Wants(name string) bool { return e.wanted[name] }

// Open opens a series that rules read.
func (e *Evaluator) Open(l labels.Labels) *Series {
	s := &Series{labels: l}
	name := l.Get(model.MetricNameLabel)
	e.memory.byName[name] = append(e.memory.byName[name], s)
	return s
}

// Evaluate evaluates the rules at each full hour from first to last, and forgets the scrapes that later hours do not need. scraped: the
// agent was scraped within these hours.
func (e *Evaluator) Evaluate(first, last time.Time, scraped bool) error {
	var over []time.Time // when a local day was over
	for i := range e.rules {
		r := &e.rules[i]
		expr := r.expr
		if !scraped && r.hourly != "" {
			expr = r.hourly
		}
		times, err := e.evaluate(r, expr, first, last)
		if err != nil {
			return err
		}
		if r.name == rules.DayOver.Name {
			over = times
		}
	}
	for _, t := range over {
		// Each by itself: they look back from the end of the evaluation.
		for i := range e.days {
			if _, err := e.evaluate(&e.days[i], e.days[i].expr, t, t); err != nil {
				return err
			}
		}
	}
	e.memory.forget(last)
	return nil
}

// evaluate evaluates a rule at each full hour from first to last, keeps and emits its result, and returns the times of its floats.
func (e *Evaluator) evaluate(r *rule, expr string, first, last time.Time) (times []time.Time, err error) {
	query, err := e.engine.NewRangeQuery(context.Background(), &e.memory, nil, expr, first, last, time.Hour)
	if err != nil {
		return nil, fmt.Errorf("recorded: rule %s: %w", r.name, err)
	}
	defer query.Close()
	matrix, err := query.Exec(context.Background()).Matrix()
	if err != nil {
		return nil, fmt.Errorf("recorded: rule %s at %v: %w", r.name, first, err)
	}
	for _, one := range matrix {
		for _, p := range one.Floats {
			times = append(times, time.UnixMilli(p.T))
		}
	}
	return times, e.take(r, matrix)
}

// take keeps and emits the result of a rule. Operands of "or" keep their names in a query, so that several series of it may be one of
// the rule, at different times.
func (e *Evaluator) take(r *rule, matrix promql.Matrix) error {
	b := labels.NewBuilder(labels.EmptyLabels())
	var order []string
	results := map[string]*promql.Series{}
	for _, one := range matrix {
		b.Reset(one.Metric)
		b.Set(model.MetricNameLabel, r.name)
		for _, l := range r.labels {
			b.Set(l.Name, l.Value)
		}
		l := b.Labels()
		key := l.String()
		if results[key] == nil {
			results[key] = &promql.Series{Metric: l}
			order = append(order, key)
		}
		results[key].Floats = append(results[key].Floats, one.Floats...)
		results[key].Histograms = append(results[key].Histograms, one.Histograms...)
	}
	for _, key := range order {
		one := results[key]
		slices.SortFunc(one.Floats, func(a, b promql.FPoint) int { return cmp.Compare(a.T, b.T) })
		slices.SortFunc(one.Histograms, func(a, b promql.HPoint) int { return cmp.Compare(a.T, b.T) })
		if e.wanted[r.name] {
			e.keep(key, one)
		}
		if r.stored {
			if err := e.emit(one.Metric, one.Floats, one.Histograms); err != nil {
				return fmt.Errorf("recorded: %s: %w", r.name, err)
			}
		}
	}
	return nil
}

// keep keeps the result for other rules.
func (e *Evaluator) keep(key string, one *promql.Series) {
	s := e.series[key]
	if s == nil {
		s = e.Open(one.Metric)
		e.series[key] = s
	}
	for _, p := range one.Floats {
		s.Append(p.T, p.F, nil, nil)
	}
	for _, p := range one.Histograms {
		s.Append(p.T, 0, nil, p.H.Copy())
	}
}
