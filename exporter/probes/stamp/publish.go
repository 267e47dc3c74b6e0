package stamp

import (
	"strconv"
	"time"

	"oneway.example/exporter/estimate/loss"
	"oneway.example/exporter/sample"
)

// tick looks after what no packet triggers: time-outs, windows, publishing.
func (s *session) tick(now time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	s.now = now
	s.expire(now)
	s.ask(now)
	if now-s.windowFrom >= s.opts.Window {
		s.closeWindow()
		s.windowFrom = now
	}
	s.series.scope.sink.Update(s.publish)
}

// expire applies the loss timeout on this side.
func (s *session) expire(now time.Duration) {
	s.roundTrips.lose(s.flights.expire(now, s.opts.LossTimeout))
	if s.hub != nil {
		s.hub.drops.update(s.hub.conn.Stats().Dropped, now)
	}
	if s.reverseOn {
		s.reverse.Expire(now, s.opts.LossTimeout)
		s.countReverse()
	}
	// An answer waits for its true T3 until the next two or three have come.
	s.answers.flush(now-max(time.Second, 4*s.opts.Interval), s.conclude)
	if s.kind == farStateful || s.kind == farStateless {
		s.guessForward()
	}
}

// guessForward draws from a foreign reflector what can be known of the forward
// direction: with its own numbering, a round trip that was lost and whose
// answer was not lost on the way back was lost on the way there.
func (s *session) guessForward() {
	f := &s.fwd.now
	if s.kind == farStateless {
		f.received = s.roundTrips.answered()
		f.received -= min(s.fwd.overdue, f.received)
		s.fwd.known, s.rev.known = false, false
		s.unsure[unsureForeign] = s.roundTrips.lost
		return
	}
	c := s.reverse.Counts()
	decided, missing := s.numbered.settle(c.First, s.now, s.opts.LossTimeout)
	if s.guessable() {
		// Of those that nobody answered, what is missing of the answers was lost in reverse. A
		// late answer counts as lost there and is an answer all the same.
		decided = s.flights.next
		asked, answered := decided-s.numbered.begin, s.roundTrips.answered()-s.numbered.before
		unanswered := asked - min(asked, answered)
		missing = unanswered - min(unanswered, c.Lost-min(c.Lost, c.Late))
	}
	if decided <= f.lost+f.received {
		return
	}
	s.fwd.known = true
	lost := max(f.lost, s.fwd.ended.lost+missing+s.fwd.overdue)
	received := max(f.received, decided-min(decided, lost))
	delta := loss.Delta{Lost: lost - f.lost, PatternLost: lost - f.lost, Unordered: lost - f.lost, Received: received - f.received}
	delta.Decided = delta.Lost + delta.Received
	s.fwd.losses.Add(delta)
	s.fwd.delays.Decided(int(delta.Received), int(delta.Lost))
	f.lost, f.received = lost, received
}

// guessable: the fate of every question and of every answer is known. Those
// after the last answer are not until a later number has been heard.
func (s *session) guessable() bool {
	c := s.reverse.Counts()
	if c.Pending() > 0 || s.flights.outstanding() > 0 {
		return false
	}
	last := s.flights.get(s.flights.next - 1)
	return s.query.finished || last != nil && (last.state == flightAnswered || last.state == flightAnsweredLate)
}

// closeWindow publishes what is said of a whole window, and begins the next.
func (s *session) closeWindow() {
	rtt := s.roundTrips.times.Snapshot()
	s.last = lastWindow{rtt: rtt.Min, any: rtt.Count > 0}
	for _, d := range []*direction{&s.fwd, &s.rev} {
		s.drain(d)
		s.voice(d)
		s.publishWindow(d)
		d.reset()
	}
	set(s.series.rttMin, rtt.Min, rtt.Count > 0)
	set(s.series.rttMax, rtt.Max, rtt.Count > 0)
	s.series.rttQuantiles.set(rtt.Quantile)
	s.roundTrips.times.Reset()
}

// drain observes the window's delay variation, which is known only when its
// smallest delay is.
func (s *session) drain(d *direction) {
	out := s.series.direction[d.dir].pdv
	for seq, v := range d.pdv.Drain() {
		out.Observe(v.Seconds())
		for i := range d.voices {
			d.voices[i].add(seq, v)
		}
	}
	d.full = false
}

