// Package links tests load tests against paths with a known bottleneck, recorded
// and synthetic, with the truth of each run. It is a simulation: no clock, no socket.
package links

import (
	"math/rand/v2"
	"slices"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/estimate/queue"
	"oneway.example/tests/bottleneck"
)

// Path is one direction from sender to receiver.
type Path struct {
	Name       string
	Bottleneck bottleneck.Config
	// Delay is that of a lone packet, Jitter the width of a uniform addition.
	Delay, Jitter time.Duration
	// Loss is the loss ratio after the queue. Retransmit is the share of packets that take
	// RetransmitDelay more, once or several times; those behind wait for them.
	Loss, Retransmit float64
	RetransmitDelay  time.Duration
	// Grow is added to the delay from GrowAt of the load on.
	Grow   time.Duration
	GrowAt time.Duration
	// Outage is the duration without arrivals from OutageAt of the load on.
	Outage, OutageAt time.Duration
	// Offset and Drift are those of the receiver's clock, Slew its slew within a second in the
	// middle of the load.
	Offset, Slew time.Duration
	Drift        float64
	// Fades are times since the start of the load, from and to, with total loss behind the
	// bottleneck.
	Fades [][2]time.Duration
}

// Sender is a load test.
type Sender struct {
	Size    int
	Offered float64 // bits a second
	Length  time.Duration
	// Idle packets before and after the load, with the mean distance Every.
	Idle  int
	Every time.Duration
	// Late is the mean lateness of the sender, Pause the duration of its pause at PauseAt.
	Late           time.Duration
	Pause, PauseAt time.Duration
}

// Truth is the truth of a run.
type Truth struct {
	// Outs are the outcomes at the bottleneck, by packet of the run.
	Outs []bottleneck.Out
	// Own is this test's backlog in bytes at the arrival of each packet.
	Own []int
	// Arrived is the arrival of each by a true clock; zero: lost.
	Arrived []instant.Time
	// Load is the first packet of the load, End the first after it.
	Load, End int
}

// Epoch is the time of the first packet.
const Epoch = instant.Time(1_700_000_000_000_000_000)

type event struct {
	at   time.Duration
	own  int // packet of the run
	size int
}

// Run simulates the sender's load over the path.
func (p Path) Run(s Sender, seed uint64) ([]queue.Packet, Truth) {
	rng := rand.New(rand.NewPCG(seed, 0x6c696e6b))
	var truth Truth
	at, segments := s.schedule(rng, &truth)
	packets := make([]queue.Packet, len(at))
	events := make([]event, 0, len(at))
	for i, t := range at {
		size := s.Size
		packets[i] = queue.Packet{Sent: Epoch.Add(t), IPBytes: size, TXUncertainty: 10 * time.Microsecond, Segment: segments[i]}
		events = append(events, event{t, i, size})
	}
	p.carry(events, packets, &truth, rng, seed)
	return packets, truth
}

func (p Path) carry(events []event, packets []queue.Packet, truth *Truth, rng *rand.Rand, seed uint64) {
	truth.Outs = make([]bottleneck.Out, len(packets))
	truth.Own = make([]int, len(packets))
	truth.Arrived = make([]instant.Time, len(packets))
	loadBegin := packets[truth.Load].Sent
	var last instant.Time
	emit := func(o bottleneck.Out) {
		i := int(o.ID)
		truth.Outs[i] = o
		if o.Outcome != bottleneck.Left {
			return
		}
		if rng.Float64() < p.Loss || p.fades(o.At.Sub(loadBegin)) {
			return
		}
		t := o.At.Add(p.Delay)
		if p.Jitter > 0 {
			t = t.Add(time.Duration(rng.Int64N(int64(p.Jitter))))
		}
		for p.Retransmit > 0 && rng.Float64() < p.Retransmit {
			t = t.Add(p.RetransmitDelay)
		}
		since := o.At.Sub(loadBegin)
		if since >= p.GrowAt {
			t = t.Add(p.Grow)
		}
		if e := t.Sub(loadBegin); p.Outage > 0 && e >= p.OutageAt && e < p.OutageAt+p.Outage {
			t = loadBegin.Add(p.OutageAt + p.Outage)
		}
		t = max(t, last)
		last = t
		truth.Arrived[i] = t
		clock := p.Offset + time.Duration(p.Drift*float64(t-Epoch))
		if half := packets[truth.End-1].Sent.Sub(loadBegin) / 2; p.Slew != 0 {
			clock += time.Duration(min(max(t.Sub(loadBegin)-half, 0), time.Second).Seconds() * float64(p.Slew))
		}
		packets[i].Arrived = t.Add(clock)
	}
	l := bottleneck.New(p.Bottleneck, seed, emit)
	for _, e := range events {
		l.Enter(bottleneck.Packet{ID: uint64(e.own), Size: e.size, Entry: Epoch.Add(e.at)})
	}
	l.Advance(Epoch.Add(events[len(events)-1].at + time.Hour))
	p.own(packets, truth)
}

// own counts the test's own backlog at the arrival of each packet: of packets that left,
func (p Path) fades(since time.Duration) bool {
	return slices.ContainsFunc(p.Fades, func(f [2]time.Duration) bool { return since >= f[0] && since < f[1] })
}

// or were dropped, later.
func (p Path) own(packets []queue.Packet, truth *Truth) {
	type leaving struct {
		at   instant.Time
		size int
	}
	var all []leaving
	for _, o := range truth.Outs {
		if o.Outcome != bottleneck.Refused {
			all = append(all, leaving{o.At, o.Size})
		}
	}
	slices.SortFunc(all, func(a, b leaving) int { return int(a.at - b.at) })
	in, gone, k := 0, 0, 0
	for i, o := range truth.Outs {
		for k < len(all) && all[k].at <= o.Entry {
			gone += all[k].size
			k++
		}
		truth.Own[i] = max(in-gone, 0)
		if o.Outcome != bottleneck.Refused {
			in += o.Size
		}
	}
}

// schedule has the departures of packets, and the segment of each: 0 idle, 1 load, 2 idle again.
func (s Sender) schedule(rng *rand.Rand, truth *Truth) (at []time.Duration, segments []int) {
	t := time.Duration(0)
	idle := func(segment int) {
		for range s.Idle {
			at, segments = append(at, t), append(segments, segment)
			t += s.Every/2 + time.Duration(rng.Int64N(int64(s.Every)))
		}
	}
	idle(0)
	truth.Load = len(at)
	begin, before := t, t
	for due := time.Duration(0); due < s.Length; due += time.Duration(float64(s.Size) * 8e9 / s.Offered) {
		t := due + time.Duration(rng.ExpFloat64()*float64(s.Late))
		if s.Pause > 0 && t >= s.PauseAt && t < s.PauseAt+s.Pause {
			continue
		}
		before = max(before+2*time.Microsecond, begin+t)
		at, segments = append(at, before), append(segments, 1)
	}
	truth.End = len(at)
	t = before + s.Every
	idle(2)
	return at, segments
}
