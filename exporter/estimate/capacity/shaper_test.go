package capacity

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/tests/testseed"
)

// shaped are trains that a token bucket of a rate and a size has shaped, a time apart, after a line of 1 Gb/s. Stamps
// have an error of up to 2 us, and each packet a delay of up to jitter.
func shaped(rng *rand.Rand, rate, bucket float64, packets, size int, apart, jitter time.Duration) (all []Train) {
	const line = 125e6
	tokens, at := bucket, 0.0
	for i := range 10 {
		sent := float64(i) * apart.Seconds()
		t := Train{IPBytes: size}
		tokens = min(bucket, tokens+max(0, sent-at)*rate)
		at = max(at, sent)
		for j := range packets {
			arrives := sent + float64(j+1)*float64(size)/line
			if arrives > at {
				tokens, at = min(bucket, tokens+(arrives-at)*rate), arrives
			}
			if tokens < float64(size) {
				at += (float64(size) - tokens) / rate
				tokens = float64(size)
			}
			tokens -= float64(size)
			late := rng.Float64() * (2e-6 + jitter.Seconds())
			arrived := instant.Time(1e18).Add(time.Duration((at + 0.03 + late) * 1e9))
			if j > 0 {
				arrived = max(arrived, t.Packets[j-1].Arrived)
			}
			t.Packets = append(t.Packets, Packet{Sent: instant.Time(1e18).Add(time.Duration((sent + float64(j)*5e-6) * 1e9)), Arrived: arrived})
		}
		all = append(all, t)
	}
	return all
}

// The rate and the size of each token bucket that trains empty are within their bounds. Of 40 buckets none may miss: the
// interval of ten trains encloses all of their errors.
func TestShaperIsWithinItsBounds(t *testing.T) {
	rng := rand.New(rand.NewPCG(testseed.Of(t), 1))
	for _, rate := range []float64{1e6 / 8, 4e6 / 8, 20e6 / 8, 100e6 / 8} {
		for _, c := range []struct {
			packets int
			bucket  float64
		}{{25, 3_100}, {25, 5_000}, {25, 15_000}, {25, 22_000}, {200, 60_000}, {200, 150_000}} {
			for _, jitter := range []time.Duration{0, 50 * time.Microsecond} {
				apart := time.Duration(float64(c.packets*1500)/rate*2e9) + 200*time.Millisecond
				s := FindShaper(shaped(rng, rate, c.bucket, c.packets, 1500, apart, jitter), Options{})
				if !s.RateOK || !s.BurstOK {
					if jitter == 0 {
						t.Errorf("%.0f b/s, %.0f B: %+v", 8*rate, c.bucket, s)
					}
					continue
				}
				if math.Abs(s.Rate-rate) > s.RateBound || math.Abs(s.Burst-c.bucket) > s.BurstBound {
					t.Errorf("%.0f b/s, %.0f B, jitter %v: %+v", 8*rate, c.bucket, jitter, s)
				}
				if jitter == 0 && (s.RateBound > 0.02*rate || s.BurstBound > 0.02*c.bucket+500) {
					t.Errorf("%.0f b/s, %.0f B: the bounds of %+v are wide", 8*rate, c.bucket, s)
				}
			}
		}
	}
}

// Trains that follow each other before the bucket is full again show its rate, and not its size.
func TestBucketThatNoPauseFillsHasNoSize(t *testing.T) {
	rng := rand.New(rand.NewPCG(testseed.Of(t), 2))
	const rate, bucket = 4e6 / 8, 150_000
	s := FindShaper(shaped(rng, rate, bucket, 200, 1500, 580*time.Millisecond, 0), Options{})
	if !s.RateOK || math.Abs(s.Rate-rate) > s.RateBound || s.BurstOK {
		t.Errorf("%+v", s)
	}
}

// Trains that agree neither in their rate nor in their burst are of no token bucket: a link's rate changes from train to train.
func TestTrainsThatDisagreeHaveNoShaper(t *testing.T) {
	rng := rand.New(rand.NewPCG(testseed.Of(t), 4))
	mixed := func(rates, buckets [2]float64) (all []Train) {
		first, second := shaped(rng, rates[0], buckets[0], 25, 1500, time.Second, 0), shaped(rng, rates[1], buckets[1], 25, 1500, time.Second, 0)
		for i := range first {
			all = append(all, [2][]Train{first, second}[i%2][i])
		}
		return all
	}
	for _, c := range []struct {
		rates, buckets [2]float64
		rate, burst    bool
	}{
		{[2]float64{5e5, 5e5}, [2]float64{5_000, 5_000}, true, true},
		{[2]float64{5e5, 5.1e5}, [2]float64{15_000, 15_000}, true, true},
		{[2]float64{5e5, 2.5e5}, [2]float64{5_000, 5_000}, false, false},
		{[2]float64{5e5, 7e5}, [2]float64{15_000, 5_000}, false, false},
		{[2]float64{5e5, 5e5}, [2]float64{5_000, 15_000}, true, false},
	} {
		if s := FindShaper(mixed(c.rates, c.buckets), Options{}); s.RateOK != c.rate || s.BurstOK != c.burst {
			t.Errorf("%v B/s, %v B: %+v", c.rates, c.buckets, s)
		}
	}
}

// Without a bucket, or with one that no train empties, there is no shaper.
func TestLinkWithoutABucketHasNoShaper(t *testing.T) {
	rng := rand.New(rand.NewPCG(testseed.Of(t), 3))
	for _, bucket := range []float64{1500, 1e9} {
		if s := FindShaper(shaped(rng, 4e6/8, bucket, 25, 1500, time.Second, 0), Options{}); s.RateOK {
			t.Errorf("%.0f: %+v", bucket, s)
		}
	}
	if s := FindShaper(nil, Options{}); s != (Shaper{}) {
		t.Errorf("no trains: %+v", s)
	}
}
