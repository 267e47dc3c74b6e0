package tstamp

import (
	"slices"
	"sync"

	"oneway.example/exporter/instant"
	"oneway.example/exporter/sample"
)

// pending remembers the packets that wait for their transmit stamp, and the
// stamps that wait for Receive.
//
// Every packet has a serial that is never used twice. The kernel hands back a
// 32-bit number, which counts from the start of a generation: one generation
// for good where we number the packets ourselves, a new one after each reset of
// the kernel's counter where it does. A stamp is taken for a packet only if
// exactly one packet fits, and only if it is not before the packet's At.
//
// The kernel stamps a packet before it gives it away, and a host may stand still
// in between. So a stamp is reported together with how much later the packet can
// have left: it was gone when the next one was stamped, and when the call that
// sent it returned. The stamp may be known before either.
type pending struct {
	mu      sync.Mutex
	slots   []slot // a power of two
	next    uint64 // the next serial; serials start at 1
	oldest  uint64 // no packet below it waits
	waiting int
	// twoStamps: the kernel's stamp does not end the wait, the card's does.
	twoStamps bool
	// latest is the serial whose kernel stamp was matched last, if it is still to
	// be reported; 0: none.
	latest uint64
	// parked: Receive waits. What the error queue held it has looked at already.
	parked bool

	generations []generation // the newest last; never empty

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
	given  bool         // given up; a stamp that comes all the same is still known as its
}

// generation is a run of the kernel's counter.
type generation struct {
	first uint64       // the serial that the kernel numbers 0
	ended instant.Time // when the next one began
}

const (
	// queueBatch is how many messages of the error queue are read at once.
	queueBatch = 64
	// maxGenerations bounds the search for a stamp's packet. While that many
	// are unsettled packets go unstamped: see restart.
	maxGenerations = 32
	// generationWait is how long after its end a stamp of a generation may come.
	generationWait = 5 * StampWait
)

func newPending(slots, done int, twoStamps bool) *pending {
	p := &pending{slots: make([]slot, powerOfTwo(slots)), done: newRing[TxStamp](done), twoStamps: twoStamps}
	p.next, p.oldest = 1, 1
	p.generations = make([]generation, 1, maxGenerations)
	p.generations[0].first = 1
	return p
}

// add notes a packet about to be sent and returns its serial.
func (p *pending) add(cookie uint64, at instant.Time) uint64 {
	serial := p.next
	p.next++
	s := &p.slots[serial&uint64(len(p.slots)-1)]
	if s.serial != 0 && !s.given {
		p.giveUp(s)
	}
	*s = slot{serial: serial, cookie: cookie, at: at}
	p.waiting++
	return serial
}

// drop forgets the packets from serial on: they were not sent. None of them has
// been given up.
func (p *pending) drop(serial uint64) {
	for ; serial < p.next; serial++ {
		if s := p.slot(serial); s != nil {
			p.free(s)
		}
	}
}

// slot is that of a packet without its last stamp, or nil.
func (p *pending) slot(serial uint64) *slot {
	s := &p.slots[serial&uint64(len(p.slots)-1)]
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
	s.given = true
	p.waiting--
}

// deliver queues a stamp for Receive. Nobody reads them if there is no room.
func (p *pending) deliver(s *slot, stamp sample.Stamp) {
	if p.done.push(TxStamp{Cookie: s.cookie, Stamp: stamp, At: s.at}) {
		p.txStamps[stamp.Origin]++
	}
}

// restart begins a generation, for a kernel whose counter is set to zero next.
// It refuses if stamps of too many earlier ones may still come.
func (p *pending) restart(now instant.Time) bool {
	done := 0
	for done < len(p.generations)-1 && p.settled(done, now) {
		done++
	}
	p.generations = append(p.generations[:0], p.generations[done:]...)
	newest := &p.generations[len(p.generations)-1]
	if p.complete(newest.first, p.next) {
		newest.first = p.next // nothing of it is left to be told apart
		return true
	}
	if len(p.generations) == maxGenerations {
		return false
	}
	newest.ended = now
	p.generations = append(p.generations, generation{first: p.next})
	return true
}

// restartLocking is restart for who does not hold the lock.
func (p *pending) restartLocking(now instant.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.restart(now)
}

