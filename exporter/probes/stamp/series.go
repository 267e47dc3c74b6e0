package stamp

import (
	"net/netip"
	"slices"
	"strconv"
	"syscall"
	"time"

	"oneway.example/exporter/metric"
	"oneway.example/exporter/sample"
)

// directionSeries are the series of one direction. Counters that may be
// unknowable are opened when they become known.
type directionSeries struct {
	sent, received, lost, duplicated, reordered, late, corrupted *counter
	inFlight, lossRatio, burstRatio                              metric.Series
	delayMin, delayMax, bound, jitter                            metric.Series
	quantiles                                                    quantiles
	delay, pdv, ipdv, burst                                      metric.Series
	dropped, negative, held, lowConfidence                       *counter
	invalid                                                      [reasonCount]*counter
}

// series are all series of a session but its voice series.
type series struct {
	scope     *scope
	direction [2]directionSeries

	up, lastSuccess, interval, rttMin, rttMax metric.Series
	lateness, roundTrip, residence            metric.Series
	rttQuantiles                              quantiles
	rttLost, rttReceived, farRestarts         *counter
	rttInvalid                                [reasonCount]*counter
	skipped                                   [skipReasons]*counter
	discarded                                 [discardReasons]*counter
	unsure                                    [unsureReasons]*counter
	stamps                                    [events][sample.FollowUp + 1]*counter
	far                                       farSeries
	info                                      metric.Series
	stampError                                [2]metric.Series // assumed, calibrated
	infoLabels                                [6]string
	voices                                    map[voiceKey]*voiceSeries
}

// scope opens series of one path and probe and closes them all at its end.
type scope struct {
	sink        metric.Sink
	path, probe string
	opened      []metric.Series
}

func (c *scope) open(d *metric.Desc, more ...string) metric.Series {
	s := c.sink.Series(d, append([]string{c.path, c.probe}, more...)...)
	c.opened = append(c.opened, s)
	return s
}

func (c *scope) close() {
	for _, s := range c.opened {
		s.Close()
	}
	c.opened = nil
}

// quantiles are the series of one distribution's quantiles.
type quantiles [3]metric.Series

// ranks are the quantiles that are published, and their labels.
func ranks() [len(quantiles{})]struct {
	q     float64
	label string
} {
	return [...]struct {
		q     float64
		label string
	}{{0.5, "0.5"}, {0.95, "0.95"}, {0.99, "0.99"}}
}

func (c *scope) quantiles(d *metric.Desc, more ...string) (q quantiles) {
	for i, r := range ranks() {
		q[i] = c.open(d, append(slices.Clone(more), r.label)...)
	}
	return q
}

// set publishes the quantiles of a window; infinite ones are absent.
func (q *quantiles) set(quantile func(q float64) (time.Duration, bool)) {
	for i, r := range ranks() {
		v, ok := quantile(r.q)
		set(q[i], v, ok)
	}
}

// counter publishes a growing total through a series that takes increments. It
// opens its series with the first value other than "unknown".
type counter struct {
	scope *scope
	desc  *metric.Desc
	more  []string

	series    metric.Series
	published uint64
}

func (c *scope) counter(d *metric.Desc, more ...string) *counter {
	return &counter{scope: c, desc: d, more: more}
}

// to publishes total. A total behind what was published is left alone: a
// counter never goes back.
func (c *counter) to(total uint64) {
	if c.series == nil {
		c.series = c.scope.open(c.desc, c.more...)
	}
	if total > c.published {
		c.series.Add(float64(total - c.published))
		c.published = total
	}
}

// ahead is by how much more was published than total.
func (c *counter) ahead(total uint64) uint64 { return c.published - min(c.published, total) }

// ifAny publishes total unless it is zero: a reason that never occurred has no series.
func (c *counter) ifAny(total uint64) {
	if total > 0 {
		c.to(total)
	}
}

func newSeries(sink metric.Sink, path, probe string) *series {
	c := &scope{sink: sink, path: path, probe: probe}
	s := &series{
		scope: c, voices: map[voiceKey]*voiceSeries{},
		up: c.open(metric.ProbeUp), lastSuccess: c.open(metric.ProbeLastSuccess),
		interval: c.open(metric.ProbeInterval), lateness: c.open(metric.ProbeLateness),
		rttMin: c.open(metric.RoundTripTimeMin), rttMax: c.open(metric.RoundTripTimeMax),
		roundTrip: c.open(metric.RoundTripTime), residence: c.open(metric.Residence),
		rttQuantiles: c.quantiles(metric.RoundTripTimeQuantile),
		rttLost:      c.counter(metric.RoundTripLost), rttReceived: c.counter(metric.RoundTripReceived),
		farRestarts: c.counter(metric.FarRestarts), far: newFarSeries(c),
	}
	s.stampError = [2]metric.Series{c.open(metric.StampErrorBound, "assumed"), c.open(metric.StampErrorBound, "calibration")}
	for _, d := range sample.Directions() {
		s.direction[d] = newDirectionSeries(c, d.String())
	}
	for _, r := range sample.Reasons() {
		s.rttInvalid[r] = c.counter(metric.RoundTripInvalid, r.String())
	}
	for r := range skipReasons {
		s.skipped[r] = c.counter(metric.ProbeSkipped, r.String())
	}
	for r := range discardReasons {
		s.discarded[r] = c.counter(metric.PacketsDiscarded, r.String())
	}
	for r := range unsureReasons {
		s.unsure[r] = c.counter(metric.DirectionUnknown, r.String())
	}
	for event := range s.stamps {
		name := "t" + strconv.Itoa(event+1)
		s.stamps[event][sample.Absent] = c.counter(metric.TimestampsMissing, name)
		for _, o := range sample.Origins()[1:] {
			s.stamps[event][o] = c.counter(metric.Timestamps, name, o.String())
		}
	}
	return s
}

