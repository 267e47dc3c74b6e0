package clocksim

import (
	"math"
	"math/rand/v2"
	"time"
)

// steering is chronyd's correction of an offset by the kernel: another frequency for a planned time, after which it
// plans again.
type steering struct {
	clock  *Clock
	random *rand.Rand
	base   float64 // estimated frequency error of the clock without correction; positive: fast
	left   float64 // remaining offset at the start of the slew
	speed  float64 // offset x time of the intended correction
	slewed float64 // frequency of the slew
	start  float64 // start of the slew, by the clock
	end    time.Duration
}

// correction is the value to add to the clock for chronyd's best estimate.
func (s *steering) correction(at time.Duration) float64 {
	return s.slewed*(s.clock.seconds(at)-s.start) - s.left
}

// steer sets a new frequency and an additional offset, and returns the resulting uncertainty of earlier samples.
func (s *steering) steer(at time.Duration, frequency, offset, speed float64) float64 {
	s.base += frequency * (1 - s.base)
	s.base = min(maxFrequency, max(-maxFrequency, s.base))
	uncertain := s.replan(at)
	s.left += offset
	s.speed = speed
	return uncertain + s.replan(at)
}

// replan ends the slew and starts another.
func (s *steering) replan(at time.Duration) float64 {
	now := s.clock.seconds(at)
	s.left -= s.slewed * (now - s.start)
	s.start = now
	frequency, seconds := 0.0, maxSlewSeconds
	if math.Abs(s.left) >= leastOffset {
		seconds = max(minSlewSeconds, s.speed/math.Abs(s.left))
		frequency = min(maxSlew, max(-maxSlew, s.left/seconds))
	}
	total := min(maxFrequency, max(-maxFrequency, s.base+frequency*(1-s.base)))
	s.clock.slow(at, total)
	before := s.slewed
	s.slewed = (total - s.base) / (1 - total)
	if s.left*s.slewed > 0 {
		seconds = min(maxSlewSeconds, max(minSlewSeconds, s.left/s.slewed))
	}
	late := time.Duration(s.random.ExpFloat64() * float64(200*time.Microsecond))
	s.end = at + time.Duration(seconds/(1-total)*1e9) + late // the timer uses the slewed clock
	if uncertain := math.Abs(before-s.slewed) * frequencyLag; uncertain >= leastOffset {
		return uncertain
	}
	return 0
}
