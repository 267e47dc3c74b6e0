// Package cost measures what the evaluation of the rules costs over blocks of many paths.
package cost

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"golang.org/x/sys/unix"

	"oneway.example/exporter/core/rules"
)

// Group is the cost of one evaluation of a group of rules.
type Group struct {
	Name string
	// Interval is the time between two evaluations.
	Interval time.Duration
	// CPU is the time of the processor that the evaluation took.
	CPU time.Duration
	// Series are the results.
	Series int
	Rules  []Rule
}

// Rule is the cost of a rule.
type Rule struct {
	Name   string
	CPU    time.Duration
	Series int
}

// Dearest is the most expensive rule.
func (g Group) Dearest() Rule {
	return slices.MaxFunc(g.Rules, func(a, b Rule) int { return cmp.Compare(a.CPU, b.CPU) })
}

// Share is the part of a processor that the group takes.
func (g Group) Share() float64 { return g.CPU.Seconds() / g.Interval.Seconds() }

// headTime is what a server has in memory at least: more than the range of the rules that are evaluated each 30 s or more often.
const headTime = 80 * time.Minute

// Evaluate evaluates all groups once, in the order of the files, over the blocks in dir, with their last hour in memory, where a server has
// it. What rules record is read by later ones, but has one sample: rules over a range of recorded series cost more in a server. progress
// is told the number of series that are in memory.
func Evaluate(dir string, at time.Time, progress func(series int)) ([]Group, error) {
	blocks, err := tsdb.OpenDBReadOnly(dir, dir, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, fmt.Errorf("cost: %w", err)
	}
	defer func() { _ = blocks.Close() }()
	scratch, err := os.MkdirTemp("", "oneway-cost-")
	if err != nil {
		return nil, fmt.Errorf("cost: %w", err)
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	options := tsdb.DefaultOptions()
	options.MinBlockDuration = 24 * time.Hour.Milliseconds() // series come one after the other, and their samples are not too old
	recorded, err := tsdb.Open(scratch, slog.New(slog.DiscardHandler), nil, options, nil)
	if err != nil {
		return nil, fmt.Errorf("cost: %w", err)
	}
	defer func() { _ = recorded.Close() }()
	s := &store{blocks: blocks, recorded: recorded, head: at.Add(-headTime).UnixMilli()}
	if err := s.fill(at.UnixMilli(), progress); err != nil {
		return nil, err
	}
	engine := promql.NewEngine(promql.EngineOpts{
		MaxSamples: 1 << 30, Timeout: time.Hour, LookbackDelta: 5 * time.Minute, EnableAtModifier: true, EnableNegativeOffset: true, Parser: parser.NewParser(parser.Options{}),
	})
	var all []Group
	for _, f := range rules.Files() {
		for _, g := range f.Groups {
			one := Group{Name: g.Name, Interval: g.Interval}
			for _, r := range g.Rules {
				took, n, err := s.evaluate(engine, r, at)
				if err != nil {
					return nil, err
				}
				one.CPU += took
				one.Series += n
				one.Rules = append(one.Rules, Rule{r.Name, took, n})
			}
			all = append(all, one)
		}
	}
	return all, nil
}

// store is the blocks, and in memory their samples from head on, and what rules have recorded.
type store struct {
	blocks   *tsdb.DBReadOnly
	recorded *tsdb.DB
	head     int64
}

// fill copies the last samples of the blocks until at into memory.
func (s *store) fill(at int64, progress func(series int)) error {
	q, err := s.blocks.Querier(s.head, at)
	if err != nil {
		return fmt.Errorf("cost: %w", err)
	}
	defer func() { _ = q.Close() }()
	set := q.Select(context.Background(), false, nil, labels.MustNewMatcher(labels.MatchRegexp, model.MetricNameLabel, ".+"))
	a := s.recorded.Appender(context.Background())
	var it chunkenc.Iterator
	n := 0
	for set.Next() {
		l := set.At().Labels()
		var ref storage.SeriesRef
		it = set.At().Iterator(it)
		for v := it.Next(); v != chunkenc.ValNone && err == nil; v = it.Next() {
			switch v {
			case chunkenc.ValNone:
			case chunkenc.ValFloat:
				t, f := it.At()
				ref, err = a.Append(ref, l, t, f)
			case chunkenc.ValHistogram:
				t, h := it.AtHistogram(nil)
				ref, err = a.AppendHistogram(ref, l, t, h, nil)
			case chunkenc.ValFloatHistogram:
				t, h := it.AtFloatHistogram(nil)
				ref, err = a.AppendHistogram(ref, l, t, nil, h)
			}
		}
		if err == nil {
			err = it.Err()
		}
		if err != nil {
			_ = a.Rollback()
			return fmt.Errorf("cost: series %s: %w", l, err)
		}
		if n++; n%1000 == 0 {
			if err := a.Commit(); err != nil {
				return fmt.Errorf("cost: %w", err)
			}
			a = s.recorded.Appender(context.Background())
			progress(n)
		}
	}
	if err := a.Commit(); err != nil {
		return fmt.Errorf("cost: %w", err)
	}
	return set.Err()
}

// Querier implements storage.Queryable.
func (s *store) Querier(mint, maxt int64) (storage.Querier, error) {
	b, err := s.recorded.Querier(mint, maxt)
	if err != nil || mint >= s.head {
		return b, err
	}
	a, err := s.blocks.Querier(mint, min(maxt, s.head-1))
	if err != nil {
		return nil, err
	}
	return storage.NewMergeQuerier([]storage.Querier{a, b}, nil, storage.ChainedSeriesMerge), nil
}

func (s *store) evaluate(engine *promql.Engine, r rules.Rule, at time.Time) (took time.Duration, series int, err error) {
	began, err := processor()
	if err != nil {
		return 0, 0, err
	}
	q, err := engine.NewInstantQuery(context.Background(), s, nil, r.Expr, at)
	if err != nil {
		return 0, 0, fmt.Errorf("cost: rule %s: %w", r.Name, err)
	}
	defer q.Close()
	result := q.Exec(context.Background())
	if result.Err != nil {
		return 0, 0, fmt.Errorf("cost: rule %s: %w", r.Name, result.Err)
	}
	ended, err := processor()
	if err != nil || r.Alert != nil {
		return ended - began, 0, err
	}
	vector, _ := result.Vector() // a scalar is not recorded
	a := s.recorded.Appender(context.Background())
	for _, one := range vector {
		b := labels.NewBuilder(one.Metric).Set(model.MetricNameLabel, r.Name)
		for _, l := range r.Labels {
			b.Set(l.Name, l.Value)
		}
		if one.H != nil {
			h := one.H.Copy()
			h.CounterResetHint = histogram.GaugeType
			_, err = a.AppendHistogram(0, b.Labels(), at.UnixMilli(), nil, h)
		} else {
			_, err = a.Append(0, b.Labels(), at.UnixMilli(), one.F)
		}
		if err != nil {
			return 0, 0, fmt.Errorf("cost: rule %s: %w", r.Name, err)
		}
	}
	return ended - began, len(vector), a.Commit()
}

// processor is the time of the processor that this process has used.
func processor() (time.Duration, error) {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0, fmt.Errorf("cost: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}
