package train

import (
	"math/rand/v2"
	"slices"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/estimate/capacity"
	"oneway.example/exporter/estimate/orderstat"
	"oneway.example/exporter/load/stream"
	"oneway.example/exporter/load/traffictypes/udptraffic"
)

// trainPlan decides how many trains of one size are sent in one direction, their length and their interval. It sends
// nothing.
type trainPlan struct {
	opts     Options
	verdicts []capacity.Verdict
	trains   []capacity.Train // of verdicts
	evaluate capacity.Options // the largest errors of a transfer
	clean    int              // clean ones
	// transient: a train was discarded for a transient reason.
	transient bool
	// length is the length of the next trains, in packets.
	length int
	// gaps are the link's times for a packet, the mean of each train.
	gaps []time.Duration
	// prefixes are the numbers of packets before the first loss, of the trains lost in a row so far.
	prefixes []int
	// queue: several in a row lost packets after about the same number.
	queue bool
	// sent counts the trains of the current group.
	sent int
	// long: a long train is to be sent; the packets before its first loss count as one.
	long bool
	// doubles: each train is twice as long as the one before, until the last length; lasting is the number of trains with it.
	doubles, last bool
	lasting       int
}

// newTrainPlan begins with trains of length packets.
func newTrainPlan(o Options, length int) *trainPlan {
	return &trainPlan{opts: o, length: min(max(length, minPackets), o.TrainPackets)}
}

// lostInARow is the number of consecutive lossy trains after which the next ones are shorter. Random losses are
// rarely consecutive; a queue that is too short loses every time.
const lostInARow = 3

// maxDiscarded is the number of consecutive trains, none clean, that may be discarded for a permanent reason: the
// sender's pacing, the receiver's interrupts, a shaper's token bucket.
const maxDiscarded = 10

// next returns how many trains to send now, and whether after a pause; zero: the plan is complete.
func (c *trainPlan) next() (trains int, pause bool) {
	if c.doubles {
		return c.nextDouble(), false
	}
	discarded := len(c.verdicts) - c.clean
	if c.clean >= c.opts.Trains || discarded > c.opts.Repeats || c.clean == 0 && len(c.verdicts) >= maxDiscarded && !c.transient {
		return 0, false
	}
	pause = c.sent >= c.opts.Group
	if pause {
		c.sent = 0
	}
	if len(c.gaps) == 0 || c.verdicts[len(c.verdicts)-1].Result == capacity.Lost {
		return 1, pause // one train: the required interval and length are unknown
	}
	// Few at first: one delayed train must not determine the interval of many.
	return min(c.opts.Trains-c.clean, c.opts.Group-c.sent, c.opts.Repeats-discarded+1, 2*len(c.verdicts)), pause
}

// interval is the time between starts of trains: as configured, or longer, so that no train queues behind the
// previous one at the slowest link, and the remote end's rate limit is kept. limit is in bytes of UDP payload a
// second, 0: none.
func (c *trainPlan) interval(payload int, limit float64) time.Duration {
	d := c.opts.TrainInterval
	if len(c.gaps) > 0 {
		took := orderstat.Quantile(orderstat.Sorted(c.gaps), 0.5) * time.Duration(c.length)
		d = max(d, min(took*apart/100, maxApart))
	}
	return min(max(d, minTime(c.length*payload, limit)), maxInterval)
}

// apart is the least interval of trains in hundredths of the link's time for one, since delays vary. Above maxApart
// the time is not that of the link.
const (
	apart    = 125
	maxApart = 10 * time.Second
)

// observe adds the result of a train.
func (c *trainPlan) observe(t capacity.Train, v capacity.Verdict) {
	c.verdicts, c.trains = append(c.verdicts, v), append(c.trains, t)
	c.sent++
	if v.Result == capacity.Clean {
		c.clean++
	}
	c.transient = c.transient || v.Result == capacity.Lost || v.Result == capacity.Reordered || v.Result == capacity.Duplicated
	if d, ok := gap(t); ok {
		c.gaps = append(c.gaps, d)
	}
	if c.doubles {
		c.double(t, v)
		return
	}
	if v.Result != capacity.Lost {
		c.prefixes = c.prefixes[:0]
		return
	}
	if !slices.ContainsFunc(t.Packets, func(p capacity.Packet) bool { return !p.Lost }) {
		return // the path was interrupted: the shortest queue holds the first packet
	}
	c.prefixes = append(c.prefixes, max(0, slices.IndexFunc(t.Packets, func(p capacity.Packet) bool { return p.Lost })))
	if len(c.prefixes) < lostInARow {
		return
	}
	// A queue that is too short passes the same number each time; random loss does not, and reduces the length
	// less. A tenth is left to cross traffic.
	c.queue = c.queue || slices.Max(c.prefixes) <= slices.Min(c.prefixes)*5/4
	c.length = max(minPackets, min(slices.Max(c.prefixes)*9/10, c.length-1))
	c.prefixes = c.prefixes[:0]
}

