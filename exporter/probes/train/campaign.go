package train

import (
	"slices"
	"time"

	"oneway.example/exporter/estimate/capacity"
	"oneway.example/exporter/instant"
)

// campaign decides how many trains of one size go in one direction, how long they are and
// how far apart. It sends nothing.
type campaign struct {
	opts     Options
	verdicts []capacity.Verdict
	// length is that of the next trains, in packets.
	length int
	// gaps are the times that the link took for a packet, in the mean of each train.
	gaps []time.Duration
	// unsure: the last train was lost, and perhaps because it was too long.
	unsure bool
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
	clean := c.clean()
	discarded := len(c.verdicts) - clean
	if clean >= c.opts.Trains || discarded > c.opts.Repeats || c.isHopeless(clean) {
		return 0, false
	}
	pause = c.sent >= c.opts.Group
	if pause {
		c.sent = 0
	}
	if len(c.gaps) == 0 || c.unsure {
		return 1, pause // alone: it is not known how far apart they must be, or how long they may be
	}
	// Few at first: one train that was held up on its way must not say how far apart many are.
	return min(c.opts.Trains-clean, c.opts.Group-c.sent, c.opts.Repeats-discarded+1, 2*len(c.verdicts)), pause
}

func (c *campaign) clean() (n int) {
	for _, v := range c.verdicts {
		if v.Result == capacity.Clean {
			n++
		}
	}
	return n
}

func (c *campaign) isHopeless(clean int) bool {
	return clean == 0 && len(c.verdicts) >= hopeless && !slices.ContainsFunc(c.verdicts, func(v capacity.Verdict) bool {
		return v.Result == capacity.Lost || v.Result == capacity.Reordered || v.Result == capacity.Duplicated
	})
}

// interval is the time from train to train: as configured, or longer, so that no train
// meets the one before it in the queue of the slowest link and the far end's limit of the
// rate is kept. limit is in octets of UDP payload a second, 0: none.
func (c *campaign) interval(payload int, limit float64) time.Duration {
	d := c.opts.TrainInterval
	if len(c.gaps) > 0 {
		gaps := slices.Sorted(slices.Values(c.gaps))
		took := gaps[(len(gaps)-1)/2] * time.Duration(c.length)
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
	if d, ok := gap(t); ok {
		c.gaps = append(c.gaps, d)
	}
	c.unsure = v.Result == capacity.Lost
	if !c.unsure {
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
	var first, last instant.Time
	n := 0
	for _, p := range t.Packets {
		if p.Lost || p.Arrived.IsZero() {
			continue
		}
		if n++; n == 1 {
			first, last = p.Arrived, p.Arrived
		}
		first, last = min(first, p.Arrived), max(last, p.Arrived)
	}
	if n < 2 {
		return 0, false
	}
	return last.Sub(first) / time.Duration(n-1), true
}
