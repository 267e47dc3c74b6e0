package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"

	"oneway.example/exporter/core/rules"
)

// shortest is the interval from which a group is divided. A group of seconds sees the result of its evaluation before.
const shortest = 5 * time.Minute

// mostStages is the largest number of stages of a group: the last one is evaluated before the next interval.
const mostStages = 6

// stages divides a group for vmalert. There a rule does not see what another rule of its group has just recorded, since the result is in the store
// seconds later. Each rule is in the stage after the rules whose series it reads, and a stage is evaluated 2/15 of the interval (40 s of 5 min, 8 min of an
// hour) after the stage before it. VictoriaMetrics evaluates queries of now at 30 s ago (-search.latencyOffset), which leaves 10 s at least.
func stages(g rules.Group) ([]rules.Group, error) {
	if g.Interval < shortest {
		return []rules.Group{g}, nil
	}
	recorded := map[string]int{} // the stage of each series
	waits := map[string]int{}    // the earliest stage of a rule: not before a rule above it that reads the series
	divided := make([]rules.Group, mostStages)
	for _, one := range g.Rules {
		all, err := readings(one.Expr)
		if err != nil {
			return nil, fmt.Errorf("rule %s: %w", one.Name, err)
		}
		stage := waits[one.Name]
		for _, r := range all {
			if at, ok := recorded[r.name]; ok && r.name != one.Name {
				stage = max(stage, at+1)
			}
		}
		if stage >= mostStages {
			return nil, fmt.Errorf("rule %s: stage %d of group %s, want at most %d", one.Name, stage+1, g.Name, mostStages)
		}
		for _, r := range all {
			waits[r.name] = max(waits[r.name], stage)
		}
		one.Expr = latest(one.Expr, all, recorded, g.Interval)
		recorded[one.Name] = max(recorded[one.Name], stage)
		divided[stage].Rules = append(divided[stage].Rules, one)
	}
	if len(divided[1].Rules) == 0 {
		return []rules.Group{g}, nil
	}
	var used []rules.Group
	for i, d := range divided {
		if len(d.Rules) > 0 {
			d.Name, d.Interval, d.Offset = fmt.Sprintf("%s-%d", g.Name, i+1), g.Interval, time.Duration(i+1)*g.Interval*2/15
			used = append(used, d)
		}
	}
	return used, nil
}

// reading is a selector of a rule.
type reading struct {
	name     string
	from, to int           // in the expression
	now      bool          // not of a range
	step     time.Duration // of the subquery with a range whose end is the one of the subquery; 0: none
}

// readings are the selectors of an expression, in the order of the text.
func readings(expr string) (all []reading, err error) {
	e, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		return nil, err
	}
	parser.Inspect(e, func(n parser.Node, path []parser.Node) error {
		s, ok := n.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		r := reading{name: s.Name, from: int(s.PosRange.Start), to: int(s.PosRange.End), now: true}
		for _, above := range path {
			switch above := above.(type) {
			case *parser.MatrixSelector:
				r.now = false
				r.to = int(above.EndPos)
			case *parser.SubqueryExpr:
				r.now = false
				if s.StartOrEnd == parser.END {
					r.step = above.Step
				}
			}
		}
		all = append(all, r)
		return nil
	})
	return all, nil
}

// latest is an expression that reads the last value of each recorded series of this interval, where it reads the value of now. end() of a subquery is
// the second of its steps after now in VictoriaMetrics: a range that ends there has both steps, and the results of this interval.
func latest(expr string, all []reading, recorded map[string]int, interval time.Duration) string {
	out, from := "", 0
	for _, r := range all {
		_, ok := recorded[r.name]
		switch text := expr[r.from:r.to]; {
		case ok && r.now:
			out += expr[from:r.from] + "last_over_time(" + text + "[" + promDuration(interval) + "])"
			from = r.to
		case ok && r.step > 0:
			out += expr[from:r.from] + text[:strings.LastIndex(text, "[")+1] + promDuration(2*r.step) + text[strings.LastIndex(text, "]"):]
			from = r.to
		}
	}
	return out + expr[from:]
}

func promDuration(d time.Duration) string { return model.Duration(d).String() }
