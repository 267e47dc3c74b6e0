package control

import (
	"time"

	"oneway.example/exporter/sample"
)

// patience knows until when a peer that says nothing is waited for. It is pure: times are
// its arguments; who uses it guards it.
//
// Without load that is Outage after the last octet: waiting harms nobody. While a transfer is under way (begin
// to end), in either direction, it is Silence, its Idle, and what pings are then rarer; and no
// less than Outage but for a client that sends: a responder pauses meanwhile. Words wait in the queue that the test
// fills; and words of the other direction wait as well, because their acknowledgements are
// in that queue: TCP takes them for lost, and says nothing new until one comes. (Measured
// with Linux 6: a queue of 3 s filled at once leaves the other direction silent for 3 s.)
// After the end the queue, and TCP's timers that have doubled, need a while: the longer
// patience lasts until a question that was asked after the end is answered, and so has
// passed both directions, but no longer than Idle after the end.
//
//	        begin                end            answer, or Idle after the end
//	quiet --------> loaded ------------> tail -------------------------------> quiet
//	Outage          Silence + Idle       Silence + Idle
type patience struct {
	heard time.Time // the last octet
	frame time.Time // the first octet of the frame that is under way; zero: none is

	loads map[uint16]load // transfers under way

	tail      time.Duration // the longest Idle of what has ended; 0: no tail
	tailEnd   time.Time
	tailAsked uint64 // the tail ends with the answer to a ping after this one

	asked    uint64 // pings so far
	answered uint64 // the last that was answered
}

// load is what a transfer under way asks of both ends.
type load struct {
	idle  time.Duration // how much longer a silence is borne
	every time.Duration // how long this side says nothing until it asks; at least PingEvery
	sends time.Time     // until when this end is a client that sends packets; zero: it is none
}

// loadOf is that of a transfer. In forward direction the responder sends nothing that could
// harm, while a queue that is full and overflows loses the client's words and its
// acknowledgements, and a session that is well is silent for longer than its queue. At twice the
// rate of 2.5 Mb/s that lasts seconds, at ten times as long as the load: then test packets
// (Conn.Heard) and what the peer's kernel says again (pulse) are all there is. A ping, its answer and their acknowledgements are some 300
// octets: they take half a per cent of the offered load at the most, where four a second
// would be 3 % of an EvDO uplink.
func loadOf(t *Transfer) load {
	const octets, share = 300, 0.005
	l := load{idle: min(t.Idle, MaxIdle), every: PingEvery}
	if rate, unpaced := t.Plan.PeakRate(); !unpaced && rate > 0 {
		rare := time.Duration(min(octets/(share*rate), maxPingEvery.Seconds()) * float64(time.Second))
		l.every = max(PingEvery, min(rare, l.idle/4))
	}
	if t.Direction == sample.Forward {
		l.idle *= 3
	}
	return l
}

func newPatience(now time.Time) patience {
	return patience{heard: now, loads: make(map[uint16]load)}
}

// hear notes that octets came.
func (p *patience) hear(now time.Time) { p.heard = now }

// begin notes that a transfer begins to load the path.
func (p *patience) begin(id uint16, l load) { p.loads[id] = l }

// drop forgets a transfer that was refused, and so loaded nothing.
func (p *patience) drop(id uint16) { delete(p.loads, id) }

// end notes that a transfer is over. A transfer that did not begin is nothing.
func (p *patience) end(id uint16, now time.Time) {
	l, ok := p.loads[id]
	if !ok {
		return
	}
	delete(p.loads, id)
	p.tail = max(p.tail, l.idle)
	p.tailEnd = now.Add(p.tail)
	p.tailAsked = p.asked
}

// sending tells whether, at a time, this client is still to send packets of a transfer.
func (p *patience) sending(now time.Time) bool {
	for _, l := range p.loads {
		if now.Before(l.sends) {
			return true
		}
	}
	return false
}

// wants tells whether a ping is to be sent now, whatever else was said, to end the tail.
func (p *patience) wants() bool { return p.tail > 0 && p.asked == p.tailAsked }

// ask numbers the next ping.
func (p *patience) ask() uint64 {
	p.asked++
	return p.asked
}

// answer takes a pong. It tells whether there was such a ping.
func (p *patience) answer(seq uint64) bool {
	if seq == 0 || seq > p.asked || seq < p.answered {
		return false
	}
	p.answered = seq
	if p.tail > 0 && seq > p.tailAsked {
		p.tail = 0
	}
	return true
}

// silence is how long nothing may be heard while the transfers under way last.
// Pings are rarer then, by every.
func (p *patience) silence(now time.Time) time.Duration {
	loaded := Silence + p.longest() + p.every() - PingEvery
	if p.sending(now) {
		return loaded
	}
	return max(Outage, loaded)
}

// every is how long this side says nothing until it asks.
func (p *patience) every() time.Duration {
	every := time.Duration(0)
	for _, l := range p.loads {
		every = max(every, l.every)
	}
	return max(PingEvery, every)
}

// maxPingEvery keeps a NAT's mapping, and the wits of whoever looks on.
const maxPingEvery = 2 * time.Second

func (p *patience) longest() (idle time.Duration) {
	for _, l := range p.loads {
		idle = max(idle, l.idle)
	}
	return idle
}

// deadline is when the peer is given up unless something comes; dripping says that this is
// because of a frame that does not end.
func (p *patience) deadline(now time.Time) (at time.Time, dripping bool) {
	silence := p.silence(now)
	at = p.heard.Add(silence)
	if p.tail > 0 {
		tail := earlier(p.heard.Add(p.tail), p.tailEnd).Add(Silence)
		at = later(at, tail)
	}
	if !p.frame.IsZero() {
		if last := p.frame.Add(frameTime + max(silence, p.tail)); last.Before(at) {
			return last, true
		}
	}
	return at, false
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
