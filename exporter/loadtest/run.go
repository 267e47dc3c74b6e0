package loadtest

import (
	"context"
	"errors"
	"slices"
	"time"

	"oneway.example/exporter/instant"
	"oneway.example/exporter/loadcontrol"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/report"
	"oneway.example/exporter/sample"
)

// Run is one run of a load test. Flow.Perform reads it and fills in what it found; the
// rest is the runner's.
type Run struct {
	// ID names the run in reports, logs and exemplars; it sorts by time.
	ID string `json:"id"`
	// Path, Probe and Peer are the target's; Link is what the run held.
	Path  string `json:"path"`
	Probe string `json:"probe"`
	Kind  string `json:"kind"`
	Peer  string `json:"peer"`
	Link  string `json:"link"`
	// LoadServer is the address that the session was with, once there was one.
	LoadServer string `json:"load_server,omitempty"`
	// Directions to be tested, in order.
	Directions []sample.Direction `json:"-"`
	// Begin is when the run had its link and its quota.
	Begin instant.Time `json:"begin_ns"`

	// Body is what a Kind found, of a type that it documents; it is the report's "result".
	Body any `json:"result,omitempty"`
	// Summary are a few lines for people: landing page, list of runs, terminal.
	Summary []probe.Result `json:"-"`
	// Notes say in a sentence each what a reader should know: "sender could not keep the rate".
	Notes []string `json:"notes,omitempty"`

	phase func(string)
	share func(float64)
}

// Phase says in a few words what begins now, for a progress bar: "forward: load".
func (r *Run) Phase(words string) {
	if r.phase != nil {
		r.phase(words)
	}
}

// Share says how much of the run is over, 0..1, where that is not what its transfers have
// taken of Kind.Duration: with long pauses between them. From then on only Share moves it.
func (r *Run) Share(done float64) {
	if r.share != nil {
		r.share(done)
	}
}

// Note adds a sentence to Notes.
func (r *Run) Note(words string) { r.Notes = append(r.Notes, words) }

// Result is what became of a run that was due: the label result of metric.Runs.
type Result string

// The results. The label reason says more; see Reason's constants and loadcontrol.Reasons.
const (
	// Completed: it ran to its end; its values are published. Reason "ok".
	Completed Result = "completed"
	// Incomplete: it had begun to send, and did not come to its end.
	Incomplete Result = "incomplete"
	// Refused: the remote end said no; the reason is its word (loadcontrol.Reason).
	Refused Result = "refused"
	// Failed: it could not begin.
	Failed Result = "failed"
	// Skipped: it was not to be now.
	Skipped Result = "skipped"
)

// Reasons of results.
const (
	ReasonOK = "ok" // completed

	ReasonLinkBusy     = "link_busy"     // skipped: another test held the link for all of max_wait
	ReasonRemoteBusy   = "remote_busy"   // skipped: the same at the remote end
	ReasonQuota        = "quota"         // skipped: the data quota does not allow it today
	ReasonOverrun      = "overrun"       // skipped: it fell due while the one before was not over
	ReasonWindowClosed = "window_closed" // skipped: its window was over when the link was free
	ReasonStopped      = "stopped"       // skipped, incomplete: the agent stops or reloads

	ReasonUnsaved       = "unsaved"       // failed: its use of the data quota cannot be saved
	ReasonConfiguration = "configuration" // failed: a file that is named cannot be used
	ReasonUnreachable   = "unreachable"   // failed: no control connection
	ReasonNoTraffic     = "no_udp_reply"  // failed: control works, test packets do not come through
	ReasonSocket        = "socket"        // failed, incomplete: this host's own socket
	ReasonTimeout       = "timeout"       // incomplete: it took longer than its time-out
	ReasonLost          = "session_lost"  // incomplete: the control connection ended
	ReasonClock         = "clock_stepped" // incomplete: a clock was stepped meanwhile
	ReasonInternal      = "internal"      // failed, incomplete: anything else; the error says what
)

// Outcome is a run that is over.
type Outcome struct {
	*Run
	End    instant.Time `json:"end_ns"`
	Result Result       `json:"outcome"`
	Reason string       `json:"reason"`
	// Lines are the run's Summary.
	Lines []report.Line `json:"summary,omitempty"`
	// Error is why it did not complete, for people; empty if it did.
	Error string `json:"error,omitempty"`
	// ForwardBytes and ReverseBytes are the IP bytes that were sent.
	ForwardBytes int64 `json:"forward_sent_bytes"`
	ReverseBytes int64 `json:"reverse_sent_bytes"`
	// Transfers are what the traffic keeps of its parts, bounded.
	Transfers any `json:"transfers,omitempty"`
}

// Progress is how far a run is.
type Progress struct {
	// Phase in words, such as "waiting for the link" or "forward: load".
	Phase string
	// Share of the run's planned time that is over, 0..1.
	Share float64
	// Direction, Packets and Bytes (UDP payload) are of the transfer under way: sent in
	// forward, received in reverse direction.
	Direction sample.Direction
	Packets   int
	Bytes     int64
	// Elapsed is how long the transfer has run; of a run, how much of its planned time
	// is over.
	Elapsed time.Duration
}

// Failure is an error with the word that metric.Runs counts it under.
type Failure struct {
	// Reason is one of the Reason constants.
	Reason string
	Err    error
}

// Error is that of the cause.
func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap is the cause.
func (f *Failure) Unwrap() error { return f.Err }

// Refine names the cause of an error: that of the context, if that has ended.
func Refine(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	if f, ok := errors.AsType[*Failure](context.Cause(ctx)); ok {
		return f
	}
	return &Failure{Reason: ReasonStopped, Err: context.Cause(ctx)}
}

// outcome is what became of a run that ended with err.
func (r *runner) outcome(run *Run, err error) *Outcome {
	o := &Outcome{Run: run, End: instant.Now(), Result: Completed, Reason: ReasonOK, Lines: run.Summary}
	if err == nil {
		return o
	}
	o.Error = err.Error()
	o.Result, o.Reason = Failed, ReasonInternal
	if f, ok := errors.AsType[*Failure](err); ok {
		o.Reason = f.Reason
		if slices.Contains(skipping(), f.Reason) {
			o.Result = Skipped
		}
	} else if refusal, ok := errors.AsType[*loadcontrol.Refusal](err); ok {
		o.Result, o.Reason = Refused, string(refusal.Reason)
		if !slices.Contains(loadcontrol.Reasons(), refusal.Reason) { // labels are a fixed set
			o.Reason = string(loadcontrol.BadRequest)
		}
	}
	if run.Begin != 0 && o.Result != Refused {
		o.Result = Incomplete
	}
	return o
}

// skipping are the reasons for which a run that has not begun to send is skipped, and has not failed.
func skipping() []string {
	return []string{ReasonLinkBusy, ReasonRemoteBusy, ReasonQuota, ReasonOverrun, ReasonWindowClosed, ReasonStopped}
}
