package stamp

import (
	"net/netip"
	"slices"
	"strconv"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/probes/stamp/ledger"
)

// observed are the histograms, updated for each packet; all other series are updated from snapshots.
type observed struct {
	lateness, roundTrip, residence metric.Series
	ways                           [2]observedDirection
}

// directionTotals is the number of counters of a direction.
const directionTotals = 12

type observedDirection struct{ delay, pdv, ipdv, burst metric.Series }

// series are all series of a path.
type series struct {
	scope    *metric.Scope
	observed observed
	snapshot *snapshot // being published
	show     func()
	window   *window // last published one
	full     *full   // nil: profile slim
	// The counters and gauges that may change each second.
	totals             [2][directionTotals]metric.Place
	roundTripsLost, up metric.Place
	// received are the published totals.
	received [2]uint64
}

// full are the series that only profile full has.
type full struct {
	roundTripsReceived, restarts                           metric.Place
	hopChanges                                             [2]metric.Place
	jitter, outstanding, hops, dscp                        [2]metric.Place
	remoteSynchronized, remoteBound, lastSuccess, interval metric.Place
	stampErrorAssumed, stampErrorCalibrated                metric.Place
	stamps                                                 [events][sample.FollowUp + 1]metric.Place
	// The exported totals of counters that most paths do not have.
	trafficClass  [2]ledger.TrafficClass
	invalid       [2][reasonCount]uint64
	noRoundTrip   [reasonCount]uint64
	skipped       [ledger.SkipReasons]uint64
	discarded     [ledger.DiscardReasons]uint64
	lowConfidence [ledger.LowConfidenceReasons]uint64
	// The peer and reflector kind in the labels of oneway_path_info.
	peer netip.AddrPort
	kind ledger.RemoteKind
}

// seriesOf opens the series of a path in its scope.
func seriesOf(c *metric.Scope) *series {
	s := &series{scope: c}
	s.show = s.publishSnapshot
	s.open()
	return s
}

// renew begins the series of the path's next session: its counters continue.
func (s *series) renew() {
	s.scope.DropAll(metric.PathInfo)
	s.scope.Renew()
	s.received, s.window = [2]uint64{}, nil
	s.open()
}

// open opens the series that exist before the first packet.
func (s *series) open() {
	c := s.scope
	c.Series(metric.ResolveFailures)
	s.observed = observed{
		lateness: c.Series(metric.ProbeLateness), roundTrip: c.Series(metric.RoundTripTime), residence: c.Series(metric.Residence),
	}
	for _, d := range sample.Directions() {
		dir := d.String()
		s.observed.ways[d] = observedDirection{
			delay: c.Series(metric.Delay, dir), pdv: c.Series(metric.DelayVariation, dir),
			ipdv: c.Series(metric.IPDV, dir), burst: c.Series(metric.LossBurst, dir),
		}
	}
	if c.Profile() == metric.Full {
		s.full = new(full)
	}
}

// publish updates the series in such an order that the sums are consistent in every scrape.
func (s *series) publish(v *snapshot) {
	s.snapshot = v
	s.scope.Update(s.show)
	s.snapshot = nil
}

func (s *series) publishSnapshot() {
	v := s.snapshot
	for _, d := range sample.Directions() {
		s.publishDirection(d, &v.directions[d])
		if s.full != nil {
			s.publishHops(d, v.Hops[d])
			s.publishTrafficClass(d, v.TrafficClass[d])
		}
	}
	if v.window != nil && v.window != s.window {
		s.window = v.window
		s.publishWindow(v.window)
	}
	s.scope.TotalAt(&s.roundTripsLost, metric.RoundTripLost, v.RoundTripsLost)
	s.scope.SetIfAt(&s.up, metric.ProbeUp, metric.Flag(v.up), v.decided)
	if s.full != nil {
		s.publishCounts(v)
		s.publishState(v)
	}
}

