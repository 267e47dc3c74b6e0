package stamp

import (
	"net/netip"
	"slices"
	"strconv"

	"oneway.example/exporter/metric"
	"oneway.example/exporter/sample"
)

// observed are the histograms, updated for each packet; all other series are updated from snapshots.
type observed struct {
	lateness, roundTrip, residence metric.Series
	ways                           [2]observedDirection
}

// directionTotals is the number of counters of a direction.
const directionTotals = 11

// counter is a counter's kept handle and its exported total.
type counter struct {
	handle metric.Series // nil: not opened
	shown  uint64
}

// gauge is a gauge's kept handle and its exported value.
type gauge struct {
	handle  metric.Series // nil: no value yet
	shown   maybe[float64]
	written bool
}

// reasonTotals are the exported totals of the counters by reason. Most reasons never occur, so no handles are kept.
type reasonTotals struct {
	invalid       [2][reasonCount]uint64
	noRoundTrip   [reasonCount]uint64
	skipped       [skipReasons]uint64
	discarded     [discardReasons]uint64
	lowConfidence [lowConfidenceReasons]uint64
}

type observedDirection struct{ delay, pdv, ipdv, burst metric.Series }

// series are all series of a path.
type series struct {
	scope    *metric.Scope
	slim     bool // of profile slim
	observed observed
	snapshot *snapshot // being published
	show     func()
	window   *window // last published one
	// Gauges and counters that may change each second. A series is looked up at its first value and written when
	// its value changes.
	totals                                                     [2][directionTotals]counter
	stamps                                                     *[events][sample.FollowUp + 1]counter // nil: profile slim has none
	roundTripsLost, roundTripsReceived, restarts               counter
	hopChanges                                                 [2]counter
	jitter, outstanding, hops, dscp                            [2]gauge
	up, remoteSynchronized, remoteBound, lastSuccess, interval gauge
	stampErrorAssumed, stampErrorCalibrated                    gauge
	marks                                                      [2]marks // as shown
	reasons                                                    reasonTotals
	// info is the labels of the current peer and reflector kind.
	info []string
	peer netip.AddrPort
	kind remoteKind
	// received are the published totals.
	received [2]uint64
}

func newSeries(sink metric.Sink, path, probe string) *series {
	return seriesOf(metric.NewScope(sink, path, probe), metric.ProfileOf(sink) == metric.Slim)
}

// anew closes s and returns the series of the path's next session: its counters continue.
func (s *series) anew() *series {
	s.scope.Drop(metric.PathInfo, s.info...)
	return seriesOf(s.scope.Renew(), s.slim)
}

func seriesOf(c *metric.Scope, slim bool) *series {
	s := &series{scope: c, slim: slim, observed: observed{
		lateness: c.Series(metric.ProbeLateness), roundTrip: c.Series(metric.RoundTripTime), residence: c.Series(metric.Residence),
	}}
	for _, d := range sample.Directions() {
		dir := d.String()
		s.observed.ways[d] = observedDirection{
			delay: c.Series(metric.Delay, dir), pdv: c.Series(metric.DelayVariation, dir),
			ipdv: c.Series(metric.IPDV, dir), burst: c.Series(metric.LossBurst, dir),
		}
	}
	if !slim {
		s.stamps = new([events][sample.FollowUp + 1]counter)
	}
	s.show = func() {
		v := s.snapshot
		for _, d := range sample.Directions() {
			s.publishDirection(d, &v.directions[d])
			s.publishHops(d, v.hops[d])
			s.publishMarks(d, v.marks[d])
		}
		if v.window != nil && v.window != s.window {
			s.window = v.window
			s.publishWindow(v.window)
		}
		s.publishCounts(v)
		s.publishState(v)
	}
	return s
}

// publish updates the series in such an order that the sums are consistent in every scrape.
func (s *series) publish(v *snapshot) {
	s.snapshot = v
	s.scope.Update(s.show)
	s.snapshot = nil
}

// total updates a counter, and opens it at its first total, which may be zero.
func (s *series) total(c *counter, d *metric.Desc, total uint64, more ...string) {
	switch {
	case c.handle == nil:
		c.handle = s.scope.Series(d, more...)
	case c.shown == total:
		return
	}
	c.shown = total
	c.handle.SetTotal(float64(total))
}

// setIf sets a gauge if the value is known, and removes it otherwise.
func (s *series) setIf(g *gauge, d *metric.Desc, v float64, known bool, more ...string) {
	if !known {
		v = 0
	}
	now := maybe[float64]{v, known}
	if g.written && g.shown == now {
		return
	}
	g.written, g.shown = true, now
	if !known {
		s.scope.SetIf(d, 0, false, more...) // a previous session of the path may have set it
		return
	}
	if g.handle == nil {
		g.handle = s.scope.Series(d, more...)
	}
	g.handle.Set(v)
}