// nextDouble is the number of trains to send now if they double.
func (c *trainPlan) nextDouble() int {
	buckets := 0
	for _, v := range c.verdicts[len(c.verdicts)-c.lasting:] {
		if v.Result == capacity.TokenBucket {
			buckets++
		}
	}
	if c.last && (c.lasting >= longTrains+1 || buckets >= longTrains || buckets == 0 && c.lasting >= longTrains-1) {
		return 0
	}
	return 1
}

// double adds a train, and sets the length of the next one: twice, unless the link would need more than longest at the rate of the end of
// this train. The train after one that has emptied a bucket has the last length, unless it has emptied none.
func (c *trainPlan) double(t capacity.Train, v capacity.Verdict) {
	n, bucket := len(t.Packets), v.Result == capacity.TokenBucket
	end, ok := gap(capacity.Train{Packets: t.Packets[n-n/4:]})
	took, _ := gap(t)
	if bucket && ok {
		c.gaps = append(c.gaps[:0], end) // until the bucket is full again: all bytes of the train at its rate
	}
	most := c.opts.TrainPackets
	if end > 0 {
		most = min(most, n+int((longest-took*time.Duration(n))/end))
	}
	next := min(longFactor*c.length, most)
	if c.last && (bucket || next <= c.length) {
		c.lasting++
		return
	}
	c.last, c.lasting = bucket || next <= c.length || next == c.opts.TrainPackets, 0
	c.length = max(c.length, next)
}

// gap is the link's time for a packet of a train: the mean interval of the packets that arrived.
func gap(t capacity.Train) (time.Duration, bool) {
	var received []instant.Time
	for _, p := range t.Packets {
		if !p.Lost && p.Arrived != 0 {
			received = append(received, p.Arrived)
		}
	}
	if len(received) < 2 {
		return 0, false
	}
	return slices.Max(received).Sub(slices.Min(received)) / time.Duration(len(received)-1), true
}

// startJitter is the largest random delay of a train's start: a link with transmission startJitter of at most this
// length would otherwise receive each train at the same position in a slot.
const startJitter = 20 * time.Millisecond

// segments returns trains as a stream: each is a burst of packets back to back.
func segments(payload, trains, packets int, interval time.Duration) []stream.Segment {
	all := make([]stream.Segment, trains)
	for i := range all {
		all[i] = stream.Segment{Pause: rand.N(startJitter), PayloadBytes: payload, Interval: interval, Burst: packets, Bursts: 1}
	}
	return all
}

// untilLoss is the part of a train before its first loss, passed by a queue or a policer.
func untilLoss(t capacity.Train) capacity.Train {
	if i := slices.IndexFunc(t.Packets, func(p capacity.Packet) bool { return p.Lost }); i >= 0 {
		t.Packets = t.Packets[:i]
	}
	return t
}

// trainsOf divides a transfer of such segments into its trains, without those that were not sent completely because
// the transfer was cut. ipBytes is the size of each packet in IP bytes, with the headers of its fragments.
func trainsOf(t *udptraffic.Transfer, packets, ipBytes int) (all []capacity.Train) {
	for i := 0; i+packets <= len(t.Packets); i += packets {
		one := capacity.Train{IPBytes: ipBytes, Packets: make([]capacity.Packet, packets)}
		for j := range packets {
			one.Packets[j] = packetOf(&t.Packets[i+j])
		}
		all = append(all, one)
	}
	return all
}

// packetOf converts one packet for the estimator. A packet that the sender's kernel refused is not lost: it has no
// timestamps.
func packetOf(p *udptraffic.Packet) capacity.Packet {
	q := capacity.Packet{Sent: kernelStamp(p.Sent), Lost: p.Lost()}
	if p.Copies > 0 && p.Sent.Present() {
		q.Arrived, q.Duplicates = kernelStamp(p.Arrived), int(p.Copies)-1
	}
	return q
}

// kernelStamp returns a timestamp of the kernel or the card, else zero: user-space timestamps do not give the
// distance of packets.
func kernelStamp(s sample.Stamp) instant.Time {
	if s.Origin == sample.Kernel || s.Origin == sample.Hardware {
		return s.At
	}
	return 0
}
