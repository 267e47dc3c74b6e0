package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"oneway.example/exporter/core/hourrow"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/families"
	"oneway.example/exporter/output/hours"
	"oneway.example/exporter/output/point"
	"oneway.example/exporter/output/point/series"
	"oneway.example/exporter/output/promsink"
	"oneway.example/tests/history/scene"
)

// lines writes the series as line protocol of InfluxDB, one point an hour, with the labels of paths as tags, as the output influxdb does, and the
// rows of hours, which package hours makes of them, and the points of each run, as the recorder has it.
type lines struct {
	to      *bufio.Writer
	convert *series.Converter
	labels  point.PathLabels
	agents  map[string]*agentLines
	encoder point.Encoder
	line    []byte
	tags    []point.Tag
	points  int
	// rowsOnly leaves out the points of series and runs.
	rowsOnly bool
}

// agentLines are the points of an agent.
type agentLines struct {
	tagger point.Tagger
	hours  *hours.Hours
	runs   *point.Raw
	// rows are the last ones, until the minutes of their hour are known.
	rows []point.Point
}

func newLines(to io.Writer, paths []scene.Path) *lines {
	l := &lines{to: bufio.NewWriterSize(to, 1<<20), convert: series.New(families.All()), agents: map[string]*agentLines{}}
	all := map[string]map[string]string{}
	for i := range paths {
		all[paths[i].Name] = paths[i].Labels()
	}
	l.labels.Set(all)
	return l
}

// agent is the present process of an agent.
func (l *lines) agent(instance string) *agentLines {
	a := l.agents[instance]
	if a == nil {
		a = &agentLines{tagger: point.NewTagger([]point.Tag{{Key: "host", Value: instance}}, &l.labels), runs: point.NewRaw(families.All())}
		l.agents[instance] = a
	}
	if a.hours == nil {
		a.hours = hours.New(time.Hour, func(p *point.Point) { // ordinary days are read once an hour
			same := func(o point.Point) bool {
				return o.At == p.At && o.Measurement == p.Measurement && slices.Equal(o.Tags, p.Tags)
			}
			one := point.Point{Measurement: p.Measurement, At: p.At, Tags: slices.Clone(p.Tags), Fields: slices.Clone(p.Fields)}
			if i := slices.IndexFunc(a.rows, same); i >= 0 {
				a.rows[i] = one
				return
			}
			a.rows = append(a.rows, one)
		})
	}
	return a
}

// started begins a process.
func (l *lines) started(instance string) {
	a := l.agent(instance)
	a.hours.Flush()
	a.hours = nil
}

// scrape writes the points of all series where it is the end of an hour, or of a process.
func (l *lines) scrape(instance string, at time.Time, sink *promsink.Sink, full bool) error {
	a := l.agent(instance)
	if err := l.rows(a, at.Add(-time.Hour)); err != nil {
		return err
	}
	var failed error
	a.hours.Begin(instant.FromTime(at))
	err := l.convert.Convert(sink, instant.FromTime(at), func(p *point.Point) {
		a.hours.Add(p)
		if full && !l.rowsOnly {
			failed = errors.Join(failed, l.write(a, p))
		}
	})
	a.hours.End()
	return errors.Join(err, failed)
}

// run writes the points of a run, with the hour and the kind of day of its end.
func (l *lines) run(instance string, result *record.Result) (failed error) {
	if l.rowsOnly {
		return nil
	}
	a := l.agent(instance)
	a.runs.Result(result, func(p *point.Point) { failed = errors.Join(failed, l.write(a, p)) })
	return failed
}

// rows writes the rows that begin before a time.
func (l *lines) rows(a *agentLines, before time.Time) error {
	kept := a.rows[:0]
	for i := range a.rows {
		if a.rows[i].At >= instant.FromTime(before) {
			kept = append(kept, a.rows[i])
		} else if err := l.write(a, &a.rows[i]); err != nil {
			return err
		}
	}
	a.rows = kept
	return nil
}

// minutes sets the minutes of the hour that ends from the simulation, in which the agent was not read each minute.
func (l *lines) minutes(instance string, end time.Time, measured int, up map[string]int) {
	a, done := l.agent(instance), map[string]bool{}
	for i := range a.rows {
		p := &a.rows[i]
		if p.At < instant.FromTime(end.Add(-time.Hour)) || p.At >= instant.FromTime(end) {
			continue
		}
		k := slices.IndexFunc(p.Tags, func(t point.Tag) bool { return t.Key == metric.Path })
		path := p.Tags[k].Value
		first := !done[path+p.Measurement]
		for f := range p.Fields {
			field := &p.Fields[f]
			n := int64(0)
			switch {
			case field.Key == "measured_minutes" && first:
				n = int64(measured)
			case field.Key == "up_minutes" && first:
				n = int64(up[path])
			case strings.HasPrefix(field.Key, "minutes_below_"):
				n = 60 * field.Value.IntV()
			case field.Key != "measured_minutes" && field.Key != "up_minutes":
				continue
			}
			*field = point.Int(nil, field.Key, n)[0]
		}
		if p.Measurement == hourrow.OfRoundTrip {
			done[path+p.Measurement] = true
		}
	}
}

// write writes a point.
func (l *lines) write(a *agentLines, p *point.Point) error {
	tagged := *p
	l.tags = a.tagger.Append(l.tags[:0], p.Tags)
	tagged.Tags = l.tags
	var err error
	if l.line, err = l.encoder.Append(l.line[:0], &tagged); err != nil {
		return fmt.Errorf("history: line protocol: %w", err)
	}
	l.points++
	if _, err := l.to.Write(l.line); err != nil {
		return fmt.Errorf("history: line protocol: %w", err)
	}
	return nil
}

// flush writes what is left.
func (l *lines) flush() error {
	for _, a := range l.agents {
		if a.hours != nil {
			a.hours.Flush()
		}
		if err := l.rows(a, time.Unix(1<<33, 0)); err != nil {
			return err
		}
	}
	if err := l.to.Flush(); err != nil {
		return fmt.Errorf("history: line protocol: %w", err)
	}
	return nil
}
