package heavy

import (
	"time"

	"oneway.example/exporter/metric"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/stream"
)

// series are what a prober says of its runs.
type series struct {
	sink          metric.Sink
	target        probe.Target
	test          metric.Series
	last          metric.Series
	took, every   metric.Series
	next          metric.Series
	sent, csum    [2]metric.Series
	runs, damaged map[[2]string]metric.Series
}

func (r *runner) open() {
	s, path, name := r.env.Sink, r.target.Path, r.target.Probe
	r.series = &series{
		sink: s, target: r.target, test: s.Series(metric.TestRunning, path, name, r.link),
		last: s.Series(metric.RunLast, path, name), took: s.Series(metric.RunDuration, path, name),
		every: s.Series(metric.RunInterval, path, name), next: s.Series(metric.RunNext, path, name),
		runs: map[[2]string]metric.Series{}, damaged: map[[2]string]metric.Series{},
	}
	for _, d := range r.opts.directions {
		r.series.sent[d] = s.Series(metric.RunBytes, path, name, d.String())
		r.series.csum[d] = s.Series(metric.KernelChecksumErrors, path, name, d.String())
	}
	r.values = NewValues(s, path, name)
	s.Update(func() {
		r.series.test.Set(0)
		r.series.every.Set(r.opts.Every.Seconds())
	})
}

func (r *runner) close() {
	s := r.series
	s.sink.Update(func() {
		all := append([]metric.Series{s.test, s.last, s.took, s.every, s.next}, s.sent[:]...)
		for _, one := range append(all, s.csum[:]...) {
			if one != nil {
				one.Close()
			}
		}
		for _, many := range []map[[2]string]metric.Series{s.runs, s.damaged} {
			for _, one := range many {
				one.Close()
			}
		}
		r.values.Close()
	})
}

func (s *series) running(yes bool) {
	v := 0.0
	if yes {
		v = 1
	}
	s.test.Set(v)
}

// due says when the next run is, or that none is planned.
func (s *series) due(at time.Time) {
	if at.IsZero() {
		s.next.Clear()
		return
	}
	s.next.Set(float64(at.UnixNano()) / 1e9)
}

// count counts a run that was due, and says so in the log.
func (r *runner) count(o *Outcome) {
	r.tally(o.Result, o.Reason)
	if o.Result == Completed {
		r.log.Info("Run completed", "run", o.ID, "seconds", o.End.Sub(o.Begin).Seconds(), "forward_bytes", o.ForwardBytes, "reverse_bytes", o.ReverseBytes)
		return
	}
	r.log.Warn("Run not completed", "run", o.ID, "result", string(o.Result), "reason", o.Reason, "err", o.Error)
}

func (r *runner) tally(result Result, reason string) {
	r.series.add(r.series.runs, metric.Runs, 1, string(result), reason)
}

func (s *series) add(to map[[2]string]metric.Series, d *metric.Desc, n float64, a, b string) {
	key := [2]string{a, b}
	one := to[key]
	if one == nil {
		one = s.sink.Series(d, s.target.Path, s.target.Probe, a, b)
		to[key] = one
	}
	one.Add(n)
}

// moved counts what a run has sent and what it found damaged, whatever became of it.
func (s *series) moved(from *Session) {
	from.mu.Lock()
	defer from.mu.Unlock()
	s.sink.Update(func() {
		for _, d := range sample.Directions() {
			if s.sent[d] == nil {
				continue
			}
			s.sent[d].Add(float64(from.moved[d]))
			s.csum[d].Add(float64(from.packets[d].checksumErrors))
			for kind, n := range from.packets[d].damaged {
				if n > 0 {
					s.add(s.damaged, metric.Damaged, float64(n), d.String(), stream.Damage(kind).String())
				}
			}
		}
	})
}

// publish gives a completed run's values to the sink, all at once.
func (r *runner) publish(o *Outcome) {
	r.values.Replace(func(v *Values) {
		v.Name(o.ID)
		r.kind.Publish(v, o.Run)
		r.series.last.Set(float64(o.End) / float64(time.Second))
		r.series.took.Set(o.End.Sub(o.Begin).Seconds())
	})
}