func (s *series) publishState(v *snapshot) {
	remote := v.remote.known && v.up
	s.setIf(&s.up, metric.ProbeUp, metric.Flag(v.up), v.decided)
	s.setIf(&s.remoteSynchronized, metric.RemoteClockSynchronized, metric.Flag(v.remote.synchronized), remote)
	s.setIf(&s.remoteBound, metric.RemoteClockErrorBound, v.remote.bound.Seconds(), remote && v.remote.synchronized)
	s.setIf(&s.lastSuccess, metric.ProbeLastSuccess, float64(v.lastSuccess.UnixNano())/1e9, !v.lastSuccess.IsZero())
	s.setIf(&s.interval, metric.ProbeInterval, v.opts.Interval.Seconds(), true)
	s.setIf(&s.stampErrorAssumed, metric.StampErrorBound, v.stampError.Seconds(), !v.calibrated, "assumed")
	s.setIf(&s.stampErrorCalibrated, metric.StampErrorBound, v.stampError.Seconds(), v.calibrated, "calibration")
	if s.info == nil || v.peer != s.peer || v.kind != s.kind {
		s.scope.Drop(metric.PathInfo, s.info...)
		s.peer, s.kind, s.info = v.peer, v.kind, v.facts()
		s.scope.Set(metric.PathInfo, 1, s.info...)
	}
}

func (s *series) publishCounts(v *snapshot) {
	s.total(&s.roundTripsLost, metric.RoundTripLost, v.roundTripsLost)
	s.total(&s.roundTripsReceived, metric.RoundTripReceived, v.roundTripsReceived)
	s.total(&s.restarts, metric.RemoteRestarts, v.restarts)
	s.publishReasons(v)
	if s.stamps == nil {
		return
	}
	for i := range v.stamps {
		event := [events]string{"t1", "t2", "t3", "t4"}[i]
		for origin, n := range v.stamps[i] {
			switch {
			case n == 0:
			case sample.Origin(origin) == sample.Absent:
				s.total(&s.stamps[i][origin], metric.TimestampsMissing, n, event)
			default:
				s.total(&s.stamps[i][origin], metric.Timestamps, n, event, sample.Origin(origin).String())
			}
		}
	}
}

// publishReasons looks up the counters of the reasons that occurred since the last call.
func (s *series) publishReasons(v *snapshot) {
	shown := &s.reasons
	if v.noRoundTrip == shown.noRoundTrip && v.skipped == shown.skipped && v.discarded == shown.discarded && v.lowConfidence == shown.lowConfidence {
		return
	}
	for i, n := range v.noRoundTrip {
		s.ifAny(metric.RoundTripInvalid, n-shown.noRoundTrip[i], n, sample.Reason(i).String())
	}
	for i, n := range v.skipped {
		s.ifAny(metric.ProbeSkipped, n-shown.skipped[i], n, skipReason(i).String())
	}
	for i, n := range v.discarded {
		s.ifAny(metric.PacketsDiscarded, n-shown.discarded[i], n, discardReason(i).String())
	}
	for i, n := range v.lowConfidence {
		s.ifAny(metric.DirectionUnknown, n-shown.lowConfidence[i], n, lowConfidenceReason(i).String())
	}
	shown.noRoundTrip, shown.skipped, shown.discarded, shown.lowConfidence = v.noRoundTrip, v.skipped, v.discarded, v.lowConfidence
}

// ifAny publishes a total if it has grown: a reason that never occurs has no series.
func (s *series) ifAny(d *metric.Desc, more, total uint64, labels ...string) {
	if more > 0 {
		s.scope.Total(d, float64(total), labels...)
	}
}

func (s *series) publishDirection(dir sample.Direction, d *directionSnapshot) {
	label := dir.String()
	s.setIf(&s.jitter[dir], metric.Jitter, d.jitter.value, d.jitter.known, label)
	s.setIf(&s.outstanding[dir], metric.PacketsOutstanding, float64(d.outstanding.value), d.outstanding.known, label)
	if shown := &s.reasons.invalid[dir]; *shown != d.invalid {
		for i, n := range d.invalid {
			s.ifAny(metric.DelayInvalid, n-shown[i], n, label, sample.Reason(i).String())
		}
		*shown = d.invalid
	}
	// A packet that was counted as received and arrived too late is lost; it is published after another has been
	// received, since a counter does not decrease and no sum exceeds sent.
	if d.received.known {
		s.received[dir] = max(s.received[dir], d.received.value)
	}
	lost := d.lost
	lost.value -= min(lost.value, s.received[dir]-d.received.value)
	for i, one := range [directionTotals]struct {
		desc  *metric.Desc
		total maybe[uint64]
	}{
		{metric.DelayNegative, maybe[uint64]{d.negative, true}},
		{metric.DelayTXUncertainty, maybe[uint64]{d.txUncertain, d.txUncertain > 0}},
		{metric.DelayLowConfidence, maybe[uint64]{d.lowConfidence, d.lowConfidence > 0}},
		{metric.PacketsSent, d.sent},
		{metric.PacketsReceived, d.received},
		{metric.PacketsLost, lost},
		{metric.PacketsHostDropped, d.dropped},
		{metric.PacketsDuplicated, d.duplicated},
		{metric.PacketsReordered, d.reordered},
		{metric.PacketsLate, d.late},
		{metric.PacketsCorrupted, d.corrupted},
	} {
		if one.total.known {
			s.total(&s.totals[dir][i], one.desc, one.total.value, label)
		}
	}
}

