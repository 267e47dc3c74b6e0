package queue

import "time"

// Analyse looks at a run: the packets of one direction in the order of sending. It takes some
// 1 us a packet at the most, and memory for a few numbers each.
func Analyse(packets []Packet, o Options) Result {
	r := newRun(packets, o)
	var res Result
	res.Sent = len(r.load)
	if len(r.load) == 0 {
		res.Evidence = "no load was sent"
		return res
	}
	if !r.possible() {
		res.Evidence = "the stamps make no sense: not in order, or of more than a day"
		return res
	}
	res.PerSecond, res.First = r.series()
	for i := range r.load {
		if r.load[i].Arrived != 0 {
			res.Received++
		}
	}
	if r.base.n > 0 {
		res.Idle = Duration{Value: r.base.least, Bound: r.o.StampError + r.held + r.base.early, OK: true}
	}
	w := r.window()
	res.From, res.To = w.from, w.to
	res.Offered, res.Loss = r.offered(w)
	res.Throughput, res.Mean = r.throughput(w), r.rateOf(w)
	if res.Received < least {
		res.Evidence = "too few packets arrived to tell"
		return res
	}
	r.judge(&res)
	return res
}

// least is how many packets must have arrived; longest how long a run may be, and disorder how much
// earlier than the packet before it one may leave: stamps that the far end made up are possible.
const (
	least    = 20
	longest  = 24 * time.Hour
	disorder = time.Second
)

// possible tells whether the stamps of the load may be true.
func (r *run) possible() bool {
	before := time.Duration(0)
	for i := range r.load {
		p := &r.load[i]
		t := r.elapsed(p.Sent)
		if t < before-disorder || t > longest {
			return false
		}
		before = max(before, t)
		if a := r.arrivedAt(p); p.Arrived != 0 && (a < -disorder || a > longest) {
			return false
		}
	}
	return r.length() > 0
}

// offered is the rate at which was sent in a part, and the share of its packets that was lost.
func (r *run) offered(w part) (rate, loss float64) {
	sent, lost, octets := 0, 0, 0.0
	for i := range r.load {
		if p := &r.load[i]; w.holds(r.elapsed(p.Sent)) {
			sent++
			octets += float64(p.IPBytes)
			if p.Arrived == 0 {
				lost++
			}
		}
	}
	if sent == 0 || w.length() <= 0 {
		return 0, 0
	}
	return octets / seconds(w.length()), float64(lost) / float64(sent)
}
