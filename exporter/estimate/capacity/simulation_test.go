package capacity

import (
	"math"
	"math/rand/v2"
	"time"

	"oneway.example/exporter/core/instant"
)

const (
	us    = time.Microsecond
	ms    = time.Millisecond
	epoch = instant.Time(1_700_000_000_000_000_000)
)

// simulation is the path of a train. The link is that of tests/lab: departure(n) = max(entry, departure(n-1) + 8
// size(n-1)/rate), then a delay and a jitter that never reorders.
type simulation struct {
	rate    float64 // bits a second
	delay   time.Duration
	jitter  time.Duration
	loss    float64
	offset  time.Duration // between the clocks
	sendGap time.Duration // of the sender, per packet
	stall   time.Duration // of the sender, before packet stallAt
	stallAt int
	noise   time.Duration // of the timestamps, standard deviation
	// bucket is how many bytes pass at line before rate applies.
	bucket float64
	line   float64
	// batch is the receiver's: packets wait for the next multiple of it, and then get timestamps batchGap apart.
	// merge gives that many consecutive packets one timestamp.
	batch, batchGap time.Duration
	merge           int
	swap, double    bool
	unstamped       bool
	// others send packets of otherBytes at random times, for a share of the rate; they are sent first.
	others     float64
	otherBytes int
	// moves changes the rate from train to train, and varies from packet to packet.
	moves, varies float64
}

func (w simulation) train(rng *rand.Rand, n, size int) Train {
	t := Train{IPBytes: size}
	sent, free, tokens, last := time.Duration(0), time.Duration(0), w.bucket, time.Duration(0)
	at := time.Duration(rng.Int64N(int64(time.Second)))
	var before time.Duration
	w.rate *= math.Exp(w.moves * rng.NormFloat64())
	mean := w.rate
	other := w.untilOther(rng)
	for i := range n {
		sent += w.sendGap + time.Duration(rng.ExpFloat64()*float64(500*time.Nanosecond))
		if i == w.stallAt {
			sent += w.stall
		}
		departure := max(sent, free)
		for ; other <= departure; other += w.untilOther(rng) {
			free = max(free, other) + time.Duration(float64(w.otherBytes)*8e9/w.rate)
			departure = max(departure, free)
		}
		if w.varies > 0 {
			w.rate = mean * math.Exp(w.varies*rng.NormFloat64())
		}
		tokens = min(w.bucket, tokens+(departure-before).Seconds()*w.rate/8) - float64(size)
		before = departure
		rate := w.rate
		if tokens >= 0 {
			rate = w.line
		}
		free = departure + time.Duration(float64(size)*8e9/rate)
		exit := departure + w.delay
		if w.jitter > 0 {
			exit += time.Duration(rng.Int64N(int64(w.jitter)))
		}
		last = max(last, exit)
		p := Packet{Sent: epoch.Add(at + sent), Arrived: epoch.Add(at + w.offset + last), Lost: rng.Float64() < w.loss}
		if p.Lost {
			p.Arrived = 0
		}
		t.Packets = append(t.Packets, p)
	}
	w.receive(rng, t.Packets)
	return t
}

// untilOther is the time to the next packet of cross traffic.
func (w simulation) untilOther(rng *rand.Rand) time.Duration {
	if w.others == 0 {
		return math.MaxInt64
	}
	return time.Duration(rng.ExpFloat64() * float64(w.otherBytes) * 8e9 / (w.others * w.rate))
}

// receive applies the receiving host's effects to the arrivals.
func (w simulation) receive(rng *rand.Rand, packets []Packet) {
	var last instant.Time
	for i := range packets {
		p := &packets[i]
		if p.Lost {
			continue
		}
		if w.batch > 0 {
			p.Arrived = max((p.Arrived/instant.Time(w.batch)+1)*instant.Time(w.batch), last.Add(w.batchGap))
		}
		if w.noise > 0 {
			p.Arrived = max(last, p.Arrived.Add(time.Duration(rng.ExpFloat64()*float64(w.noise))))
		}
		last = p.Arrived
	}
	for i := 0; w.merge > 1 && i < len(packets); i += w.merge {
		end := min(i+w.merge, len(packets))
		for j := i; j < end; j++ {
			packets[j].Arrived = packets[end-1].Arrived
		}
	}
	if w.swap {
		packets[3].Arrived, packets[4].Arrived = packets[4].Arrived, packets[3].Arrived
	}
	if w.double {
		packets[7].Duplicates = 1
	}
	if w.unstamped {
		packets[9].Sent = 0
	}
}
