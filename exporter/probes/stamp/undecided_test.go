package stamp

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/estimate/loss"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes/stamp/ledger"
	"oneway.example/exporter/reflector"
	"oneway.example/tests/await"
)

// undecided is the number of packets whose outcome stays unknown.
func undecided(d DirectionReport) uint64 {
	if d.Undecided == nil {
		return 0
	}
	return *d.Undecided
}

// TestPathThatDiesHasNoLossOfADirection: from packet 80 of 100 on one direction loses all, also the queries at the end.
func TestPathThatDiesHasNoLossOfADirection(t *testing.T) {
	t.Parallel()
	for _, dead := range sample.Directions() {
		b := newTestbed(t, reflector.Options{})
		died := false
		p := newProxy(t, b.peer, func(d sample.Direction, _ time.Duration, payload []byte) (time.Duration, bool) {
			if d != dead {
				return 0, false
			}
			died = died || !isStatsQuery(payload) && numberOf(d, payload) >= 80
			return 0, died
		})
		o := quick()
		o.Interval, o.LossTimeout, o.Codecs = 5*time.Millisecond, 200*time.Millisecond, []string{"G.711"}
		r := b.to(p.addr).measure(t, o, 100)
		if r.RoundTrip.Lost != 20 || r.RoundTrip.Loss == nil || *r.RoundTrip.Loss != 0.2 {
			t.Errorf("%v: round trips %s, want 20 lost", dead, asJSON(t, r.RoundTrip))
		}
		for i, d := range []DirectionReport{r.Forward, r.Reverse} {
			if l := d.LossLimits; d.Loss != nil || l == nil || l.Low != 0 || l.High < 0.19 || l.High > 0.21 || l.Undecided != 20 {
				t.Errorf("%v is dead, %v: loss %s within %s, want none known, between 0 and 0.2", dead, sample.Direction(i), asJSON(t, d.Loss), asJSON(t, l))
			}
			if len(d.Voice) > 0 || d.Delay == nil || d.Delay.Min == nil || d.Delay.P95 != nil {
				t.Errorf("%v is dead, %v: voice %s, delay %s; want neither R nor quantiles", dead, sample.Direction(i), asJSON(t, d.Voice), asJSON(t, d.Delay))
			}
		}
		if said := strings.Join(r.notes(), "\n"); strings.Count(said, "20 packets have no outcome") != 2 || !strings.Contains(said, "between 0.00 % and 20 %") {
			t.Errorf("the notes do not say why:\n%s", said)
		}
		if doc := r.Document(); doc.Loss != nil || doc.LossLimits == nil {
			t.Errorf("%v: the document has loss %s", dead, asJSON(t, doc))
		}
	}
}

// TestLossesBeforeTheDeathOfAPathAreInItsLimits: of 100 packets 60 to 69 are lost forward, and those from 80 on, with the queries at the
// end. The reflector has told of neither when it replies to packet 79.
func TestLossesBeforeTheDeathOfAPathAreInItsLimits(t *testing.T) {
	t.Parallel()
	for _, bytes := range []int{44, 172} {
		for _, dead := range []uint32{80, 100} {
			b := newTestbed(t, reflector.Options{})
			last := uint32(0)
			p := newProxy(t, b.peer, func(d sample.Direction, _ time.Duration, payload []byte) (time.Duration, bool) {
				if d == sample.Reverse {
					return 0, false
				}
				if !isStatsQuery(payload) {
					last = numberOf(d, payload)
				}
				return 0, last >= 60 && last < 70 || last >= dead || last == dead-1 && isStatsQuery(payload)
			})
			o := quick()
			o.Interval, o.LossTimeout, o.Codecs, o.Size = 5*time.Millisecond, 400*time.Millisecond, []string{"G.711"}, bytes
			r := b.to(p.addr).measure(t, o, 100)
			want := float64(100-dead+10) / 100
			d := r.Forward
			if l := d.LossLimits; d.Loss != nil || l == nil || l.Low > want || l.High < want || l.High > want+0.01 {
				t.Errorf("%d bytes, dead from %d: forward loss %s within %s, want none known, up to %v", bytes, dead, asJSON(t, d.Loss), asJSON(t, l), want)
			}
			if len(d.Voice) > 0 || d.Delay == nil || d.Delay.P95 != nil {
				t.Errorf("%d bytes, dead from %d: voice %s, delay %s; want neither R nor p95", bytes, dead, asJSON(t, d.Voice), asJSON(t, d.Delay))
			}
			if l := r.Reverse.LossLimits; dead == 100 && l != nil {
				t.Errorf("%d bytes: reverse loss within %s; the numbers of the replies tell that nothing was lost", bytes, asJSON(t, l))
			}
		}
	}
}

