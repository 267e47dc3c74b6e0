package clock

import (
	"context"
	"time"

	"oneway.example/exporter/bound"
	"oneway.example/exporter/instant"
)

// Widen is m as the far end of a path tells of it: with by added to its bound, for what this
// host's stamps are off that the sender cannot know (an interface's interrupt moderation).
// The Error Estimate is one of the stamp, not of the clock alone (RFC 4656 section 4.1.2).
// Zero adds nothing; Run is that of m.
func Widen(m Monitor, by time.Duration) Monitor {
	if by == 0 {
		return m
	}
	return widened{m, by}
}

type widened struct {
	of Monitor
	by time.Duration
}

func (w widened) Quality(at instant.Time) Quality {
	q := w.of.Quality(at)
	if q.Synchronised() {
		q.Bound = bound.Claim(bound.Sum(q.Bound.Error, w.by))
	}
	return q
}

func (w widened) Run(ctx context.Context) error { return w.of.Run(ctx) }
