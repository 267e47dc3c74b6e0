package loadtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"oneway.example/exporter/core/document"
	"oneway.example/exporter/core/errtext"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/report"
)

// Run is one run of a load test. Session.Perform reads it and sets the results; the runner sets the
// rest.
type Run struct {
	// ID names the run in reports, logs and exemplars; it sorts by time.
	ID string `json:"id"`
	// Path, Probe and Peer are those of the target; Link is the link that the run holds.
	Path  string `json:"path"`
	Probe string `json:"probe"`
	Kind  string `json:"kind"`
	Peer  string `json:"peer"`
	Link  string `json:"link"`
	// Remote is the address of the remote end, such as a load server; empty before the session.
	Remote string `json:"remote,omitempty"`
	// Directions to test, in order.
	Directions []sample.Direction `json:"-"`
	// Begin is when the run had its session; zero before.
	Begin instant.Time `json:"-"`
	// Settings are the options in use.
	Settings document.Settings `json:"settings"`

	// Body has the results, of a type that the Kind documents.
	Body any `json:"results,omitempty"`
	// Summary has a few lines for the landing page, the list of runs and the terminal.
	Summary []probe.Result `json:"-"`
	// Working is the delay of light packets during the load, or nil if none were sent.
	Working *Working `json:"working,omitempty"`
	// Configured are the options of the kind that are set, for the page of the run; empty: unknown.
	Configured []report.Line `json:"-"`
	// Notes are sentences about the validity of the results, such as "sender could not keep the rate".
	Notes []string `json:"notes,omitempty"`

	phase func(string)
	share func(float64)
}

// Phase reports in a few words the step that begins, such as "forward: load".
func (r *Run) Phase(words string) {
	if r.phase != nil {
		r.phase(words)
	}
}

// Share reports the completed share of the run, 0..1, for a Kind with long pauses between
// transfers. Without it the share follows from the transfers and Test.Duration.
func (r *Run) Share(done float64) {
	if r.share != nil {
		r.share(done)
	}
}

// Note adds a sentence to Notes. One that both directions have is a single note.
func (r *Run) Note(words string) {
	for _, d := range sample.Directions() {
		rest, of := strings.CutPrefix(words, d.String()+": ")
		i := slices.Index(r.Notes, (sample.Reverse-d).String()+": "+rest)
		if of && i >= 0 {
			r.Notes[i] = "both directions: " + rest
			return
		}
	}
	r.Notes = append(r.Notes, words)
}

// Result is the outcome of a run that was due: the label result of metric.Runs.
type Result string

// The results. The label reason has the cause.
const (
	// Completed: it ran to its end and its values are published. Reason "ok".
	Completed Result = runreason.Completed
	// Incomplete: it began to send and did not reach its end, or measured nothing.
	Incomplete Result = runreason.Incomplete
	// Refused: the remote end refused it.
	Refused Result = runreason.Refused
	// Failed: it could not begin.
	Failed Result = runreason.Failed
	// Skipped: a condition for its start was not met.
	Skipped Result = runreason.Skipped
)

// Outcome is the result of a run that has ended.
type Outcome struct {
	*Run
	End instant.Time `json:"-"`
	// Begun and Ended are Begin and End in UTC; Begun is zero if the run had no session.
	Begun  time.Time `json:"begin,omitzero"`
	Ended  time.Time `json:"end"`
	Result Result    `json:"result"`
	// Reason is ok, or why it did not complete; METRICS.md has the values, at oneway_probe_runs_total.
	Reason string `json:"reason"`
	// Lines is the run's Summary.
	Lines []report.Line `json:"-"`
	// Values are what METRICS.md has of a completed run.
	Values report.Values `json:"values,omitempty"`
	// Error is why it did not complete; empty if it did.
	Error string `json:"error,omitempty"`
	// ForwardBytes and ReverseBytes are the IP bytes sent; where the record of the remote sender did not arrive, ReverseBytes has those that
	// arrived.
	ForwardBytes int64 `json:"forward_sent_bytes"`
	ReverseBytes int64 `json:"reverse_sent_bytes"`
	// Transfers are the parts of the traffic, of bounded size.
	Transfers any `json:"transfers,omitempty"`
}

// Drawn is a Run's Body with drawings for its report: a kind decides which columns it draws.
type Drawn interface{ Drawings() []report.Drawing }

// Evident is a Run's Body that tells what its results are based on.
type Evident interface{ EvidenceLines() []report.Line }

// View is what the page of the run's report shows.
func (o *Outcome) View() report.View {
	v := report.View{Notes: o.Notes, Remedy: runreason.Find(o.Reason).Remedy, Settings: o.Configured}
	if d, ok := o.Body.(Drawn); ok {
		v.Drawings = d.Drawings()
	}
	if e, ok := o.Body.(Evident); ok {
		v.Evidence = e.EvidenceLines()
	}
	return v
}

// Progress of a run.
type Progress struct {
	// Phase is the present step, such as "waiting for the link" or "forward: load".
	Phase string
	// Share is the completed share of the planned time, 0..1.
	Share float64
	// Direction, Packets and Bytes (UDP payload) are of the present transfer: sent in
	// forward, received in reverse direction.
	Direction sample.Direction
	Packets   int
	Bytes     int64
	// Elapsed is the time since the transfer began; of a run, the elapsed part of its planned
	// time.
	Elapsed time.Duration
}

// Failure is an error with the reason that metric.Runs counts it under.
type Failure struct {
	// Reason is a value of the label reason.
	Reason string
	Err    error
	// Refused: the remote end refused the run.
	Refused bool
	// RetryAfter is when to open a session again, as the remote end is busy; zero: not at all.
	RetryAfter time.Duration
}

// Error is that of Err.
func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap returns Err.
func (f *Failure) Unwrap() error { return f.Err }

// WithCause replaces err by the cause of ctx, if ctx has ended.
func WithCause(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	if f, ok := errors.AsType[*Failure](context.Cause(ctx)); ok {
		return f
	}
	return &Failure{Reason: runreason.Stopped, Err: context.Cause(ctx)}
}

// outcome is that of a run that ended with err.
func (r *runner) outcome(run *Run, err error) *Outcome {
	o := &Outcome{Run: run, End: instant.Now(), Result: Completed, Reason: runreason.OK, Lines: run.Summary}
	o.Begun, o.Ended = run.Begin.Time(), o.End.Time()
	if err == nil {
		return o
	}
	o.Error = errtext.Words(err)
	o.Result, o.Reason = Failed, runreason.Internal
	if f, ok := errors.AsType[*Failure](err); ok {
		o.Reason = f.Reason
		if f.Reason == runreason.Stopped {
			o.Error = stoppedIn(r.status.phase(), f.Err)
		}
		switch {
		case f.Refused:
			o.Result = Refused
		case runreason.Find(f.Reason).Skips:
			o.Result = Skipped
		}
	}
	if run.Begin != 0 && o.Result != Refused {
		o.Result = Incomplete
	}
	return o
}

// stoppedIn is the error of a run that was stopped in a phase: by a signal, or with its prober.
func stoppedIn(phase string, why error) string {
	words := fmt.Sprintf("stopped while in phase %q", phase)
	if errors.Is(why, context.Canceled) && why.Error() == context.Canceled.Error() {
		return words
	}
	return words + ": " + why.Error()
}
