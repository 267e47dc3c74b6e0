package vmlab

import (
	"errors"
	"slices"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/tests/vmlab/record"
	"oneway.example/tests/vmlab/truth"
)

// Span is a time on the counter, from included, to not.
type Span struct{ From, To uint64 }

func (s Span) holds(counter uint64) bool { return counter >= s.From && counter < s.To }

// Judgment has the verified delays of one scenario, of both directions.
type Judgment struct {
	// Delays were reported, Valid of them as valid.
	Delays, Valid int
	// Unjudged are valid delays whose truth is not in the tracks.
	Unjudged int
	// Covered are those of the judged whose interval contains the truth.
	Covered int
	// Forbidden are valid delays that must not be: a clock was stepped while the packet
	// was in transit, or the scenario has no clock to measure with.
	Forbidden int
	// Impossible are valid delays that are below zero by more than their bound.
	Impossible int
	// Bounds, Errors (reported minus true), and True are of the judged.
	Bounds, Errors []time.Duration
	// Values are the delays by direction, True their truth, except for
	// packets in transit while the machine stood still: Stood counts these.
	Values, True [2][]time.Duration
	Stood        [2]int
	// Reasons counts invalid delays by reason.
	Reasons map[sample.Reason]int
	// Worst are the delays that were not covered, some of them.
	Worst []Miss
}

// Miss is a delay whose interval does not contain the truth.
type Miss struct {
	Packet    record.Packet
	Direction sample.Direction
	Delay     sample.Delay
	True      time.Duration
	Blur      time.Duration
}

// Judge compares packets with the truth.
type Judge struct {
	Line          truth.Line
	Local, Remote *truth.Track
	// Forbidden are the spans in which no delay may be valid.
	Forbidden []Span
	// Stood are the spans in which the machine stood still (watchMachine).
	Stood []Span
}

// maxMisses is the number of misses kept of a scenario.
const maxMisses = 20

// Judge judges the packets that were concluded in the span.
func (j *Judge) Judge(packets []record.Packet, in Span) *Judgment {
	r := &Judgment{Reasons: map[sample.Reason]int{}}
	for _, p := range packets {
		if in.holds(p.Seen) {
			j.direction(r, p, sample.Forward, p.Forward)
			j.direction(r, p, sample.Reverse, p.Reverse)
		}
	}
	return r
}

func (j *Judge) direction(r *Judgment, p record.Packet, dir sample.Direction, d sample.Delay) {
	r.Delays++
	if !d.OK() {
		r.Reasons[d.Reason]++
		return
	}
	r.Valid++
	if d.Value+d.Bound <= 0 {
		r.Impossible++
	}
	from, to := j.Local, j.Remote
	sent, received := p.Packet.T1.At, p.Packet.T2.At
	if dir == sample.Reverse {
		from, to = j.Remote, j.Local
		sent, received = p.Packet.T3.At, p.Packet.T4.At
	}
	left, blur1, err1 := from.True(sent, p.Seen)
	arrived, blur2, err2 := to.True(received, p.Seen)
	err := errors.Join(err1, err2)
	if errors.Is(err, truth.ErrStep) || err == nil && j.forbidden(left, arrived) {
		r.Forbidden++
	}
	if err != nil {
		r.Unjudged++
		return
	}
	really := arrived.Sub(left)
	r.Bounds = append(r.Bounds, d.Bound)
	r.Errors = append(r.Errors, d.Value-really)
	if j.within(j.Stood, left, arrived) {
		r.Stood[dir]++
	} else {
		r.True[dir] = append(r.True[dir], really)
		r.Values[dir] = append(r.Values[dir], d.Value)
	}
	if (d.Value - really).Abs() <= d.Bound {
		r.Covered++
	} else if len(r.Worst) < maxMisses {
		r.Worst = append(r.Worst, Miss{p, dir, d, really, blur1 + blur2})
	}
}

// forbidden tells whether one of the clocks was stepped between the two, or
// whether the scenario forbids that time.
func (j *Judge) forbidden(left, arrived instant.Time) bool {
	for _, track := range []*truth.Track{j.Local, j.Remote} {
		for _, at := range track.Steps() {
			if at >= left && at <= arrived {
				return true
			}
		}
	}
	return j.within(j.Forbidden, left, arrived)
}

// within tells whether a packet was on its way in one of the spans.
func (j *Judge) within(spans []Span, left, arrived instant.Time) bool {
	return slices.ContainsFunc(spans, func(s Span) bool {
		return arrived >= j.Line.At(s.From) && left < j.Line.At(s.To)
	})
}

// Judged is the number of delays that were held against the truth.
func (r *Judgment) Judged() int { return r.Valid - r.Unjudged }

// Coverage is the share of the judged delays whose interval holds the truth; 1 of
// none.
func (r *Judgment) Coverage() float64 {
	if r.Judged() == 0 {
		return 1
	}
	return float64(r.Covered) / float64(r.Judged())
}

// quantile is that of a copy; 0 of none.
func quantile(v []time.Duration, q float64) time.Duration {
	if len(v) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(v))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// magnitudes are |v|.
func magnitudes(v []time.Duration) []time.Duration {
	m := make([]time.Duration, len(v))
	for i, d := range v {
		m[i] = d.Abs()
	}
	return m
}
