package reflector

import "time"

// limit is a rate: one event each interval, and burst of them at once. The zero
// value allows everything.
//
// It is the generic cell rate algorithm (ITU-T I.371 annex A) in place of a
// token count: the whole state of a source is one time, and nothing is rounded.
type limit struct {
	interval  time.Duration
	tolerance time.Duration
}

func newLimit(perSecond, burst int) limit {
	if perSecond <= 0 {
		return limit{}
	}
	interval := max(1, time.Second/time.Duration(perSecond))
	return limit{interval: interval, tolerance: interval * time.Duration(max(burst, 1)-1)}
}

// of is the limit of a source for the packets of a session, or of none: if it has shown that its
// address is no spoofed one, or is authenticated, as much again may come at once, so that what
// others send from its address cannot use up its rate.
func (l limit) of(s *session) limit {
	if s != nil && (s.tier == proven || s.key.auth == 1) {
		l.tolerance += l.tolerance + l.interval
	}
	return l
}

// bucket is when the next event would be due if they all came evenly spaced.
type bucket time.Duration

// open reports whether an event at now is within the limit, without taking it.
func (b *bucket) open(l limit, now time.Duration) bool {
	return time.Duration(*b)-now <= l.tolerance
}

// take takes one event at now, if it is within the limit.
func (b *bucket) take(l limit, now time.Duration) bool {
	if l.interval == 0 {
		return true
	}
	if !b.open(l, now) {
		return false
	}
	*b = bucket(max(time.Duration(*b), now) + l.interval)
	return true
}
