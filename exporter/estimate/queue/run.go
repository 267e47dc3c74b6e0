package queue

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/estimate/orderstat"
)

// run is the state derived from all packets before the judgment.
type run struct {
	o    Options
	load []Packet
	// begin is the begin of the load; shift the smallest delay, by which arrivals are shifted back.
	begin instant.Time
	shift time.Duration
	// txUncertainty is the largest TX uncertainty of a packet of the load whose delay is used, idleUncertainty that
	// of an idle one; few exceed it. A host that slept before each idle packet sends those less exactly.
	txUncertainty, idleUncertainty time.Duration
	base                           base
	// acceptedBases are the smallest and the largest base accepted by search.
	acceptedBases [2]time.Duration
	// bytes is the size of the load's packets, the largest if they differ.
	bytes int
	// arrived are the load's arrivals in order; passed includes those of the idle packets before it, of ahead
	// bytes.
	arrived, passed []arrival
	ahead           float64
	// most is the largest backlog with any base, waits the bytes that the queue had to hold with each packet of the
	// load, with the best base.
	most  float64
	waits []float64
	// pauseLimit is the time without an arrival above which the link, or the sender, paused.
	pauseLimit time.Duration
	// inOutages are packets of the load that are left out, outages the stretches in which all were lost; losses are the
	// send times of the other lost packets, since the load's begin.
	inOutages []bool
	outages   int
	losses    []time.Duration
	// outagePackets are the packets lost in outages, endOutage the duration of the outage that reaches the end of the load;
	// zero: none does.
	outagePackets int
	endOutage     time.Duration
}

// arrival is the arrival time of a packet, since the load's begin, and the bytes received up to it.
type arrival struct {
	at    time.Duration
	bytes float64
}

// base is the path's delay without queue, as an interval.
type base struct {
	// n packets met no others; least is the smallest of their delays, early the most by which the true one may be
	// smaller, given n; moved is by how much least is larger after the load than before it.
	n                              int
	least, early, moved, low, high time.Duration
}

func newRun(packets []Packet, o Options) run {
	o.Skip = cmp.Or(o.Skip, DefaultSkip)
	from, to := 0, len(packets)
	for from < len(packets) && packets[from].Segment < o.Load {
		from++
	}
	for to > from && o.After > 0 && packets[to-1].Segment >= o.After {
		to--
	}
	r := run{o: o, load: packets[from:to], inOutages: make([]bool, to-from)}
	r.txUncertainty = txUncertaintyLimit(r.load)
	r.idleUncertainty = max(txUncertaintyLimit(packets[:from]), txUncertaintyLimit(packets[to:]))
	if len(r.load) > 0 {
		r.begin = r.load[0].Sent
	}
	for i := range r.load {
		r.bytes = max(r.bytes, r.load[i].IPBytes)
	}
	r.arrived, r.passed = r.arrivalsOf(r.load), r.arrivalsOf(packets[:to])
	if before := r.arrivalsOf(packets[:from]); len(before) > 0 {
		r.ahead = before[len(before)-1].bytes
	}
	r.shift = r.smallest(packets)
	r.pauseLimit = r.standstill()
	r.findBase(packets[:from], packets[to:])
	r.findOutages()
	r.findStops()
	return r
}

// arrivalsOf are the arrivals of packets in order; simultaneous ones are joined.
func (r *run) arrivalsOf(packets []Packet) []arrival {
	all := make([]arrival, 0, len(packets))
	for i := range packets {
		if p := &packets[i]; p.Arrived != 0 {
			all = append(all, arrival{p.Arrived.Sub(r.begin), float64(p.IPBytes)})
		}
	}
	slices.SortFunc(all, func(a, b arrival) int { return cmp.Compare(a.at, b.at) })
	n, sum := 0, 0.0
	for _, a := range all {
		sum += a.bytes
		if n == 0 || all[n-1].at < a.at {
			n++
		}
		all[n-1] = arrival{a.at, sum}
	}
	return all[:n]
}

