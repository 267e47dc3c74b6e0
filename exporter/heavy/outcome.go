package heavy

import (
	"context"
	"errors"

	"oneway.example/exporter/control"
	"oneway.example/exporter/instant"
	"oneway.example/exporter/report"
)

// refine names the cause of an error: that of the context, if that has ended.
func refine(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	var f *Failure
	if cause := context.Cause(ctx); errors.As(cause, &f) {
		return f
	}
	return &Failure{Reason: ReasonStopped, Err: context.Cause(ctx)}
}

// outcome is what became of a run that ended with err.
func (r *runner) outcome(run *Run, err error) *Outcome {
	o := &Outcome{Run: run, End: instant.Now(), Result: Completed, Reason: ReasonOK}
	for _, l := range run.Summary {
		o.Lines = append(o.Lines, report.Line{Quantity: l.Quantity, Direction: l.Direction, Value: l.Value})
	}
	if err == nil {
		return o
	}
	o.Error = err.Error()
	begun := run.Begin != 0
	var f *Failure
	var refusal *control.Refusal
	switch {
	case errors.As(err, &f):
		o.Result, o.Reason = resultOf(f.Reason), f.Reason
	case errors.As(err, &refusal):
		o.Result, o.Reason = Refused, known(refusal.Reason)
	default:
		o.Result, o.Reason = Failed, ReasonInternal
	}
	if begun && o.Result != Refused {
		o.Result = Incomplete
	}
	return o
}

// resultOf is that of a run that has not begun to send.
func resultOf(reason string) Result {
	switch reason {
	case ReasonLinkBusy, ReasonFarBusy, ReasonBudget, ReasonOverrun, ReasonWindowClosed, ReasonStopped:
		return Skipped
	}
	return Failed
}

// known is the far end's word, if it is one: labels are a fixed set.
func known(word control.Reason) string {
	for _, r := range control.Reasons() {
		if r == word {
			return string(r)
		}
	}
	return string(control.BadRequest)
}
