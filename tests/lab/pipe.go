package lab

import (
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/tests/bottleneck"
)

// pipe is one direction of the link without the sockets: packets enter with
// the time of their entry and leave when they are due. It reads no clock.
type pipe struct {
	direction sample.Direction
	link      Link
	classify  Classifier
	segments  SegmentClassifier
	script    Script
	// spare: faults befall classified packets only.
	spare bool

	bottleneck *bottleneck.Link
	// waiting are the packets in it, by ID; entered is the last ID.
	waiting map[uint64]*packet
	entered uint64
	// first is when the first packet entered.
	first           instant.Time
	flight          flight
	counted, others *dice
	log             truth
	free            []*packet
}

// defaultLogLimit takes about 130 MB in each direction if it is reached.
const defaultLogLimit = 1 << 20

func newPipe(direction sample.Direction, link Link, o *Options) *pipe {
	p := &pipe{
		direction: direction,
		link:      link,
		classify:  o.Classifier,
		segments:  o.Segments,
		script:    o.Script,
		spare:     o.SpareOthers,
		counted:   newDice(o.Seed, uint64(direction)<<1),
		others:    newDice(o.Seed, uint64(direction)<<1|1),
	}
	p.waiting = make(map[uint64]*packet)
	if o.CountKeys {
		p.log.byKey = map[uint64]*Counts{}
	}
	p.bottleneck = bottleneck.New(link.bottleneck(), o.Seed^uint64(direction)<<32, p.settle)
	p.log.limit = o.LogLimit
	if p.log.limit == 0 {
		p.log.limit = defaultLogLimit
	}
	return p
}

// set changes the link for the packets that enter from now on.
func (p *pipe) set(l Link) {
	p.link = l
	p.bottleneck.Set(l.bottleneck())
}

// enter takes a frame that arrived at the given time. It reports false for a
// frame to forward at once, unchanged. data is copied.
func (p *pipe) enter(data []byte, entry instant.Time) (taken bool) {
	f := parseFrame(data)
	if f.control {
		return false
	}
	key, counted := p.key(&f, data)
	pkt := p.packet(data)
	pkt.counted, pkt.key, pkt.frame, pkt.draw = counted, key, f, p.roll(&f, key, counted)
	pkt.record, pkt.logged = p.record(counted, Record{Key: key, Size: f.size, Entry: entry})
	if p.first == 0 {
		p.first = entry
	}
	p.entered++
	p.waiting[p.entered] = pkt
	p.bottleneck.Enter(bottleneck.Packet{ID: p.entered, Flow: f.flow(), Size: f.size, Entry: entry})
	return true
}

// settle takes a packet that has left the bottleneck.
func (p *pipe) settle(o bottleneck.Out) {
	pkt := p.waiting[o.ID]
	delete(p.waiting, o.ID)
	d := &pkt.draw
	r := Record{Queued: o.Queued, Held: d.HoldBehind > 0}
	switch {
	case o.Outcome != bottleneck.Left:
		p.lost(pkt, DroppedQueue, r)
		return
	case d.Lose:
		r.Departure = o.At
		p.lost(pkt, DroppedLoss, r)
		return
	}
	if d.Duplicate {
		pkt.copies = 1
	}
	if d.Corrupt {
		pkt.corrupted = pkt.frame.damage(pkt.data, d.position, d.mask, p.link.Checksum == RepairChecksum)
	}
	pkt.capable, pkt.marked = pkt.frame.mark(pkt.data, d.Mark)
	r.Corrupted, r.Departure = pkt.corrupted, o.At
	r.Due = p.link.exit(o.At, p.first, d.jitter+time.Duration(d.retransmissions)*p.link.RetransmitDelay)
	p.update(pkt, r)
	if d.HoldBehind > 0 {
		p.flight.hold(pkt, r.Due, d.HoldBehind)
	} else {
		p.flight.add(pkt, r.Due)
	}
}

// key classifies; without a classifier every UDP packet counts, key 0, and no segment of TCP.
func (p *pipe) key(f *frame, data []byte) (key uint64, counted bool) {
	if p.segments != nil {
		if s, ok := f.segment(data); ok {
			return p.segments(s)
		}
	}
	payload := f.payload(data)
	if payload == nil {
		return 0, false
	}
	if p.classify == nil {
		return 0, true
	}
	return p.classify(payload, f.src, f.dst)
}

