package queue

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// cut returns the packets of a simulation without those that were sent during parts of the load.
func cut(w simulation, parts ...part) []Packet {
	packets := w.simulate(1)
	begin := packets[w.idle].Sent
	for i := range packets {
		for _, p := range parts {
			if p.holds(packets[i].Sent.Sub(begin)) {
				packets[i].Arrived = 0
			}
		}
	}
	return packets
}

func toTheEnd(from time.Duration) part { return part{from, time.Hour} }

// A path that is interrupted to the end of the load, or for most of it, shows neither that the link carried the load nor
// that its queue was full.
func TestInterruptedLoadHasNoState(t *testing.T) {
	carried, filled := profile(10e6, 2e6, 110_000, 14*ms, 0), profile(2.5e6, 5e6, 110_000, 30*ms, 0)
	policed := profile(10e6, 5e6, 110_000, 14*ms, 0)
	policed.noQueue, policed.admit = true, bucket(2e6, 15_000, policed.size)
	var blinks []part
	for at := 2 * time.Second; at < 30*time.Second; at += 2 * time.Second {
		blinks = append(blinks, part{at, at + 1500*ms})
	}
	for name, c := range map[string]struct {
		link  simulation
		parts []part
		want  string
	}{
		"carried, from second 7 on":  {carried, []part{toTheEnd(7 * time.Second)}, "from second 7 on"},
		"carried, from second 20 on": {carried, []part{toTheEnd(20 * time.Second)}, "from second 20 on"},
		"carried, the last 4 s":      {carried, []part{toTheEnd(26 * time.Second)}, "from second 26 on"},
		"filled, from second 12 on":  {filled, []part{toTheEnd(12 * time.Second)}, "from second 12 on"},
		"policed, from second 12 on": {policed, []part{toTheEnd(12 * time.Second)}, "from second 12 on"},
		"carried, most of it":        {carried, []part{{5 * time.Second, 25 * time.Second}}, "were lost in 1 outage, in"},
		"carried, again and again":   {carried, blinks, "were lost in 14 outages, in"},
		"filled, most of it":         {filled, []part{{5 * time.Second, 25 * time.Second}}, "were lost in 1 outage, in"},
	} {
		r := Analyze(cut(c.link, c.parts...), options(c.link))
		if r.State != Unknown || !r.Interrupted || !strings.Contains(r.Evidence, c.want) || r.Size.OK {
			t.Errorf("%s: %v, interrupted %v, size %+v: %q, want %q", name, r.State, r.Interrupted, r.Size, r.Evidence, c.want)
		}
	}
}

// A short outage leaves the state, which is told with the rate that arrived.
func TestShortOutageLeavesTheState(t *testing.T) {
	w := profile(10e6, 2e6, 110_000, 14*ms, 0)
	if r := Analyze(cut(w, toTheEnd(28*time.Second)), options(w)); r.State != NotFilled || r.Interrupted {
		t.Errorf("the last 2 of 30 s: %v, interrupted %v: %q", r.State, r.Interrupted, r.Evidence)
	}
	r := Analyze(cut(w, part{8 * time.Second, 16 * time.Second}), options(w))
	if r.State != NotFilled || r.Interrupted || !strings.Contains(r.Evidence, "lost in 1 outage,") || !strings.HasPrefix(r.Evidence, "0 of 39") {
		t.Errorf("%v, interrupted %v: %s", r.State, r.Interrupted, r.Evidence)
	}
}

// What was sent in the rest of the time, not in all of it, is compared with what arrived in that rest.
func TestPauseOfTheSenderIsNotInTheOfferedRate(t *testing.T) {
	for _, pause := range []time.Duration{time.Second, 8 * time.Second, 20 * time.Second} {
		for _, skip := range []time.Duration{-1, 0} {
			w := profile(10e6, 2e6, 110_000, 14*ms, 0)
			w.pause = [2]time.Duration{7 * time.Second, 7*time.Second + pause}
			o := options(w)
			o.Skip = skip
			r := Analyze(w.simulate(1), o)
			if off := r.Offered*8/2e6 - 1; max(off, -off) > 0.01 {
				t.Errorf("%v of pause, skip %v: %.0f b/s offered, want 2 Mb/s", pause, skip, r.Offered*8)
			}
			if r.Throughput > 1.01*r.Offered || r.State != NotFilled {
				t.Errorf("%v of pause, skip %v: %.0f of %.0f B/s, %v: %s", pause, skip, r.Throughput, r.Offered, r.State, r.Evidence)
			}
		}
	}
}

// A sender that stands still for less than a pause and sends less for it is as slow for both rates: without loss no more
// arrives than was offered.
func TestLosslessThroughputIsAtMostTheOfferedRate(t *testing.T) {
	for _, still := range []time.Duration{100 * ms, 150 * ms, 190 * ms} {
		w := profile(10e6, 9.8e6, 110_000, 14*ms, 0)
		o := options(w)
		begin := time.Duration(-1)
		packets := slices.DeleteFunc(w.simulate(1), func(p Packet) bool {
			at := p.Sent.Sub(epoch)
			if p.Segment < o.Load || o.After > 0 && p.Segment >= o.After {
				return false
			}
			if begin < 0 {
				begin = at
			}
			at -= begin
			return (at/time.Second)%2 == 0 && at%time.Second > 400*ms && at%time.Second < 400*ms+still
		})
		r := Analyze(packets, o)
		if r.Loss != 0 || r.Throughput > r.Offered || r.Throughput < 0.97*r.Mean {
			t.Errorf("%v: %.0f of %.0f B/s, mean %.0f, loss %v", still, r.Throughput, r.Offered, r.Mean, r.Loss)
		}
	}
}

// A load without a whole second has its mean as its throughput: also that is at most the offered rate, though the window may begin
// just after a packet was sent and before it arrived.
func TestMeanOfAShortLosslessLoadIsAtMostTheOfferedRate(t *testing.T) {
	const every = 5648 * time.Microsecond
	for delay := time.Duration(0); delay < every; delay += every / 8 {
		var packets []Packet
		for i := range 354 {
			at := epoch.Add(time.Duration(i) * every)
			packets = append(packets, Packet{Sent: at, Arrived: at.Add(10*ms + delay*time.Duration(i%2)), IPBytes: 1412})
		}
		if r := Analyze(packets, Options{Skip: 5 * time.Second}); r.Loss != 0 || r.Mean > r.Offered || r.Mean < 0.98*r.Offered {
			t.Errorf("%v: %.0f of %.0f B/s, loss %v", delay, r.Mean, r.Offered, r.Loss)
		}
	}
}
