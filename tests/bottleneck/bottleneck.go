// Package bottleneck is a model of a link's bottleneck: a transmitter with a queue. Packets enter at given times and
// leave with their departure time, or with the reason why they were dropped. The package reads no clock and opens no
// socket, so that the emulated link of tests/lab and simulations use the same model.
//
// Sizes are IP bytes. The packet in transmission is not in the queue.
package bottleneck

import (
	"time"

	"oneway.example/exporter/core/instant"
)

// Packet is an entering packet.
type Packet struct {
	// ID is chosen by the caller.
	ID uint64
	// Flow distinguishes flows, for disciplines that use them.
	Flow uint32
	Size int
	// Entry is when it enters.
	Entry instant.Time
}

// Outcome is what happened to a packet.
type Outcome uint8

// The outcomes.
const (
	// Left: it was transmitted.
	Left Outcome = iota
	// Refused: the queue was full when it entered, or the policer had no tokens.
	Refused
	// Evicted: the queue was full when a later packet entered (drop at the head, fq_codel).
	Evicted
	// Managed: active queue management dropped it (RFC 7567).
	Managed
	// Expired: it waited longer than Config.QueueTime.
	Expired
)

// Out is a packet and its outcome. At is its departure time (Left), or when it was dropped.
type Out struct {
	Packet
	At      instant.Time
	Outcome Outcome
	// Queued is the length of the queue, in bytes of all flows, when it entered, itself not included.
	Queued int
}

// Link is a bottleneck, or two in series. It is not safe for concurrent use.
type Link struct {
	first, second *stage
	between       time.Duration
	others        *others
	emit          func(Out)
	// passed are the packets between both stages, with the departure times of the first.
	passed map[uint64]Out
}

// New returns a link that passes each packet to emit when its outcome is known. The configuration must be valid
// (Config.Check). Random values depend on the seed only.
func New(c Config, seed uint64, emit func(Out)) *Link {
	l := &Link{between: c.Between, emit: emit, passed: make(map[uint64]Out)}
	if c.Others > 0 {
		l.others = newOthers(c.Others, seed)
	}
	if c.Second == nil {
		l.first = newStage(c, seed, l.done)
		return l
	}
	l.second = newStage(*c.Second, seed+1, func(o Out) {
		before := l.passed[o.ID]
		delete(l.passed, o.ID)
		o.Entry, o.Queued = before.Entry, o.Queued+before.Queued
		l.done(o)
	})
	l.first = newStage(c, seed, func(o Out) {
		if o.Outcome != Left {
			l.done(o)
			return
		}
		l.passed[o.ID] = o
		p := o.Packet
		p.Entry = o.At.Add(l.between)
		l.second.enter(p)
	})
	return l
}

func (l *Link) done(o Out) {
	if o.ID < foreign {
		l.emit(o)
	}
}

// Set changes the limits and the rate from now on; the kinds of transmitter and queue stay.
func (l *Link) Set(c Config) {
	l.first.set(c)
	if l.second != nil && c.Second != nil {
		l.second.set(*c.Second)
	}
}

// Enter adds a packet, which must not precede the previous one in time. Its ID is below 1<<63.
func (l *Link) Enter(p Packet) {
	l.foreign(p.Entry)
	l.first.enter(p)
	if l.second != nil {
		l.second.advance(p.Entry)
	}
}

// foreign adds the cross traffic that enters until t.
func (l *Link) foreign(t instant.Time) {
	if l.others != nil {
		for p, ok := l.others.next(t); ok; p, ok = l.others.next(t) {
			l.first.enter(p)
		}
	}
}

// Next is when the next packet starts to leave; false if none waits.
func (l *Link) Next() (instant.Time, bool) {
	at, ok := l.first.next()
	if l.second != nil {
		if second, any := l.second.next(); any && (!ok || second < at) {
			at, ok = second, true
		}
	}
	return at, ok
}

// Advance transmits packets until t.
func (l *Link) Advance(t instant.Time) {
	l.foreign(t)
	l.first.advance(t)
	if l.second != nil {
		l.second.advance(t)
	}
}

// entry is a waiting packet.
type entry struct {
	Packet
	queued int
}

// stage is one transmitter with its queue.
type stage struct {
	config Config
	server server
	queue  discipline
	// now is the time of the last event.
	now  instant.Time
	emit func(Out)
}

func newStage(c Config, seed uint64, emit func(Out)) *stage {
	s := &stage{config: c, emit: emit}
	s.server, s.queue = c.server(), c.discipline(seed, s)
	return s
}

func (s *stage) set(c Config) {
	if w, ok := s.server.(*wire); ok {
		w.rate = c.Rate
	}
	s.config = c
}

func (s *stage) drop(e entry, at instant.Time, f Outcome) { s.emit(Out{e.Packet, at, f, e.queued}) }

func (s *stage) enter(p Packet) {
	s.advance(p.Entry)
	s.now = max(s.now, p.Entry)
	e := entry{p, s.queue.byteCount()}
	if !s.server.police(p.Entry, p.Size) {
		s.drop(e, p.Entry, Refused)
		return
	}
	s.queue.enqueue(e)
	s.advance(p.Entry)
}

func (s *stage) next() (instant.Time, bool) {
	size, ok := s.queue.head()
	if !ok {
		return 0, false
	}
	return s.server.begin(s.now, size), true
}

func (s *stage) advance(t instant.Time) {
	for {
		at, ok := s.next()
		if !ok || at > t {
			return
		}
		s.now = at
		if e, ok := s.queue.dequeue(at); ok {
			s.emit(Out{e.Packet, s.server.serve(at, e.Size), Left, e.queued})
		}
	}
}