// bytesBy is the number of bytes received up to a time, interpolated to the next arrival.
func bytesBy(all []arrival, t time.Duration) float64 {
	k := sort.Search(len(all), func(i int) bool { return all[i].at > t })
	switch k {
	case 0:
		return 0
	case len(all):
		return all[k-1].bytes
	}
	a, b := all[k-1], all[k]
	return a.bytes + (b.bytes-a.bytes)*float64(t-a.at)/float64(b.at-a.at)
}

// rateOf is the receive rate in a part; zero for an empty part.
func (r *run) rateOf(p part) float64 {
	if p.length() <= 0 {
		return 0
	}
	return (bytesBy(r.arrived, p.to+r.shift) - bytesBy(r.arrived, p.from+r.shift)) / seconds(p.length())
}

// standstill is the time without an arrival that a steady stream does not have.
func (r *run) standstill() time.Duration {
	gaps := orderstat.Sample(len(r.arrived)-1, func(i int) time.Duration { return r.arrived[i+1].at - r.arrived[i].at })
	return max(50*time.Millisecond, 5*orderstat.Quantile(gaps, 0.95))
}

// txUncertaintyLimit is twice the TX uncertainty that three quarters of the packets do not exceed, and the largest
// one up to there.
func txUncertaintyLimit(packets []Packet) (txUncertainty time.Duration) {
	limit := 2*orderstat.Quantile(orderstat.Sample(len(packets), func(i int) time.Duration { return packets[i].TXUncertainty }), 0.75) + 20*time.Microsecond
	for i := range packets {
		if h := packets[i].TXUncertainty; h <= limit {
			txUncertainty = max(txUncertainty, h)
		}
	}
	return txUncertainty
}

// delay is the difference of the packet's timestamps; false if it has no usable ones.
func (r *run) delay(p *Packet) (time.Duration, bool) {
	limit := r.txUncertainty
	if p.Segment < r.o.Load || r.o.After > 0 && p.Segment >= r.o.After {
		limit = r.idleUncertainty
	}
	return p.Arrived.Sub(p.Sent), p.Arrived != 0 && p.TXUncertainty <= limit
}

// smallest is the smallest delay of any packet; zero if there is none.
func (r *run) smallest(packets []Packet) time.Duration {
	all := r.delays(packets)
	if len(all) == 0 {
		return 0
	}
	return slices.Min(all)
}

// delays are those of the packets that have one.
func (r *run) delays(packets []Packet) (all []time.Duration) {
	for i := range packets {
		if d, ok := r.delay(&packets[i]); ok {
			all = append(all, d)
		}
	}
	return all
}

// length is the duration of the load.
func (r *run) length() time.Duration {
	if n := len(r.load); n > 0 {
		return r.elapsed(r.load[n-1].Sent)
	}
	return 0
}

// elapsed is the sender's time t since the load's begin.
func (r *run) elapsed(t instant.Time) time.Duration { return t.Sub(r.begin) }

// arrivedAt is the arrival of a packet since the load's begin, less the smallest delay.
func (r *run) arrivedAt(p *Packet) time.Duration { return p.Arrived.Sub(r.begin) - r.shift }

// drift is the largest drift of the clocks in d.
func (r *run) drift(d time.Duration) time.Duration { return duration(r.o.Drift * seconds(d)) }

// part is a part of the load, in the sender's time since its begin.
type part struct{ from, to time.Duration }

func (p part) length() time.Duration { return p.to - p.from }

func (p part) holds(t time.Duration) bool { return t >= p.from && t <= p.to }

// window is the load without its first and last part (5 s in the thesis).
func (r *run) window() part {
	skip := min(max(r.o.Skip, 0), r.length()/SkipPart)
	return part{skip, r.length() - skip}
}

// seconds and duration convert, rounded to the nanosecond.
func seconds(d time.Duration) float64 { return float64(d) / 1e9 }

func duration(s float64) time.Duration { return time.Duration(math.Round(s * 1e9)) }

