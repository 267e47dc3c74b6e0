// Package report stores the reports of load-test runs in a directory: one gzip file of JSON per
// run, named by the run's ID. It removes the oldest reports above a limit of files or bytes.
//
// A report is {"schema": "oneway/report/1", "time": ..., "host": ..., "version": ..., "header": {...}, "summary": [...],
// "view": {...}, "body": ...}. The header comes before the body, so that a directory can be listed without reading the bodies, then
// what a page shows: the summary, and the View if the body has one. All may hold text from a remote end: escape it before
// display.
//
// A report that cannot be written does not fail its run: the error is returned, counted and
// logged, and the header is still listed.
package report

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/runreason"
)

// Header is the list entry of a run.
type Header struct {
	// ID of the run; it sorts by time.
	ID string `json:"id"`
	// Path and Probe are the metric labels, Kind is the kind of test, Peer the remote end as
	// configured.
	Path  string `json:"path"`
	Probe string `json:"probe"`
	Kind  string `json:"kind"`
	Peer  string `json:"peer"`
	// Begin and End of the run.
	Begin time.Time `json:"begin,omitzero"`
	End   time.Time `json:"end,omitzero"`
	// Result is Completed, incomplete, refused, failed or skipped; Unreadable for a file that
	// cannot be read.
	Result string `json:"result"`
	// Reason is ok, or why the run did not complete, in one word; of an incident its trigger.
	Reason string `json:"reason,omitempty"`
	// Error is the reason in a sentence.
	Error string `json:"error,omitempty"`
	// Values are those of a completed run.
	Values Values `json:"values,omitempty"`
	// Summary has the main results, formatted for display; at most maxLines are kept. They are not in a document but in its file,
	// after the header.
	Summary []Line `json:"-"`

	// Report is the URL of the report, relative to the root of the agent's web server, and FileBytes the
	// size of its file. A Store sets them in its list; they are empty if there is no file.
	Report    string `json:"report,omitempty"`
	FileBytes int64  `json:"report_bytes,omitempty"`
}

// Results.
const (
	Completed = runreason.Completed
	// Unreadable is the result of a report whose file is damaged.
	Unreadable = "unreadable"
)

// Incident is the Kind of a report on the last minutes of a light probe. It is not a run of a test: such
// reports use at most 1/IncidentShare of both limits.
const Incident = "incident"

// OnRequest is the Reason of an incident that somebody has requested.
const OnRequest = "request"

// Limits of a header in memory; they bound what a remote end's text can use.
const (
	// maxLines is the most lines of a summary.
	maxLines = 32
	// maxText is the most bytes of each text.
	maxText = 256
)

// NewID returns the ID of a run that began at t, such as 20261121t172532z-3f9a2b07: sortable by
// time, of [a-z0-9-]. A nil rng uses the runtime's generator.
func NewID(t time.Time, rng *rand.Rand) string {
	random := rand.Uint32
	if rng != nil {
		random = rng.Uint32
	}
	return fmt.Sprintf("%s-%08x", t.UTC().Format("20060102t150405z"), random())
}

var (
	errID = errors.New("report: an id must have 1 to 64 characters of a-z, 0-9 and -, the first not -")
	// validID matches IDs that are safe as a file name and in a URL.
	validID = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,63}$`)
)

// kept returns h as it is listed: times in UTC, and the URL of its report if that has bytes.
func (h Header) kept(bytes int64) Header {
	h.Begin, h.End, h.FileBytes = h.Begin.UTC(), h.End.UTC(), bytes
	if bytes > 0 {
		h.Report = "runs/" + h.ID
	}
	return h
}

// LastRun is the reason of the state of a load test whose last run had a result other than Completed, and why, for display.
func LastRun(result, why string) string { return "last run " + result + ": " + why }

// Why is the reason for display: in a sentence if there is one, else in words, and empty if all is well.
func (h Header) Why() string {
	switch {
	case h.Error != "":
		return h.Error
	case h.Reason == runreason.OK:
		return ""
	case h.Reason == OnRequest:
		return "on request"
	}
	return metric.Words(h.Reason)
}

// bounded returns a copy of h for a file, cut to the limits.
func (h Header) bounded() Header {
	h.Report, h.FileBytes = "", 0
	for _, s := range []*string{&h.Path, &h.Probe, &h.Kind, &h.Peer, &h.Result, &h.Reason, &h.Error} {
		*s = truncate(*s)
	}
	h.Summary, h.Values = lines(h.Summary, maxLines), h.Values.bounded()
	return h
}

// truncate returns a copy of s as valid UTF-8 of at most maxText bytes, without characters that control a display or
// the direction of text.
func truncate(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsGraphic(r):
			return r
		case unicode.IsSpace(r):
			return ' '
		}
		return utf8.RuneError
	}, s)
	n := min(len(s), maxText)
	for n < len(s) && n > maxText-utf8.UTFMax && !utf8.RuneStart(s[n]) {
		n--
	}
	return strings.Clone(s[:n])
}
