package loadserver

import (
	"fmt"
	"sync"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/traffic"
)

// rates has the buckets of each token in each direction, over all its sessions. Without it many short
// transfers could exceed the rate.
type rates struct {
	mu      sync.Mutex
	buckets map[[2]string]bucket // by token and direction
}

// bucket is a token bucket at a time, which may be in the future: the end of a transfer.
type bucket struct {
	level float64
	at    time.Time
}

// consume takes from the bucket of a token and a direction; an unknown one is full. err is that of
// consume, and again the time after which it would succeed; 0: never. settle corrects the bucket for a
// transfer that ends early, by the bytes that it has sent.
func (r *rates) consume(of [2]string, rate float64, duration time.Duration, consume traffic.Consume, now time.Time) (settle func(bytes int64, now time.Time), again time.Duration, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, depth := r.buckets[of], loadcontrol.Limits{BytesPerSecond: rate}.BurstBytes()
	// While the previous transfer lasts, the level is below that at its end.
	level := min(depth, last.level+now.Sub(last.at).Seconds()*rate)
	left, err := consume(traffic.Bucket{Level: level, Depth: depth, Rate: rate})
	if err == nil {
		own := bucket{left, now.Add(duration)}
		r.buckets[of] = own
		return func(bytes int64, end time.Time) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if end.Before(own.at) && r.buckets[of] == own {
				r.buckets[of] = bucket{min(depth, level+end.Sub(now).Seconds()*rate-float64(bytes)), end}
			}
		}, 0, nil
	}
	if _, never := consume(traffic.Bucket{Level: depth, Depth: depth, Rate: rate}); never != nil {
		return nil, 0, err
	}
	return nil, max(time.Second, time.Duration((depth-level)/rate*float64(time.Second))), err
}

// ConsumeRate implements traffic.Host.
func (s *session) ConsumeRate(d sample.Direction, duration time.Duration, consume traffic.Consume) *loadcontrol.Refusal {
	limits, refusal := s.Limits()
	if refusal != nil || limits.BytesPerSecond <= 0 {
		return refusal
	}
	waits := false
	settle, again, err := s.r.rates.consume([2]string{s.token.Name, d.String()}, limits.BytesPerSecond, duration, func(b traffic.Bucket) (left float64, err error) {
		left, err = consume(b)
		waits = left < 0
		return left, err
	}, time.Now())
	if err != nil {
		return &loadcontrol.Refusal{Reason: loadcontrol.RateLimit, Detail: err.Error(), RetryAfter: again}
	}
	if told := s.token.Limits.BytesPerSecond; waits && (told == 0 || limits.BytesPerSecond < told) {
		// The client would take the limit for the path's.
		return &loadcontrol.Refusal{Reason: loadcontrol.RateLimit, Detail: fmt.Sprintf("the token's rate was lowered to %s during the session, which would slow down TCP: run the test again", unit.BytesPerSecond.Format(limits.BytesPerSecond))}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle[d] = settle
	return nil
}
