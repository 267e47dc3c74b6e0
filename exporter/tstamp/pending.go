package tstamp

import (
	"math/bits"
	"sync"

	"oneway.example/exporter/instant"
	"oneway.example/exporter/sample"
)

// pending remembers the packets that wait for their transmit stamp, and the
// stamps that wait for Receive.
//
// The kernel counts the packets that it is to stamp and returns each stamp with
// its packet's number (SOF_TIMESTAMPING_OPT_ID). A packet's serial is that number
// without the end at 2^32, plus one, so that a number belongs to one packet. A send
// that failed has used up a number or not: before Linux 6.8 (488b6d91b071) by where
// it failed; since then most failures give it back, but not those behind the
// socket (a full queue, a firewall). So the next packet is sent alone and marked: the
// kernel also stamps it on its way to the queue (TX_SCHED), before the call returns,
// and that stamp tells its number. Until it has come, no other packet is stamped, so
// that any number that is new is the marked packet's.
//
// The kernel stamps a packet before it gives it away, and a host may stand still
// in between. So a stamp is reported together with how much later the packet can
// have left: it was gone when the next one was stamped, and when the call that
// sent it returned. The stamp may be known before either.
type pending struct {
	mu      sync.Mutex
	slots   []slot // a power of two
	first   uint64 // the serial whose slot is slots[0]
	next    uint64 // the next serial, or the least that it can be; serials start at 1
	oldest  uint64 // no packet below it waits
	waiting int
	// lowConfidence: the next serial may be more than next.
	lowConfidence bool
	// marked is the serial of the packet that is to tell, or the least that it can be; 0:
	// none is on its way. It was sent at markedAt.
	marked   uint64
	markedAt instant.Time
	// twoStamps: the kernel's stamp does not end the wait, the card's does.
	twoStamps bool
	// latest is the serial whose kernel stamp was matched last, if it is still to
	// be reported; 0: none.
	latest uint64
	// parked: Receive waits. What the error queue held it has looked at already.
	parked bool

	recent recent // what ICMP errors may quote

	done     ring[TxStamp]
	txStamps [Origins]uint64
	missing  uint64
	rejected uint64
}

type slot struct {
	serial uint64 // 0: free
	cookie uint64
	at     instant.Time
	kernel instant.Time // its stamp, to be reported once gone is known
	gone   instant.Time // by when it had left; 0: not known yet
	seen   bool         // its kernel stamp is reported, it waits for the card's
}

const (
	// queueBatch is how many messages of the error queue are read at once: one more than a
	// send has stamps, so that the call which reads them finds the queue empty.
	queueBatch = sendBatch + 1
	// stampsAtOnce is how many stamps may wait for Receive without an alarm: some that
	// the processor's caches hold.
	stampsAtOnce = 512
	// markWait is how long a marked packet may take to its queue: a neighbor that has
	// to be found first holds it for some seconds.
	markWait = 5 * StampWait
)

func newPending(slots, done int, twoStamps bool) *pending {
	return &pending{
		slots: make([]slot, powerOfTwo(slots)), done: newRing[TxStamp](done), twoStamps: twoStamps, next: 1, oldest: 1,
	}
}

// stamping is how packets are to be stamped.
type stamping uint8

const (
	stamped  stamping = iota
	marked            // one packet alone, which tells its number
	withheld          // not by the kernel: a marked packet is on its way
	unstamped
)

// stamping says how the next packets are to be sent.
func (p *pending) stamping(now instant.Time) stamping {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case !p.lowConfidence:
		return stamped
	case p.marked != 0 && now.Sub(p.markedAt).Abs() < markWait:
		return withheld
	}
	return marked
}

// add notes a packet about to be sent. While no packet waits the slots are used from the first
// on again: all of them together do not fit the processor's caches.
func (p *pending) add(cookie uint64, at instant.Time) {
	if p.waiting == 0 {
		p.first = p.next
	}
	*p.vacate(p.next) = slot{serial: p.next, cookie: cookie, at: at}
	p.next++
	p.waiting++
}

// mark notes that the packet added last is to tell its number.
func (p *pending) mark(at instant.Time) { p.marked, p.markedAt = p.next-1, at }

// tell takes the number of the marked packet, if it can be that: an interface that
// lies over another one has each packet stamped twice on its way to the queue.
func (p *pending) tell(id uint32) {
	ahead := id - number(p.marked)
	if p.marked == 0 || int32(ahead) < 0 {
		return
	}
	serial := p.marked + uint64(ahead)
	if s := p.slot(p.marked); s != nil && ahead > 0 {
		to := p.vacate(serial)
		*to = *s
		to.serial, s.serial = serial, 0
	}
	p.next, p.lowConfidence, p.marked = serial+1, false, 0
}

// drop forgets the n packets that were added last: they were not sent.
func (p *pending) drop(n int) {
	for ; n > 0; n-- {
		p.next--
		if s := p.slot(p.next); s != nil {
			p.free(s)
		}
	}
	p.oldest = min(p.oldest, p.next)
	p.lowConfidence, p.marked = true, 0
}

// at is where a packet's slot would be.
func (p *pending) at(serial uint64) *slot { return &p.slots[(serial-p.first)&uint64(len(p.slots)-1)] }

