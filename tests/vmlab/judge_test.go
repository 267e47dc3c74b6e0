package vmlab

import (
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/tests/vmlab/record"
	"oneway.example/tests/vmlab/truth"
)

const (
	us = time.Microsecond
	ms = time.Millisecond
)

// rig is a judge of two clocks, the remote one wrong by offset, and for a second from the
// fifth on by a second more.
type rig struct {
	Judge
	offset time.Duration
}

func newRig(offset time.Duration) *rig {
	line := truth.Line{Counter: 1_000_000, UTC: instant.FromUnix(1_800_000_000, 0), Hertz: 1e9}
	var local, remote []truth.Pair
	for i := range 1000 {
		counter := line.Counter + uint64(i)*10_000_000
		wrong := offset
		if i >= 500 && i < 600 {
			wrong += time.Second
		}
		local = append(local, truth.Pair{Counter: counter, Clock: line.At(counter), Gap: 40_000})
		remote = append(remote, truth.Pair{Counter: counter, Clock: line.At(counter).Add(wrong), Gap: 40_000})
	}
	return &rig{Judge{Line: line, Local: truth.NewTrack(line, local, ms), Remote: truth.NewTrack(line, remote, ms)}, offset}
}

// packet leaves after so long and takes 1 ms each way; the delays have this bound.
func (r *rig) packet(after, bound time.Duration) record.Packet {
	at := r.Line.UTC.Add(after)
	p := record.Packet{Seen: r.Line.Counter + uint64(after+100*ms)}
	p.Packet.T1.At, p.Packet.T4.At = at, at.Add(2*ms)
	p.Packet.T2.At, p.Packet.T3.At = at.Add(ms+r.offset), at.Add(ms+r.offset)
	p.Forward = sample.Delay{Value: ms + r.offset, Bound: bound, Reason: sample.OK}
	p.Reverse = sample.Delay{Value: ms - r.offset, Bound: bound, Reason: sample.OK}
	return p
}

func (r *rig) all() Span { return Span{0, 1 << 62} }

func TestJudgeCoversWhatTheBoundCovers(t *testing.T) {
	r := newRig(80 * us)
	got := r.Judge.Judge([]record.Packet{r.packet(time.Second, 90*us), r.packet(2*time.Second, 70*us)}, r.all())
	if got.Delays != 4 || got.Valid != 4 || got.Judged() != 4 || got.Covered != 2 || got.Coverage() != 0.5 || len(got.Worst) != 2 || got.Forbidden != 0 {
		t.Errorf("%+v", got)
	}
	if e := quantile(got.Errors, 1); (e - 80*us).Abs() > 10 {
		t.Errorf("the largest error is %v, want 80us", e)
	}
	if d := got.True[sample.Reverse][0]; (d - ms).Abs() > 10 {
		t.Errorf("the truth is %v, want 1ms", d)
	}
}

func TestJudgeCountsReasonsAndLeavesInvalidDelaysAlone(t *testing.T) {
	r := newRig(0)
	p := r.packet(time.Second, us)
	p.Forward.Reason = sample.RemoteUnsynchronized
	got := r.Judge.Judge([]record.Packet{p}, r.all())
	if got.Valid != 1 || got.Reasons[sample.RemoteUnsynchronized] != 1 || len(got.Errors) != 1 {
		t.Errorf("%+v", got)
	}
}

func TestValidDelayAcrossAStepIsForbidden(t *testing.T) {
	r := newRig(0)
	p := r.packet(4994500*us, time.Hour) // T1 before, T2 after the step, which is between 4.99 and 5 s
	got := r.Judge.Judge([]record.Packet{p}, r.all())
	if got.Forbidden == 0 {
		t.Errorf("%+v", got)
	}
	p.Forward.Reason, p.Reverse.Reason = sample.RemoteStepped, sample.RemoteStepped
	if got := r.Judge.Judge([]record.Packet{p}, r.all()); got.Forbidden != 0 {
		t.Errorf("not valid, and yet: %+v", got)
	}
}

// A guest that stood still around the step left a gap in its track: a packet concluded in
// it may be from before the step.
func TestValidDelayConcludedBeforeTheStepIsKnownIsNotForbidden(t *testing.T) {
	r := newRig(0)
	p := r.packet(4991*ms, us)
	p.Seen = r.Line.Counter + uint64(4998*ms)
	got := r.Judge.Judge([]record.Packet{p}, r.all())
	if got.Forbidden != 0 || got.Unjudged != 2 {
		t.Errorf("%+v", got)
	}
	p.Seen = r.Line.Counter + uint64(5001*ms)
	if got := r.Judge.Judge([]record.Packet{p}, r.all()); got.Forbidden != 2 {
		t.Errorf("concluded after it: %+v", got)
	}
}

func TestValidDelayInAForbiddenSpanIsForbidden(t *testing.T) {
	r := newRig(0)
	r.Forbidden = []Span{{r.Line.Counter + 2e9, r.Line.Counter + 3e9}}
	packets := []record.Packet{r.packet(1900*ms, us), r.packet(2500*ms, us), r.packet(3100*ms, us)}
	if got := r.Judge.Judge(packets, r.all()); got.Forbidden != 2 {
		t.Errorf("%d forbidden, want both of one packet", got.Forbidden)
	}
}

func TestPacketsOfOtherScenariosAreNotJudged(t *testing.T) {
	r := newRig(0)
	p := r.packet(time.Second, us)
	if got := r.Judge.Judge([]record.Packet{p}, Span{p.Seen + 1, p.Seen + 2}); got.Delays != 0 || got.Coverage() != 1 {
		t.Errorf("%+v", got)
	}
}
