package vmlab

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"oneway.example/tests/vmlab/record"
	"oneway.example/tests/vmlab/truth"
)

// Scenario is a disturbance of the clocks, and the expected result.
type Scenario struct {
	Name string
	// States must occur on the local clock (of the remote one, if Remote) in this order;
	// others may be between. The last one must be the last.
	States []string
	Remote bool
	// Coarse: its bounds are far above the effects of a busy host, so that
	// other programs may run beside it.
	Coarse bool
	// Reason, if set, must be the reason of some invalid delays.
	Reason string
	// NoneValid: no delay may be valid from the first action to the last.
	NoneValid bool
	// Metric must become true, as Met checks.
	Metric string
	Met    func(local, remote *Values) bool
	// Alert is the rule in deploy/prometheus/rules that must fire; empty: none.
	Alert string
	// MostBound is the limit of the median bound in the steady state; zero: 100 us.
	MostBound time.Duration
	// Do causes the disturbance.
	Do func(r *Run) error
	// Mend restores the state that the next scenario assumes. Its delays are judged,
	// too; nil: no action.
	Mend func(r *Run) error
	// After checks further results; nil: none.
	After func(j *Judgment) error
}

// Run is a scenario under way.
type Run struct {
	*Lab
	// Forbidden are spans in which no delay may be valid.
	Forbidden []Span
	// Stood are spans in which the machine stood still; nil: not measured.
	Stood []Span
	// Missed: see Result.
	Missed []string
}

// Result is the result of a scenario.
type Result struct {
	Scenario Scenario
	Seen     []string
	Judgment *Judgment
	// Faults are violations of truth.
	Faults []string
	// Missed are limits of precision for a quiet machine that were not reached.
	Missed []string
	Took   time.Duration
	// Span is its time.
	Span Span
	// Repeated: the scenario was run again, because this run missed a limit.
	Repeated bool
	// Flaky: this run has faults, and the scenario had none when it was run once more, after all others.
	Flaky bool
}

// Values are the metrics of a host over a scenario.
type Values struct {
	first, last, min, max map[string]float64
}

// newValues has the values of all at the start of the span and their changes in it.
func newValues(all []record.Metrics, in Span) *Values {
	v := &Values{map[string]float64{}, map[string]float64{}, map[string]float64{}, map[string]float64{}}
	for _, m := range all {
		if m.Counter >= in.To {
			break
		}
		for name, value := range m.Values {
			if value == nil {
				delete(v.last, name)
				continue
			}
			v.last[name] = *value
			if m.Counter < in.From {
				v.first[name] = *value
				continue
			}
			if old, ok := v.min[name]; !ok || *value < old {
				v.min[name] = *value
			}
			if old, ok := v.max[name]; !ok || *value > old {
				v.max[name] = *value
			}
		}
	}
	return v
}

// Grew tells by how much a counter grew; name is name{label values}.
func (v *Values) Grew(name string) float64 { return v.last[name] - v.first[name] }

// Reached tells whether a gauge was set to value while the scenario ran.
func (v *Values) Reached(name string, value float64) bool {
	return v.max[name] == value && v.has(v.max, name) || v.min[name] == value && v.has(v.min, name)
}

// Appeared tells whether a series of a family was set whose label values contain
// this.
func (v *Values) Appeared(family, values string) bool { return among(v.max, family, values) }

// Has tells whether there is one in the end.
func (v *Values) Has(family, values string) bool { return among(v.last, family, values) }

func among(m map[string]float64, family, values string) bool {
	for name := range m {
		if rest, ok := strings.CutPrefix(name, family+"{"); ok && strings.Contains(rest, values) {
			return true
		}
	}
	return false
}

func (*Values) has(m map[string]float64, name string) bool { _, ok := m[name]; return ok }