// vacate makes space for a packet.
func (p *pending) vacate(serial uint64) *slot {
	s := p.at(serial)
	if s.serial != 0 {
		p.giveUp(s)
	}
	return s
}

// slot is that of a packet without its last stamp, or nil.
func (p *pending) slot(serial uint64) *slot {
	s := p.at(serial)
	if serial == 0 || s.serial != serial {
		return nil
	}
	return s
}

func (p *pending) free(s *slot) {
	s.serial = 0
	p.waiting--
}

// giveUp ends the wait for a kernel stamp: the user's stands in.
func (p *pending) giveUp(s *slot) {
	switch {
	case s.seen: // reported
	case s.kernel != 0:
		p.deliver(s, sample.Stamp{At: s.kernel, Origin: sample.Kernel})
	default:
		p.missing++
		p.deliver(s, sample.Stamp{At: s.at, Origin: sample.User})
	}
	p.free(s)
}

// deliver queues a stamp for Receive. Nobody reads them if there is no room.
func (p *pending) deliver(s *slot, stamp sample.Stamp) {
	if p.done.push(TxStamp{Cookie: s.cookie, Stamp: stamp, At: s.at}) {
		p.txStamps[stamp.Origin]++
	}
}

// hasSpace reports whether a batch of the error queue's stamps can be queued.
func (p *pending) hasSpace() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.done.space() >= queueBatch
}

// number is the kernel's for serial.
func number(serial uint64) uint32 { return uint32(serial - 1) }

// serialOf is the newest serial whose number is id; 0: none.
func (p *pending) serialOf(id uint32) uint64 {
	last := p.next - 1
	return last - min(last, uint64(number(last)-id))
}

// match finds the packet of a stamp and queues the stamp for Receive.
func (p *pending) match(id uint32, stamp sample.Stamp) {
	p.tell(id)
	s := p.slot(p.serialOf(id))
	switch {
	case s == nil, stamp.At < s.at, s.kernel != 0 && stamp.Origin == sample.Kernel:
		p.rejected++
	case stamp.Origin != sample.Kernel:
		p.report()
		p.deliver(s, stamp)
		p.free(s)
	default:
		s.kernel = stamp.At
		p.follow(s)
	}
}

// follow makes s the latest. The one before it had left by then, if it was sent
// before it.
func (p *pending) follow(s *slot) {
	if before := p.slot(p.latest); before != nil && before.serial < s.serial && (before.gone == 0 || s.kernel < before.gone) {
		before.gone = s.kernel
	}
	p.report()
	p.latest = s.serial
}

// report reports the latest, if it is known by when it had left: no later stamp
// is at hand to say it better. Else returned will do it.
func (p *pending) report() {
	s := p.slot(p.latest)
	p.latest = 0
	if s != nil && s.kernel != 0 && s.gone != 0 && !s.seen {
		p.reportKernel(s)
	}
}

func (p *pending) reportKernel(s *slot) {
	p.deliver(s, sample.Stamp{At: s.kernel, Origin: sample.Kernel, TXUncertainty: max(0, s.gone.Sub(s.kernel))})
	if p.twoStamps {
		s.seen = true
		return
	}
	p.free(s)
}

// returned notes that the call which sent the n packets added last has returned, and
// reports the stamps that had been waiting for that.
func (p *pending) returned(n int, now instant.Time) {
	for serial := p.next - uint64(n); serial < p.next; serial++ {
		s := p.slot(serial)
		if s == nil || s.gone != 0 {
			continue
		}
		s.gone = now
		if s.kernel != 0 && !s.seen {
			p.reportKernel(s)
		}
	}
}

// expire gives up on the packets sent before the given time, and returns when
// the oldest that still waits was sent; zero: none. After a step of the clock a
// packet may look younger than it is and waits longer: no harm.
func (p *pending) expire(before instant.Time) instant.Time {
	// Beyond a ring's length everything has been given up by add.
	p.oldest = max(p.oldest, p.next-min(p.next, uint64(len(p.slots))))
	for ; p.oldest < p.next; p.oldest++ {
		s := p.slot(p.oldest)
		if s == nil {
			continue
		}
		if s.at >= before {
			return s.at
		}
		p.giveUp(s)
	}
	return 0
}

// ring is a queue of fixed room.
type ring[T any] struct {
	items       []T // a power of two
	first, size int
}

func newRing[T any](space int) ring[T] { return ring[T]{items: make([]T, powerOfTwo(space))} }

func (r *ring[T]) space() int { return len(r.items) - r.size }

func (r *ring[T]) push(item T) bool {
	if r.size == len(r.items) {
		return false
	}
	r.items[(r.first+r.size)&(len(r.items)-1)] = item
	r.size++
	return true
}

// popInto appends to into what its capacity takes.
func (r *ring[T]) popInto(into []T) []T {
	for r.size > 0 && len(into) < cap(into) {
		into = append(into, r.items[r.first])
		r.first = (r.first + 1) & (len(r.items) - 1)
		r.size--
	}
	if r.size == 0 {
		r.first = 0 // what is in the processor's caches is used again
	}
	return into
}

func powerOfTwo(atLeast int) int { return 1 << bits.Len(uint(atLeast-1)) }
