// Package working evaluates light test packets that were sent during a load test: their delay, variation and loss, and
// the voice quality that these give, while the link was idle and while it was loaded in each direction (RFC 9318,
// section 4.2.4: working latency).
//
// A packet belongs to the part of the run in which it was sent (T1), from the first packet of a load to the last one that
// its sender sent: also the first moment, in which the queue fills, since others meet it too. Packets between and after the
// loads, while a queue drains, belong to no part.
package working

import (
	"cmp"
	"math"
	"slices"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/estimate/delay"
	"oneway.example/exporter/estimate/orderstat"
	"oneway.example/exporter/estimate/voice"
)

// Packet is what is kept of a record.Packet.
type Packet struct {
	seq, reverseSeq, restarts uint64
	sent                      instant.Time
	roundTrip                 time.Duration // noTime: unknown
	delays                    [2]transit    // by direction
	outcome                   record.Outcome
}

// transit is the delay of one direction.
type transit struct {
	value, bound time.Duration
	reason       sample.Reason
	tooLate      bool
}

const noTime = -1 << 63

// Keep returns what is kept of a packet. If it arrived before it was sent, beyond its error bound, one of the clocks is wrong: neither of its
// delays is valid.
func Keep(p *record.Packet) Packet {
	k := Packet{seq: p.Seq, reverseSeq: p.ReverseSeq, restarts: p.Restarts, sent: p.T1.At, roundTrip: noTime, outcome: p.Outcome}
	for d, v := range [2]sample.Delay{p.Forward, p.Reverse} {
		k.delays[d] = transit{v.Value, v.Bound, v.Reason, p.TooLate[d]}
	}
	if p.Forward.OK() && p.T2.At.Sub(p.T1.At) < -p.Forward.Bound || p.Reverse.OK() && p.T4.At.Sub(p.T3.At) < -p.Reverse.Bound {
		k.delays[sample.Forward].reason, k.delays[sample.Reverse].reason = sample.ClocksApart, sample.ClocksApart
	}
	if rtt, ok := p.RoundTrip(); ok && p.Outcome == record.Received {
		k.roundTrip = rtt
	}
	return k
}

// ClocksApart reports whether the packet proves that one of the clocks is wrong.
func (k *Packet) ClocksApart() bool {
	return k.delays[sample.Forward].reason == sample.ClocksApart || k.delays[sample.Reverse].reason == sample.ClocksApart
}

// Span is a time, its ends included.
type Span struct{ From, To instant.Time }

func (s Span) contains(t instant.Time) bool { return s.From <= t && t <= s.To }

// Load is the time in which a direction was loaded.
type Load struct {
	Direction sample.Direction
	Span
}

// Loaded are the directions of the load.
type Loaded string

// The values of Loaded.
const (
	None    Loaded = "none"
	Forward Loaded = "forward"
	Reverse Loaded = "reverse"
	Both    Loaded = "both"
)

// MinPackets is the least number of packets of a value.
const MinPackets = 10

// Quantiles are in seconds.
type Quantiles struct {
	P50 float64 `json:"p50"`
	// P95 is absent if values that are not known could change it.
	P95 *float64 `json:"p95,omitempty"`
	// ErrorBound is the largest bound of the values, and how far unknown ones can move the quantiles; absent for differences of one clock.
	ErrorBound *float64 `json:"error_bound,omitempty"`
}

// Way is one direction in one part. Unknown values are absent.
type Way struct {
	Decided int `json:"decided_packets"`
	Lost    int `json:"lost_packets"`
	// Loss needs 10 decided packets, and none that is not decided: after the last reply nobody knows which direction lost them.
	// LossLimits replace it then.
	Loss       *float64    `json:"loss_ratio,omitempty"`
	LossLimits *LossLimits `json:"loss_ratio_limits,omitempty"`
	// Delay needs 10 valid delays of packets that arrived; lost ones are in Loss only, so that Delay is the one of those
	// packets that others receive. The delay of a packet that arrived is not known if its reply was lost or a clock is not trusted, nor
	// the delay of an undecided one: a quantile that these could change by more than the bound and a tenth of the median is absent.
	// Reason is why Delay is absent.
	Delay  *Quantiles `json:"delay_seconds,omitempty"`
	Reason string     `json:"reason,omitempty"`
	// Variation is the delay less the least one of the part (RFC 5481).
	Variation *Quantiles `json:"delay_variation_seconds,omitempty"`
	// R is that of a G.711 call. It needs Delay and Loss, and packets of unknown delay must not change it by more than
	// 10. RStep is its largest change by these, or if one packet more, or one less, had been lost: R of few packets is
	// coarse.
	R     *float64 `json:"r_factor,omitempty"`
	RStep *float64 `json:"r_factor_step,omitempty"`
}

