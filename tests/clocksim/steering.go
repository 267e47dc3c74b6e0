package clocksim

import (
	"math"
	"math/rand/v2"
	"time"
)

// steering is how chronyd makes the kernel correct an offset: by another frequency
// for a planned time, after which the plan is made anew.
type steering struct {
	clock  *Clock
	random *rand.Rand
	base   float64 // frequency of the clock left alone, as estimated; positive: fast
	left   float64 // offset to be corrected, of when the slew began
	speed  float64 // offset x time in which chronyd would like to correct it
	slewed float64 // frequency by which the slew corrects
	start  float64 // of the slew, on the clock
	end    time.Duration
}

// correction is what has to be added to the clock to have chronyd's best estimate.
func (s *steering) correction(at time.Duration) float64 {
	return s.slewed*(s.clock.seconds(at)-s.start) - s.left
}

// steer takes in a new frequency and a further offset, and returns by how much that
// makes the past less certain.
func (s *steering) steer(at time.Duration, frequency, offset, speed float64) float64 {
	s.base += frequency * (1 - s.base)
	s.base = min(maxFrequency, max(-maxFrequency, s.base))
	uncertain := s.replan(at)
	s.left += offset
	s.speed = speed
	return uncertain + s.replan(at)
}

// replan ends the slew and begins another.
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
	s.end = at + time.Duration(seconds/(1-total)*1e9) + late // the timer is of the clock that is slewed
	if uncertain := math.Abs(before-s.slewed) * frequencyLag; uncertain >= leastOffset {
		return uncertain
	}
	return 0
}
