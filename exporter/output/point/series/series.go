// Package series makes points of the series of an agent: of its own sink, or of families that were scraped.
package series

import (
	"sync"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/output/point"
)

// Source has series: promsink.Sink and Families are sources.
type Source interface {
	// Read calls visit with the present series of these families, found by name, one family after the other in this order, all as
	// of one instant. The reading is valid during the call.
	Read(families []*metric.Desc, visit func(*metric.Desc, *metric.Reading)) error
}

// Converter makes points. It keeps the memory of the largest measurement between calls. It is not safe for concurrent use.
// Make one with New.
type Converter struct {
	table *point.Table
	wide  *point.Wide
}

// New makes a Converter of the families of these groups.
func New(groups []metric.Group) *Converter {
	t := point.NewTable(groups)
	return &Converter{table: t, wide: point.NewWide(t)}
}

// Convert calls emit with the points of all series, at this time. A point is valid during the call.
func (c *Converter) Convert(from Source, at instant.Time, emit func(*point.Point)) error {
	c.wide.Begin(at, emit)
	defer c.wide.End()
	return from.Read(c.table.Order(), c.wide.Add)
}

// Of returns the points of the families of these groups of a source, as a function (output.Series). It is safe for concurrent use.
func Of(groups []metric.Group, from Source) func(at instant.Time, emit func(*point.Point)) error {
	var mu sync.Mutex
	c := New(groups)
	return func(at instant.Time, emit func(*point.Point)) error {
		mu.Lock()
		defer mu.Unlock()
		return c.Convert(from, at, emit)
	}
}
