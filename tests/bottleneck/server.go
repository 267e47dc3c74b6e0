package bottleneck

import (
	"time"

	"oneway.example/exporter/core/instant"
)

// server is a transmitter.
type server interface {
	// begin is when it can start to transmit a packet that waits at t.
	begin(t instant.Time, size int) instant.Time
	// serve transmits a packet from at on, which begin returned, and returns its departure time.
	serve(at instant.Time, size int) instant.Time
	// police returns false if a packet is to be dropped because there are no tokens.
	police(t instant.Time, size int) bool
}

func (c Config) server() server {
	switch {
	case len(c.Trace) > 0:
		return &opportunities{trace: c.Trace, each: Opportunity}
	case c.Slot > 0:
		return &opportunities{slot: c.Slot, each: max(1, int(c.Rate*int64(c.Slot)/8e9))}
	case c.Bucket > 0:
		return &bucket{rate: c.Rate, peak: c.Peak, depth: float64(c.Bucket), tokens: float64(c.Bucket), drops: c.Police}
	}
	return &wire{rate: c.Rate}
}

// always is the policing of a server that is not a policer: none.
type always struct{}

func (always) police(instant.Time, int) bool { return true }

// wire has a constant rate. A packet leaves when its transmission starts: the transmission time of a single packet is
// part of the path's delay. At rate 0 transmission takes no time.
type wire struct {
	always
	rate int64
	free instant.Time
}

func (w *wire) begin(t instant.Time, _ int) instant.Time { return max(t, w.free) }

func (w *wire) serve(at instant.Time, size int) instant.Time {
	if w.rate == 0 {
		return at
	}
	w.free = at + instant.Time(int64(size)*8e9/w.rate)
	return at
}

// opportunities are times at which some bytes may leave. A packet leaves with its last byte, and the next one starts
// with the rest of that opportunity. Unused opportunities are lost.
type opportunities struct {
	always
	trace []uint32
	slot  time.Duration
	each  int
	// at is the current opportunity, n its number, left the bytes left of it.
	at      instant.Time
	n       int
	left    int
	started bool
	zero    instant.Time
}

// moment is the time of opportunity n.
func (o *opportunities) moment(n int) instant.Time {
	if o.slot > 0 {
		return o.zero.Add(time.Duration(n) * o.slot)
	}
	period, last := n/len(o.trace), o.trace[len(o.trace)-1]
	return o.zero.Add(time.Duration(period)*time.Duration(last)*time.Millisecond + time.Duration(o.trace[n%len(o.trace)])*time.Millisecond)
}

func (o *opportunities) begin(t instant.Time, _ int) instant.Time {
	if !o.started {
		o.started, o.zero, o.n = true, t, -1
		o.at = t - 1
	}
	if o.left > 0 && t <= o.at {
		return o.at
	}
	for o.moment(o.n+1) < t {
		o.n++
		o.left = 0
	}
	return o.moment(o.n + 1)
}

func (o *opportunities) serve(at instant.Time, size int) instant.Time {
	if at != o.at || o.left == 0 {
		o.next()
	}
	for size > o.left {
		size -= o.left
		o.next()
	}
	o.left -= size
	return o.at
}

func (o *opportunities) next() {
	o.n++
	o.at, o.left = o.moment(o.n), o.each
}

// bucket is a token bucket: tokens come at rate, up to depth.
type bucket struct {
	rate, peak    int64
	depth, tokens float64
	drops         bool
	filled, free  instant.Time
}

func (b *bucket) fill(t instant.Time) {
	if b.filled != 0 && t > b.filled {
		b.tokens = min(b.depth, b.tokens+t.Sub(b.filled).Seconds()*float64(b.rate)/8)
	}
	b.filled = max(b.filled, t)
}

func (b *bucket) police(t instant.Time, size int) bool {
	if !b.drops {
		return true
	}
	b.fill(t)
	if b.tokens < float64(size) {
		return false
	}
	b.tokens -= float64(size)
	return true
}

func (b *bucket) begin(t instant.Time, size int) instant.Time {
	t = max(t, b.free)
	if b.drops {
		return t
	}
	b.fill(t)
	missing := min(float64(size), b.depth) - b.tokens
	if missing <= 1e-6 {
		return t
	}
	return t.Add(time.Duration(missing*8e9/float64(b.rate)) + 1)
}

func (b *bucket) serve(at instant.Time, size int) instant.Time {
	if !b.drops {
		b.fill(at)
		b.tokens -= float64(size)
	}
	if b.peak > 0 {
		b.free = at + instant.Time(int64(size)*8e9/b.peak)
	}
	return at
}
