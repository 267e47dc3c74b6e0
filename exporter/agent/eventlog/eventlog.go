// Package eventlog publishes events (package event): the time of the last one of each kind and path as a series, and each one as
// a row with its text for outputs.
package eventlog

import (
	"sync"
	"time"
	"unicode/utf8"

	"oneway.example/exporter/core/event"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/record"
)

// maxText limits the bytes of a text: an error of a configuration may be long.
const maxText = 400

// Log publishes events. A path without an event has no series and takes no memory. A nil Log publishes nothing. It is safe for
// concurrent use. Make one with New.
type Log struct {
	sink     metric.Sink
	recorder *record.Recorder

	mu     sync.Mutex // guards the fields below; never held while the sink is called, which calls back within an Update
	series map[key]metric.Series
	has    func(path string) bool // is asked for events only, so that a path takes no memory
	ended  bool
}

// key is a series; the events of an agent have no path.
type key struct {
	path string
	kind event.Kind
}

// New makes a log for any path.
func New(sink metric.Sink, to *record.Recorder) *Log {
	return &Log{sink: sink, recorder: to, series: map[key]metric.Series{}, has: func(string) bool { return true }}
}

// OfPath publishes an event of a path that happened at a time, unless the path is gone. The text is for people.
func (l *Log) OfPath(kind event.Kind, path string, at time.Time, text string) {
	l.publish(key{path, kind}, at, text)
}

// OfAgent publishes an event of this agent.
func (l *Log) OfAgent(kind event.Kind, at time.Time, text string) {
	l.publish(key{kind: kind}, at, text)
}

func (l *Log) publish(k key, at time.Time, text string) {
	if l == nil {
		return
	}
	s := l.open(k)
	if s == nil {
		return
	}
	s.Set(float64(at.UnixNano()) / 1e9)
	if to := l.recorder.Tables(); to.HasListeners() {
		to.Record(&record.Table{
			Schema: record.Events, Tags: []string{string(k.kind), k.path}, ID: shortened(text),
			Begin: instant.FromTime(at), Rows: [][]int64{{0, 1}},
		})
	}
}

// open is the series of a key; nil: its path is gone, or the log has ended.
func (l *Log) open(k key) metric.Series {
	l.mu.Lock()
	s, ended := l.series[k], l.refuses(k)
	l.mu.Unlock()
	if s != nil || ended {
		return s
	}
	s = l.newSeries(k)
	l.mu.Lock()
	first, ended := l.series[k], l.refuses(k)
	if first == nil && !ended {
		l.series[k] = s
	}
	l.mu.Unlock()
	if first != nil || ended { // others were faster
		s.Close()
		return first
	}
	return s
}

// refuses: a key has no series. mu must be held.
func (l *Log) refuses(k key) bool {
	return l.ended || k.path != "" && !l.has(k.path)
}

func (l *Log) newSeries(k key) metric.Series {
	if k.path == "" {
		return l.sink.Series(metric.AgentEvent, string(k.kind))
	}
	return l.sink.Series(metric.PathEvent, k.path, string(k.kind))
}

// SetPaths says which paths there are: the series of others end. has is called with locks held.
func (l *Log) SetPaths(has func(path string) bool) {
	l.forget(func(k key) bool { return k.path != "" && !has(k.path) }, func() { l.has, l.ended = has, false })
}

// End ends all series, until SetPaths.
func (l *Log) End() {
	l.forget(func(key) bool { return true }, func() { l.ended = true })
}

// forget closes series after a change of the state.
func (l *Log) forget(which func(key) bool, change func()) {
	var closing []metric.Series
	l.mu.Lock()
	change()
	for k, s := range l.series {
		if which(k) {
			closing = append(closing, s)
			delete(l.series, k)
		}
	}
	l.mu.Unlock()
	l.sink.Update(func() {
		for _, s := range closing {
			s.Close()
		}
	})
}

// shortened is a text of at most maxText bytes, without a character cut in two.
func shortened(text string) string {
	if len(text) <= maxText {
		return text
	}
	end := maxText - len("…")
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}
