package queue

import (
	"math"
	"math/rand/v2"
	"time"

	"oneway.example/exporter/core/instant"
)

// simulation is a simulated link and the packets sent over it. The link is that of tests/lab: a packet that would
// make the backlog exceed queue is dropped, departure(n) = max(entry, departure(n-1) + 8 size(n-1)/rate), then
// loss, delay and a jitter that never reorders.
type simulation struct {
	rate   float64 // bits a second
	queue  int
	delay  time.Duration
	jitter time.Duration
	loss   float64
	// rateAt replaces rate, if set.
	rateAt func(t time.Duration) float64
	// admit and dequeue drop packets in addition to the tail drop.
	admit   func(t time.Duration, waiting int, rng *rand.Rand) bool
	dequeue func(t, sojourn time.Duration, waiting int) bool
	// noQueue leaves the link out; only admit applies.
	noQueue bool

	size         int
	offered      float64 // bits a second
	burst        int
	idle         int           // packets
	every        time.Duration // between them
	length       time.Duration
	stalls       []time.Duration  // 50 ms each
	pause        [2]time.Duration // in which the sender sends nothing
	late         time.Duration    // mean lateness of the sender
	holds        float64          // share of packets held up to 3 ms after their timestamp
	randomStalls bool             // the path pauses for some 10 ms every second
	offset       time.Duration
	drift        float64
}

// profile is a saturated link of tests/lab/profiles.
func profile(rate, offered float64, queue int, delay, jitter time.Duration) simulation {
	return simulation{
		rate: rate, queue: queue, delay: delay, jitter: jitter, offered: offered,
		size: 1410, burst: 1, idle: 50, every: max(40*time.Millisecond, duration(2*8*1410/rate)), length: 30 * time.Second, late: 20 * time.Microsecond,
	}
}

const epoch = instant.Time(1_700_000_000_000_000_000)

type queued struct {
	i     int
	entry time.Duration
}

// link carries packets by their entry times.
type link struct {
	simulation
	rng     *rand.Rand
	packets []Packet
	fifo    []queued
	bytes   int
	free    time.Duration
	last    time.Duration // exit of the previous packet
	stall   time.Duration // the next one
}

func (w simulation) simulate(seed uint64) []Packet {
	rng := rand.New(rand.NewPCG(seed, 5))
	l := &link{simulation: w, rng: rng}
	for i, t := range w.schedule(rng) {
		p := Packet{Sent: epoch.Add(t), IPBytes: w.size, TXUncertainty: 10 * time.Microsecond}
		if i >= w.idle {
			p.Segment = 1
		}
		if rng.Float64() < w.holds {
			h := time.Duration(rng.Int64N(int64(3 * time.Millisecond)))
			p.Sent, p.TXUncertainty = p.Sent.Add(-h), h+h/4
		}
		l.packets = append(l.packets, p)
		l.enter(i, t)
	}
	l.drain(1 << 62)
	return l.packets
}

// schedule is the actual send times.
func (w simulation) schedule(rng *rand.Rand) (at []time.Duration) {
	for i := range w.idle {
		at = append(at, time.Duration(i)*w.every)
	}
	begin := time.Duration(w.idle) * w.every
	interval := duration(float64(w.size*w.burst) * 8 / w.offered)
	before := begin
	for due := time.Duration(0); due < w.length; due += interval {
		if due >= w.pause[0] && due < w.pause[1] {
			continue
		}
		t := due + time.Duration(rng.ExpFloat64()*float64(w.late))
		for _, s := range w.stalls {
			if t >= s && t < s+50*time.Millisecond {
				t = s + 50*time.Millisecond
			}
		}
		for range w.burst {
			before = max(before+2*time.Microsecond, begin+t)
			at = append(at, before)
		}
	}
	return at
}

func (l *link) rateNow(t time.Duration) float64 {
	if l.rateAt != nil {
		return l.rateAt(t - time.Duration(l.idle)*l.every)
	}
	return l.rate
}

func (l *link) enter(i int, t time.Duration) {
	l.drain(t)
	if l.admit != nil && !l.admit(t, l.bytes, l.rng) {
		return
	}
	switch {
	case l.noQueue:
		l.exit(i, t)
	case len(l.fifo) == 0 && l.free <= t:
		l.transmit(i, t)
	case l.bytes+l.size <= l.queue:
		l.fifo = append(l.fifo, queued{i, t})
		l.bytes += l.size
	}
}