// TestPacketsOutstandingAtTheEndAreNotLost: a session ends (a reload, another address) while the path has packets of 100 ms.
func TestPacketsOutstandingAtTheEndAreNotLost(t *testing.T) {
	b, sink := newTestbed(t, reflector.Options{}), &metrictest.Sink{}
	p := newProxy(t, b.peer, func(sample.Direction, time.Duration, []byte) (time.Duration, bool) {
		return 100 * time.Millisecond, false
	})
	b.env.Sink = sink
	o := quick()
	o.Interval = 5 * time.Millisecond
	made, err := NewType().NewProber(b.env, probe.Target{Path: "p", Probe: "stamp", Peer: p.addr}, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- made.Run(ctx) }()
	value := func(d *metric.Desc, labels ...string) float64 {
		v, _ := sink.Value(d, append([]string{"p", "stamp"}, labels...)...)
		return v
	}
	await.That(t, "a hundred replies", func() bool { return value(metric.RoundTripReceived) >= 100 })
	last := made.session.Load()
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if n := last.account.RoundTripsLost; n > 0 {
		t.Errorf("%d round trips are lost, want none: all packets arrived, or were on their way", n)
	}
	d := last.account.Direction(sample.Forward)
	if d.Lost.Value > 0 || d.Undecided.Value < 20 || d.Outstanding.Value > 0 || d.Sent.Value != d.Received.Value+d.Undecided.Value {
		t.Errorf("forward %+v; want none lost, and those outstanding undecided", d)
	}
	if back := last.account.Direction(sample.Reverse); back.Lost.Value > 0 {
		t.Errorf("reverse %+v", back)
	}
}

