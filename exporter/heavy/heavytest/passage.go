package heavytest

import (
	"time"

	"oneway.example/exporter/instant"
)

// passage is a Link while packets pass it, in the order of time.
type passage struct {
	*Link
	free   instant.Time // when it has sent all that waits
	level  float64      // octets in the bucket, as of filled
	filled instant.Time
}

func (l *Link) open(begin instant.Time) *passage {
	return &passage{Link: l, free: begin, level: l.Burst, filled: begin}
}

// pass is when a packet that came at an instant leaves; false: it was dropped.
func (p *passage) pass(at instant.Time, size int) (leaves instant.Time, ok bool) {
	if p.Rate == 0 {
		return at, true
	}
	leaves = max(at, p.free)
	octets, speed := float64(size), p.Rate
	if p.Burst > 0 {
		speed = p.Peak
		p.fill(leaves)
		if lacks := octets - p.level; lacks > 0 {
			leaves = leaves.Add(seconds(lacks / p.Rate))
		}
	}
	if waiting := leaves.Sub(at).Seconds() * p.Rate; waiting > 0 && waiting+octets > float64(p.Queue)+0.5 {
		return 0, false
	}
	if p.Burst > 0 {
		p.fill(leaves)
		p.level -= octets
	}
	p.free = leaves.Add(seconds(octets / speed))
	return leaves, true
}

func (p *passage) fill(now instant.Time) {
	p.level = min(p.Burst, p.level+now.Sub(p.filled).Seconds()*p.Rate)
	p.filled = now
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
