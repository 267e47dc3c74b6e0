package stamp

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"time"

	"oneway.example/exporter/core/ipheader"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/estimate/voice"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/report"
	"oneway.example/exporter/probes/stamp/ledger"
)

// Status returns the state of the path for the landing page.
func (p *Prober) Status() probe.Status {
	s := p.session.Load()
	if s == nil {
		st := probe.Status{State: "starting"}
		why, sentence := p.peer.Unmeasurable()
		if why != "" {
			st = probe.Status{State: "waiting", Cause: string(why), Reason: sentence}
		}
		return st
	}
	s.mu.Lock()
	v := s.snapshot()
	s.mu.Unlock()
	st := v.status()
	if v.decided && !v.up {
		st.Reason = p.peer.Silence(st.Reason)
	}
	return st
}

func (v *snapshot) status() probe.Status {
	st := probe.Status{Up: v.up, State: "measuring", LastSuccess: v.LastSuccess.Time(), Results: v.results(), Light: v.light()}
	switch {
	case !v.decided:
		st.State = "waiting for the first reply"
	case v.up:
		st.Cause, st.Reason = v.defect()
	default:
		why, _ := v.failure()
		st.State, st.Cause, st.Reason = "no reply", string(why), v.silence()
	}
	return st
}

// silence is why there are no replies. A forged packet can change no more than this text (decision 17).
func (v *snapshot) silence() string {
	switch {
	case v.peerError != nil:
		return fmt.Sprintf("udp %s: %s", v.peer, v.explained())
	case v.refused.Known:
		return v.refusal()
	case v.RoundTripsReceived > 0:
		return fmt.Sprintf("udp %s has not replied since %s (%s before): its host or its reflector is down, hangs or limits its rate, %sor a firewall or a route has changed",
			v.peer, v.LastSuccess.Time().UTC().Format("2006-01-02 15:04:05 UTC"), replies(v.RoundTripsReceived), v.oversized())
	case v.AnsweredLate > 0:
		return fmt.Sprintf("udp %s sent %s later than loss_timeout (%v), and none in time: raise loss_timeout, or see which queue delays them", v.peer, replies(v.AnsweredLate), v.opts.LossTimeout)
	}
	key := "a reflector that requires a key"
	if len(v.opts.keys) > 0 {
		key = "another key"
	}
	return fmt.Sprintf("udp %s does not reply: no reflector (`oneway reflect`), a firewall, %sa reflector whose `allow` lacks this host, or %s: the `result` of oneway_reflector_packets_total at the remote end tells", v.peer, v.oversized(), key)
}

func replies(n uint64) string { return unit.Counted(n, "reply", "replies") }

// oversized is the cause that large packets have besides others: a router that drops them may send no message. Empty: the
// packets are small.
func (v *snapshot) oversized() string {
	size := v.opts.Size + ipheader.WithIP(v.peer.Addr().Unmap().Is6(), ipheader.UDP)
	if size <= ipheader.AnyPathBytes {
		return ""
	}
	return fmt.Sprintf("an MTU of the path below the %d bytes of its packets (lower payload_bytes to see), ", size)
}

// undirected is why losses of the last window have no direction; empty: they have one, or nothing was lost by a single reflector.
func (v *snapshot) undirected() string {
	complete := v.window != nil && v.window.lossRatio.Known && v.window.lossRatio.Value == 0
	switch {
	case v.Shared == ledger.SharedAddress:
		return "more than one reflector replies at this address, in turn: losses have no direction, and delays are of all of them. Measure to an address of each"
	case v.Kind != ledger.RemoteStateless || v.RoundTripsLost == 0 || complete:
		return ""
	case v.Shared == ledger.SharedByAll:
		return "the reflector numbers the replies to all of its senders together; losses have no direction"
	case v.Shared == ledger.SharedByHost:
		return "the reflector replies without session identifiers, and may number the replies to several probes of this host together; losses have no direction. Give each probe a local_port of its own"
	}
	return "the reflector does not number its replies; losses have no direction"
}

// defect is what makes a continuing measurement incomplete: in one word, a probe.Status.Cause, and in a sentence.
func (v *snapshot) defect() (cause, sentence string) {
	cause, sentence = v.delayDefect()
	if cause == "" && v.undirected() != "" {
		return probe.CauseStatelessReflector, v.undirected()
	}
	return cause, sentence
}

// delayDefect is the same of the delays.
func (v *snapshot) delayDefect() (cause, sentence string) {
	const invalid = "one-way delay is not valid: "
	switch {
	case !v.shared && v.local == sample.NoClock: // by the configuration: no defect
	case !v.shared && v.local != sample.OK:
		return v.local.String(), invalid + sample.InWords(v.local.String())
	case !v.shared && v.remoteReason != sample.OK && v.remoteReason != sample.Unknown:
		return v.remoteReason.String(), invalid + sample.InWords(v.remoteReason.String())
	case v.window != nil && v.window.parts.disproved:
		return probe.CauseNegativeDelays, fmt.Sprintf("delays of the last %.0f minutes were negative by more than their error bound: one of the clocks is wrong, and neither direction has an error bound or R", sample.FaultTime.Minutes())
	case v.window != nil && v.window.undelayed() != sample.Unknown:
		reason := v.window.undelayed().String()
		return reason, invalid + sample.InWords(reason)
	case v.contradictory:
		return probe.CausePathMinimum, "path_minimum exceeds what the path's delays allow, or a clock was stepped; the clocks' own bounds are used"
	}
	return "", ""
}

