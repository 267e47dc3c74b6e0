package train

import (
	"math/rand/v2"
	"slices"
	"time"

	"oneway.example/exporter/estimate/capacity"
	"oneway.example/exporter/estimate/order"
	"oneway.example/exporter/instant"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/stream"
	"oneway.example/exporter/traffic/udp"
)

// campaign decides how many trains of one size go in one direction, how long they are and
// how far apart. It sends nothing.
type campaign struct {
	opts     Options
	verdicts []capacity.Verdict
	clean    int // of them
	// mayPass: one met what may go away.
	mayPass bool
	// length is that of the next trains, in packets.
	length int
	// gaps are the times that the link took for a packet, in the mean of each train.
	gaps []time.Duration
	// prefixes are, of the trains lost in a row up to now, the packets before the first
	// loss.
	prefixes []int
	// sent are the trains of the group under way.
	sent int
	// long: the trains are to be long, and what comes before a loss is one.
	long bool
}

// newCampaign begins with trains of length packets.
func newCampaign(o Options, length int) *campaign {
	return &campaign{opts: o, length: min(max(length, minPackets), o.TrainPackets)}
}

// lostInARow is after how many lost trains the next ones are made shorter. Trains lost by
// chance are not; ones that the queue does not hold are lost always.
const lostInARow = 3

// hopeless is how many trains in a row may be contaminated, and none clean, by what does
// not go away: the sender's pace, the receiver's interrupts, a shaper's bucket.
const hopeless = 10

// next is how many trains are to be sent now, and whether after a pause; zero: it is over.
func (c *campaign) next() (trains int, pause bool) {
	discarded := len(c.verdicts) - c.clean
	if c.clean >= c.opts.Trains || discarded > c.opts.Repeats || c.clean == 0 && len(c.verdicts) >= hopeless && !c.mayPass {
		return 0, false
	}
	pause = c.sent >= c.opts.Group
	if pause {
		c.sent = 0
	}
	if len(c.gaps) == 0 || c.verdicts[len(c.verdicts)-1].Result == capacity.Lost {
		return 1, pause // alone: it is not known how far apart they must be, or how long they may be
	}
	// Few at first: one train that was held up on its way must not say how far apart many are.
	return min(c.opts.Trains-c.clean, c.opts.Group-c.sent, c.opts.Repeats-discarded+1, 2*len(c.verdicts)), pause
}

// interval is the time from train to train: as configured, or longer, so that no train
// meets the one before it in the queue of the slowest link and the remote end's limit of the
// rate is kept. limit is in bytes of UDP payload a second, 0: none.
func (c *campaign) interval(payload int, limit float64) time.Duration {
	d := c.opts.TrainInterval
	if len(c.gaps) > 0 {
		took := order.Quantile(order.Sorted(c.gaps), 0.5) * time.Duration(c.length)
		d = max(d, min(took*apart/100, maxApart))
	}
	return min(max(d, leastTime(c.length*payload, limit)), maxInterval)
}

// apart is the least distance of two trains, in hundredths of the time that the link takes
// for one: delay varies. Beyond maxApart, what takes the time is not the link.
const (
	apart    = 125
	maxApart = 10 * time.Second
)

// observe takes what came of a train.
func (c *campaign) observe(t capacity.Train, v capacity.Verdict) {
	c.verdicts = append(c.verdicts, v)
	c.sent++
	if v.Result == capacity.Clean {
		c.clean++
	}
	c.mayPass = c.mayPass || v.Result == capacity.Lost || v.Result == capacity.Reordered || v.Result == capacity.Duplicated
	if d, ok := gap(t); ok {
		c.gaps = append(c.gaps, d)
	}
	if v.Result != capacity.Lost {
		c.prefixes = c.prefixes[:0]
		return
	}
	c.prefixes = append(c.prefixes, max(0, slices.IndexFunc(t.Packets, func(p capacity.Packet) bool { return p.Lost })))
	if len(c.prefixes) < lostInARow {
		return
	}
	// A queue that is too short lets the same number pass each time; chance does not, and
	// takes less away this way. Some room is left to the traffic of others.
	c.length = max(minPackets, min(slices.Max(c.prefixes)*9/10, c.length-1))
	c.prefixes = c.prefixes[:0]
}

// gap is how long the link took for a packet of a train: of those that arrived, the mean
// time from one to the next.
func gap(t capacity.Train) (time.Duration, bool) {
	var came []instant.Time
	for _, p := range t.Packets {
		if !p.Lost && p.Arrived != 0 {
			came = append(came, p.Arrived)
		}
	}
	if len(came) < 2 {
		return 0, false
	}
	return slices.Max(came).Sub(slices.Min(came)) / time.Duration(len(came)-1), true
}

// slots is up to how much later than its interval a train begins, at random: a link that sends
// in slots of up to so much would otherwise meet each train at the same point of one.
const slots = 20 * time.Millisecond

// segments are a number of trains as a stream: each a burst of so many packets back to back.
func segments(payload, trains, packets int, interval time.Duration) []stream.Segment {
	all := make([]stream.Segment, trains)
	for i := range all {
		all[i] = stream.Segment{Pause: rand.N(slots), PayloadBytes: payload, Interval: interval, Burst: packets, Bursts: 1}
	}
	return all
}

// untilLoss is what comes before a train's first loss: what a queue or a policer let pass.
func untilLoss(t capacity.Train) capacity.Train {
	if i := slices.IndexFunc(t.Packets, func(p capacity.Packet) bool { return p.Lost }); i >= 0 {
		t.Packets = t.Packets[:i]
	}
	return t
}

// trainsOf divides a transfer of such a segment into its trains. Those that were not sent
// to their end, because the transfer was cut, are left out. ipBytes is what each packet
// moves in IP bytes, those of its fragments included.
func trainsOf(t *udp.Transfer, packets, ipBytes int) (all []capacity.Train) {
	for i := 0; i+packets <= len(t.Packets); i += packets {
		one := capacity.Train{IPBytes: ipBytes, Packets: make([]capacity.Packet, packets)}
		for j := range packets {
			one.Packets[j] = packetOf(&t.Packets[i+j])
		}
		all = append(all, one)
	}
	return all
}

// packetOf is one packet for the estimator. One that the sender's kernel refused is not
// lost: it has no stamps.
func packetOf(p *udp.Packet) capacity.Packet {
	q := capacity.Packet{Sent: kernelStamp(p.Sent), Lost: p.Lost()}
	if p.Copies > 0 && p.Sent.Present() {
		q.Arrived, q.Duplicates = kernelStamp(p.Arrived), int(p.Copies)-1
	}
	return q
}

// kernelStamp is a stamp's time if the kernel or the card took it: what user space reads
// beside its system calls says nothing of how far apart packets are.
func kernelStamp(s sample.Stamp) instant.Time {
	if s.Origin == sample.Kernel || s.Origin == sample.Hardware {
		return s.At
	}
	return 0
}