// roll draws the faults. Corruption is left to damage, which knows payloads.
func (p *pipe) roll(f *frame, key uint64, counted bool) draw {
	if f.protocol != protocolUDP && f.protocol != protocolTCP {
		return draw{}
	}
	if !counted {
		d := p.others.roll(&p.link)
		if p.spare {
			d.Faults = Faults{}
		}
		return d
	}
	d := p.counted.roll(&p.link)
	if p.script != nil {
		d.Faults = p.script(p.direction, key, d.Faults)
	}
	return d
}

// record counts a packet that has entered, and logs it if it is classified.
func (p *pipe) record(counted bool, r Record) (index int, ok bool) {
	p.log.mu.Lock()
	defer p.log.mu.Unlock()
	r.Index = p.log.counted.Entered
	p.log.count(counted, r.Key, func(c *Counts) { c.Entered++ })
	if !counted || p.log.byKey != nil {
		return 0, false
	}
	return p.log.append(r)
}

// update writes what the queue did with a packet into its record.
func (p *pipe) update(pkt *packet, from Record) {
	if !pkt.logged {
		return
	}
	p.log.mu.Lock()
	defer p.log.mu.Unlock()
	r := p.log.at(pkt.record)
	r.Queued, r.Departure, r.Due, r.Held, r.Corrupted = from.Queued, from.Departure, from.Due, from.Held, from.Corrupted
}

// lost counts a packet that does not leave the link.
func (p *pipe) lost(pkt *packet, outcome Outcome, r Record) {
	r.Held = false
	p.update(pkt, r)
	p.log.mu.Lock()
	defer p.log.mu.Unlock()
	p.log.count(pkt.counted, pkt.key, func(c *Counts) {
		if outcome == DroppedQueue {
			c.DroppedQueue++
		} else {
			c.DroppedLoss++
		}
	})
	if pkt.logged {
		p.log.at(pkt.record).Outcome = outcome
	}
	p.free = append(p.free, pkt)
}

// next is when the next packet is due, at the earliest; false if none is inside.
func (p *pipe) next() (instant.Time, bool) {
	due, some := p.flight.next()
	if at, waits := p.bottleneck.Next(); waits {
		if at = at.Add(p.link.Delay); !some || at < due {
			return at, true
		}
	}
	return due, some
}

// pop takes out a packet that is due at now, or nil. It must be given back to
// left. The bottleneck is looked at only as far as its packets are due: those that enter
// until now may not have been read yet.
func (p *pipe) pop(now instant.Time) *packet {
	p.bottleneck.Advance(now.Add(-p.link.Delay))
	return p.flight.pop(now)
}

// left says what became of a packet that pop gave out: when it was sent and
// when its copy was (zero: not), or that it could not be.
func (p *pipe) left(pkt *packet, outcome Outcome, exit, dup Interval) {
	p.log.mu.Lock()
	defer p.log.mu.Unlock()
	p.log.count(pkt.counted, pkt.key, func(c *Counts) {
		if outcome == Failed {
			c.Failed++
		} else {
			c.Delivered++
			c.Capable += count(pkt.capable)
			c.Marked += count(pkt.marked)
		}
		if dup != (Interval{}) {
			c.Duplicated++
		}
		if pkt.behind > 0 {
			c.Held++
		}
		if pkt.overtaken > 0 {
			c.Reordered++
		}
		if pkt.corrupted {
			c.Corrupted++
		}
	})
	if pkt.logged {
		r := p.log.at(pkt.record)
		r.Outcome, r.Exit, r.Copy, r.Due = outcome, exit, dup, pkt.due
		r.Overtaken, r.Duplicated = uint8(pkt.overtaken), dup != (Interval{})
	}
	p.free = append(p.free, pkt)
}

// packet copies a frame into a used packet, or a new one.
func (p *pipe) packet(data []byte) *packet {
	var pkt *packet
	if n := len(p.free); n > 0 {
		pkt, p.free = p.free[n-1], p.free[:n-1]
	} else {
		pkt = new(packet)
	}
	*pkt = packet{data: append(pkt.data[:0], data...)}
	return pkt
}

func count(yes bool) uint64 {
	if yes {
		return 1
	}
	return 0
}
