package stamp

import (
	"context"
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/bound"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/net/wire/timefmt"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/reflector"
	"oneway.example/tests/await"
)

// Offsets of the timestamps T3 and T2 and of the Error Estimate in a reply (RFC 8762 section 4.3.1).
const (
	atT3    = 4
	atError = 12
	atT2    = 16
)

// alteringPeer replies as replyTo does, after a change of each reply.
func alteringPeer(t *testing.T, change func(reply []byte)) string {
	return fakePeer(t, func(q []byte) [][]byte {
		s, err := stampfmt.ParseSender(q)
		if err != nil {
			return nil
		}
		reply := replyTo(q, s.Seq)
		change(reply)
		return [][]byte{reply}
	})
}

// TestWrongTimestampsOfAForeignReflectorHaveAReason: what a reflector's wrong timestamps make unknown is counted with its reason.
func TestWrongTimestampsOfAForeignReflectorHaveAReason(t *testing.T) {
	ago := func(d time.Duration) uint64 { return timefmt.NTP.Encode(instant.Now().Add(-d), 0) }
	for name, c := range map[string]struct {
		damage           func(reply []byte)
		reason           sample.Reason
		forward, reverse bool // delays that are known
		note             string
	}{
		"T3 before T2": {
			damage: func(b []byte) { binary.BigEndian.PutUint64(b[atT3:], ago(time.Second)) },
			reason: sample.TransmitBeforeReceive, note: "20 delays have no error bound: the reflector's transmit timestamp precedes its receive timestamp",
		},
		"T2 an hour too early": {
			damage: func(b []byte) { binary.BigEndian.PutUint64(b[atT2:], ago(time.Hour)) },
			reason: sample.ResidenceTooLong, note: "20 delays have no error bound: by the reflector's timestamps it kept the packet for longer than until its reply arrived",
		},
		"T2 is 0": {
			damage: func(b []byte) { clear(b[atT2 : atT2+8]) },
			reason: sample.NoStamp, reverse: true, note: "20 delays have no error bound: timestamps are missing",
		},
		"T3 is 0": {
			damage: func(b []byte) { clear(b[atT3 : atT3+8]) },
			reason: sample.NoStamp, forward: true, note: "20 delays have no error bound: timestamps are missing",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			peer := alteringPeer(t, c.damage)
			b := newTestbed(t, reflector.Options{}).to(peer)
			r := b.measure(t, quick(), 20)
			for _, d := range []struct {
				DirectionReport
				known bool
			}{{r.Forward, c.forward}, {r.Reverse, c.reverse}} {
				want := uint64(20)
				if d.known {
					want = 0
				}
				if got := d.Invalid[c.reason.String()]; got != want || (d.Delay != nil) != d.known {
					t.Errorf("%d delays are invalid as %v, want %d: %s", got, c.reason, want, asJSON(t, d.DirectionReport))
				}
			}
			if r.RoundTrip.Time != nil || r.RoundTrip.Received != 20 {
				t.Errorf("round trips %s; want 20, all without a time", asJSON(t, r.RoundTrip))
			}
			if said := strings.Join(r.notes(), "\n"); !strings.Contains(said, c.note) {
				t.Errorf("no %q in the notes:\n%s", c.note, said)
			}
			invalid := b.invalid(t, c.reason)
			if invalid["forward"] > 0 == c.forward || invalid["reverse"] > 0 == c.reverse || invalid["round trip"] == 0 {
				t.Errorf("counted as %v: %v", c.reason, invalid)
			}
		})
	}
}