// measured: the last window has values.
func (v *snapshot) measured() bool {
	return v.window != nil && v.window.roundTrip.min.Known && v.RoundTripsReceived > 0
}

// light has the values of the last window.
func (v *snapshot) light() probe.LightValues {
	if !v.measured() {
		return probe.LightValues{}
	}
	r := v.ofWindow()
	return r.light()
}

// ofWindow is the report of the last window.
func (v *snapshot) ofWindow() Report {
	return Report{Forward: v.report(sample.Forward), Reverse: v.report(sample.Reverse), RoundTrip: v.roundTrip(), HostQueue: v.window.hostQueue.distribution()}
}

// results are those of the last window, for display.
func (v *snapshot) results() (all []probe.Result) {
	if !v.measured() {
		return nil
	}
	r := v.ofWindow()
	for i, d := range []*DirectionReport{&r.Forward, &r.Reverse} {
		add := func(r probe.Result) {
			r.Direction = sample.Direction(i).String()
			all = append(all, r)
		}
		if d.Delay != nil && d.Delay.P50 != nil {
			add(probe.Result{Quantity: "delay", Numbers: []report.Number{{Value: d.Delay.P50, Bound: d.Delay.ErrorBound, Unit: unit.Seconds}}})
		} else if v.local == sample.NoClock && !v.shared {
			add(probe.Result{Quantity: "delay", Value: "not measured"})
		}
		if d.Loss != nil {
			add(probe.Result{Quantity: "loss", Numbers: []report.Number{{Value: d.Loss, Unit: unit.Ratio}}})
		}
		if i := slices.IndexFunc(d.Voice, func(r VoiceReport) bool { return r.Model == voice.NameG107 }); i >= 0 {
			r := rating(&d.Voice[i])
			r.Quantity, r.Of = "R", d.Voice[i].Codec
			add(r)
		}
	}
	if r.RoundTrip.Loss != nil && (r.Forward.Loss == nil || r.Reverse.Loss == nil) { // a stateless reflector, or undecided packets
		all = append(all, probe.Result{Quantity: "loss", Numbers: []report.Number{{Value: r.RoundTrip.Loss, Unit: unit.Ratio}}})
	}
	if q := r.HostQueue; queued(q) && q.P50 != nil {
		all = append(all, probe.Result{Quantity: "wait in this host", Direction: sample.Forward.String(), Numbers: []report.Number{{Value: q.P50, Unit: unit.Seconds}}})
	}
	if t := r.RoundTrip.Time; t != nil && t.P50 != nil { // the median, as of the delays beside it
		all = append(all, probe.Result{Quantity: "round trip", Numbers: []report.Number{{Value: t.P50, Unit: unit.Seconds}}})
	}
	return all
}

// rating is R, with its bound where it matters.
func rating(v *VoiceReport) probe.Result {
	n := report.Number{Value: &v.R, Unit: unit.RFactor}
	if v.ErrorBound >= 0.5 {
		n.Bound = new(math.Ceil(v.ErrorBound))
	}
	return probe.Result{Numbers: []report.Number{n}}
}

// snapshot is the exported state of a session: for the series, the landing page and the terminal. It does not
// change.
type snapshot struct {
	opts      *Options // immutable
	peer      netip.AddrPort
	peerError error
	ledger.Tallies
	ledger.Faults
	clockState
	stamps      [events]stampCounts
	noRoundTrip [reasonCount]uint64 // replies without a valid round-trip time
	local       sample.Reason       // state of this host's clock
	// up: the peer replies; decided is false until enough time has passed.
	up, decided bool
	refused     ledger.Optional[ledger.DiscardReason] // since the last reply
	// refusedBytes is the length of the last refused packet.
	refusedBytes int
	repliesFrom  *netip.AddrPort
	directions   [2]directionSnapshot
	// stampError is the error limit of a receive timestamp of this host's kernel: calibrated, or assumed.
	stampError time.Duration
	calibrated bool
	window     *window // nil: none has ended
}

// directionSnapshot is the counts of one direction, as far as they are known.
type directionSnapshot struct {
	ledger.DirectionCounts
	jitter                               ledger.Optional[float64]
	negative, lowConfidence, txUncertain uint64
	invalid                              [reasonCount]uint64
}

// snapshot returns the current state. The caller holds s.mu.
func (s *session) snapshot() snapshot {
	a, e := s.account, s.estimator
	v := snapshot{
		opts: s.opts, peer: s.peer, peerError: s.peerError.present(s.lastFired, s.opts.Interval), Tallies: a.Tallies, Faults: a.Faults(), clockState: e.clockState, stamps: copied(e.stamps), window: s.window,
		local: e.clock.Quality(e.lastConcluded).Bound.Reason, refused: a.Refusal(),
		refusedBytes: s.refusedBytes, repliesFrom: s.repliesFrom,
	}
	if v.up, v.decided = a.Up(); s.full != nil {
		// The wait for the last outcomes may be longer than the time after which a path is down.
		v.up, v.decided = a.RoundTripsReceived > 0, true
	}
	v.stampError, v.calibrated = e.ends.Local.Receive()
	invalid := copied(e.invalid)
	v.noRoundTrip = invalid.roundTrips
	for _, dir := range sample.Directions() {
		w := &e.ways[dir]
		v.directions[dir] = directionSnapshot{
			DirectionCounts: a.Direction(dir), jitter: w.jitter(), negative: w.negative,
			lowConfidence: w.lowConfidence, txUncertain: w.txUncertain, invalid: invalid.delays[dir],
		}
	}
	return v
}
