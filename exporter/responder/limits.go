package responder

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/alecthomas/units"

	"oneway.example/exporter/control"
	"oneway.example/exporter/stream"
)

// ParseLimits reads limits as they stand in a tokens file: rate=20Mbit (bits a second of
// UDP payload), duration=5m, sessions=2, per-day=10GB, each at most once. What is not
// there has no limit.
func ParseLimits(words []string) (l control.Limits, err error) {
	seen := map[string]bool{}
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		if seen[key] {
			return l, fmt.Errorf("%s is given twice", key)
		}
		seen[key] = true
		switch key {
		case "rate":
			l.BytesPerSecond, err = parseRate(value)
		case "duration":
			l.Duration, err = parseDuration(value)
		case "sessions":
			l.Sessions, err = parseCount(value)
		case "per-day":
			l.BytesPerDay, err = parseBytes(value)
		default:
			err = fmt.Errorf("%q is no limit; there are rate, duration, sessions and per-day", word)
		}
		if err != nil {
			return control.Limits{}, err
		}
	}
	return l, nil
}

// formatLimits writes what ParseLimits reads.
func formatLimits(l control.Limits) (words []string) {
	if l.BytesPerSecond > 0 {
		words = append(words, "rate="+formatRate(l.BytesPerSecond))
	}
	if l.Duration > 0 {
		words = append(words, "duration="+l.Duration.String())
	}
	if l.Sessions > 0 {
		words = append(words, "sessions="+strconv.Itoa(l.Sessions))
	}
	if l.BytesPerDay > 0 {
		words = append(words, "per-day="+formatBytes(l.BytesPerDay))
	}
	return words
}

// rateUnits are in bits a second, the longest names first.
var rateUnits = []struct {
	name string
	bits float64
}{{"Gbit", 1e9}, {"Mbit", 1e6}, {"kbit", 1e3}, {"bit", 1}}

// maxRate is 1 Tb/s: more is a slip of the pen.
const maxRate = 1e12

func parseRate(text string) (bytesPerSecond float64, err error) {
	for _, u := range rateUnits {
		number, found := strings.CutSuffix(text, u.name)
		if !found {
			continue
		}
		n, err := strconv.ParseFloat(number, 64)
		if err != nil || !(n > 0) || n*u.bits > maxRate {
			break
		}
		return n * u.bits / 8, nil
	}
	return 0, fmt.Errorf("rate is %q; it must be bits a second above 0, such as 500kbit, 20Mbit or 1Gbit", text)
}

func formatRate(bytesPerSecond float64) string {
	bits := bytesPerSecond * 8
	for _, u := range rateUnits {
		if bits >= u.bits {
			return strconv.FormatFloat(bits/u.bits, 'g', 10, 64) + u.name
		}
	}
	return strconv.FormatFloat(bits, 'g', 10, 64) + "bit"
}

func parseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Second || d > stream.MaxDuration {
		return 0, fmt.Errorf("duration is %q; it must be between 1s and %v, such as 30s or 5m", text, stream.MaxDuration)
	}
	return d, nil
}

func parseCount(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxMaxSessions {
		return 0, fmt.Errorf("sessions is %q; it must be between 1 and %d", text, maxMaxSessions)
	}
	return n, nil
}

func parseBytes(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		n, err = units.ParseStrictBytes(text)
	}
	if err != nil || n < 1 {
		return 0, fmt.Errorf("per-day is %q; it must be an amount of data above 0, such as 500MB or 10GB", text)
	}
	return n, nil
}

// formatBytes uses a unit where that loses nothing.
func formatBytes(n int64) string {
	for _, u := range []struct {
		name  string
		bytes int64
	}{{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}} {
		if n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// burstSeconds and minBurstBytes are how far a plan may run ahead of the token's rate:
// the trains of a capacity test leave at the link's own rate, and only then does the rate
// hold for the mean.
const (
	burstSeconds  = 0.1
	minBurstBytes = 256 << 10
)

// roundingShare is what intervals in whole nanoseconds may add to a rate that is the limit.
const roundingShare = 0.001

// errTooFast is why a plan breaks a rate.
var errTooFast = errors.New("faster than the token allows")

// depthOf is how many octets may leave at once with a rate.
func depthOf(rate float64) float64 { return max(minBurstBytes, rate*burstSeconds) }

// checkRate holds a plan to a rate in octets of payload a second: each segment that is
// paced in its mean, and the whole as a bucket of depthOf(rate) octets, which holds level
// at the beginning and is filled at that rate. It returns what is in it at the end.
func checkRate(p stream.Plan, rate, level float64) (after float64, err error) {
	depth := depthOf(rate)
	rate *= 1 + roundingShare
	for i, s := range p.Segments {
		burst := float64(s.Burst) * float64(s.PayloadBytes)
		gain := rate * s.Interval.Seconds()
		if s.Bursts > 1 && s.Interval > 0 && burst > gain {
			return 0, fmt.Errorf("%w: segment %d sends %s, the limit is %s of UDP payload", errTooFast, i, formatRate(burst/s.Interval.Seconds()), formatRate(rate/(1+roundingShare)))
		}
		level = min(depth, level+rate*s.Pause.Seconds())
		// Where the bucket loses, it is lowest after the last burst; where it gains, after the first.
		lowest := level - burst - math.Max(0, burst-gain)*float64(s.Bursts-1)
		if lowest < 0 {
			return 0, fmt.Errorf("%w: segment %d sends %.0f octets at once, or too soon after others; just then it may be %.0f, and %.0f at the most", errTooFast, i, level-lowest, level, depth)
		}
		level = min(depth, level+(gain-burst)*float64(s.Bursts))
	}
	return level, nil
}

// rates remembers how much each token has sent lately, in each direction, over all its
// sessions: or many short transfers would be faster than a long one may be.
type rates struct {
	mu      sync.Mutex
	buckets map[string]bucket
}

// bucket is what may leave at once, as of a time that may be to come: the end of a plan.
type bucket struct {
	level float64
	at    time.Time
}

// spend takes a plan that begins now out of the bucket of a name, if it fits. Otherwise
// the error says why, and again when it would; 0: never.
func (r *rates) spend(name string, p stream.Plan, rate float64, now time.Time) (again time.Duration, err error) {
	if rate <= 0 {
		return 0, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	depth := depthOf(rate)
	level := depth
	if b, known := r.buckets[name]; known {
		level = min(depth, b.level+max(0, now.Sub(b.at).Seconds())*rate)
	}
	after, err := checkRate(p, rate, level)
	if err == nil {
		if r.buckets == nil {
			r.buckets = map[string]bucket{}
		}
		r.buckets[name] = bucket{after, now.Add(p.Duration())}
		return 0, nil
	}
	if _, never := checkRate(p, rate, depth); never != nil {
		return 0, err
	}
	full := max(0, r.buckets[name].at.Sub(now)) + time.Duration((depth-level)/rate*float64(time.Second))
	return max(time.Second, full), err
}
