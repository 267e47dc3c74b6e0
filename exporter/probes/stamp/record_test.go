package stamp

import (
	"slices"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/wire/timefmt"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probes/stamp/ledger"
	"oneway.example/exporter/reflector"
)

func TestEveryPacketOfARunIsRecorded(t *testing.T) {
	b := newTestbed(t, reflector.Options{})
	b.env.Recorder = &record.Recorder{}
	l := b.env.Recorder.Packets().Listen(1000)
	p, err := NewType().NewProber(b.env, probe.Target{Path: "p", Probe: "voice", Peer: b.peer}, quick())
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Measure(t.Context(), 100, func(Report) {})
	if err != nil {
		t.Fatal(err)
	}
	all := make([]record.Packet, 1000)
	n, missed := l.Take(all)
	if answered := r.RoundTrip.Received; missed != 0 || uint64(n) < answered || n > 100 {
		t.Fatalf("%d packets recorded and %d missed, %d of 100 answered", n, missed, answered)
	}
	for _, p := range all[:n] {
		if p.Outcome == record.Lost {
			continue // lost on a busy host
		}
		if p.Path != "p" || p.Probe != "voice" || !p.T1.Present() || !p.T4.Present() || !p.Forward.OK() || p.Forward.Bound <= 0 {
			t.Fatalf("recorded %+v", p)
		}
	}
}

// replyArrives passes the reply to packet seq, sent at user, to the account at the monotonic time now.
func replyArrives(t *testing.T, s *session, seq uint64, user instant.Time, now time.Duration) {
	t.Helper()
	in, r := inAt(user), ledger.Reply{}
	r.Packet.Seq, r.Packet.SenderSeq, r.Packet.SenderT1 = uint32(seq), uint32(seq), timefmt.NTP.Encode(user, 0)
	q, ok := s.account.Accept(&r, now)
	if !ok {
		t.Fatal("the reply is refused")
	}
	one := s.pendingOf(in, &r, q)
	s.account.Judge(in, &r, q, &one, now, true)
}

func TestPacketThatIsNotAnsweredIsRecordedAsLostOnce(t *testing.T) {
	s := idleSession(t)
	var recorder record.Recorder
	l := recorder.Packets().Listen(10)
	s.estimator.recordTo(&recorder, &probe.Target{Path: "p", Probe: "stamp"})
	for seq := range uint64(3) {
		s.account.Send(0, instant.Time(1e9*(seq+1)), ledger.ClockThen{})
	}
	replyArrives(t, s, 1, 2e9, 0)
	for _, timeouts := range []float64{0.5, 2, 4} {
		now := time.Duration(timeouts * float64(s.opts.LossTimeout))
		s.account.Tick(now, now)
	}
	all := make([]record.Packet, 10)
	n, _ := l.Take(all)
	lost := slices.DeleteFunc(all[:n], func(p record.Packet) bool { return p.Seq == 1 && p.Outcome != record.Lost })
	if len(lost) != 2 || lost[0].Seq != 0 || lost[1].Seq != 2 || lost[1].Outcome != record.Lost || lost[1].T1.At != 3e9 || lost[1].Forward.Reason != sample.NoStamp {
		t.Errorf("recorded as lost %+v", lost)
	}
}

func TestPacketsOutstandingAtTheEndAreNotRecordedAsLost(t *testing.T) {
	s := idleSession(t)
	var recorder record.Recorder
	l := recorder.Packets().Listen(10)
	s.estimator.recordTo(&recorder, &probe.Target{Path: "p", Probe: "stamp"})
	s.account.Send(0, 1, ledger.ClockThen{})
	s.end()
	if n, _ := l.Take(make([]record.Packet, 10)); n != 0 {
		t.Errorf("%d packets", n)
	}
}

func TestVariationOfAReportIsOfOneEraAndOfPacketsInTime(t *testing.T) {
	var c collector
	add := func(seq, era, restarts uint64, d time.Duration, tooLate bool) {
		p := record.Packet{Era: era, Restarts: restarts, Forward: plain(d), TooLate: [2]bool{tooLate}}
		p.Seq, p.Reverse.Reason = seq, sample.NoStamp
		c.add(&p)
	}
	add(0, 0, 0, time.Hour, false)
	add(1, 1, 0, 30*time.Millisecond, false) // after a step of a clock
	add(2, 1, 0, 31*time.Millisecond, false)
	add(3, 1, 0, time.Minute, true)
	add(2, 0, 0, time.Hour, false) // timestamped before the step
	add(4, 1, 1, 32*time.Millisecond, false)
	add(5, 1, 2, 34*time.Millisecond, false) // the remote end has restarted
	delays, ipdv := c.delays[sample.Forward].Snapshot(), c.ipdv[sample.Forward].Snapshot()
	if delays.Count != 4 || delays.Max != 34*time.Millisecond || ipdv.Count != 1 || ipdv.Max != time.Millisecond {
		t.Errorf("%d delays up to %v, %d variations up to %v", delays.Count, delays.Max, ipdv.Count, ipdv.Max)
	}
	if n := c.delays[sample.Reverse].Snapshot().Count; n != 0 {
		t.Errorf("%d reverse delays", n)
	}
}
