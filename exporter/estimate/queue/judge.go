package queue

import (
	"fmt"
	"slices"
	"time"
)

const (
	// scarce is a loss that no load has caused, and carried the share of the load that
	// must arrive then for the link to have carried it.
	scarce  = 0.002
	carried = 0.995
	// policed is the loss from which on a policer is looked for.
	policed = 0.01
	// standing is how many packets a queue holds that is one.
	standing = 3
)

func (f *facts) loss() float64 {
	if f.sent == 0 {
		return 0
	}
	return float64(f.lost) / float64(f.sent)
}

// packets is the time that the link takes for n packets.
func (r *run) packets(f *facts, n float64) time.Duration {
	return duration(n * float64(r.bytes) / f.drain)
}

// noise is by how much a delay may differ in the part without a queue.
func (r *run) noise(f *facts) time.Duration {
	return r.jitter() + r.idle.early + r.drift(r.ahead+f.to)
}

// judge tells what the load met. part, which is the whole at first, becomes that of the facts
// that count.
func (r *run) judge(whole, part *facts) (State, string) {
	delayed := r.delayed(whole)
	switch grows, growth := r.growing(whole); {
	case whole.lost == 0 && !grows, whole.loss() < scarce && whole.rate > carried*whole.offered:
		return NotFilled, fmt.Sprintf("the link carried %s, all that was offered; %.2f %% lost", bits(whole.rate), 100*whole.loss())
	case grows:
		return NotFilled, fmt.Sprintf("the queue was still growing at the end, by %v a second; %.2f %% lost", short(growth), 100*whole.loss())
	case !delayed && !r.regular(whole):
		return NotFilled, fmt.Sprintf("%.2f %% lost without a queue, and at random: not the load's doing", 100*whole.loss())
	case !delayed:
		// Before the first loss there were tokens.
		span := whole.part
		span.from = whole.full
		*part = r.look(span)
	}
	s := r.steady(part.part, part.rate)
	if s.changed {
		*part = r.settled(s, whole)
		return RateChanged, fmt.Sprintf("the rate changed from %s to %s after %v", bits(s.before), bits(s.after), s.when.Round(100*time.Millisecond))
	}
	if s.deviation > uneven {
		return RateChanged, fmt.Sprintf("the rate varied by %.0f %% (standard deviation) all the time", 100*s.deviation)
	}
	if !delayed {
		return Policer, fmt.Sprintf("%.1f %% lost evenly, and no packet waited longer than %v: no queue of %d packets",
			100*part.loss(), short(at(part.excess, 0.95)), standing)
	}
	if peak, high := r.peak(whole), at(whole.excess, 0.97); peak > high+high/4+r.width(whole, s.deviation) {
		return AQM, fmt.Sprintf("delays had been up to %v above the empty path's, and were kept below %v", short(peak), short(high))
	}
	return r.queueOrAQM(whole, s.deviation)
}

// delayed tells whether packets waited in a queue worth the name.
func (r *run) delayed(f *facts) bool {
	return at(f.excess, 0.95) > r.noise(f)+r.packets(f, standing)
}

// full tells whether the part has a queue that drops at its tail.
func (r *run) full(f *facts) bool {
	if f.lost == 0 || len(f.excess) == 0 || !r.delayed(f) {
		return false
	}
	s, _ := r.queueOrAQM(f, 0)
	return s == Filled
}

// settled is what the longest part with one rate says, of packets that met none but it: sent
// after its begin, arrived before its end.
func (r *run) settled(s steadiness, whole *facts) facts {
	p := s.longest
	p.to = min(p.to, whole.to)
	for waited := at(whole.excess, 1); ; {
		f := r.look(part{p.from, max(p.to-waited, p.from)})
		if f.rate > 0 || waited == 0 {
			return f
		}
		waited = 0
	}
}

