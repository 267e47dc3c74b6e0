package loadserver

import (
	"sync"
	"time"

	"oneway.example/exporter/loadcontrol"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/traffic"
)

// burstSeconds and minBurstBytes are how far traffic may run ahead of its token's rate: the
// trains of a capacity test leave at the link's own rate, and only then does the rate hold for
// the mean.
const burstSeconds, minBurstBytes = 0.1, 256 << 10

// rates remembers how much each token has moved lately, in each direction, over all its
// sessions: or many short transfers would be faster than a long one may be.
type rates struct {
	mu      sync.Mutex
	buckets map[[2]string]bucket // by token and direction
}

// bucket is what may be moved at once, as of a time that may be to come: the end of a transfer.
type bucket struct {
	level float64
	at    time.Time
}

// spend draws from the bucket of a token and a direction; one that is not known is full. An error is
// that of draw, and again says when it would have none; 0: never. settle is for a transfer that ends before
// its time: what counts then is what it has moved until now.
func (r *rates) spend(of [2]string, rate float64, lasts time.Duration, draw traffic.Draw, now time.Time) (settle func(bytes int64, now time.Time), again time.Duration, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, depth := r.buckets[of], max(minBurstBytes, rate*burstSeconds)
	// Less than at the end of what was drawn last, while that lasts.
	level := min(depth, last.level+now.Sub(last.at).Seconds()*rate)
	left, err := draw(traffic.Bucket{Level: level, Depth: depth, Rate: rate})
	if err == nil {
		own := bucket{left, now.Add(lasts)}
		r.buckets[of] = own
		return func(bytes int64, end time.Time) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if end.Before(own.at) && r.buckets[of] == own {
				r.buckets[of] = bucket{min(depth, level+end.Sub(now).Seconds()*rate-float64(bytes)), end}
			}
		}, 0, nil
	}
	if _, never := draw(traffic.Bucket{Level: depth, Depth: depth, Rate: rate}); never != nil {
		return nil, 0, err
	}
	return nil, max(time.Second, time.Duration((depth-level)/rate*float64(time.Second))), err
}

// Spend is traffic.Host's.
func (s *session) Spend(d sample.Direction, lasts time.Duration, draw traffic.Draw) *loadcontrol.Refusal {
	limits, refusal := s.Limits()
	if refusal != nil || limits.BytesPerSecond <= 0 {
		return refusal
	}
	settle, again, err := s.r.rates.spend([2]string{s.token.Name, d.String()}, limits.BytesPerSecond, lasts, draw, time.Now())
	if err != nil {
		return &loadcontrol.Refusal{Reason: loadcontrol.RateLimit, Detail: err.Error(), RetryAfter: again}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle[d] = settle
	return nil
}
