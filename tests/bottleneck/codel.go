package bottleneck

import (
	"math"
	"slices"
	"time"

	"oneway.example/exporter/core/instant"
)

// The defaults of RFC 8289 section 4 and RFC 8290 section 5.2.
const (
	target   = 5 * time.Millisecond
	interval = 100 * time.Millisecond
	quantum  = 1514
	mtu      = 1514
	// mostPackets is the default limit of fq_codel.
	mostPackets = 10240
)

// codel is the state of RFC 8289 section 5.
type codel struct {
	aboveUntil instant.Time // zero: not above the target
	next       instant.Time
	count      int
	lastCount  int
	dropping   bool
}

// dequeue returns the packet to transmit, and drops packets before it by the control law.
func (c *codel) dequeue(q *list, at instant.Time, drop func(entry)) (entry, bool) {
	e, ok, above := c.take(q, at)
	if !ok {
		c.dropping = false
		return e, false
	}
	if c.dropping {
		if !above {
			c.dropping = false
		}
		for c.dropping && at >= c.next {
			drop(e)
			c.count++
			if e, ok, above = c.take(q, at); !ok || !above {
				c.dropping = false
				return e, ok
			}
			c.next = c.law(c.next)
		}
		return e, true
	}
	if !above {
		return e, true
	}
	drop(e)
	e, ok, _ = c.take(q, at)
	c.dropping = true
	delta := c.count - c.lastCount
	c.count = 1
	if delta > 1 && at.Sub(c.next) < 16*interval {
		c.count = delta
	}
	c.next = c.law(at)
	c.lastCount = c.count
	return e, ok
}

func (c *codel) law(t instant.Time) instant.Time {
	return t.Add(time.Duration(float64(interval) / math.Sqrt(float64(c.count))))
}

// take is dodequeue of section 5.4: above reports whether the sojourn time was above the target for an interval.
func (c *codel) take(q *list, at instant.Time) (e entry, ok, above bool) {
	if q.len() == 0 {
		c.aboveUntil = 0
		return e, false, false
	}
	e = q.pop()
	switch {
	case at.Sub(e.Entry) < target || q.bytes <= mtu:
		c.aboveUntil = 0
	case c.aboveUntil == 0:
		c.aboveUntil = at.Add(interval)
	default:
		above = at >= c.aboveUntil
	}
	return e, true, above
}

// managed is one queue under CoDel, with the limits of a tail-drop queue.
type managed struct {
	list
	codel
	stage *stage
}

func (m *managed) byteCount() int { return m.bytes }

func (m *managed) head() (int, bool) { return m.peek() }

func (m *managed) enqueue(e entry) {
	if m.stage.full(&m.list, e.Size) {
		m.stage.drop(e, e.Entry, Refused)
		return
	}
	m.push(e)
}

func (m *managed) dequeue(at instant.Time) (entry, bool) {
	return m.codel.dequeue(&m.list, at, func(e entry) { m.stage.drop(e, at, Managed) })
}

// flow is a queue of fq_codel.
type flow struct {
	list
	codel
	deficit int
}

// fair is RFC 8290, with a queue for each flow.
type fair struct {
	stage         *stage
	flows         map[uint32]*flow
	fresh, served []*flow
	bytes, count  int
}

func (f *fair) byteCount() int { return f.bytes }

func (f *fair) head() (int, bool) {
	for _, l := range [][]*flow{f.fresh, f.served} {
		for _, w := range l {
			if size, ok := w.peek(); ok {
				return size, true
			}
		}
	}
	return 0, false
}

func (f *fair) enqueue(e entry) {
	w := f.flows[e.Flow]
	if w == nil {
		w = &flow{}
		f.flows[e.Flow] = w
	}
	if w.len() == 0 && !f.listed(w) {
		w.deficit = quantum
		f.fresh = append(f.fresh, w)
	}
	w.push(e)
	f.bytes, f.count = f.bytes+e.Size, f.count+1
	limit := f.stage.config.QueuePackets
	if limit == 0 {
		limit = mostPackets
	}
	for f.count > limit || f.stage.config.Queue > 0 && f.bytes > f.stage.config.Queue {
		fat := w
		for _, o := range f.flows {
			if o.bytes > fat.bytes {
				fat = o
			}
		}
		f.remove(fat.pop(), e.Entry, Evicted)
	}
}

func (f *fair) listed(w *flow) bool {
	return slices.Contains(f.fresh, w) || slices.Contains(f.served, w)
}

func (f *fair) remove(e entry, at instant.Time, outcome Outcome) {
	f.bytes, f.count = f.bytes-e.Size, f.count-1
	f.stage.drop(e, at, outcome)
}

func (f *fair) dequeue(at instant.Time) (entry, bool) {
	for {
		from := &f.fresh
		if len(*from) == 0 {
			from = &f.served
		}
		if len(*from) == 0 {
			return entry{}, false
		}
		w := (*from)[0]
		if w.deficit <= 0 {
			w.deficit += quantum
			*from = (*from)[1:]
			f.served = append(f.served, w)
			continue
		}
		e, ok := w.dequeue(&w.list, at, func(e entry) { f.remove(e, at, Managed) })
		if !ok {
			fresh := from == &f.fresh
			*from = (*from)[1:]
			if fresh {
				f.served = append(f.served, w)
			}
			continue
		}
		w.deficit -= e.Size
		f.bytes, f.count = f.bytes-e.Size, f.count-1
		return e, true
	}
}
