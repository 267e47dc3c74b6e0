package stamp

import (
	"testing"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/clocks/none"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/net/wire/timefmt"
	"oneway.example/exporter/probes/stamp/ledger"
)

// Every one of the 65,536 patterns gives a bound of at most an hour, or none.
func TestRemoteEndsErrorEstimateIsBelievedUpToAnHour(t *testing.T) {
	for pattern := range 1 << 16 {
		e := timefmt.ErrorEstimate(pattern)
		got := remoteBound(&ledger.Reply{Packet: stampfmt.ReflectorPacket{Error: e}})
		want := sample.Bound{Error: e.Bound(), Reason: sample.OK}
		switch {
		case pattern&0x8000 == 0 || pattern&0xff == 0:
			want = sample.Bound{Reason: sample.RemoteUnsynchronized}
		case e.Bound() > time.Hour:
			want = sample.Bound{Reason: sample.BoundTooLarge}
		}
		if got != want {
			t.Fatalf("%#04x: %+v, want %+v", pattern, got, want)
		}
		var c remoteClock
		c.heard(e)
		if c.synchronized != (want.Reason == sample.OK) {
			t.Fatalf("%#04x: reported as synchronized: %v, want %v", pattern, c.synchronized, want.Reason)
		}
	}
}

// A clock of unknown quality is sent with S clear and the largest error that the field holds.
func TestSenderOfAnUnknownClockSaysThatItDoesNotKnow(t *testing.T) {
	for _, format := range []timefmt.Format{timefmt.NTP, timefmt.PTP} {
		o := DefaultOptions()
		o.format, o.Size = format, 128
		plan, err := planLayout(o.Size, false)
		if err != nil {
			t.Fatal(err)
		}
		s := &session{opts: &o, layout: plan, account: ledger.New(o.ledger(plan), 0, nil, nil)}
		for name, q := range map[string]clock.Quality{"none": none.New(metric.Discard{}).Quality(0), "no reply yet": {}} {
			p, err := stampfmt.ParseSender(s.writeTest(nil, 7, 1, q))
			if want := timefmt.ErrorEstimate(0x3fff | uint16(format)<<14); err != nil || p.Error != want {
				t.Errorf("%s: %#04x, %v, want %#04x", name, uint16(p.Error), err, uint16(want))
			}
		}
	}
}