// Until waits until the host's agent says of its clock what is wanted.
func (h *Host) Until(limit time.Duration, what string, want func(s record.State) bool) error {
	deadline := time.Now().Add(limit)
	from := truth.Counter()
	var last record.State
	for time.Now().Before(deadline) {
		states, err := h.states.get()
		if err != nil {
			return err
		}
		if n := len(states); n > 0 {
			if last = states[n-1]; last.Counter >= from && want(last) {
				return nil
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("%s: %w %s within %v; the last state: %+v", h.Name, errNot, what, limit, last)
}

var errNot = errors.New("not")

// In is the condition that the clock is in this state.
func In(state string) func(record.State) bool {
	return func(s record.State) bool { return s.State == state }
}

// settledBound is a bound at which a clock is as good as it gets.
const settledBound = 60 * time.Microsecond

// Settle waits until both clocks are synchronized, which they must be within the limit, and
// until they are as good as they get, which takes a quiet machine.
func (r *Run) Settle(limit, bound time.Duration) error {
	if err := r.Both(func(h *Host) error { return h.Until(limit, "synchronized", In("synchronized")) }); err != nil {
		return err
	}
	err := r.Both(func(h *Host) error {
		return h.Until(limit, "settled", func(s record.State) bool { return s.State == "synchronized" && s.Bound < bound })
	})
	if errors.Is(err, errNot) {
		r.Missed = append(r.Missed, err.Error())
		return nil
	}
	return err
}

// Perform runs a scenario.
func (l *Lab) Perform(s Scenario) (*Result, error) {
	begin := time.Now()
	r := &Run{Lab: l}
	span := Span{From: truth.Counter()}
	err := s.Do(r)
	if s.NoneValid {
		r.Forbidden = append(r.Forbidden, Span{span.From, truth.Counter()})
	}
	if s.Mend != nil && err == nil {
		err = s.Mend(r)
	}
	if e := l.Both(func(h *Host) error { _, err := h.Do(record.Command{Do: record.Flush}); return err }); e != nil {
		return nil, errors.Join(err, e)
	}
	time.Sleep(logDelay)
	span.To = truth.Counter()
	result := &Result{Scenario: s, Span: span, Missed: r.Missed}
	if err != nil {
		result.fault("%v", err)
	}
	if err := result.judge(r, span); err != nil {
		return nil, err
	}
	result.Took = time.Since(begin)
	return result, nil
}

// logDelay is how long what happened may take to be in the guests' logs: a packet
// is concluded with the third reply after it.
const logDelay = 300 * time.Millisecond

func (r *Result) fault(format string, args ...any) {
	r.Faults = append(r.Faults, fmt.Sprintf(format, args...))
}

// judge holds what the guests have logged of the span against the scenario.
func (r *Result) judge(run *Run, span Span) error {
	local, err := run.Local.Track(run.Line)
	if err != nil {
		return err
	}
	remote, err := run.Remote.Track(run.Line)
	if err != nil {
		return err
	}
	packets, err := run.Local.packets.get()
	if err != nil {
		return err
	}
	j := Judge{Line: run.Line, Local: local, Remote: remote, Forbidden: run.Forbidden, Stood: run.Stood}
	r.Judgment = j.Judge(packets, span)
	host := run.Local
	if r.Scenario.Remote {
		host = run.Remote
	}
	states, err := host.states.get()
	if err != nil {
		return err
	}
	r.Seen = sequence(states, span)
	localMetrics, err := run.Local.metrics.get()
	if err != nil {
		return err
	}
	remoteMetrics, err := run.Remote.metrics.get()
	if err != nil {
		return err
	}
	if seen, err := conserved(localMetrics, span); err != nil {
		r.fault("%v", err)
	} else if seen == 0 {
		r.fault("no count of packets that were sent, received, lost and outstanding was exported")
	}
	r.check(newValues(localMetrics, span), newValues(remoteMetrics, span))
	return nil
}

// sequence is the state at the start of the span, which may end before it is asked for again, and the
// states that followed in it; empty if there is no state in the span.
func sequence(states []record.State, in Span) (seen []string) {
	first := slices.IndexFunc(states, func(s record.State) bool { return in.holds(s.Counter) })
	if first < 0 {
		return nil
	}
	for _, s := range states[max(0, first-1):] {
		if s.Counter >= in.To {
			break
		}
		if len(seen) == 0 || seen[len(seen)-1] != s.State {
			seen = append(seen, s.State)
		}
	}
	return seen
}

func (r *Result) check(local, remote *Values) {
	s, j := r.Scenario, r.Judgment
	rest := r.Seen
	for _, want := range s.States {
		i := slices.Index(rest, want)
		if i < 0 {
			r.fault("states are %v; want %v", r.Seen, s.States)
			break
		}
		rest = rest[i:]
	}
	if n := len(r.Seen); n == 0 || len(s.States) > 0 && r.Seen[n-1] != s.States[len(s.States)-1] {
		r.fault("the last state of %v is not that of %v", r.Seen, s.States)
	}
	if s.Met != nil && !s.Met(local, remote) {
		r.fault("metric: not %s", s.Metric)
	}
	if s.After != nil {
		if err := s.After(j); err != nil {
			r.fault("%v", err)
		}
	}
	if s.Reason != "" {
		r.checkReason()
	}
	if j.Forbidden > 0 {
		r.fault("%d delays valid that must not be", j.Forbidden)
	}
	if j.Impossible > 0 {
		r.fault("%d delays are below zero by their bound or more: nothing arrives before it was sent", j.Impossible)
	}
	if j.Delays == 0 {
		r.fault("no packet was answered")
	}
}

func (r *Result) checkReason() {
	for reason, n := range r.Judgment.Reasons {
		if reason.String() == r.Scenario.Reason && n > 0 {
			return
		}
	}
	r.fault("no delay was invalid for the reason %s", r.Scenario.Reason)
}