// queueOrAQM tells a queue that drops at its tail from one that drops earlier.
//
// Of the former all delays are one, but for the jitter and the packets on which the sender's
// phase falls; and whatever was refused met more than whatever was admitted, as far as
// jitter and a rate of the given deviation let that be seen.
func (r *run) queueOrAQM(f *facts, deviation float64) (State, string) {
	low, high := at(f.excess, 0.03), at(f.excess, 0.97)
	if high-low > r.width(f, deviation) {
		return AQM, fmt.Sprintf("delays went from %v to %v above the empty path's while packets were dropped: not at the queue's end", short(low), short(high))
	}
	blur := (seconds(r.noise(f)) + deviation*seconds(high)) * f.drain
	if r.overlap(f) > 0.5 && blur < float64(r.bytes)/2 {
		return AQM, "packets were dropped where others had been admitted"
	}
	return Filled, fmt.Sprintf("%.1f %% lost, and delays between %v and %v above the empty path's: dropped at the queue's end", 100*f.loss(), short(low), short(high))
}

// width is by how much the delays of a full queue may differ: the noise, the sender's pace,
// and four standard deviations of the rate, with 2 % for what bins do not show.
func (r *run) width(f *facts, deviation float64) time.Duration {
	high := seconds(at(f.excess, 0.97))
	return r.noise(f) + duration(f.slack/f.drain+(0.02+4*deviation)*high)
}

// peak is what delays were above the empty path's before the part, but for the highest tenth.
func (r *run) peak(f *facts) time.Duration {
	var before []time.Duration
	for i := range r.load {
		p := &r.load[i]
		if d, ok := r.delay(p); ok && r.elapsed(p.Sent) < f.from {
			before = append(before, d-r.base())
		}
	}
	slices.Sort(before)
	return at(before, 0.9)
}

// overlap is the share of the refused that met less than the fullest that was admitted.
func (r *run) overlap(f *facts) float64 {
	if len(f.refused) == 0 {
		return 0
	}
	admitted, n := seconds(at(f.excess, 0.9))*f.drain-0.1*float64(r.bytes), 0
	for n < len(f.refused) && f.refused[n] < admitted {
		n++
	}
	return float64(n) / float64(len(f.refused))
}

// growing tells whether in the last third of the part the queue grew by most of what was
// offered beyond the link's rate, and by how much a second.
func (r *run) growing(f *facts) (bool, time.Duration) {
	surplus := f.offered/f.rate - 1
	third := f.length() / 3
	if third <= 0 || surplus <= 0 {
		return false, 0
	}
	early, late := r.middle(part{f.to - third, f.to - 5*third/6}), r.middle(part{f.to - third/6, f.to})
	growth := seconds(late-early) / (seconds(third) * 5 / 6)
	// Where nothing is lost the delay grows by offered/rate - 1 a second; and by as much
	// less as is lost. An overflowing queue does not grow at all.
	return growth > surplus/2 && late-early > r.noise(f)+r.packets(f, standing), duration(growth)
}

// middle is the median delay of a part.
func (r *run) middle(w part) time.Duration {
	var all []time.Duration
	for i := range r.load {
		p := &r.load[i]
		if d, ok := r.delay(p); ok && w.holds(r.elapsed(p.Sent)) {
			all = append(all, d)
		}
	}
	slices.Sort(all)
	return at(all, 0.5)
}

// regular tells whether losses are spread more evenly than chance would: their number in
// blocks of equal length, from the first on, varies by less than a quarter of the binomial variance.
func (r *run) regular(f *facts) bool {
	if f.loss() < policed {
		return false
	}
	blocks := min(20, f.lost/3)
	if blocks < 12 {
		return f.loss() > 5*policed
	}
	counts := make([]float64, blocks)
	length := f.to - f.full + 1
	for i := range r.load {
		p := &r.load[i]
		if t := r.elapsed(p.Sent); p.Arrived == 0 && t >= f.full && t <= f.to {
			counts[int64(t-f.full)*int64(blocks)/int64(length)]++
		}
	}
	mean, deviation := sumsOf(counts).moments(0, blocks)
	return deviation*deviation < mean*(1-f.loss())/4
}

// short is a time for people.
func short(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }

// bits is a rate in words.
func bits(bytesPerSecond float64) string {
	switch b := 8 * bytesPerSecond; {
	case b >= 1e9:
		return fmt.Sprintf("%.3g Gb/s", b/1e9)
	case b >= 1e6:
		return fmt.Sprintf("%.3g Mb/s", b/1e6)
	default:
		return fmt.Sprintf("%.3g kb/s", b/1e3)
	}
}