// hasRoom reports whether a batch of the error queue's stamps can be queued.
func (p *pending) hasRoom() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.done.room() >= queueBatch
}

// settled: no stamp of generation i, which is not the newest, is to be expected.
func (p *pending) settled(i int, now instant.Time) bool {
	if p.generations[i].ended < now.Add(-generationWait) {
		return true
	}
	return p.complete(p.generations[i].first, p.generations[i+1].first)
}

// complete: every packet of the range has its last stamp or was not sent.
func (p *pending) complete(first, end uint64) bool {
	oldest := p.next - min(p.next, uint64(len(p.slots)))
	for serial := max(first, oldest); serial < end; serial++ {
		if p.slot(serial) != nil {
			return false
		}
	}
	return true
}

// number is what the kernel is to report for serial, when we choose it.
func number(serial uint64) uint32 { return uint32(serial - 1) }

// match finds the packet of a stamp and queues the stamp for Receive.
func (p *pending) match(id uint32, stamp sample.Stamp) {
	var found *slot
	end := p.next
	for _, g := range slices.Backward(p.generations) {
		if s := p.slot(serialOf(id, g.first, end)); s != nil && s.at <= stamp.At && (s.kernel == 0 || stamp.Origin != sample.Kernel) {
			if found != nil {
				p.rejected++ // two packets fit: neither is sure
				return
			}
			found = s
		}
		end = g.first
	}
	switch {
	case found == nil, found.given:
		p.rejected++
	case stamp.Origin != sample.Kernel:
		p.report()
		p.deliver(found, stamp)
		p.free(found)
	default:
		found.kernel = stamp.At
		p.follow(found)
	}
}

// follow makes s the latest. The one before it had left by then, if it was sent
// before it.
func (p *pending) follow(s *slot) {
	if before := p.slot(p.latest); before != nil && before.serial < s.serial {
		if before.gone == 0 || s.kernel < before.gone {
			before.gone = s.kernel
		}
	}
	p.report()
	p.latest = s.serial
}

// report reports the latest, if it is known by when it had left: no later stamp
// is at hand to say it better. Else returned will do it.
func (p *pending) report() {
	s := p.slot(p.latest)
	p.latest = 0
	if s != nil && s.kernel != 0 && s.gone != 0 && !s.seen && !s.given {
		p.reportKernel(s)
	}
}

func (p *pending) reportKernel(s *slot) {
	p.deliver(s, sample.Stamp{At: s.kernel, Origin: sample.Kernel, Held: max(0, s.gone.Sub(s.kernel))})
	if p.twoStamps {
		s.seen = true
		return
	}
	p.free(s)
}

// returned notes that the call which sent n packets, from serial first on, has
// returned, and tells whether stamps had been waiting for that.
func (p *pending) returned(first uint64, n int, now instant.Time) (reported bool) {
	for serial := first; serial < first+uint64(n); serial++ {
		s := p.slot(serial)
		if s == nil || s.given || s.gone != 0 {
			continue
		}
		s.gone = now
		if s.kernel != 0 && !s.seen {
			p.reportKernel(s)
			reported = true
		}
	}
	return reported
}

// serialOf is the newest serial in [first, end) whose number is id; 0: none.
func serialOf(id uint32, first, end uint64) uint64 {
	if end <= first {
		return 0
	}
	last := end - 1
	back := uint64(uint32(last-first) - id)
	if back > last-first {
		return 0
	}
	return last - back
}

// expire gives up on the packets sent before the given time, and returns when
// the oldest that still waits was sent; zero: none. After a step of the clock a
// packet may look younger than it is and waits longer: no harm.
func (p *pending) expire(before instant.Time) instant.Time {
	// Beyond a ring's length everything has been given up by add.
	if low := p.next - min(p.next, uint64(len(p.slots))); p.oldest < low {
		p.oldest = low
	}
	for ; p.oldest < p.next; p.oldest++ {
		s := p.slot(p.oldest)
		if s == nil || s.given {
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

func newRing[T any](room int) ring[T] { return ring[T]{items: make([]T, powerOfTwo(room))} }

func (r *ring[T]) room() int { return len(r.items) - r.size }

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
	return into
}

func powerOfTwo(atLeast int) int {
	n := 1
	for n < atLeast {
		n <<= 1
	}
	return n
}
