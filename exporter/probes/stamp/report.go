package stamp

import (
	"time"

	"oneway.example/exporter/estimate/delay"
	"oneway.example/exporter/sample"
)

// Report is what one measurement found. Durations are in seconds; what is not
// known is absent (null), never zero.
type Report struct {
	// Peer is the far end's address; Reflector what it turned out to be: oneway,
	// stateful, stateless, or unknown while it has not answered.
	Peer      string `json:"peer"`
	Reflector string `json:"reflector"`
	// SharedClock: both ends run on one kernel and read one clock, so that the
	// delays need no disciplined clock; their bound is that of the stamps.
	SharedClock bool `json:"shared_clock"`
	// Forward is from here to the peer, Reverse from the peer to here.
	Forward DirectionReport `json:"forward"`
	Reverse DirectionReport `json:"reverse"`
	// RoundTrip is free of clock error: (T4-T1)-(T3-T2).
	RoundTrip RoundTripReport `json:"round_trip"`
	// Skipped counts test packets that were due and not sent, by reason.
	Skipped map[string]uint64 `json:"skipped,omitempty"`
	// Discarded counts arrivals that belong to no test packet, by reason.
	Discarded map[string]uint64 `json:"discarded,omitempty"`
	// Stamps counts the stamps used, by event (t1..t4) and origin; "absent" are missing ones.
	Stamps map[string]map[string]uint64 `json:"stamps"`
	// StampError is what the bounds have for a receive stamp of this host's kernel.
	StampError ReceiveStamp `json:"stamp_error"`
	// Error is the last error that the network reported for the peer.
	Error string `json:"error,omitempty"`
}

// ReceiveStamp limits the error of a receive stamp, in seconds.
type ReceiveStamp struct {
	Seconds float64 `json:"seconds"`
	// Calibrated: it was measured on the path's interface; else it is assumed.
	Calibrated bool `json:"calibrated"`
}

// DirectionReport is one way of the path. With a reflector that does not tell
// the directions apart the loss counts are absent.
type DirectionReport struct {
	Sent     *uint64 `json:"sent"`
	Received *uint64 `json:"received"`
	Lost     *uint64 `json:"lost"`
	// HostDropped counts packets that the receiving host itself dropped: neither received nor
	// lost. Sent = Received + Lost + HostDropped + InFlight.
	HostDropped *uint64 `json:"host_dropped"`
	Duplicated  *uint64 `json:"duplicated"`
	Reordered   *uint64 `json:"reordered"`
	Late        *uint64 `json:"late"`
	Corrupted   *uint64 `json:"corrupted"`
	InFlight    *uint64 `json:"in_flight"`
	// LossBursts is the number of runs of lost packets, BurstRatio BurstR of
	// G.107 (absent without loss).
	BurstRatio *float64 `json:"burst_ratio"`
	// Delay is the one-way delay; lost packets count as infinite in its
	// quantiles. Absent without trusted clocks: Invalid says why.
	Delay *Distribution `json:"delay"`
	// ErrorBound is that of the smallest delay and of the median.
	ErrorBound *float64 `json:"error_bound"`
	// IPDV is signed (RFC 3393); PDV is delay minus its minimum (RFC 5481).
	IPDV *Distribution `json:"ipdv"`
	PDV  *Distribution `json:"pdv"`
	// Jitter is that of RFC 3550.
	Jitter *float64 `json:"jitter"`
	// Negative counts delays that are below zero by more than their bound: proof of a clock fault.
	Negative uint64 `json:"negative"`
	// LowConfidence counts valid delays that are smaller than their own bound: of such a
	// delay not even the sign is known. They are part of every distribution.
	LowConfidence uint64 `json:"low_confidence"`
	// Held counts delays of packets that the sending host may have held for longer
	// than 25 us after their stamp: they may be too large by that.
	Held uint64 `json:"held"`
	// Invalid counts delays that could not be given a bound, by reason.
	Invalid map[string]uint64 `json:"invalid,omitempty"`
	Voice   []VoiceReport     `json:"voice,omitempty"`
}

// Distribution is in seconds. A quantile beyond what was received is absent:
// it is infinite.
type Distribution struct {
	Min *float64 `json:"min"`
	P50 *float64 `json:"p50"`
	P95 *float64 `json:"p95"`
	P99 *float64 `json:"p99"`
	Max *float64 `json:"max"`
	// ErrorBound: the true smallest delay and the true median lie within so much of
	// Min and P50. Variation has none.
	ErrorBound *float64 `json:"error_bound,omitempty"`
}

// RoundTripReport counts round trips and gives their distribution.
type RoundTripReport struct {
	Received uint64        `json:"received"`
	Lost     uint64        `json:"lost"`
	Time     *Distribution `json:"time"`
}

// VoiceReport is the rating of one codec with one kind of playout buffer.
type VoiceReport struct {
	Codec  string  `json:"codec"`
	Buffer string  `json:"buffer"`
	Model  string  `json:"model"`
	R      float64 `json:"r"`
	// ErrorBound is how far R may be from what the true delay would make it.
	ErrorBound float64 `json:"error_bound"`
	MOS        float64 `json:"mos"`
}

