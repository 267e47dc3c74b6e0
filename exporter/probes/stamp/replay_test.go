package stamp

import (
	"math"
	"net/netip"
	"testing"
	"time"

	"oneway.example/exporter/clocks/static"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/wire/timefmt"
	"oneway.example/exporter/output/promsink"
)

func newReplay(t *testing.T, sink metric.Sink, profile metric.Profile) *Replay {
	t.Helper()
	o := DefaultOptions()
	o.Window = time.Hour
	r, err := NewReplay(o, netip.MustParseAddrPort("192.0.2.1:862"), static.New(time.Microsecond, metric.Discard{}), profile.Scope(sink, "p", "stamp"))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// replayed is the packet of a wheel.
func replayed(seq uint32) *sample.Packet {
	at := userTime(seq)
	stamp := func(after time.Duration, origin sample.Origin) sample.Stamp {
		return sample.Stamp{At: at.Add(after), Origin: origin}
	}
	return &sample.Packet{
		T1: stamp(20_000, sample.Kernel), T2: stamp(100_000, sample.Kernel), T3: stamp(210_000, sample.FollowUp), T4: stamp(300_000, sample.Kernel),
		Local:  sample.Bound{Error: time.Microsecond, Reason: sample.OK},
		Remote: sample.Bound{Error: timefmt.MakeErrorEstimate(time.Microsecond, true, timefmt.NTP).Bound(), Reason: sample.OK},
	}
}

func TestReplayHasTheValuesOfASession(t *testing.T) {
	const packets = 1000
	w, r := newWheel(t), newReplay(t, metric.Discard{}, metric.Full)
	for seq := range uint32(packets) {
		w.turn()
		p := replayed(seq)
		if seq == packets-1 { // the true T3 would follow in the next reply
			p.T3 = sample.Stamp{At: userTime(seq).Add(200_000), Origin: sample.InPacket}
		}
		r.Answered(p)
	}
	w.s.account.Flush(math.MaxInt64)
	session := w.s.estimator.close(w.s.account.Known())
	r.EndWindow()
	near := func(what string, got, want spread) {
		t.Helper()
		// A session reads timestamps from packets, in units of 0.23 ns.
		pairs := [][2]float64{{got.min.Value, want.min.Value}, {got.max.Value, want.max.Value}, {got.bound.Value, want.bound.Value}}
		for i := range got.ranks {
			pairs = append(pairs, [2]float64{got.ranks[i].Value, want.ranks[i].Value})
		}
		for _, p := range pairs {
			if math.Abs(p[0]-p[1]) > 2e-9 {
				t.Errorf("%s is %+v, and %+v of a session", what, got, want)
				return
			}
		}
		if !got.min.Known || !got.ranks[2].Known {
			t.Errorf("%s is not known: %+v", what, got)
		}
	}
	near("round trip", r.window.roundTrip, session.roundTrip)
	for _, dir := range sample.Directions() {
		got, want := &r.window.directions[dir], &session.directions[dir]
		near("delay "+dir.String(), got.delay, want.delay)
		if got.lossRatio != want.lossRatio || got.unknown != want.unknown {
			t.Errorf("%v: loss %+v and %d unknown delays, want %+v and %d", dir, got.lossRatio, got.unknown, want.lossRatio, want.unknown)
		}
		if len(got.ratings) == 0 || len(got.ratings) != len(want.ratings) {
			t.Fatalf("%v: %d ratings, want %d and more than 0", dir, len(got.ratings), len(want.ratings))
		}
		for i, one := range got.ratings {
			if two := want.ratings[i]; one.ok != two.ok || math.Abs(one.R-two.R) > 1e-6 || math.Abs(one.off-two.off) > 1e-6 {
				t.Errorf("%v: rating %+v, want %+v", dir, one, two)
			}
		}
		if got, want := r.counts[dir].received, w.s.account.Direction(dir).Received.Value; got != want || got != packets {
			t.Errorf("%v: %d received, want %d, as the session", dir, got, want)
		}
	}
}

func TestReplayOfLossesConservesPacketsAndCountsRuns(t *testing.T) {
	for _, profile := range []metric.Profile{metric.Full, metric.Slim} {
		sink := promsink.New(promsink.Options{})
		r := newReplay(t, sink, profile)
		// Runs of two and of one forward, of three in reverse: the third one ends the window.
		sent := uint64(0)
		for _, c := range "..ff.f..rrr....r" {
			switch c {
			case 'f':
				r.Lost(sample.Forward)
			case 'r':
				r.Lost(sample.Reverse)
			default:
				r.Answered(replayed(uint32(sent)))
			}
			sent++
		}
		r.EndWindow()
		r.Publish()
		want := map[string]float64{"sent forward": 16, "lost forward": 3, "lost reverse": 4, "round trips lost": 7}
		got := map[string]float64{}
		_ = sink.Read([]*metric.Desc{metric.PacketsSent, metric.PacketsLost, metric.RoundTripLost}, func(d *metric.Desc, v *metric.Reading) {
			switch d.Name {
			case metric.PacketsSent.Name:
				if v.Labels[2] == "forward" {
					got["sent forward"] = v.Number
				}
			case metric.PacketsLost.Name:
				got["lost "+v.Labels[2]] = v.Number
			case metric.RoundTripLost.Name:
				got["round trips lost"] = v.Number
			}
		})
		for name, n := range want {
			if got[name] != n {
				t.Errorf("%v: %s: %v, want %v", profile, name, got[name], n)
			}
		}
		f := &r.window.directions[sample.Forward]
		if want := 3.0 / 16; f.lossRatio.Value != want || !f.lossRatio.Known {
			t.Errorf("%v: loss forward %+v, want %v", profile, f.lossRatio, want)
		}
		if want := 3.0 / 2 * (1 - 3.0/16); f.burstRatio.Value != want {
			t.Errorf("%v: burst ratio forward %+v, want %v", profile, f.burstRatio, want)
		}
		// Of packets whose reply was lost the delay is not known: 4 of 13.
		if f.unknown != 4 {
			t.Errorf("%v: %d delays unknown forward, want 4", profile, f.unknown)
		}
		for range 3 {
			r.Lost(sample.Reverse)
		}
		r.Publish()
		if up := value(sink, metric.ProbeUp); up != 0 {
			t.Errorf("%v: the path is up without a reply to 3 packets", profile)
		}
	}
}

// value is the value of a gauge with one series.
func value(sink *promsink.Sink, d *metric.Desc) (x float64) {
	_ = sink.Read([]*metric.Desc{d}, func(_ *metric.Desc, v *metric.Reading) { x = v.Number })
	return x
}

func TestReplayTakesWrongOptionsForAnError(t *testing.T) {
	o := DefaultOptions()
	o.Interval = time.Nanosecond
	if _, err := NewReplay(o, netip.AddrPort{}, static.New(0, metric.Discard{}), metric.NewScope(metric.Discard{})); err == nil {
		t.Error("an interval of 1 ns was accepted")
	}
}
