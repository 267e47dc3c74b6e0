package lab

import (
	"oneway.example/exporter/instant"
	"oneway.example/exporter/sample"
)

// pipe is one direction of the link without the sockets: packets go in with
// the time of their entry and come out when they are due. It reads no clock.
type pipe struct {
	direction sample.Direction
	link      Link
	classify  Classifier
	script    Script
	// spare: faults befall classified packets only.
	spare bool

	shaper          shaper
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
		script:    o.Script,
		spare:     o.SpareOthers,
		counted:   newDice(o.Seed, uint64(direction)<<1),
		others:    newDice(o.Seed, uint64(direction)<<1|1),
	}
	p.log.limit = o.LogLimit
	if p.log.limit == 0 {
		p.log.limit = defaultLogLimit
	}
	return p
}

// enter takes a frame that came at the given time. It reports false for a
// frame that is to be passed on at once, untouched. data is copied.
func (p *pipe) enter(data []byte, entry instant.Time) (taken bool) {
	f := parseFrame(data)
	if f.control {
		return false
	}
	key, counted := p.key(&f, data)
	d := p.roll(&f, key, counted)
	r := Record{Key: key, Size: f.size, Queued: p.shaper.queued(entry), Entry: entry, Held: d.HoldBehind > 0}

	departure, room := p.shaper.admit(entry, f.size, &p.link)
	switch {
	case !room:
		r.Fate, r.Held = DroppedQueue, false
		p.record(counted, r)
		return true
	case d.Lose:
		r.Fate, r.Departure, r.Held = DroppedLoss, departure, false
		p.record(counted, r)
		return true
	}
	pkt := p.packet(data)
	pkt.counted = counted
	if d.Duplicate {
		pkt.copies = 1
	}
	if d.Corrupt {
		r.Corrupted = f.damage(pkt.data, d.position, d.mask, p.link.Checksum == RepairChecksum)
		pkt.corrupted = r.Corrupted
	}
	r.Departure = departure
	r.Due = departure.Add(p.link.Delay + d.jitter)
	pkt.record, pkt.logged = p.record(counted, r)
	if d.HoldBehind > 0 {
		p.flight.hold(pkt, r.Due, d.HoldBehind)
	} else {
		p.flight.add(pkt, r.Due)
	}
	return true
}

// key classifies; without a classifier every UDP packet counts, key 0.
func (p *pipe) key(f *frame, data []byte) (key uint64, counted bool) {
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
	c := p.log.counts(counted)
	r.Index = c.Entered
	c.Entered++
	switch r.Fate {
	case Inside, Delivered, Failed: // what left will say
	case DroppedQueue:
		c.DroppedQueue++
	case DroppedLoss:
		c.DroppedLoss++
	}
	if !counted {
		return 0, false
	}
	return p.log.append(r)
}

// next is when the next packet is due; false if none is inside.
func (p *pipe) next() (instant.Time, bool) { return p.flight.next() }

// pop takes out a packet that is due at now, or nil. It must be given back to
// left.
func (p *pipe) pop(now instant.Time) *packet { return p.flight.pop(now) }

// left says what became of a packet that pop gave out: when it was sent and
// when its copy was (zero: not), or that it could not be.
func (p *pipe) left(pkt *packet, fate Fate, exit, dup Interval) {
	p.log.mu.Lock()
	defer p.log.mu.Unlock()
	c := p.log.counts(pkt.counted)
	if fate == Failed {
		c.Failed++
	} else {
		c.Delivered++
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
	if pkt.logged {
		r := p.log.at(pkt.record)
		r.Fate, r.Exit, r.Copy, r.Due = fate, exit, dup, pkt.due
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
