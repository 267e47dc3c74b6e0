package report

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
	"unicode/utf8"
)

// Header is what a list of runs shows of one.
type Header struct {
	// ID is the run's; see NewID.
	ID string `json:"id"`
	// Path and Probe are the metric labels, Kind the kind of test, Peer the far end as
	// configured.
	Path  string `json:"path"`
	Probe string `json:"probe"`
	Kind  string `json:"kind"`
	Peer  string `json:"peer"`
	// Begin and End of the run.
	Begin time.Time `json:"begin"`
	End   time.Time `json:"end"`
	// Result is a word: completed, incomplete, refused, failed or skipped; of a file
	// that cannot be read it is Unreadable.
	Result string `json:"result"`
	// Reason is why it is not completed, in a few words; empty if it is.
	Reason string `json:"reason,omitempty"`
	// Summary has the main figures, ready for print; at most MaxLines are kept.
	Summary []Line `json:"summary,omitempty"`

	// FileBytes is the size of the report's file, and 0 if it is not kept; Write and
	// Open set it.
	FileBytes int64 `json:"-"`
}

// Unreadable is the result of a report that a crash or somebody else has damaged.
const Unreadable = "unreadable"

// Line is one figure, such as {"throughput", "forward", "4.98 Mb/s"}.
type Line struct {
	Quantity  string `json:"quantity"`
	Direction string `json:"direction,omitempty"`
	Value     string `json:"value"`
}

// What is kept of a header in memory, so that a list is bounded whatever the peers
// say.
const (
	// MaxLines of a summary are kept.
	MaxLines = 32
	// MaxText octets of each text are kept.
	MaxText = 256
)

// NewID makes the id of a run that began at t: sortable by time, of [a-z0-9-], such
// as 20261121t172532z-3f9a2b07. A nil rng takes the runtime's.
func NewID(t time.Time, rng *rand.Rand) string {
	random := rand.Uint32
	if rng != nil {
		random = rng.Uint32
	}
	return fmt.Sprintf("%s-%08x", t.UTC().Format("20060102t150405z"), random())
}

// maxID is the longest id.
const maxID = 64

var errID = errors.New("report: an id has 1 to 64 of a to z, 0 to 9 and -, and does not begin with -")

// checkID holds an id to what is safe as a file's name and in an address.
func checkID(id string) error {
	if id == "" || len(id) > maxID || id[0] == '-' {
		return errID
	}
	for _, c := range []byte(id) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return errID
		}
	}
	return nil
}

// bounded is a copy of h that is no larger than it should be.
func (h Header) bounded() Header {
	for _, s := range []*string{&h.Path, &h.Probe, &h.Kind, &h.Peer, &h.Result, &h.Reason} {
		*s = cut(*s)
	}
	lines := make([]Line, 0, min(len(h.Summary), MaxLines))
	for _, l := range h.Summary[:cap(lines)] {
		lines = append(lines, Line{cut(l.Quantity), cut(l.Direction), cut(l.Value)})
	}
	h.Summary = lines
	return h
}

// cut is s, made valid UTF-8 and not longer than MaxText, in memory of its own.
func cut(s string) string {
	if len(s) > MaxText {
		s = s[:MaxText]
		for i := len(s) - 1; i >= len(s)-utf8.UTFMax; i-- {
			if utf8.RuneStart(s[i]) {
				if !utf8.FullRuneInString(s[i:]) {
					s = s[:i]
				}
				break
			}
		}
	}
	return strings.Clone(strings.ToValidUTF8(s, "\uFFFD"))
}