// Analyze evaluates a run: the packets of one direction in sending order. It takes at most some 1 us a packet, and
// memory for a few numbers each.
func Analyze(packets []Packet, o Options) Result {
	r := newRun(packets, o)
	res := Result{Sent: len(r.load)}
	if len(r.load) == 0 {
		res.Evidence = "no load was sent"
		return res
	}
	for i := range r.load {
		if r.load[i].Arrived != 0 {
			res.Received++
		}
	}
	if !r.possible() {
		res.Evidence, res.Impossible = "the timestamps are invalid: not in order, or of more than a day", true
		return res
	}
	res.PerSecond, res.First = r.series()
	if r.base.n > 0 {
		res.Idle = Duration{Value: r.base.least, Bound: r.o.StampError + r.idleUncertainty + r.base.early, OK: true}
	}
	w := r.window()
	res.From, res.To = w.from, w.to
	res.Offered, res.Loss = r.offered(w)
	res.Throughput, res.Mean = r.throughput(w), r.rateOf(w)
	if res.Loss == 0 { // its seconds are those without a standstill of the sender, which Offered includes up to minPause
		res.Throughput, res.Mean = min(res.Throughput, res.Offered), min(res.Mean, res.Offered)
	}
	interrupted := res
	interrupted.Evidence, interrupted.Interrupted = r.interruption(), true
	switch {
	case r.mostlyOut():
		return interrupted
	case res.Received < minReceived:
		res.Evidence = "too few packets arrived"
	default:
		r.judge(&res)
	}
	// What the losses before an outage tell of a link that was full stays.
	if (res.State == Unknown || res.State == NotFilled) && interrupted.Evidence != "" {
		return interrupted
	}
	return res
}

// minReceived is the least number of received packets; maxRun the longest run, and maxDisorder how much earlier than
// the previous packet one may be sent: a remote end may send invalid timestamps.
const (
	minReceived = 20
	maxRun      = 24 * time.Hour
	maxDisorder = time.Second
)

// possible reports whether the timestamps of the load are possible.
func (r *run) possible() bool {
	before := time.Duration(0)
	for i := range r.load {
		p := &r.load[i]
		t := r.elapsed(p.Sent)
		if t < before-maxDisorder || t > maxRun {
			return false
		}
		before = max(before, t)
		if a := r.arrivedAt(p); p.Arrived != 0 && (a < -maxDisorder || a > maxRun) {
			return false
		}
	}
	return r.length() > 0
}

// offered is the send rate in a part without the pauses of the sender, and the share of its packets that was lost.
func (r *run) offered(w part) (rate, loss float64) {
	sent, lost, bytes := 0, 0, 0.0
	for i := range r.load {
		if p := &r.load[i]; w.holds(r.elapsed(p.Sent)) {
			sent++
			bytes += float64(p.IPBytes)
			if p.Arrived == 0 {
				lost++
			}
		}
	}
	length := w.length() - r.paused(w)
	if sent == 0 || length <= 0 {
		return 0, 0
	}
	return bytes / seconds(length), float64(lost) / float64(sent)
}

// paused is the time of a part in which the sender paused: a load server without packets from the receiver, or a kernel that
// refuses all. A host that is late for a shorter time sends the packets afterwards, so that this time counts.
func (r *run) paused(w part) (sum time.Duration) {
	interval := r.length() / time.Duration(max(len(r.load)-1, 1))
	limit := max(r.pauseLimit, minPause, pauseIntervals*interval)
	for i := 1; i < len(r.load); i++ {
		from, to := max(r.elapsed(r.load[i-1].Sent), w.from), min(r.elapsed(r.load[i].Sent), w.to)
		if r.load[i].Sent.Sub(r.load[i-1].Sent) > limit {
			sum += max(to-from-interval, 0)
		}
	}
	return sum
}

// minPause is the shortest pause of a sender, and pauseIntervals the least number of its mean intervals.
const (
	minPause       = 200 * time.Millisecond
	pauseIntervals = 10
)
