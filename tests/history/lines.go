package main

import (
	"bufio"
	"fmt"
	"io"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/families"
	"oneway.example/exporter/output/point"
	"oneway.example/exporter/output/point/series"
	"oneway.example/exporter/output/promsink"
	"oneway.example/tests/history/scene"
)

// lines writes the series as line protocol of InfluxDB, one point an hour, with the labels of paths as tags, as the output influxdb does.
type lines struct {
	to      *bufio.Writer
	convert *series.Converter
	labels  point.PathLabels
	taggers map[string]*point.Tagger
	encoder point.Encoder
	line    []byte
	tags    []point.Tag
	points  int
}

func newLines(to io.Writer, paths []scene.Path) *lines {
	l := &lines{to: bufio.NewWriterSize(to, 1<<20), convert: series.New(families.All()), taggers: map[string]*point.Tagger{}}
	all := map[string]map[string]string{}
	for i := range paths {
		all[paths[i].Name] = paths[i].Labels()
	}
	l.labels.Set(all)
	return l
}

func (l *lines) scrape(instance string, at time.Time, sink *promsink.Sink) error {
	tagger := l.taggers[instance]
	if tagger == nil {
		t := point.NewTagger([]point.Tag{{Key: "host", Value: instance}}, &l.labels)
		tagger = &t
		l.taggers[instance] = tagger
	}
	var failed error
	err := l.convert.Convert(sink, instant.FromTime(at), func(p *point.Point) {
		tagged := *p
		l.tags = tagger.Append(l.tags[:0], p.Tags)
		tagged.Tags = l.tags
		var err error
		if l.line, err = l.encoder.Append(l.line[:0], &tagged); err != nil {
			failed = err
			return
		}
		l.points++
		if _, err := l.to.Write(l.line); err != nil {
			failed = err
		}
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return fmt.Errorf("history: line protocol: %w", err)
	}
	return nil
}

func (l *lines) flush() error {
	if err := l.to.Flush(); err != nil {
		return fmt.Errorf("history: line protocol: %w", err)
	}
	return nil
}
