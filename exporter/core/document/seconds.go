package document

import (
	"encoding/json"
	"time"
)

// Seconds is a duration that is encoded as a JSON number of seconds.
type Seconds time.Duration

// Duration is s as a Go duration.
func (s Seconds) Duration() time.Duration { return time.Duration(s) }

// Seconds is the number of seconds.
func (s Seconds) Seconds() float64 { return time.Duration(s).Seconds() }

// MarshalJSON encodes the number of seconds.
func (s Seconds) MarshalJSON() ([]byte, error) { return json.Marshal(s.Seconds()) }