// LossLimits are the limits of an unknown loss ratio, 0..1.
type LossLimits struct {
	// Low is the ratio if none of the undecided packets was lost in the direction, High if all were.
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	// Undecided are the packets that no later reply assigns to a direction.
	Undecided int `json:"undecided_packets"`
}

// limits returns the limits of the loss of a direction with undecided packets. In reverse only those were sent that were not
// lost forward.
func (w *Way) limits(d sample.Direction, undecided int) *LossLimits {
	all := w.Decided + undecided
	l := &LossLimits{Low: float64(w.Lost) / float64(all), High: float64(w.Lost+undecided) / float64(all), Undecided: undecided}
	if d == sample.Reverse {
		l.Low = float64(w.Lost) / float64(max(1, w.Decided))
	}
	return l
}

// Part is the result of one part of the run.
type Part struct {
	Loaded  Loaded `json:"loaded"`
	Packets int    `json:"sent_packets"`
	// RoundTrip leaves out the time in the reflector. It needs 10 replies.
	RoundTrip *Quantiles `json:"round_trip_time_seconds,omitempty"`
	// RoundTrips is 60 s divided by the median round trip.
	RoundTrips *float64 `json:"round_trips_per_minute,omitempty"`
	Forward    Way      `json:"forward"`
	Reverse    Way      `json:"reverse"`
}

// Way returns one direction.
func (p *Part) Way(d sample.Direction) *Way {
	if d == sample.Forward {
		return &p.Forward
	}
	return &p.Reverse
}

// loads reports whether a direction was loaded, alone or with the other one.
func (l Loaded) loads(d sample.Direction) bool {
	return l == Both || l == [2]Loaded{Forward, Reverse}[d]
}

// knows reports whether a part has a value of a direction, or of the round trip.
func (p *Part) knows(d sample.Direction) bool {
	w := p.Way(d)
	return w.Delay != nil || w.Loss != nil || w.LossLimits != nil || p.RoundTrip != nil
}

// UnderLoad returns the part that is the result of a direction under its own load, as the page, the metrics and so the alert have it: of those in
// which it was loaded, alone or with the other one, and that have a value, the one with the most packets. Where both directions send, one of
// them alone often has a few packets at the beginning or at the end, which are not the load (RFC 9318 section 4.2.4: working conditions). Without
// a value it is the one with the most packets; nil: the direction was not loaded while packets were sent.
func UnderLoad(parts []Part, d sample.Direction) (own *Part) {
	for i := range parts {
		p := &parts[i]
		if !p.Loaded.loads(d) {
			continue
		}
		if own == nil || p.knows(d) && !own.knows(d) || p.knows(d) == own.knows(d) && p.Packets >= own.Packets {
			own = p
		}
	}
	return own
}

// Shown reports whether a part has the result of a direction: each part without a load of the direction, and of the others UnderLoad.
func Shown(parts []Part, i int, d sample.Direction) bool {
	return !parts[i].Loaded.loads(d) || &parts[i] == UnderLoad(parts, d)
}

// Evaluate returns the parts that have packets: idle is the time before the loads. It sorts the packets.
func Evaluate(packets []Packet, idle Span, loads []Load) (parts []Part) {
	packets = unique(packets)
	if slices.ContainsFunc(packets, func(p Packet) bool { return p.ClocksApart() }) {
		Disprove(packets)
	}
	outcomes := judge(packets)
	loaded := spansOf(loads)
	in := map[Loaded][]int{}
	for i := range packets {
		if part, any := partOf(packets[i].sent, idle, &loaded); any {
			in[part] = append(in[part], i)
		}
	}
	for _, part := range []Loaded{None, Forward, Reverse, Both} {
		if len(in[part]) > 0 {
			parts = append(parts, evaluate(part, packets, outcomes, in[part]))
		}
	}
	return parts
}

// Disprove makes all delays invalid: one packet, or other traffic of the run, has proven a clock wrong, and whether a delay is negative
// depends on the queue, too, not on the clocks alone. Since when the clock is wrong is not known.
func Disprove(packets []Packet) {
	for i := range packets {
		for d := range packets[i].delays {
			if one := &packets[i].delays[d]; one.reason == sample.OK {
				one.reason = sample.ClocksApart
			}
		}
	}
}

// spans are in order and do not overlap.
type spans []Span