func newDirectionSeries(c *scope, dir string) directionSeries {
	s := directionSeries{
		sent: c.counter(metric.PacketsSent, dir), received: c.counter(metric.PacketsReceived, dir),
		lost: c.counter(metric.PacketsLost, dir), duplicated: c.counter(metric.PacketsDuplicated, dir),
		reordered: c.counter(metric.PacketsReordered, dir), late: c.counter(metric.PacketsLate, dir),
		corrupted: c.counter(metric.PacketsCorrupted, dir), dropped: c.counter(metric.PacketsHostDropped, dir), negative: c.counter(metric.DelayNegative, dir),
		held: c.counter(metric.DelayHeld, dir), lowConfidence: c.counter(metric.DelayLowConfidence, dir),
		inFlight: c.open(metric.PacketsInFlight, dir), lossRatio: c.open(metric.LossRatio, dir),
		burstRatio: c.open(metric.LossBurstRatio, dir), delayMin: c.open(metric.DelayMin, dir),
		delayMax: c.open(metric.DelayMax, dir), quantiles: c.quantiles(metric.DelayQuantile, dir),
		bound: c.open(metric.DelayErrorBound, dir), jitter: c.open(metric.Jitter, dir),
		delay: c.open(metric.Delay, dir), pdv: c.open(metric.DelayVariation, dir),
		ipdv: c.open(metric.IPDV, dir), burst: c.open(metric.LossBurst, dir),
	}
	for _, r := range sample.Reasons() {
		s.invalid[r] = c.counter(metric.DelayInvalid, dir, r.String())
	}
	return s
}

// observeBurst takes the length of a run of lost packets.
func (s *directionSeries) observeBurst(length int) { s.burst.Observe(float64(length)) }

// describe sets the facts of the path.
func (s *series) describe(labels [6]string) {
	if s.info != nil && s.infoLabels == labels {
		return
	}
	if s.info != nil {
		s.info.Close()
	}
	s.infoLabels = labels
	s.info = s.scope.sink.Series(metric.PathInfo, append([]string{s.scope.path, s.scope.probe}, labels[:]...)...)
	s.info.Set(1)
}

// close ends all series.
func (s *series) close() {
	if s.info != nil {
		s.info.Close()
		s.info = nil
	}
	s.scope.close()
}

// set publishes a duration that may be undefined.
func set(s metric.Series, v time.Duration, ok bool) {
	setFloat(s, v.Seconds(), ok)
}

func setFloat(s metric.Series, v float64, ok bool) {
	if ok {
		s.Set(v)
	} else {
		s.Clear()
	}
}

// hubSeries are what a socket says of itself.
type hubSeries struct {
	sink           metric.Sink
	name           string
	hostTx, hostRx metric.Series
	drops          metric.Series
	dropped        uint64
	byReason       map[string]metric.Series
	counted        map[string]uint64
}

func newHubSeries(sink metric.Sink, local netip.AddrPort) hubSeries {
	name := "sender_ipv6"
	if local.Addr().Is4() {
		name = "sender_ipv4"
	}
	return hubSeries{
		sink: sink, name: name,
		hostTx: sink.Series(metric.HostDelay, "tx"), hostRx: sink.Series(metric.HostDelay, "rx"),
		drops:    sink.Series(metric.SocketDrops, name),
		byReason: map[string]metric.Series{}, counted: map[string]uint64{},
	}
}

func (s *hubSeries) close() {
	for _, one := range []metric.Series{s.hostTx, s.hostRx, s.drops} {
		one.Close()
	}
	for _, one := range s.byReason {
		one.Close()
	}
}

// publish takes the socket's totals.
func (s *hubSeries) publish(dropped uint64, errs map[syscall.Errno]uint64, stray [discardReasons]uint64) {
	s.drops.Add(float64(dropped - s.dropped))
	s.dropped = dropped
	for errno, n := range errs {
		s.raise(metric.SendErrors, errno.Error(), n)
	}
	for reason, n := range stray {
		if n > 0 {
			s.raise(metric.SocketDiscarded, discardReason(reason).String(), n)
		}
	}
}

// raise brings the counter of one reason up to total.
func (s *hubSeries) raise(d *metric.Desc, reason string, total uint64) {
	key := d.Name + reason
	out := s.byReason[key]
	if out == nil {
		out = s.sink.Series(d, s.name, reason)
		s.byReason[key] = out
	}
	out.Add(float64(total - s.counted[key]))
	s.counted[key] = total
}
