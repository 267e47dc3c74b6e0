package saturate

import (
	"slices"
	"time"

	"oneway.example/exporter/heavy"
)

// grid is the bounds of equal parts of a time; what is left is a part of its own if it is at
// least half of one.
func grid(length, width time.Duration) (bounds []time.Duration) {
	for at := time.Duration(0); at+width/2 <= length; at += width {
		bounds = append(bounds, at)
	}
	return append(bounds, length)
}

// stepsOf are the parts of a transfer between bounds, which count from its first packet:
// what was due and sent in each, what became of that, and at which rate anything came.
func stepsOf(t *heavy.Transfer, a *arrivals, bounds []time.Duration) []Step {
	steps := make([]Step, len(bounds)-1)
	for i := range steps {
		steps[i].Duration = bounds[i+1] - bounds[i]
		steps[i].Received = a.rate(bounds[i], bounds[i+1])
		steps[i].Variation = -1
	}
	for i := range t.Packets {
		p := &t.Packets[i]
		if s := within(steps, bounds, p.Due.Sub(t.Packets[0].Due)); s != nil {
			s.Offered += float64(p.IPBytes)
			s.Counts.Planned++
		}
		if !p.Sent.Present() {
			continue
		}
		s := within(steps, bounds, p.Sent.At.Sub(a.begin))
		if s == nil {
			continue
		}
		s.Sent += float64(p.IPBytes)
		s.Counts.Sent++
		if p.Copies == 0 {
			s.Counts.Lost++
			continue
		}
		s.Counts.Arrived++
		s.Counts.Duplicated += int(p.Copies) - 1
		if p.Reordered {
			s.Counts.Reordered++
		}
		if p.Arrived.Present() {
			s.Variation = max(s.Variation, a.waited(p))
		}
	}
	ours := ratio(t.HostDropped(), t.Counts.Lost) // of the lost: the receiving host has dropped them
	for i := range steps {
		steps[i].conclude(ours)
	}
	return steps
}

// within is the step in which a time is; nil: in none.
func within(steps []Step, bounds []time.Duration, at time.Duration) *Step {
	i, exact := slices.BinarySearch(bounds, at)
	if !exact {
		i--
	}
	if i < 0 || i >= len(steps) {
		return nil
	}
	return &steps[i]
}

// conclude makes rates and shares of sums; ours is the share of the lost that is no loss of
// the path.
func (s *Step) conclude(ours float64) {
	if s.Offered > 0 {
		s.Shortfall = max(0, 1-s.Sent/s.Offered)
	}
	s.Offered /= s.Duration.Seconds()
	s.Sent /= s.Duration.Seconds()
	dropped := ours * float64(s.Counts.Lost)
	if of := float64(s.Counts.Sent) - dropped; of > 0 {
		s.Loss = (float64(s.Counts.Lost) - dropped) / of
	}
	if !told(s.Counts.Lost, s.Counts.Sent) {
		s.Variation = -1
	}
}
