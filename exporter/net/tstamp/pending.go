package tstamp

import (
	"math"
	"math/bits"
	"sync"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
)

// pending contains the packets that wait for their transmit timestamp, and the timestamps that wait for Receive.
//
// The kernel numbers the packets that it timestamps and returns each timestamp with its packet's number
// (SOF_TIMESTAMPING_OPT_ID). A packet's serial is that number without the wrap at 2^32, plus one, so that a serial
// belongs to one packet. A failed send may or may not use up a number: before Linux 6.8 (488b6d91b071) this depends on
// where it failed; since then most failures return the number, except those behind the socket (a full queue, a
// firewall). So the next packet is sent alone and marked: the kernel also timestamps it on its way to the queue
// (TX_SCHED), before the call returns, and that timestamp has its number. Until it is read, no other packet is
// timestamped, so that any new number is that of the marked packet.
//
// The kernel timestamps a packet before it hands it to the driver, and the host may be suspended in between. So a
// timestamp is reported with its TX uncertainty, that is, how much later the packet may have left: at the latest when
// the next packet was timestamped, and when the call that sent it returned. The timestamp may be known before either.
type pending struct {
	mu      sync.Mutex
	slots   []slot // a power of two; they grow up to most
	most    int
	first   uint64 // the serial whose slot is slots[0]
	next    uint64 // the next serial, or its lower limit; serials start at 1
	oldest  uint64 // no packet below it waits
	waiting int
	// lowConfidence: the next serial may be more than next.
	lowConfidence bool
	// marked is the serial of the marked packet, or its lower limit; 0: no marked packet is outstanding. It was sent at
	// markedAt.
	marked   uint64
	markedAt instant.Time
	// twoStamps: the wait ends with the card's timestamp, not with the kernel's.
	twoStamps bool
	// latest is the serial whose kernel timestamp was matched last, if it is not reported yet; 0: none.
	latest uint64
	// parked: Receive waits. It has read everything that was on the error queue before.
	parked bool

	recent recent // the packets that ICMP errors may quote

	done     ring[TxStamp]
	txStamps [Origins]uint64
	missing  uint64
	rejected uint64
}

type slot struct {
	serial uint64 // 0: free
	cookie uint64
	at     instant.Time
	kernel instant.Time // its timestamp, to be reported once gone is known
	gone   instant.Time // the latest time at which it left; 0: not known yet
	seen   bool         // its kernel timestamp is reported, it waits for the card's
}

const (
	// queueBatch is how many messages of the error queue are read at once: one more than a send has timestamps, so that
	// the call that reads them finds the queue empty.
	queueBatch = sendBatch + 1
	// stampsAtOnce is how many timestamps may wait for Receive without an alarm: as many as fit the processor's caches.
	stampsAtOnce = 512
	// startSpace is the first length of slots and rings: more than steady senders need, while a burst may need a hundred
	// times as many.
	startSpace = 256
	// markWait is the longest time that a marked packet may take to its queue: neighbor resolution delays it by some
	// seconds.
	markWait = 5 * StampWait
)

// newPending limits the packets that wait, and the timestamps that wait for Receive.
func newPending(slots, done int, twoStamps bool) *pending {
	most := powerOfTwo(slots)
	return &pending{
		slots: make([]slot, min(most, startSpace)), most: most, done: newRing[TxStamp](done), twoStamps: twoStamps, next: 1, oldest: 1,
	}
}

// stamping is how packets are timestamped.
type stamping uint8

const (
	stamped  stamping = iota
	marked            // one packet alone, whose timestamp reports its number
	withheld          // not by the kernel: a marked packet is outstanding
	unstamped
)

// stamping returns how the next packets are sent.
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

// add registers a packet before it is sent. While no packet waits, the slots are reused from the first on: all of them
// together do not fit the processor's caches.
func (p *pending) add(cookie uint64, at instant.Time) {
	if p.waiting == 0 {
		p.first = p.next
	}
	*p.vacate(p.next) = slot{serial: p.next, cookie: cookie, at: at}
	p.next++
	p.waiting++
}

// mark makes the packet added last the marked one.
func (p *pending) mark(at instant.Time) { p.marked, p.markedAt = p.next-1, at }

// setMarkedNumber sets the number of the marked packet to id, if that is possible: an interface on top of another one
// timestamps each packet twice on its way to the queue.
func (p *pending) setMarkedNumber(id uint32) {
	ahead := id - number(p.marked)
	if p.marked == 0 || int32(ahead) < 0 {
		return
	}
	serial := p.marked + uint64(ahead)
	if ahead > 0 && p.slot(p.marked) != nil {
		to := p.vacate(serial)
		if s := p.slot(p.marked); s != nil {
			*to = *s
			to.serial, s.serial = serial, 0
		}
	}
	p.next, p.lowConfidence, p.marked = serial+1, false, 0
}

