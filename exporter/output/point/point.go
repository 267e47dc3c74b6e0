// Package point has the points of the line protocol: what InfluxDB and Telegraf receive of this agent.
//
// A point is made of the series of a scrape or of the raw samples of the recorder. Measurements, tags and fields are
// those of the table in schema.go: a measurement always has the same tags, a field always has the same type, no field has the
// name of a tag (InfluxDB 3 requires all three), and no tag has an unlimited number of values.
package point

import (
	"github.com/influxdata/line-protocol/v2/lineprotocol"

	"oneway.example/exporter/core/instant"
)

// Point is one line of the line protocol.
type Point struct {
	Measurement string
	// Tags are sorted by key; a tag without a value is left out.
	Tags []Tag
	// Fields have at least one element; an unknown value is absent.
	Fields []Field
	// At is the time of the packet, the run, or the scrape.
	At instant.Time
}

// Tag is a tag of a point.
type Tag struct{ Key, Value string }

// Field is a field of a point. Counts are int64, values in a unit are float64, names are string, conditions are bool.
type Field struct {
	Key   string
	Value lineprotocol.Value
}
