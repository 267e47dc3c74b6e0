// Package report keeps the reports of load tests' runs in a directory: one gzip
// file of JSON a run, named by the run's id, the oldest removed when there are too
// many or they take too much room.
//
// A report is {"header": {...}, "body": ...}; the header comes first, so that a
// directory can be listed without reading the bodies. What a header is made of may
// come from elsewhere (a peer's words): whoever shows it escapes it.
//
// No run fails because of its report: a full disk or a directory that cannot be
// written is an error that is returned, counted and logged, and the header is
// still listed.
package report

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"
)

// Header is what a list of runs shows of one.
type Header struct {
	// ID is the run's; see NewID.
	ID string `json:"id"`
	// Path and Probe are the metric labels, Kind the kind of test, Peer the remote end as
	// configured.
	Path  string `json:"path"`
	Probe string `json:"probe"`
	Kind  string `json:"kind"`
	Peer  string `json:"peer"`
	// Begin and End of the run.
	Begin time.Time `json:"begin,omitzero"`
	End   time.Time `json:"end,omitzero"`
	// Result is a word: Completed, incomplete, refused, failed or skipped; of a file
	// that cannot be read it is Unreadable.
	Result string `json:"result"`
	// Reason is why it is not completed, in a few words; empty if it is.
	Reason string `json:"reason,omitempty"`
	// Summary has the main figures, ready for print; at most maxLines are kept.
	Summary []Line `json:"summary,omitempty"`

	// Report is the address of the whole report, relative to the root of the agent's web server, and
	// FileBytes the size of its file. They are set in what a Store lists, and empty if it is not kept.
	Report    string `json:"report,omitempty"`
	FileBytes int64  `json:"report_bytes,omitempty"`
}

// Results.
const (
	Completed = "completed"
	// Unreadable is the result of a report that a crash or somebody else has damaged.
	Unreadable = "unreadable"
)

// Incident is the Kind of a report of a light probe's last minutes. It is no run of a test: such reports take a
// quarter of what may be kept at the most.
const Incident = "incident"

// Line is one figure, such as {"throughput", "forward", "4.98 Mb/s"}.
type Line struct {
	Quantity  string `json:"quantity"`
	Direction string `json:"direction,omitempty"`
	Value     string `json:"value"`
}

// What is kept of a header in memory, so that a list is bounded whatever the peers
// say.
const (
	// maxLines of a summary are kept.
	maxLines = 32
	// maxText bytes of each text are kept.
	maxText = 256
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

var (
	errID = errors.New("report: an id has 1 to 64 of a to z, 0 to 9 and -, and does not begin with -")
	// validID is what is safe as a file's name and in an address.
	validID = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,63}$`)
)

// kept is a header as it is listed: its times are UTC, and its report, if there is one, takes so many bytes.
func (h Header) kept(bytes int64) Header {
	h.Begin, h.End, h.FileBytes = h.Begin.UTC(), h.End.UTC(), bytes
	if bytes > 0 {
		h.Report = "runs/" + h.ID
	}
	return h
}

// bounded is a copy of h as it stands in a file, no larger than it should be.
func (h Header) bounded() Header {
	h.Report, h.FileBytes = "", 0
	for _, s := range []*string{&h.Path, &h.Probe, &h.Kind, &h.Peer, &h.Result, &h.Reason} {
		*s = cut(*s)
	}
	lines := make([]Line, 0, min(len(h.Summary), maxLines))
	for _, l := range h.Summary[:cap(lines)] {
		lines = append(lines, Line{cut(l.Quantity), cut(l.Direction), cut(l.Value)})
	}
	h.Summary = lines
	return h
}

// cut is s, made valid UTF-8 and not longer than maxText, in memory of its own.
func cut(s string) string {
	n := min(len(s), maxText)
	for n < len(s) && n > maxText-utf8.UTFMax && !utf8.RuneStart(s[n]) {
		n--
	}
	return strings.Clone(strings.ToValidUTF8(s[:n], "\uFFFD"))
}