func (s *series) publishState(v *snapshot) {
	c, f := s.scope, s.full
	remote := v.remote.known && v.up
	c.SetIfAt(&f.remoteSynchronized, metric.RemoteClockSynchronized, metric.Flag(v.remote.synchronized), remote)
	c.SetIfAt(&f.remoteBound, metric.RemoteClockErrorBound, v.remote.bound.Seconds(), remote && v.remote.synchronized)
	c.SetIfAt(&f.lastSuccess, metric.ProbeLastSuccess, float64(v.LastSuccess)/1e9, !v.LastSuccess.IsZero())
	c.SetIfAt(&f.interval, metric.ProbeInterval, v.opts.Interval.Seconds(), true)
	c.SetIfAt(&f.stampErrorAssumed, metric.TimestampErrorBound, v.stampError.Seconds(), !v.calibrated, "assumed")
	c.SetIfAt(&f.stampErrorCalibrated, metric.TimestampErrorBound, v.stampError.Seconds(), v.calibrated, "calibration")
	if v.peer != f.peer || v.Kind != f.kind {
		c.DropAll(metric.PathInfo)
		f.peer, f.kind = v.peer, v.Kind
		c.Set(metric.PathInfo, 1, v.facts()...)
	}
}

func (s *series) publishCounts(v *snapshot) {
	c, f := s.scope, s.full
	c.TotalAt(&f.roundTripsReceived, metric.RoundTripReceived, v.RoundTripsReceived)
	c.TotalAt(&f.restarts, metric.RemoteRestarts, v.Restarts)
	s.publishReasons(v)
	for i, event := range eventNames() {
		for origin, n := range v.stamps[i] {
			switch {
			case n == 0:
			case sample.Origin(origin) == sample.Absent:
				c.TotalAt(&f.stamps[i][origin], metric.TimestampsMissing, n, event)
			default:
				c.TotalAt(&f.stamps[i][origin], metric.Timestamps, n, event, sample.Origin(origin).String())
			}
		}
	}
}

// publishReasons looks up the counters of the reasons that occurred since the last call.
func (s *series) publishReasons(v *snapshot) {
	shown := s.full
	if v.noRoundTrip == shown.noRoundTrip && v.Skipped == shown.skipped && v.Discarded == shown.discarded && v.LowConfidence == shown.lowConfidence {
		return
	}
	for i, n := range v.noRoundTrip {
		s.ifAny(metric.RoundTripInvalid, n-shown.noRoundTrip[i], n, sample.Reason(i).String())
	}
	for i, n := range v.Skipped {
		s.ifAny(metric.ProbeSkipped, n-shown.skipped[i], n, ledger.SkipReason(i).String())
	}
	for i, n := range v.Discarded {
		s.ifAny(metric.PacketsDiscarded, n-shown.discarded[i], n, ledger.DiscardReason(i).String())
	}
	for i, n := range v.LowConfidence {
		s.ifAny(metric.DirectionUnknown, n-shown.lowConfidence[i], n, ledger.LowConfidenceReason(i).String())
	}
	shown.noRoundTrip, shown.skipped, shown.discarded, shown.lowConfidence = v.noRoundTrip, v.Skipped, v.Discarded, v.LowConfidence
}

// ifAny publishes a total if it has grown: a reason that never occurs has no series.
func (s *series) ifAny(d *metric.Desc, more, total uint64, labels ...string) {
	if more > 0 {
		s.scope.Total(d, float64(total), labels...)
	}
}

func (s *series) publishDirection(dir sample.Direction, d *directionSnapshot) {
	c, label := s.scope, dir.String()
	if f := s.full; f != nil {
		c.SetIfAt(&f.jitter[dir], metric.Jitter, d.jitter.Value, d.jitter.Known, label)
		c.SetIfAt(&f.outstanding[dir], metric.PacketsOutstanding, float64(d.Outstanding.Value), d.Outstanding.Known, label)
		if f.invalid[dir] != d.invalid {
			for i, n := range d.invalid {
				s.ifAny(metric.DelayInvalid, n-f.invalid[dir][i], n, label, sample.Reason(i).String())
			}
			f.invalid[dir] = d.invalid
		}
	}
	// A packet that was counted as received and arrived too late is lost; it is published after another has been
	// received, since a counter does not decrease and no sum exceeds sent.
	if d.Received.Known {
		s.received[dir] = max(s.received[dir], d.Received.Value)
	}
	lost := d.Lost
	lost.Value -= min(lost.Value, s.received[dir]-d.Received.Value)
	for i, one := range [directionTotals]struct {
		desc  *metric.Desc
		total ledger.Optional[uint64]
	}{
		{metric.DelayNegative, ledger.OptionalOf(d.negative, true)},
		{metric.DelayTXUncertainty, ledger.OptionalOf(d.txUncertain, d.txUncertain > 0)},
		{metric.DelayLowConfidence, ledger.OptionalOf(d.lowConfidence, d.lowConfidence > 0)},
		{metric.PacketsSent, d.Sent},
		{metric.PacketsReceived, d.Received},
		{metric.PacketsLost, lost},
		{metric.PacketsHostDropped, d.Dropped},
		{metric.PacketsUndecided, d.Undecided},
		{metric.PacketsDuplicated, d.Duplicated},
		{metric.PacketsReordered, d.Reordered},
		{metric.PacketsLate, d.Late},
		{metric.PacketsCorrupted, d.Corrupted},
	} {
		if one.total.Known {
			c.TotalAt(&s.totals[dir][i], one.desc, one.total.Value, label)
		}
	}
}

