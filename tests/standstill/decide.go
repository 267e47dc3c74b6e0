package standstill

import (
	"fmt"
	"strings"
	"testing"

	"oneway.example/exporter/core/instant"
	"oneway.example/tests/precision"
)

// Words begin the reason of a test that cannot tell. tests/results reports a test that skips with them as such: it runs it once
// more, alone, and counts it apart from those that passed.
const Words = "cannot tell: this host stood still"

// Rounds is the number of rounds after which a test cannot tell.
const Rounds = 6

// CannotTell ends a test that this host has kept from a decision. On a machine that is declared quiet that is a failure.
func CannotTell(t testing.TB, still Standstills, undecided ...string) {
	t.Helper()
	text := fmt.Sprintf("%s %v\n%s", Words, still, strings.Join(undecided, "\n"))
	if precision.Asserted() {
		t.Fatal(text)
	}
	t.Skip(text)
}

// Decide runs rounds until one decides: it passes, or fails though this host never stood still. A round that failed
// while the host stood still is repeated; after Rounds of them the test cannot tell. What is true however busy the
// host is belongs to t itself, not to the round.
func Decide(t testing.TB, w *Watch, round func(r precision.TB)) {
	t.Helper()
	for n := 1; ; n++ {
		begin, r := instant.Now(), &result{TB: t}
		round(r)
		if len(r.failures) == 0 {
			return
		}
		still := w.FoundFrom(begin)
		if still.Spans == 0 {
			for _, f := range r.failures {
				t.Error(f)
			}
			return
		}
		if n == Rounds {
			CannotTell(t, still, r.failures...)
		}
		t.Logf("round %d: %s %v; once more: %s", n, Words, still, strings.Join(r.failures, "; "))
	}
}

// Judge judges measurements of known times that a test does not repeat.
type Judge struct {
	t         testing.TB
	watch     *Watch
	undecided []string
	still     Standstills
}

// Judging returns a judge.
func Judging(t testing.TB, w *Watch) *Judge { return &Judge{t: t, watch: w} }

// Measurement returns the judge of a measurement of a time. Its failures fail the test, except if this host stood still in that time: then
// the judge keeps them for Conclude.
func (j *Judge) Measurement(begin, end instant.Time) precision.TB {
	still := j.watch.Found(begin, end)
	if still.Spans == 0 {
		return j.t
	}
	j.still = still
	return &undecided{j.t, j}
}

// Conclude ends the test with what its judge cannot tell, if anything.
func (j *Judge) Conclude() {
	j.t.Helper()
	if len(j.undecided) > 0 {
		CannotTell(j.t, j.still, j.undecided...)
	}
}

// undecided is the judge of a measurement during which this host stood still.
type undecided struct {
	precision.TB
	judge *Judge
}

func (u *undecided) Errorf(format string, args ...any) {
	u.judge.undecided = append(u.judge.undecided, fmt.Sprintf(format, args...))
}

// result keeps the failures of a round.
type result struct {
	precision.TB
	failures []string
}

func (r *result) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}