func (s *series) publishHops(dir sample.Direction, h hops) {
	label := dir.String()
	s.setIf(&s.hops[dir], metric.Hops, float64(h.last.value), h.last.known, label)
	if h.last.known {
		s.total(&s.hopChanges[dir], metric.HopChanges, h.changes, label)
	}
}

// publishWindow publishes the values of a whole window.
func (s *series) publishWindow(w *window) {
	c := s.scope
	s.spread(w.roundTrip, metric.RoundTripTimeMin, metric.RoundTripTimeMax, metric.RoundTripTimeQuantile)
	c.SetIf(metric.DelayErrorComponent, w.parts.local.Seconds(), w.parts.any, "local_clock")
	c.SetIf(metric.DelayErrorComponent, w.parts.remote.Seconds(), w.parts.any, "remote_clock")
	c.SetIf(metric.DelayErrorComponent, w.parts.timestamps.Seconds(), w.parts.any, "timestamps")
	for _, dir := range sample.Directions() {
		d, label := &w.directions[dir], dir.String()
		s.spread(d.delay, metric.DelayMin, metric.DelayMax, metric.DelayQuantile, label)
		c.SetIf(metric.DelayErrorBound, d.delay.bound.value, d.delay.bound.known, label)
		c.SetIf(metric.LossRatio, d.lossRatio.value, d.lossRatio.known, label)
		c.SetIf(metric.LossBurstRatio, d.burstRatio.value, d.burstRatio.known, label)
		for _, v := range d.ratings {
			c.SetIf(metric.VoiceR, v.R, v.ok, label, v.codec, v.model, v.buffer)
			c.SetIf(metric.VoiceRError, v.off, v.ok, label, v.codec, v.model, v.buffer)
			c.SetIf(metric.VoiceMOS, v.MOS, v.ok, label, v.codec, v.model, v.buffer)
			if s.snapshot.opts.Impairments {
				c.SetIf(metric.VoiceDelayImpairment, v.Id, v.ok, label, v.codec, v.model, v.buffer)
				c.SetIf(metric.VoiceEquipmentImpairment, v.IeEff, v.ok, label, v.codec, v.model, v.buffer)
			}
			c.SetIf(metric.VoiceMouthToEar, v.MouthToEar.Seconds(), v.ok, label, v.codec, v.buffer)
			c.SetIf(metric.VoicePlayoutLoss, v.Loss, v.ok, label, v.codec, v.buffer)
		}
	}
}

func (s *series) spread(v spread, least, most, quantile *metric.Desc, more ...string) {
	s.scope.SetIf(least, v.min.value, v.min.known, more...)
	s.scope.SetIf(most, v.max.value, v.max.known, more...)
	for i, r := range ranks() {
		switch {
		case !s.slim || r.q == 0.5:
			s.scope.SetIf(quantile, v.ranks[i].value, v.ranks[i].known, append(slices.Clone(more), r.label)...)
		case r.q == 0.95 && quantile.StandIn() != nil:
			s.scope.SetIf(quantile.StandIn(), v.ranks[i].value, v.ranks[i].known, append(slices.Clone(more), r.label)...)
		}
	}
}

// facts are the labels of oneway_path_info after path and probe.
func (v *snapshot) facts() []string {
	family := "ipv6"
	if v.peer.Addr().Is4() {
		family = "ipv4"
	}
	return []string{v.peer.String(), family, strconv.Itoa(v.opts.DSCP), v.kind.String(), v.opts.Schedule, strconv.Itoa(v.opts.Size)}
}

// hubSeries are the series of a socket.
type hubSeries struct {
	scope          *metric.Scope
	hostTx, hostRx metric.Series
	name           string
}

func newHubSeries(sink metric.Sink, local netip.AddrPort) hubSeries {
	s := hubSeries{scope: metric.NewScope(sink), name: "sender_ipv6"}
	if local.Addr().Is4() {
		s.name = "sender_ipv4"
	}
	s.hostTx, s.hostRx = s.scope.Series(metric.HostDelay, "tx"), s.scope.Series(metric.HostDelay, "rx")
	s.scope.Series(metric.SocketDrops, s.name)
	return s
}