// spansOf joins the loads of each direction.
func spansOf(loads []Load) (all [2]spans) {
	loads = slices.Clone(loads)
	slices.SortFunc(loads, func(a, b Load) int { return cmp.Compare(a.From, b.From) })
	for _, l := range loads {
		s := &all[l.Direction]
		if n := len(*s); n > 0 && l.From <= (*s)[n-1].To {
			(*s)[n-1].To = max((*s)[n-1].To, l.To)
			continue
		}
		*s = append(*s, l.Span)
	}
	return all
}

func (s spans) contain(t instant.Time) bool {
	i, _ := slices.BinarySearchFunc(s, t, func(one Span, t instant.Time) int { return cmp.Compare(one.To, t) })
	return i < len(s) && s[i].contains(t)
}

// unique sorts the packets by number. A late one was recorded before as lost.
func unique(packets []Packet) []Packet {
	slices.SortStableFunc(packets, func(a, b Packet) int { return cmp.Compare(a.seq, b.seq) })
	kept := packets[:0]
	for _, p := range packets {
		if n := len(kept); n > 0 && kept[n-1].seq == p.seq {
			kept[n-1] = p
			continue
		}
		kept = append(kept, p)
	}
	return kept
}

// partOf returns the part in which a packet was sent at t, if it is in one.
func partOf(t instant.Time, idle Span, loaded *[2]spans) (Loaded, bool) {
	switch [2]bool{loaded[sample.Forward].contain(t), loaded[sample.Reverse].contain(t)} {
	case [2]bool{true, true}:
		return Both, true
	case [2]bool{true, false}:
		return Forward, true
	case [2]bool{false, true}:
		return Reverse, true
	}
	return None, idle.contains(t)
}

// outcome is what became of a packet in one direction.
type outcome uint8

const (
	undecided outcome = iota
	arrived
	lost
)

// judge returns the outcomes of packets in both directions. The reflector numbers its replies: where k numbers of replies
// are missing between two replies, k of the packets between them were lost in reverse, and the others forward. If both
// happened between two replies, the order is unknown, and the first ones count as lost forward. Packets after the last
// reply, and those between two sessions of the reflector, stay undecided.
func judge(packets []Packet) [][2]outcome {
	outcomes := make([][2]outcome, len(packets))
	last := -1 // the last answered packet
	for i := range packets {
		p := &packets[i]
		if p.outcome == record.Lost {
			continue
		}
		for d := range p.delays {
			if outcomes[i][d] = arrived; p.delays[d].tooLate {
				outcomes[i][d] = lost
			}
		}
		asked, replied, known := p.seq, p.reverseSeq, true
		if last >= 0 {
			before := &packets[last]
			known = before.restarts == p.restarts && p.reverseSeq > before.reverseSeq
			asked, replied = p.seq-before.seq-1, p.reverseSeq-before.reverseSeq-1
		}
		if known && replied <= asked {
			missing(packets[last+1:i], outcomes[last+1:i], asked-replied)
		}
		last = i
	}
	return outcomes
}

// missing sets the outcomes of packets without a reply, of which the first so many were lost forward.
func missing(packets []Packet, outcomes [][2]outcome, forward uint64) {
	for i := range packets {
		if uint64(i) < forward {
			outcomes[i][sample.Forward] = lost
		} else {
			outcomes[i] = [2]outcome{arrived, lost}
		}
	}
}

func evaluate(loaded Loaded, packets []Packet, outcomes [][2]outcome, in []int) Part {
	p := Part{Loaded: loaded, Packets: len(in)}
	var trips []time.Duration
	for _, i := range in {
		if t := packets[i].roundTrip; t != noTime {
			trips = append(trips, t)
		}
	}
	if len(trips) >= MinPackets {
		slices.Sort(trips)
		p.RoundTrip = quantiles(trips, 0)
		if median := p.RoundTrip.P50; median > 0 {
			perMinute := 60 / median
			p.RoundTrips = &perMinute
		}
	}
	for _, d := range sample.Directions() {
		*p.Way(d) = way(packets, outcomes, in, d)
	}
	return p
}

// quantiles are those of ascending values less base.
func quantiles(ascending []time.Duration, base time.Duration) *Quantiles {
	return &Quantiles{P50: (orderstat.Quantile(ascending, 0.5) - base).Seconds(), P95: new((orderstat.Quantile(ascending, 0.95) - base).Seconds())}
}