// drain sends the packets due until t.
func (l *link) drain(t time.Duration) {
	for len(l.fifo) > 0 && l.free <= t {
		q := l.fifo[0]
		l.fifo = l.fifo[1:]
		l.bytes -= l.size
		if l.dequeue == nil || l.dequeue(l.free, l.free-q.entry, l.bytes) {
			l.transmit(q.i, l.free)
		}
	}
}

func (l *link) transmit(i int, departure time.Duration) {
	l.free = departure + duration(float64(l.size)*8/l.rateNow(departure))
	l.exit(i, departure)
}

func (l *link) exit(i int, departure time.Duration) {
	if l.rng.Float64() < l.loss {
		return
	}
	t := departure + l.delay
	if l.jitter > 0 {
		t += time.Duration(l.rng.Int64N(int64(l.jitter)))
	}
	for l.randomStalls && t > l.stall {
		l.last = max(l.last, l.stall+time.Duration(l.rng.ExpFloat64()*1e7))
		l.stall += time.Duration(l.rng.ExpFloat64() * 1e9)
	}
	t = max(t, l.last)
	l.last = t
	l.packets[i].Arrived = epoch.Add(t + l.offset + duration(l.drift*seconds(t)))
}

// bucket is a policer: packets without a token are dropped.
func bucket(rate float64, burst int, size int) func(time.Duration, int, *rand.Rand) bool {
	tokens, last := float64(burst), time.Duration(0)
	return func(t time.Duration, _ int, _ *rand.Rand) bool {
		tokens = min(tokens+seconds(t-last)*rate/8, float64(burst))
		last = t
		if tokens < float64(size) {
			return false
		}
		tokens -= float64(size)
		return true
	}
}

// red is random early detection (Floyd and Jacobson 1993), gentle, in bytes.
func red(low, high float64) func(time.Duration, int, *rand.Rand) bool {
	average := 0.0
	return func(_ time.Duration, waiting int, rng *rand.Rand) bool {
		average += 0.01 * (float64(waiting) - average)
		p := 0.0
		switch {
		case average > 2*high:
			p = 1
		case average > high:
			p = 0.1 + 0.9*(average-high)/high
		case average > low:
			p = 0.1 * (average - low) / (high - low)
		}
		return rng.Float64() >= p
	}
}

// codel is RFC 8289 with its defaults.
func codel(size int) func(t, sojourn time.Duration, waiting int) bool {
	const target, interval = 5 * time.Millisecond, 100 * time.Millisecond
	var above, next time.Duration
	var count, lastCount int
	dropping := false
	return func(t, sojourn time.Duration, waiting int) bool {
		ok := false
		if sojourn < target || waiting <= size {
			above = 0
		} else if above == 0 {
			above = t + interval
		} else {
			ok = t >= above
		}
		if dropping {
			if !ok {
				dropping = false
				return true
			}
			if t >= next {
				count++
				next += duration(seconds(interval) / math.Sqrt(float64(count)))
				return false
			}
			return true
		}
		if ok && (t-next < interval || t-above >= interval) {
			dropping = true
			if t-next < interval && count-lastCount > 1 {
				count -= lastCount
			} else {
				count = 1
			}
			lastCount = count
			next = t + duration(seconds(interval)/math.Sqrt(float64(count)))
			return false
		}
		return true
	}
}

// pie is RFC 8033 with its defaults, at a link of that rate, without marks.
func pie(rate float64, size int) func(time.Duration, int, *rand.Rand) bool {
	const target, update, allowance = 15e-3, 15 * time.Millisecond, 150 * time.Millisecond
	var next, burst time.Duration = 0, allowance
	p, before := 0.0, 0.0
	return func(t time.Duration, waiting int, rng *rand.Rand) bool {
		for ; t >= next; next += update {
			now := float64(waiting) * 8 / rate
			change := 0.125*(now-target) + 1.25*(now-before)
			for limit, by := 0.1, 2.0; p < limit && limit > 1e-7; limit, by = limit/10, 4 {
				change /= by
			}
			p, before = min(max(p+min(change, 0.02), 0), 1), now
			burst = max(burst-update, 0)
		}
		return burst > 0 || before < target/2 && p < 0.2 || waiting <= 2*size || rng.Float64() >= p
	}
}
