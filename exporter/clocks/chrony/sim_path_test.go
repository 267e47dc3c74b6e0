package chrony

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/core/bound"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/wire/timefmt"
)

// simPath carries a test packet every simEvery from one host to another and back. What a
// session and a reflector do with the stamps is done here as they do it: the remote end
// tells its bound in the Error Estimate of its reply; the sender concludes when the
// next reply tells the true T3, and takes the worse of what its own clock said when
// it sent and when it concludes. The stamps themselves are exact, and nothing is added
// to the bound for their error: what is left over is the clocks' own.
type simPath struct {
	simulation    *simulation
	local, remote *simHost
	// delays is the least delay of each direction; packets wait longer, at random.
	delays  func(at time.Duration) (forward, back time.Duration)
	phases  []*simPhase
	waiting []*simPacket
	// forgetful has the sender read its clock only when it concludes.
	forgetful bool
}

// simPacket is one packet and the truth of it.
type simPacket struct {
	packet    sample.Packet
	steps     uint64
	local     sample.Bound // when it was sent
	truth     [2]time.Duration
	sent      time.Duration
	worthless bool // one of the clocks was worth nothing while it traveled
}

// simPhase is a part of the day and what became of its packets.
type simPhase struct {
	name      string
	from      time.Duration
	delays    int // two of each packet
	valid     int
	covered   int
	forbidden int // valid, though a clock was worth nothing
	bounds    []time.Duration
	worst     time.Duration
	reasons   map[sample.Reason]int
	states    map[clock.State]int
	missed    []string // the first that were not covered
}

func (p *simPath) run(until time.Duration) {
	p.simulation.at(p.simulation.now+time.Duration(p.simulation.random.Int64N(int64(time.Second))), p.send)
	p.simulation.run(until)
}

func (p *simPath) phase(at time.Duration) *simPhase {
	i := len(p.phases) - 1
	for i > 0 && p.phases[i].from > at {
		i--
	}
	return p.phases[i]
}

func (p *simPath) look(k *simPacket) {
	for _, h := range []*simHost{p.local, p.remote} {
		k.worthless = k.worthless || h.worthless()
	}
}

func (p *simPath) wait(least time.Duration) time.Duration {
	return least + time.Duration(p.simulation.random.ExpFloat64()*float64(least)/20)
}

func (p *simPath) send() {
	w := p.simulation
	w.at(w.now+simEvery, p.send)
	forward, back := p.delays(w.now)
	forward, back = p.wait(forward), p.wait(back)
	k := &simPacket{sent: w.now, truth: [2]time.Duration{forward, back}}
	k.packet.T1 = stampNow(p.local)
	q := p.local.quality()
	k.steps, k.local = q.Steps, q.Bound
	p.look(k)
	residence := time.Duration(50_000 + w.random.Int64N(200_000))
	w.at(w.now+forward, func() {
		p.look(k)
		k.packet.T2 = stampNow(p.remote)
		q := p.remote.quality()
		k.packet.Remote = remoteOf(q.ErrorEstimate(timefmt.NTP))
	})
	w.at(w.now+forward+residence, func() { k.packet.T3 = stampNow(p.remote) })
	w.at(w.now+forward+residence+back, func() {
		p.look(k)
		k.packet.T4 = stampNow(p.local)
		for _, old := range p.waiting {
			p.conclude(old)
		}
		p.waiting = append(p.waiting[:0], k)
	})
}

func stampNow(h *simHost) sample.Stamp { return sample.Stamp{At: h.wall(), Origin: sample.Kernel} }

func remoteOf(e timefmt.ErrorEstimate) sample.Bound {
	if !e.Synchronized() || !e.Valid() {
		return sample.Bound{Reason: sample.RemoteUnsynchronized}
	}
	return sample.Bound{Error: e.Bound(), Reason: sample.OK}
}

// delayOf has no part of the stamps in its bound: the simulated ones are exact.
func delayOf(p *sample.Packet, dir sample.Direction) sample.Delay {
	clocks := bound.Clocks(p.Local, p.Remote)
	d := sample.Delay{Value: p.T2.At.Sub(p.T1.At), Bound: clocks.Error, Reason: clocks.Reason}
	if dir == sample.Reverse {
		d.Value = p.T4.At.Sub(p.T3.At)
	}
	return d
}

func (p *simPath) conclude(k *simPacket) {
	q := p.local.quality()
	switch k.packet.Local = q.Bound; {
	case q.Steps != k.steps:
		k.packet.Local = sample.Bound{Reason: sample.LocalStepped}
	case p.forgetful:
	case q.Synchronized() && k.local.Reason != sample.OK:
		k.packet.Local = k.local
	case q.Synchronized():
		k.packet.Local.Error = max(q.Bound.Error, k.local.Error)
	}
	ph := p.phase(k.sent)
	ph.states[q.State]++
	for i, dir := range sample.Directions() {
		d := delayOf(&k.packet, dir)
		ph.delays++
		ph.reasons[d.Reason]++
		if !d.OK() {
			continue
		}
		ph.valid++
		ph.bounds = append(ph.bounds, d.Bound)
		wrong := (d.Value - k.truth[i]).Abs()
		ph.worst = max(ph.worst, wrong)
		if k.worthless {
			ph.forbidden++
		}
		if wrong <= d.Bound {
			ph.covered++
		} else if len(ph.missed) < 3 {
			ph.missed = append(ph.missed, fmt.Sprintf("%v %v: off by %v, bound %v (near %v, far %v)",
				k.sent, dir, d.Value-k.truth[i], d.Bound, k.packet.Local.Error, k.packet.Remote.Error))
		}
	}
}

// table is the figures of all phases.
func (p *simPath) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%-44s %8s %8s %9s %6s %12s %12s\n", "phase", "packets", "valid", "covered", "false", "median bound", "worst error")
	for _, ph := range append(slices.Clone(p.phases), p.total()) {
		fmt.Fprintf(&b, "%-44s %8d %8d %8.4f%% %6d %12v %12v\n", ph.name, ph.delays/2, ph.valid/2,
			100*ph.coverage(), ph.forbidden, ph.median().Round(100*time.Nanosecond), ph.worst.Round(100*time.Nanosecond))
	}
	return b.String()
}

func (p *simPath) total() *simPhase {
	t := &simPhase{name: "all"}
	for _, ph := range p.phases {
		t.delays += ph.delays
		t.valid += ph.valid
		t.covered += ph.covered
		t.forbidden += ph.forbidden
		t.worst = max(t.worst, ph.worst)
		t.bounds = append(t.bounds, ph.bounds...)
	}
	return t
}

func (ph *simPhase) coverage() float64 {
	if ph.valid == 0 {
		return 1
	}
	return float64(ph.covered) / float64(ph.valid)
}

func (ph *simPhase) median() time.Duration {
	if len(ph.bounds) == 0 {
		return 0
	}
	slices.SortFunc(ph.bounds, cmp.Compare)
	return ph.bounds[len(ph.bounds)/2]
}