// known are the quantiles of a window less base that unknown delays do not change; nil: not even the median.
func known(s delay.Snapshot, base time.Duration) *Quantiles {
	median, ok := s.Quantile(0.5)
	if !ok {
		return nil
	}
	q := &Quantiles{P50: (median - base).Seconds()}
	if v, ok := s.Quantile(0.95); ok {
		q.P95 = new((v - base).Seconds())
	}
	return q
}

// way evaluates one direction.
func way(packets []Packet, outcomes [][2]outcome, in []int, d sample.Direction) (w Way) {
	var delays []time.Duration
	var window delay.Window
	var bound time.Duration
	bursts, lostBefore, unknown := 0, false, 0
	reasons := map[sample.Reason]int{}
	for _, i := range in {
		f := outcomes[i][d]
		if outcomes[i][sample.Forward] == undecided { // a packet that was lost forward is known not to reach the other
			unknown++
		}
		if f == undecided {
			continue
		}
		w.Decided++
		if f == lost {
			w.Lost++
			if !lostBefore {
				bursts++
			}
		}
		lostBefore = f == lost
		v := &packets[i].delays[d]
		switch {
		case f == lost:
		case packets[i].outcome == record.Lost:
			window.AddUndefined()
		case v.reason == sample.OK:
			delays, bound = append(delays, v.value), max(bound, v.bound)
			window.Add(sample.Delay{Value: v.value, Bound: v.bound, Reason: sample.OK})
		default:
			reasons[v.reason]++
			window.AddUndefined()
		}
	}
	switch {
	case unknown > 0 && len(in) >= MinPackets:
		w.LossLimits = w.limits(d, unknown)
	case w.Decided >= MinPackets:
		ratio := float64(w.Lost) / float64(w.Decided)
		w.Loss = &ratio
	}
	if len(delays) < MinPackets {
		w.Reason = why(reasons, len(delays), "few_packets")
		return w
	}
	var open delay.Open
	if d == sample.Forward { // in reverse this host knows which arrived
		open.Undecided = uint64(unknown)
	}
	all := window.SnapshotOf(open)
	if w.Delay, w.Variation = known(all, 0), known(all, all.Min); w.Delay == nil {
		w.Reason = why(reasons, len(delays), UnknownDelays)
		return w
	}
	if all.Unknown() > 0 {
		bound = max(bound, all.Bound(0.95))
	}
	w.Delay.ErrorBound = new(bound.Seconds())
	if w.Loss == nil {
		return w
	}
	path := voice.Path{Delay: all.Min, Decided: uint64(w.Decided), Lost: uint64(w.Lost), Bursts: uint64(bursts)}
	if r, off := rate(path, delays, all.Unknown()); r != nil && off <= voice.MostUnknown {
		w.R, w.RStep = r, new(max(off, step(path, delays, *r)))
	}
	return w
}

// step is the largest change of r if one packet more, or one less, had been lost.
func step(path voice.Path, delays []time.Duration, r float64) (largest float64) {
	other := func(lost, bursts uint64) {
		p := path
		p.Lost, p.Bursts = lost, min(bursts, lost)
		if v, _ := rate(p, delays, 0); v != nil {
			largest = max(largest, math.Abs(*v-r))
		}
	}
	if path.Lost < path.Decided {
		other(path.Lost+1, path.Bursts+1)
	}
	if path.Lost > 0 {
		other(path.Lost-1, path.Bursts)
	}
	return largest
}

// UnknownDelays is Way.Reason where packets of unknown delay could change the median.
const UnknownDelays = "unknown_delays"

// why is the most frequent reason of invalid delays, if they are more than the valid ones, or else the other reason.
func why(reasons map[sample.Reason]int, valid int, other string) string {
	best, most := other, valid
	for _, r := range sample.Reasons() {
		if reasons[r] > most {
			best, most = r.String(), reasons[r]
		}
	}
	return best
}

// rate returns R of a call with G.711 and an adaptive playout buffer, and by how much packets of unknown delay may change it; delays
// are in the order of sending.
func rate(path voice.Path, delays []time.Duration, unknown uint64) (r *float64, off float64) {
	codec, err := voice.CodecByName("G.711")
	model, missing := voice.ModelByName(voice.NameG107)
	if err != nil || missing != nil {
		return nil, 0
	}
	buffer := voice.AdaptivePlayout(voice.MaxPlayout)
	for i, d := range delays {
		buffer.Add(uint64(i), d-path.Delay)
	}
	played := buffer.Snapshot()
	a, ok := path.Assess(codec, played, voice.Defaults(), model)
	if !ok {
		return nil, 0
	}
	return &a.R, path.RError(0, unknown, a.R, codec, played, voice.Defaults(), model)
}
