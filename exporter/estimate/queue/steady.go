package queue

import (
	"math"
	"time"
)

// part is a part of the load, in the sender's time since its begin.
type part struct{ from, to time.Duration }

func (p part) length() time.Duration { return p.to - p.from }

func (p part) holds(t time.Duration) bool { return t >= p.from && t <= p.to }

// window is the load without its first and last part (the thesis left out 5 s).
func (r *run) window() part {
	if len(r.load) == 0 {
		return part{}
	}
	end := r.elapsed(r.load[len(r.load)-1].Sent)
	skip := min(r.o.Skip, end/4)
	return part{skip, end - skip}
}

const (
	// fewest bins that a rate is believed to have lasted.
	fewest = 4
	// shortest bin, and how many packets it has at the least.
	shortest = 500 * time.Millisecond
	perBin   = 30
	// unequal is by what two rates differ that are not one rate, as a ratio; uneven is
	// the standard deviation above which a rate is not one.
	unequal = 0.05
	uneven  = 0.08
)

// steadiness is how the rate went in a part.
type steadiness struct {
	// longest is the longest part in which the rate was one, as arrivals, the
	// smallest delay taken off.
	longest part
	// changed: there are others. before and after are the rates at the largest change,
	// when it was.
	changed       bool
	before, after float64
	when          time.Duration
	// deviation is that of the longest part's bins, as a ratio.
	deviation float64
}

// steady looks for changes of the rate at which packets arrive, by splitting the part
// where the means on both sides differ most, and the sides again.
func (r *run) steady(w part, rate float64) steadiness {
	s := steadiness{longest: w}
	if rate <= 0 {
		return s
	}
	width := max(shortest, duration(perBin*float64(r.bytes)/rate))
	n := int(w.length() / width)
	if n < 2*fewest {
		return s
	}
	width = w.length() / time.Duration(n)
	rates := r.arrivals(w, width, n)
	tolerance := unequal + 2*seconds(r.jitter())/(fewest*seconds(width))
	from, to := s.split(rates, 0, n, tolerance)
	s.when = w.from + s.when*width
	if s.changed {
		// The changes lie somewhere in the bins beside them.
		from, to = min(from+1, n), max(to-1, 0)
	}
	if to > from {
		mean, deviation := moments(rates[from:to])
		s.deviation = max(deviation/mean-2*seconds(r.jitter())/seconds(width), 0)
	}
	s.longest = part{w.from + time.Duration(from)*width, w.from + time.Duration(max(to, from))*width}
	return s
}

// split returns the longest steady part of rates[from:to]. when is a bin's number here.
func (s *steadiness) split(rates []float64, from, to int, tolerance float64) (longFrom, longTo int) {
	mean, _ := moments(rates[from:to])
	best, k := 0.0, -1
	var left, right float64
	for i := from + fewest; i+fewest <= to; i++ {
		a, sa := moments(rates[from:i])
		b, sb := moments(rates[i:to])
		na, nb := float64(i-from), float64(to-i)
		within := math.Sqrt((na*sa*sa + nb*sb*sb) / (na + nb - 2))
		difference := math.Abs(a - b)
		if difference < tolerance*mean || difference < 4*within*math.Sqrt(1/na+1/nb) {
			continue
		}
		if score := difference * math.Sqrt(na*nb); score > best {
			best, k, left, right = score, i, a, b
		}
	}
	if k < 0 {
		return from, to
	}
	if !s.changed || math.Abs(right-left) > math.Abs(s.after-s.before) {
		s.changed, s.before, s.after, s.when = true, left, right, time.Duration(k)
	}
	f1, t1 := s.split(rates, from, k, tolerance)
	f2, t2 := s.split(rates, k, to, tolerance)
	if t1-f1 >= t2-f2 {
		return f1, t1
	}
	return f2, t2
}

func moments(v []float64) (mean, deviation float64) {
	n := float64(len(v))
	for _, x := range v {
		mean += x / n
	}
	for _, x := range v {
		deviation += (x - mean) * (x - mean) / n
	}
	return mean, math.Sqrt(deviation)
}

// arrivals is the rate of arrival in n bins. A packet counts evenly over the time since the
// one before it, so that a bin is not off by a packet.
func (r *run) arrivals(w part, width time.Duration, n int) []float64 {
	bins := make([]float64, n)
	add := func(from, to time.Duration, bytes float64) {
		for at := from; at < to; {
			k := int(at / width)
			end := min(time.Duration(k+1)*width, to)
			if k >= n {
				return
			}
			bins[k] += bytes * float64(end-at) / float64(to-from)
			at = end
		}
	}
	last, began := time.Duration(0), false
	for i := range r.load {
		p := &r.load[i]
		if p.Arrived == 0 {
			continue
		}
		t := r.arrived(p) - w.from
		switch {
		case began && t > last && last >= 0:
			add(last, t, float64(p.IPBytes))
		case began && t > 0 && t > last:
			// The part that lies within.
			add(0, t, float64(p.IPBytes)*float64(t)/float64(t-last))
		case t >= 0 && int(t/width) < n:
			bins[t/width] += float64(p.IPBytes)
		}
		if !began || t > last {
			last, began = t, true
		}
	}
	for k := range bins {
		bins[k] /= seconds(width)
	}
	return bins
}
