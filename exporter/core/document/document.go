// Package document has what every JSON document of oneway begins with, so that a reader knows its form and its origin, and
// the form of values that documents share. exporter/doc/json.md describes the documents, exporter/doc/schema has their
// JSON Schemas.
package document

import (
	"os"
	"time"

	"github.com/prometheus/common/version"
)

// Kind is the kind of a document: the part of its schema between "oneway/" and the version.
type Kind string

// The kinds.
const (
	Probe       Kind = "probe"
	Test        Kind = "test"
	Calibration Kind = "calibration"
	Voice       Kind = "voice"
	Report      Kind = "report"
	Runs        Kind = "runs"
	Status      Kind = "status"
	Trends      Kind = "trends"
	Compare     Kind = "compare"
	Maintenance Kind = "maintenance"
)

// Version is the version of all kinds. Within one, fields are added, and none is renamed, removed or given another meaning.
const Version = "1"

// Schema is the name of the kind's schema, such as "oneway/status/1".
func (k Kind) Schema() string { return "oneway/" + string(k) + "/" + Version }

// Envelope is the beginning of a document.
type Envelope struct {
	// Schema is the kind of the document and the version of its form; its JSON Schema is at /api/v1/schema/KIND.json.
	Schema string `json:"schema"`
	// Time is when the document was made, in UTC.
	Time time.Time `json:"time"`
	// Host is the name of the host that made it; empty: it has none.
	Host string `json:"host"`
	// Version is the version of oneway.
	Version string `json:"version"`
}

// New returns the envelope of a document that is made now, on this host.
func New(k Kind) Envelope {
	host, _ := os.Hostname() // without one the field is empty
	return Envelope{Schema: k.Schema(), Time: time.Now().UTC(), Host: host, Version: version.Version}
}

// Outcome is how a measurement ended.
type Outcome struct {
	// Result is completed, incomplete if it did not reach its end, or failed if it has no values.
	Result string `json:"result"`
	// Reason is ok, or the cause in one word.
	Reason string `json:"reason"`
	// Error is the cause in a sentence; absent if the result is completed.
	Error string `json:"error,omitempty"`
}

// Settings are the options in use, by their names in the configuration, with units.
type Settings map[string]any

// ByDirection has the value of each direction: forward is from this host to the remote end. A null is unknown.
type ByDirection[T any] struct {
	// Forward is the direction from this host to the remote end.
	Forward T `json:"forward"`
	// Reverse is the direction from the remote end to this host.
	Reverse T `json:"reverse"`
}
