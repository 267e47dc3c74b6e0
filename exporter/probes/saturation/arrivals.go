package saturation

import (
	"cmp"
	"slices"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/load/traffictypes/udptraffic"
	"oneway.example/exporter/probe/report"
)

// arrivals are the received packets of a transfer in order of arrival. Bytes are counted up to an instant, so that
// one very late packet does not reduce the rate of the time before it.
type arrivals struct {
	at    []instant.Time
	bytes []float64 // IP bytes until then, without those of the first
	// origin is when the first packet sent would have arrived with the smallest delay of all, by the receiver's
	// clock; zero if none arrived.
	origin instant.Time
	// begin is when that packet was sent, by the sender's clock.
	begin instant.Time
}

func arrivalsOf(t *udptraffic.Transfer) (a arrivals) {
	type one struct {
		at    instant.Time
		bytes float64
	}
	var all []one
	for i := range t.Packets {
		p := &t.Packets[i]
		if !p.Sent.Present() {
			continue
		}
		if a.begin == 0 {
			a.begin = p.Sent.At
		}
		if p.Copies == 0 || !p.Arrived.Present() {
			continue
		}
		all = append(all, one{p.Arrived.At, float64(p.IPBytes)})
		if would := p.Arrived.At.Add(-p.Sent.At.Sub(a.begin)); a.origin == 0 || would < a.origin {
			a.origin = would
		}
	}
	slices.SortFunc(all, func(x, y one) int { return cmp.Compare(x.at, y.at) })
	sum := 0.0
	for i, p := range all {
		if i > 0 { // n packets of one size have n-1 intervals
			sum += p.bytes
		}
		a.at, a.bytes = append(a.at, p.at), append(a.bytes, sum)
	}
	return a
}

// until is the bytes received until an instant, interpolated between packets.
func (a *arrivals) until(at instant.Time) float64 {
	i, _ := slices.BinarySearch(a.at, at+1)
	switch {
	case i == 0:
		return 0
	case i == len(a.at) || a.at[i-1] == at:
		return a.bytes[i-1]
	}
	part := float64(at.Sub(a.at[i-1])) / float64(a.at[i].Sub(a.at[i-1]))
	return a.bytes[i-1] + part*(a.bytes[i]-a.bytes[i-1])
}

// rate is the receive rate of a part of the time, in IP bytes a second; from and to are relative to origin.
func (a *arrivals) rate(from, to time.Duration) float64 {
	if to <= from {
		return 0
	}
	return (a.until(a.origin.Add(to)) - a.until(a.origin.Add(from))) / (to - from).Seconds()
}

// waited is a packet's delay above the smallest of all.
func (a *arrivals) waited(p *udptraffic.Packet) time.Duration {
	return p.Arrived.At.Sub(a.origin) - p.Sent.At.Sub(a.begin)
}

// grid returns the bounds of equal parts of a time; the rest is a part if it is at least half of one.
func grid(length, width time.Duration) (bounds []time.Duration) {
	for at := time.Duration(0); at+width/2 <= length; at += width {
		bounds = append(bounds, at)
	}
	return append(bounds, length)
}

// stepsOf are the parts of a transfer between bounds, relative to its first packet: the packets due and sent in
// each, their outcome, and the receive rate.
func stepsOf(t *udptraffic.Transfer, a *arrivals, bounds []time.Duration) []Step {
	steps := make([]Step, len(bounds)-1)
	for i := range steps {
		steps[i].Duration = report.Seconds(bounds[i+1] - bounds[i])
		steps[i].Received = a.rate(bounds[i], bounds[i+1])
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
			if s.Variation == nil {
				s.Variation = new(report.Seconds)
			}
			*s.Variation = max(*s.Variation, report.Seconds(a.waited(p)))
		}
	}
	ours := float64(t.HostDropped()) / float64(max(1, t.Counts.Lost)) // share of the lost packets that the receiving host dropped
	for i := range steps {
		steps[i].conclude(ours)
	}
	return steps
}

// within returns the step that contains a time; nil: none.
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

// conclude computes rates and shares from sums; ours is the share of the lost packets that the path did not lose.
func (s *Step) conclude(ours float64) {
	if s.Offered > 0 {
		s.Underrun = max(0, 1-s.Sent/s.Offered)
	}
	s.Offered /= s.Duration.Seconds()
	s.Sent /= s.Duration.Seconds()
	dropped := ours * float64(s.Counts.Lost)
	if of := float64(s.Counts.Sent) - dropped; of > 0 {
		s.Loss = (float64(s.Counts.Lost) - dropped) / of
	}
	if !representative(s.Counts.Lost, s.Counts.Sent) {
		s.Variation = nil
	}
}