// collector keeps, beside a window, what only a report needs: the variation since the last
// step of a clock, as the delays themselves, since a constant offset of the clocks is no matter
// to what they are above the smallest.
type collector struct{ ipdv, delays [2]delay.Window }

func (c *collector) add(d sample.Direction, delay, ipdv time.Duration, paired bool) {
	c.delays[d].Add(plain(delay))
	if paired {
		c.ipdv[d].Add(plain(ipdv))
	}
}

// plain makes a sample.Delay of a difference that no clock offset touches.
func plain(v time.Duration) sample.Delay { return sample.Delay{Value: v, Reason: sample.OK} }

// report is the state of the session since its window began.
func (s *session) report() Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fwd.now.sent = s.flights.next
	r := Report{
		Peer: s.peer.String(), Reflector: s.kind.String(), SharedClock: s.shared,
		Forward: s.reportDirection(&s.fwd), Reverse: s.reportDirection(&s.rev),
		RoundTrip: RoundTripReport{
			Received: s.roundTrips.received, Lost: s.roundTrips.lost,
			Time: distribution(s.roundTrips.times.Snapshot(), 0),
		},
		Skipped: map[string]uint64{}, Discarded: map[string]uint64{}, Stamps: map[string]map[string]uint64{},
	}
	for i, n := range s.skipped {
		addIfAny(r.Skipped, skipReason(i).String(), n)
	}
	for i, n := range s.discarded {
		addIfAny(r.Discarded, discardReason(i).String(), n)
	}
	for event, name := range []string{"t1", "t2", "t3", "t4"} {
		r.Stamps[name] = map[string]uint64{}
		for origin, n := range s.stamps[event] {
			addIfAny(r.Stamps[name], sample.Origin(origin).String(), n)
		}
	}
	limit, calibrated := s.ends.Near.Receive()
	r.StampError = ReceiveStamp{limit.Seconds(), calibrated}
	if s.peerError != nil {
		r.Error = s.peerError.Error()
	}
	return r
}

func (s *session) reportDirection(d *direction) DirectionReport {
	r := DirectionReport{Negative: d.negative, LowConfidence: d.lowConfidence, Held: d.held, Invalid: map[string]uint64{}}
	for reason, n := range d.invalid {
		addIfAny(r.Invalid, sample.Reason(reason).String(), n)
	}
	n := d.now
	if d.dir == sample.Forward || d.known {
		r.Sent = &n.sent
	}
	if s.kind != farUnknown && (s.kind != farStateful || d.known) {
		r.Received = &n.received
	}
	if d.known {
		inFlight := n.inFlight()
		r.Lost, r.InFlight = &n.lost, &inFlight
		if s.dropsTold(d) {
			r.HostDropped = &n.dropped
		}
		if s.kind == farOurs || d.dir == sample.Reverse {
			r.Duplicated, r.Reordered, r.Late, r.Corrupted = &n.duplicated, &n.reordered, &n.late, &n.corrupted
		}
		if b, ok := d.losses.BurstRatio(); ok {
			r.BurstRatio = &b
		}
	}
	if window := s.summarise(d); window.Count > 0 {
		bound := window.bound.Seconds()
		r.Delay, r.ErrorBound = window.distribution(), &bound
	}
	r.IPDV = distribution(s.collect.ipdv[d.dir].Snapshot(), 0)
	all := s.collect.delays[d.dir].Snapshot()
	r.PDV = distribution(all, all.Min)
	if j, ok := d.variation.Jitter(); ok {
		seconds := j.Seconds()
		r.Jitter = &seconds
	}
	r.Voice = s.reportVoice(d)
	return r
}

// distribution has what the window may tell; nil if that is nothing.
func (w *summary) distribution() *Distribution {
	if !w.told() {
		return nil
	}
	var d Distribution
	for _, value := range []struct {
		of  **float64
		get func() (time.Duration, bool)
	}{
		{&d.Min, func() (time.Duration, bool) { return w.Min, true }},
		{&d.P50, func() (time.Duration, bool) { return w.Quantile(0.5) }},
		{&d.P95, func() (time.Duration, bool) { return w.Quantile(0.95) }},
		{&d.P99, func() (time.Duration, bool) { return w.Quantile(0.99) }},
		{&d.Max, func() (time.Duration, bool) { return w.Max, true }},
		{&d.ErrorBound, func() (time.Duration, bool) { return w.bound, true }},
	} {
		if v, ok := value.get(); ok {
			*value.of = new(v.Seconds())
		}
	}
	return &d
}

// distribution is nil for an empty window; every value is taken minus base.
func distribution(s delay.Snapshot, base time.Duration) *Distribution {
	if s.Count == 0 {
		return nil
	}
	at := func(q float64) *float64 {
		v, ok := s.Quantile(q)
		if !ok {
			return nil
		}
		seconds := (v - base).Seconds()
		return &seconds
	}
	least, most := (s.Min - base).Seconds(), (s.Max - base).Seconds()
	return &Distribution{Min: &least, P50: at(0.5), P95: at(0.95), P99: at(0.99), Max: &most}
}

func addIfAny(m map[string]uint64, key string, n uint64) {
	if n > 0 {
		m[key] = n
	}
}
