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
	// mostBins bounds the work, which may grow with the square.
	mostBins = 2000
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
	width := max(shortest, duration(perBin*float64(r.bytes)/rate))
	n := min(int(w.length()/width), mostBins)
	if n < 2*fewest {
		return s
	}
	width = w.length() / time.Duration(n)
	c := changes{sums: sumsOf(r.arrivals(w, width, n))}
	c.tolerance = unequal + 2*seconds(r.jitter())/(fewest*seconds(width))
	from, to := c.split(0, n)
	if c.at > 0 {
		s.changed, s.before, s.after, s.when = true, c.before, c.after, w.from+time.Duration(c.at)*width
		// The changes lie somewhere in the bins beside them.
		from, to = min(from+1, n), max(to-1, 0)
	}
	if to > from {
		mean, deviation := c.sums.moments(from, to)
		s.deviation = max(deviation/mean-2*seconds(r.jitter())/seconds(width), 0)
	}
	s.longest = part{w.from + time.Duration(from)*width, w.from + time.Duration(max(to, from))*width}
	return s
}

// changes are the places where a series of rates has another mean than before.
type changes struct {
	sums      sums
	tolerance float64
	// at is the place of the largest change, zero: there is none.
	at            int
	before, after float64
}

// split returns the longest part from..to with one mean.
func (c *changes) split(from, to int) (longFrom, longTo int) {
	mean, _ := c.sums.moments(from, to)
	best, k := 0.0, -1
	var left, right float64
	for i := from + fewest; i+fewest <= to; i++ {
		a, sa := c.sums.moments(from, i)
		b, sb := c.sums.moments(i, to)
		na, nb := float64(i-from), float64(to-i)
		within := math.Sqrt((na*sa*sa + nb*sb*sb) / (na + nb - 2))
		difference := math.Abs(a - b)
		if difference < c.tolerance*mean || difference < 4*within*math.Sqrt(1/na+1/nb) {
			continue
		}
		if score := difference * math.Sqrt(na*nb); score > best {
			best, k, left, right = score, i, a, b
		}
	}
	if k < 0 {
		return from, to
	}
	if math.Abs(right-left) > math.Abs(c.after-c.before) {
		c.at, c.before, c.after = k, left, right
	}
	f1, t1 := c.split(from, k)
	f2, t2 := c.split(k, to)
	if t1-f1 >= t2-f2 {
		return f1, t1
	}
	return f2, t2
}

// sums are the running sums of a series and of its squares.
type sums struct{ x, xx []float64 }

func sumsOf(v []float64) sums {
	s := sums{make([]float64, len(v)+1), make([]float64, len(v)+1)}
	for i, x := range v {
		s.x[i+1], s.xx[i+1] = s.x[i]+x, s.xx[i]+x*x
	}
	return s
}

// moments are the mean and the standard deviation of from..to.
func (s sums) moments(from, to int) (mean, deviation float64) {
	n := float64(to - from)
	mean = (s.x[to] - s.x[from]) / n
	return mean, math.Sqrt(max((s.xx[to]-s.xx[from])/n-mean*mean, 0))
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
		t, bytes := r.arrived(p)-w.from, float64(p.IPBytes)+r.unsent(i)
		switch {
		case began && t > last && last >= 0:
			add(last, t, bytes)
		case began && t > 0 && t > last:
			// The part that lies within.
			add(0, t, bytes*float64(t)/float64(t-last))
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