// invalid are the totals of a path with this reason, by direction, after some replies.
func (b testbed) invalid(t *testing.T, reason sample.Reason) map[string]float64 {
	t.Helper()
	sink := &metrictest.Sink{}
	b.env.Sink = sink
	p, err := NewType().NewProber(b.env, probe.Target{Path: "p", Probe: "stamp", Peer: b.peer}, quick())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	total := func(d *metric.Desc, labels ...string) float64 {
		v, _ := sink.Value(d, append([]string{"p", "stamp"}, labels...)...)
		return v
	}
	await.That(t, "a hundred replies", func() bool { return total(metric.RoundTripReceived) >= 100 })
	first := total(metric.RoundTripReceived)
	await.That(t, "a further window, so that all of the first one is published", func() bool { return total(metric.RoundTripReceived) > first })
	await.That(t, "the status of the path names it", func() bool {
		s := p.Status()
		return s.Up && s.Cause == reason.String() && strings.Contains(s.Reason, sample.InWords(reason.String()))
	})
	found := map[string]float64{"round trip": total(metric.RoundTripInvalid, reason.String())}
	for _, d := range sample.Directions() {
		found[d.String()] = total(metric.DelayInvalid, d.String(), reason.String())
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	return found
}

// TestTimestampsWithinTheirErrorsAreInOrder: a network card's receive timestamp, converted with an error, may be later than the transmit
// timestamp of the kernel.
func TestTimestampsWithinTheirErrorsAreInOrder(t *testing.T) {
	for residence, want := range map[time.Duration]sample.Reason{-40 * us: sample.OK, -2 * time.Millisecond: sample.TransmitBeforeReceive} {
		c := newSessionFixture(t, us, nil)
		c.skew = residence - 100*us
		forward, reverse := c.bring(30*time.Millisecond, 30*time.Millisecond)
		if forward.Reason != want || reverse.Reason != want {
			t.Errorf("residence of %v: %v and %v, want %v", residence, forward.Reason, reverse.Reason, want)
		}
		c.closed()
		if n := c.count(metric.RoundTripInvalid, "transmit_before_receive"); n != 1 {
			t.Errorf("residence of %v: %v invalid round trips, want 1", residence, n)
		}
	}
}

// TestTimestampsOfAnotherFormatHaveAReason: a reflector's timestamps whose format or time scale is not the one that it says give no
// delay, and a round trip without an error.
func TestTimestampsOfAnotherFormatHaveAReason(t *testing.T) {
	const tai = timefmt.TAIOffset
	for name, c := range map[string]struct {
		stated, true timefmt.Format
		tai          time.Duration // of the reflector
		bound        time.Duration
		ahead        time.Duration
		reason       sample.Reason
	}{
		"NTP":                               {timefmt.NTP, timefmt.NTP, 0, time.Microsecond, 0, sample.OK},
		"PTP":                               {timefmt.PTP, timefmt.PTP, tai, time.Microsecond, 0, sample.OK},
		"PTP that says NTP":                 {timefmt.NTP, timefmt.PTP, tai, time.Microsecond, 0, sample.WrongFormat},
		"PTP in UTC that says NTP":          {timefmt.NTP, timefmt.PTP, 0, time.Microsecond, 0, sample.WrongFormat},
		"NTP that says PTP":                 {timefmt.PTP, timefmt.NTP, 0, time.Microsecond, 0, sample.WrongFormat},
		"PTP in UTC":                        {timefmt.PTP, timefmt.PTP, 0, time.Microsecond, 0, sample.PTPInUTC},
		"PTP in UTC, as far as it is known": {timefmt.PTP, timefmt.PTP, 0, 40 * time.Second, 0, sample.OK},
		"PTP ahead":                         {timefmt.PTP, timefmt.PTP, 2 * tai, time.Microsecond, 0, sample.OK},
		"NTP, a month off":                  {timefmt.NTP, timefmt.NTP, 0, time.Microsecond, 30 * 24 * time.Hour, sample.OK},
		"NTP, 2 years ahead":                {timefmt.NTP, timefmt.NTP, 0, time.Microsecond, 2 * bound.Apart, sample.ClocksApart},
		"NTP, 26 years behind":              {timefmt.NTP, timefmt.NTP, 0, time.Microsecond, -26 * bound.Apart, sample.ClocksApart},
		"PTP, 2 years behind":               {timefmt.PTP, timefmt.PTP, tai, time.Microsecond, -2 * bound.Apart, sample.ClocksApart},
		"PTP, 20 years ahead":               {timefmt.PTP, timefmt.PTP, tai, time.Microsecond, 20 * bound.Apart, sample.ClocksApart},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			peer := alteringPeer(t, func(reply []byte) {
				now := c.true.Encode(instant.Now().Add(c.ahead), c.tai)
				binary.BigEndian.PutUint64(reply[atT3:], now)
				binary.BigEndian.PutUint16(reply[atError:], uint16(timefmt.MakeErrorEstimate(c.bound, true, c.stated)))
				binary.BigEndian.PutUint64(reply[atT2:], now)
			})
			b := newTestbed(t, reflector.Options{}).to(peer)
			r := b.measure(t, quick(), 20)
			for _, d := range []DirectionReport{r.Forward, r.Reverse} {
				want := map[string]uint64{c.reason.String(): 20}
				if c.reason == sample.OK {
					want = nil
				}
				if len(d.Invalid) != len(want) || d.Invalid[c.reason.String()] != want[c.reason.String()] || (d.Delay != nil) != (c.reason == sample.OK) {
					t.Errorf("%s; want delays %v", asJSON(t, d), c.reason)
				}
			}
			if r.RoundTrip.Time == nil || r.RoundTrip.Received != 20 {
				t.Errorf("round trips %s; want 20 with a time", asJSON(t, r.RoundTrip))
			}
			if c.reason == sample.OK {
				return
			}
			note := "20 delays have no error bound: " + sample.InWords(c.reason.String())
			if said := strings.Join(r.notes(), "\n"); !strings.Contains(said, note) {
				t.Errorf("no %q in the notes:\n%s", note, said)
			}
			invalid := b.invalid(t, c.reason)
			if invalid["forward"] == 0 || invalid["reverse"] == 0 || invalid["round trip"] > 0 {
				t.Errorf("counted as %v: %v", c.reason, invalid)
			}
		})
	}
}

// TestTimestampsInNoFormatKeepOneReading: of a reflector that writes the time since 1970 with an NTP fraction, a quarter of the
// timestamps exist in PTP. All are read in the format that it names, in which their differences are right.
func TestTimestampsInNoFormatKeepOneReading(t *testing.T) {
	n := uint64(0)
	peer := alteringPeer(t, func(reply []byte) {
		fraction := uint64(3_000_000_000)
		if n++; n%4 == 1 {
			fraction = 900_000_000 // exists in PTP
		}
		now := (timefmt.NTP.Encode(instant.Now(), 0)>>32-2_208_988_800)<<32 | fraction // seconds from 1900 to 1970
		binary.BigEndian.PutUint64(reply[atT3:], now)
		binary.BigEndian.PutUint16(reply[atError:], uint16(timefmt.MakeErrorEstimate(time.Microsecond, true, timefmt.NTP)))
		binary.BigEndian.PutUint64(reply[atT2:], now)
	})
	r := newTestbed(t, reflector.Options{}).to(peer).measure(t, quick(), 20)
	for _, d := range []DirectionReport{r.Forward, r.Reverse} {
		if n := d.Invalid[sample.WrongFormat.String()]; n > 1 || d.Invalid[sample.ClocksApart.String()] != 20-n || d.Jitter == nil || *d.Jitter > 2 {
			t.Errorf("%s; want 20 delays between clocks that are apart, at most the first in another format, and a jitter below 2 s", asJSON(t, d))
		}
	}
}