// drop removes the n packets that were added last: they were not sent.
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

// at returns the slot of a serial.
func (p *pending) at(serial uint64) *slot { return &p.slots[(serial-p.first)&uint64(len(p.slots)-1)] }

// vacate makes the slot of a serial free, by more slots if there may be more.
func (p *pending) vacate(serial uint64) *slot {
	s := p.at(serial)
	for ; s.serial != 0 && len(p.slots) < p.most; s = p.at(serial) {
		old := p.slots
		p.slots = make([]slot, 2*len(old))
		for i := range old {
			if old[i].serial != 0 {
				*p.at(old[i].serial) = old[i]
			}
		}
	}
	if s.serial != 0 {
		p.giveUp(s)
	}
	return s
}

// slot returns the slot of a packet that waits for a timestamp, or nil.
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

// giveUp ends the wait for a kernel timestamp; the user-space one replaces it.
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

// deliver queues a timestamp for Receive. It drops the timestamp if the queue is full: then nobody reads it.
func (p *pending) deliver(s *slot, stamp sample.Stamp) {
	if p.done.push(TxStamp{Cookie: s.cookie, Stamp: stamp, At: s.at}) {
		p.txStamps[stamp.Origin]++
	}
}

// hasSpace reports whether a batch of the error queue's timestamps can be queued.
func (p *pending) hasSpace() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.done.space() >= queueBatch
}

// number is the kernel's number of a serial.
func number(serial uint64) uint32 { return uint32(serial - 1) }

// serialOf returns the newest serial whose number is id; 0: none.
func (p *pending) serialOf(id uint32) uint64 {
	last := p.next - 1
	return last - min(last, uint64(number(last)-id))
}

// match finds the packet of a timestamp and queues the timestamp for Receive.
func (p *pending) match(id uint32, stamp sample.Stamp) {
	p.setMarkedNumber(id)
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

// follow makes s the latest. The packet before it had left by then, if it was sent earlier.
func (p *pending) follow(s *slot) {
	if before := p.slot(p.latest); before != nil && before.serial < s.serial && (before.gone == 0 || s.kernel < before.gone) {
		before.gone = s.kernel
	}
	p.report()
	p.latest = s.serial
}

// report reports the latest, if the time by which it had left is known: no later timestamp is available to narrow it.
// Otherwise returned reports it.
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

// returned records that the call that sent the n packets added last has returned, and reports the timestamps that
// waited for that.
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

// expire gives up on packets sent before the given time, and returns when the oldest one that still waits was sent;
// zero: none. After a step of the clock a packet may appear newer than it is and waits longer, which does no harm.
func (p *pending) expire(before instant.Time) instant.Time {
	// add gave up on everything beyond the limit.
	p.oldest = max(p.oldest, p.next-min(p.next, uint64(p.most)))
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

// restart gives up on all packets, and begins with the numbers of another socket.
func (p *pending) restart() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.report()
	p.expire(math.MaxInt64)
	p.first, p.next, p.oldest, p.marked, p.latest, p.lowConfidence = 1, 1, 1, 0, 0, false
}

// ring is a queue of limited length.
type ring[T any] struct {
	items       []T // a power of two; they grow up to most
	most        int
	first, size int
}

func newRing[T any](space int) ring[T] {
	most := powerOfTwo(space)
	return ring[T]{items: make([]T, min(most, startSpace)), most: most}
}

func (r *ring[T]) space() int { return r.most - r.size }

func (r *ring[T]) push(item T) bool {
	if r.size == len(r.items) {
		if r.size == r.most {
			return false
		}
		r.items, r.first = append(append(make([]T, 0, 2*r.size), r.items[r.first:]...), r.items[:r.first]...), 0
		r.items = r.items[:cap(r.items)]
	}
	r.items[(r.first+r.size)&(len(r.items)-1)] = item
	r.size++
	return true
}

// popInto moves items to into, up to its capacity.
func (r *ring[T]) popInto(into []T) []T {
	for r.size > 0 && len(into) < cap(into) {
		into = append(into, r.items[r.first])
		r.first = (r.first + 1) & (len(r.items) - 1)
		r.size--
	}
	if r.size == 0 {
		r.first = 0 // reuses the items that are in the processor's caches
	}
	return into
}

func powerOfTwo(atLeast int) int { return 1 << bits.Len(uint(atLeast-1)) }