func (s *session) publishWindow(d *direction) {
	out, window := &s.series.direction[d.dir], s.summarise(d)
	set(out.delayMin, window.Min, window.told())
	set(out.delayMax, window.Max, window.told())
	set(out.bound, window.bound, window.told())
	out.quantiles.set(window.Quantile)
	facts := &s.last.directions[d.dir]
	facts.median, facts.delayed = window.Quantile(0.5)
	facts.bound = window.bound
	facts.loss, facts.lossKnown = d.losses.Ratio()
	facts.lossKnown = facts.lossKnown && d.known
	setFloat(out.lossRatio, facts.loss, facts.lossKnown)
	burst, ok := d.losses.BurstRatio()
	setFloat(out.burstRatio, burst, ok && d.known)
}

// publish brings the counters up to date. The caller holds s.mu and runs it
// inside Sink.Update, so that no scrape sees sums that do not add up.
func (s *session) publish() {
	out := s.series
	s.fwd.now.sent = s.flights.next
	for _, d := range []*direction{&s.fwd, &s.rev} {
		s.publishDirection(d)
	}
	for reason, n := range s.roundTrips.invalid {
		out.rttInvalid[reason].ifAny(n)
	}
	out.rttLost.to(s.roundTrips.lost)
	out.rttReceived.to(s.roundTrips.received)
	out.farRestarts.to(s.restarts)
	for i, n := range s.skipped {
		out.skipped[i].ifAny(n)
	}
	for i, n := range s.discarded {
		out.discarded[i].ifAny(n)
	}
	for i, n := range s.unsure {
		out.unsure[i].ifAny(n)
	}
	for event := range s.stamps {
		for origin, n := range s.stamps[event] {
			out.stamps[event][origin].ifAny(n)
		}
	}
	up, decided := s.up()
	setFloat(out.up, boolFloat(up), decided)
	out.far.publish(s.far, up)
	setFloat(out.lastSuccess, float64(s.lastSuccess.UnixNano())/1e9, !s.lastSuccess.IsZero())
	out.interval.Set(s.opts.Interval.Seconds())
	limit, calibrated := s.ends.Near.Receive()
	set(out.stampError[0], limit, !calibrated)
	set(out.stampError[1], limit, calibrated)
	if s.described != s.kind || out.info == nil {
		s.described = s.kind
		out.describe(s.facts())
	}
}

func (s *session) publishDirection(d *direction) {
	out := &s.series.direction[d.dir]
	jitter, ok := d.variation.Jitter()
	set(out.jitter, jitter, ok)
	out.negative.to(d.negative)
	out.held.ifAny(d.held)
	out.lowConfidence.ifAny(d.lowConfidence)
	for reason, n := range d.invalid {
		out.invalid[reason].ifAny(n)
	}
	if d.dir == sample.Forward || d.known {
		out.sent.to(d.now.sent)
	}
	if s.kind == farUnknown && d.now.received == 0 || s.kind == farStateful && !d.known {
		return
	}
	out.received.to(d.now.received)
	setFloat(out.inFlight, float64(d.now.inFlight()), d.known)
	if !d.known {
		return
	}
	// A packet that was counted as received and came too late is lost, once another has
	// been received in its place: a counter does not go back, and no sum goes beyond sent.
	out.lost.to(d.now.lost - min(d.now.lost, out.received.ahead(d.now.received)))
	if s.dropsTold(d) {
		out.dropped.to(d.now.dropped)
	}
	if s.kind == farOurs || d.dir == sample.Reverse {
		out.duplicated.to(d.now.duplicated)
		out.reordered.to(d.now.reordered)
		out.late.to(d.now.late)
		out.corrupted.to(d.now.corrupted)
	}
}

// up reports whether the peer answers; decided is false while there has been
// too little time to tell.
func (s *session) up() (up, decided bool) {
	patience := max(3*s.opts.Interval, 3*time.Second) + s.opts.LossTimeout
	if s.lastAnswer == 0 {
		return false, s.now-s.started > patience
	}
	return s.now-s.lastAnswer <= patience, true
}

// facts are the labels of oneway_path_info after path and probe.
func (s *session) facts() [6]string {
	family := "ipv6"
	if s.peer.Addr().Is4() {
		family = "ipv4"
	}
	return [6]string{
		s.peer.String(), family, strconv.Itoa(s.opts.DSCP), s.kind.String(),
		s.opts.Schedule, strconv.Itoa(s.opts.Size),
	}
}

func boolFloat(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