// TestPacketsOnTheirWayToTheFormerAddressAreDecided: the peer's name gets another address while the path has packets of 100 ms.
func TestPacketsOnTheirWayToTheFormerAddressAreDecided(t *testing.T) {
	server, b, sink := serveNames(t), newTestbed(t, reflector.Options{}), &metrictest.Sink{}
	first := newProxy(t, b.peer, func(sample.Direction, time.Duration, []byte) (time.Duration, bool) {
		return 100 * time.Millisecond, false
	})
	port := netip.MustParseAddrPort(first.addr).Port()
	newTestbed(t, reflector.Options{Listen: []netip.AddrPort{netip.AddrPortFrom(netip.MustParseAddr("127.0.0.2"), port)}})
	b.env.Sink = sink
	o := quick()
	o.Interval, o.LossTimeout, o.ResolveInterval = 5*time.Millisecond, 3*time.Second, time.Second
	p, err := NewType().NewProber(b.env, probe.Target{Path: "p", Probe: "stamp", Peer: net.JoinHostPort("peer.test", strconv.Itoa(int(port)))}, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	server.known.Store(true)
	await.That(t, "a hundred replies", func() bool {
		v, _ := sink.Value(metric.RoundTripReceived, "p", "stamp")
		return v >= 100
	})
	last := p.session.Load()
	server.host.Store(2)
	await.That(t, "the other address", func() bool { s := p.session.Load(); return s != nil && s != last })
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if n := last.account.Next(); last.account.RoundTripsReceived != n {
		t.Errorf("%d of %d packets have a reply, %d are lost", last.account.RoundTripsReceived, n, last.account.RoundTripsLost)
	}
	for _, dir := range sample.Directions() {
		if d := last.account.Direction(dir); d.Sent.Value != d.Received.Value || d.Undecided.Value > 0 {
			t.Errorf("%v: %+v; want all received", dir, d)
		}
	}
}

// TestPacketsUndecidedForwardAreInDoubtInReverse: the reflector restarted before it told which of 40 packets it had received; the
// replies to them may have been lost.
func TestPacketsUndecidedForwardAreInDoubtInReverse(t *testing.T) {
	c := newSessionFixture(t, us, nil)
	e, known := c.estimator, ledger.Known{Directions: [2]bool{true, true}}
	for range 60 {
		c.bring(30*time.Millisecond, 30*time.Millisecond)
	}
	for _, d := range sample.Directions() {
		e.take(ledger.Verdict{Kind: ledger.PacketsDecided, Direction: d, Losses: loss.Delta{Decided: 60, Received: 60}})
	}
	e.take(ledger.Verdict{Kind: ledger.RoundTripsDecided, Losses: loss.Delta{Received: 60, Lost: 40}})
	e.take(ledger.Verdict{Kind: ledger.PacketsUndecided, Direction: sample.Forward, Losses: loss.Delta{Decided: 40}})
	w := e.window(known)
	for i, d := range w.directions {
		if l := d.lossLimits; d.lossRatio.Known || l == nil || l.Low != 0 || l.High != 0.4 || l.Undecided != 40 {
			t.Errorf("%v: loss %v, limits %+v; want none known, between 0 and 0.4", sample.Direction(i), d.lossRatio, l)
		}
		if d.delay.ranks[1].Known || d.ratings[0].ok {
			t.Errorf("%v: p95 %v and %+v although 40 of 100 packets may be lost", sample.Direction(i), d.delay.ranks[1], d.ratings[0])
		}
	}
}

// TestForwardDelaysOfLostRepliesAreUnknown: 500 packets are received forward, and some of the replies are lost while the forward
// path is slow.
func TestForwardDelaysOfLostRepliesAreUnknown(t *testing.T) {
	for _, c := range []struct {
		lost         int
		known        [3]bool
		rated        bool
		bound, limit float64
	}{
		{0, [...]bool{true, true, true}, true, 52e-6, 53e-6},
		{1, [...]bool{true, true, true}, true, 60e-6, 70e-6},
		{5, [...]bool{true, true, true}, true, 80e-6, 120e-6},
		{20, [...]bool{true, true, false}, false, 150e-6, 300e-6},
		{100, [...]bool{true, false, false}, false, 500e-6, 1.2e-3},
		{180, [...]bool{false, false, false}, false, 52e-6, 53e-6},
	} {
		s := newSessionFixture(t, us, func(o *Options) { o.Codecs = []string{"G.711-PLC"} })
		for i := range 500 - c.lost {
			s.bring(10*time.Millisecond+time.Duration(i*7%500)*10*us, 30*time.Millisecond)
		}
		e := s.estimator
		e.take(ledger.Verdict{Kind: ledger.PacketsDecided, Direction: sample.Forward, Losses: loss.Delta{Decided: 500, Received: 500}})
		e.take(ledger.Verdict{Kind: ledger.PacketsDecided, Direction: sample.Reverse, Losses: loss.Delta{Decided: 500, Received: uint64(500 - c.lost), Lost: uint64(c.lost)}})
		e.take(ledger.Verdict{Kind: ledger.RoundTripsDecided, Losses: loss.Delta{Received: uint64(500 - c.lost), Lost: uint64(c.lost)}})
		w := e.window(ledger.Known{Directions: [2]bool{true, true}})
		d := w.directions[sample.Forward]
		for i, r := range d.delay.ranks {
			if r.Known != c.known[i] {
				t.Errorf("%d lost: quantile %s is %v", c.lost, ranks()[i].label, r)
			}
		}
		if d.unknown != uint64(c.lost) || d.ratings[0].ok != c.rated || !d.lossRatio.Known {
			t.Errorf("%d lost: %d unknown, loss %v, rating %+v", c.lost, d.unknown, d.lossRatio, d.ratings[0])
		}
		if off := d.delay.bound.Value; off < c.bound || off > c.limit {
			t.Errorf("%d lost: bound %v, want %v to %v", c.lost, off, c.bound, c.limit)
		}
	}
}

// TestTableHasEachOutcomeAndEachRating: the packets of a direction add up, and a direction is rated though the other is not.
func TestTableHasEachOutcomeAndEachRating(t *testing.T) {
	call := VoiceReport{Codec: "G.711", Model: "g107", Buffer: "adaptive", R: 90}
	r := Report{
		Forward: DirectionReport{Sent: new(uint64(100)), Received: new(uint64(60)), Undecided: new(uint64(40))},
		Reverse: DirectionReport{Sent: new(uint64(60)), Received: new(uint64(59)), HostDropped: new(uint64(1)), Voice: []VoiceReport{call}},
	}
	table := fmt.Sprint(r.rows())
	for _, row := range []string{"[undecided 40 - ]", "[dropped by host - 1 ]", "[R G.711, g107 - 90"} {
		if !strings.Contains(table, row) {
			t.Errorf("no %s in %s", row, table)
		}
	}
	call.R = 80
	r.Forward.Voice = []VoiceReport{call}
	if table = fmt.Sprint(r.rows()); strings.Count(table, "R G.711") != 1 || !strings.Contains(table, "[R G.711, g107 80 90") {
		t.Errorf("want one row with 80 and 90: %s", table)
	}
	r = Report{}
	if table = fmt.Sprint(r.rows()); strings.Contains(table, "undecided") || strings.Contains(table, "by host") {
		t.Errorf("rows of outcomes that no packet has: %s", table)
	}
}

// TestVariationIsWithheldWhereUnknownDelaysCouldChangeIt: the forward path is slow while replies are lost, so that the known delays
// vary little. That does not depend on the clocks.
func TestVariationIsWithheldWhereUnknownDelaysCouldChangeIt(t *testing.T) {
	all, noTail, none := [...]bool{true, true, true}, [...]bool{true, true, false}, [...]bool{false, false, false}
	for _, c := range []struct {
		lost, lostForward int
		pdv, ipdv         [3]bool
	}{
		{0, 0, all, all},
		{0, 30, all, all},
		{1, 0, all, all},
		{20, 0, noTail, noTail},
		{100, 0, [...]bool{true, false, false}, [...]bool{true, false, false}},
		{175, 30, [...]bool{true, false, false}, [...]bool{true, false, false}},
		{300, 0, none, none},
	} {
		for _, bound := range []time.Duration{us, 2 * time.Hour} { // the latter is too large for a delay
			s := newSessionFixture(t, bound, nil)
			e := s.estimator
			e.collect = &collector{}
			answered := 500 - c.lost - c.lostForward
			for i := range answered {
				s.bring(10*time.Millisecond+time.Duration(i*7%500)*us, 10*time.Millisecond)
			}
			e.take(ledger.Verdict{Kind: ledger.PacketsDecided, Direction: sample.Forward, Losses: loss.Delta{Decided: 500, Received: uint64(500 - c.lostForward), Lost: uint64(c.lostForward)}})
			e.take(ledger.Verdict{Kind: ledger.PacketsDecided, Direction: sample.Reverse, Losses: loss.Delta{Decided: uint64(500 - c.lostForward), Received: uint64(answered), Lost: uint64(c.lost)}})
			e.take(ledger.Verdict{Kind: ledger.RoundTripsDecided, Losses: loss.Delta{Received: uint64(answered), Lost: uint64(c.lost + c.lostForward)}})
			w := e.window(ledger.Known{Directions: [2]bool{true, true}})
			forward, reverse := w.directions[sample.Forward].spreads, w.directions[sample.Reverse].spreads
			for i, r := range ranks() {
				if got := [2]bool{forward.pdv.ranks[i].Known, forward.ipdv.ranks[i].Known}; got != [2]bool{c.pdv[i], c.ipdv[i]} {
					t.Errorf("%+v, clocks within %v: quantile %s of PDV and IPDV are known: %v", c, bound, r.label, got)
				}
				if !reverse.pdv.ranks[i].Known || !reverse.ipdv.ranks[i].Known {
					t.Errorf("%+v, clocks within %v: reverse quantile %s is not known", c, bound, r.label)
				}
			}
		}
	}
}

// TestHighestRIsKnownWhereUnknownPacketsWithholdR: packets without a known delay can lower R far, and raise it hardly. A call that is
// bad at best is bad though R is withheld.
func TestHighestRIsKnownWhereUnknownPacketsWithholdR(t *testing.T) {
	labels := []string{"forward", "G.711-PLC", "g107", "adaptive"}
	for lost, rated := range map[uint64]bool{0: true, 10: true, 15: false, 100: false} {
		c := newSessionFixture(t, us, func(o *Options) { o.Codecs = []string{"G.711-PLC"} })
		for i := range 500 - lost {
			c.bring(330*time.Millisecond+time.Duration(i%3)*time.Millisecond, 30*time.Millisecond)
		}
		e := c.estimator
		e.take(ledger.Verdict{Kind: ledger.PacketsDecided, Direction: sample.Forward, Losses: loss.Delta{Decided: 500, Received: 500}})
		e.take(ledger.Verdict{Kind: ledger.PacketsDecided, Direction: sample.Reverse, Losses: loss.Delta{Decided: 500, Received: 500 - lost, Lost: lost}})
		e.take(ledger.Verdict{Kind: ledger.RoundTripsDecided, Losses: loss.Delta{Received: 500 - lost, Lost: lost}})
		c.window = e.window(ledger.Known{Directions: [2]bool{true, true}})
		c.publish()
		r, known := c.ledger.value(metric.VoiceR, labels...)
		highest, limited := c.ledger.value(metric.VoiceRHighest, labels...)
		if known != rated || limited != (lost > 0) || limited && (highest < 65 || highest > 66.5 || known && highest < r) {
			t.Errorf("%d lost replies: R %v (known %v), at most %v (known %v); want at most 66", lost, r, known, highest, limited)
		}
	}
}

// TestMetricHasTheQuantilesThatAreSet compares the text of the metric with ranks.
func TestMetricHasTheQuantilesThatAreSet(t *testing.T) {
	var labels []string
	for _, r := range ranks() {
		labels = append(labels, r.label)
	}
	if want := "Quantiles (" + strings.Join(labels, ", ") + ")"; !strings.Contains(metric.DelayQuantile.Help, want) {
		t.Errorf("%q has no %q", metric.DelayQuantile.Help, want)
	}
}