func (s *series) publishHops(dir sample.Direction, h ledger.Hops) {
	c, f, label := s.scope, s.full, dir.String()
	c.SetIfAt(&f.hops[dir], metric.Hops, float64(h.Last.Value), h.Last.Known, label)
	if h.Last.Known {
		c.TotalAt(&f.hopChanges[dir], metric.HopChanges, h.Changes, label)
	}
}

func (s *series) publishTrafficClass(dir sample.Direction, t ledger.TrafficClass) {
	label, shown := dir.String(), &s.full.trafficClass[dir]
	s.scope.SetIfAt(&s.full.dscp[dir], metric.DSCP, float64(t.DSCP.Value), t.DSCP.Known, label)
	s.ifAny(metric.DSCPRemarked, t.Remarked-shown.Remarked, t.Remarked, label)
	s.ifAny(metric.CongestionExperienced, t.CE-shown.CE, t.CE, label)
	*shown = t
}

// publishWindow publishes the values of a whole window.
func (s *series) publishWindow(w *window) {
	c := s.scope
	s.spread(w.roundTrip, metric.RoundTripTimeMin, metric.RoundTripTimeMax, metric.RoundTripTimeQuantile)
	if q := w.hostQueue; q != nil {
		for i, r := range ranks() {
			c.SetIf(metric.HostQueue, q.ranks[i].Value, q.ranks[i].Known, r.label)
		}
	}
	c.SetIf(metric.RoundTripLossRatio, w.lossRatio.Value, w.lossRatio.Known)
	c.SetIf(metric.DelayErrorComponent, w.parts.local.Seconds(), w.parts.any, "local_clock")
	c.SetIf(metric.DelayErrorComponent, w.parts.remote.Seconds(), w.parts.any, "remote_clock")
	c.SetIf(metric.DelayErrorComponent, w.parts.timestamps.Seconds(), w.parts.any, "timestamps")
	for _, dir := range sample.Directions() {
		d, label := &w.directions[dir], dir.String()
		s.spread(d.delay, metric.DelayMin, metric.DelayMax, metric.DelayQuantile, label)
		c.SetIf(metric.DelayErrorBound, d.delay.bound.Value, d.delay.bound.Known, label)
		c.SetIf(metric.LossRatio, d.lossRatio.Value, d.lossRatio.Known, label)
		c.SetIf(metric.LossBurstRatio, d.burstRatio.Value, d.burstRatio.Known, label)
		for _, v := range d.ratings {
			c.SetIf(metric.VoiceR, v.R, v.ok, label, v.codec, v.model, v.buffer)
			c.SetIf(metric.VoiceRError, v.off, v.ok, label, v.codec, v.model, v.buffer)
			c.SetIf(metric.VoiceRHighest, v.highest, v.limited, label, v.codec, v.model, v.buffer)
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
	s.scope.SetIf(least, v.min.Value, v.min.Known, more...)
	s.scope.SetIf(most, v.max.Value, v.max.Known, more...)
	for i, r := range ranks() {
		if d := s.scope.Profile().Quantile(quantile, r.q); d != nil {
			s.scope.SetIf(d, v.ranks[i].Value, v.ranks[i].Known, append(slices.Clone(more), r.label)...)
		}
	}
}

// facts are the labels of oneway_path_info after path and probe.
func (v *snapshot) facts() []string {
	family := "ipv6"
	if v.peer.Addr().Is4() {
		family = "ipv4"
	}
	return []string{v.peer.String(), family, strconv.Itoa(v.opts.DSCP), v.Kind.String(), v.opts.Schedule, strconv.Itoa(v.opts.Size)}
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
