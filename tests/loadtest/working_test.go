package loadtest

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/estimate/orderstat"
	"oneway.example/exporter/estimate/working"
	"oneway.example/exporter/probes/stamp"
	"oneway.example/tests/lab"
	"oneway.example/tests/loadsite"
	"oneway.example/tests/precision"
	"oneway.example/tests/standstill"
)

// lightPackets selects the light test packets, by the ports of the load server's reflector and their length.
func lightPackets(payload []byte, src, dst netip.AddrPort) (key uint64, ok bool) {
	ports := option.LoadServerPorts()
	of := func(p uint16) bool { return ports.First <= p && p <= ports.Last }
	return 0, len(payload) == stamp.LightBytes && (of(src.Port()) || of(dst.Port()))
}

// workingOutcome is the output of `oneway test --json`.
type workingOutcome struct {
	Outcome string   `json:"result"`
	Reason  string   `json:"reason"`
	Notes   []string `json:"notes"`
	Values  struct {
		R map[string]map[string]float64 `json:"working_r_factor"`
	} `json:"values"`
	Forward int64 `json:"forward_sent_bytes"`
	Reverse int64 `json:"reverse_sent_bytes"`
	Working struct {
		Reason string         `json:"reason"`
		Parts  []working.Part `json:"parts"`
	} `json:"working"`
	Transfers []struct {
		Plan struct {
			Segments []struct {
				Bursts int `json:"bursts"`
			} `json:"segments"`
		} `json:"plan"`
		Begin instant.Time `json:"begin_ns"`
		Rows  [][]*int64   `json:"rows"`
	} `json:"transfers"`
}

func finishWorking(t *testing.T, p *loadsite.Process) (o workingOutcome) {
	t.Helper()
	p.Decode(t, 0, &o)
	t.Logf("%+v %v", o.Values, o.Notes)
	return o
}

// passed is a light packet as the log of the link has it: when it left the client, and its delay in each direction; 0: it
// was dropped there, or never came so far.
type passed struct {
	at     instant.Time
	delays [2]time.Duration
}

// truth pairs the packets of both directions: the reflector replies in order.
func truth(t *testing.T, network *lab.Lab) (all []passed) {
	t.Helper()
	back := network.Log(sample.Reverse)
	delayOf := func(r *lab.Record) time.Duration {
		if r.Outcome != lab.Delivered {
			return 0
		}
		return r.Exit.Middle().Sub(r.Entry)
	}
	for _, r := range network.Log(sample.Forward) {
		p := passed{at: r.Entry, delays: [2]time.Duration{delayOf(&r)}}
		if p.delays[sample.Forward] > 0 && len(back) > 0 {
			p.delays[sample.Reverse] = delayOf(&back[0])
			back = back[1:]
		}
		all = append(all, p)
	}
	if len(back) > 0 {
		t.Errorf("%d replies without a request", len(back))
	}
	return all
}

// span is when a transfer's load was sent, by the clock that both ends share; reverse loads reach the client later.
func (o *workingOutcome) span(i int, shift time.Duration) (from, to instant.Time) {
	x := &o.Transfers[i]
	for _, row := range x.Rows {
		if x.Plan.Segments[*row[1]].Bursts > 1 && row[3] != nil {
			at := x.Begin.Add(time.Duration(*row[3]) + shift)
			if from == 0 {
				from = at
			}
			to = at
		}
	}
	return from, to
}

// agrees compares one direction of a part with the packets of the log.
func agrees(what string, w *working.Way, d sample.Direction, all []passed) error {
	var delays []time.Duration
	reached, lost := 0, 0
	for _, p := range all {
		switch {
		case d == sample.Reverse && p.delays[sample.Forward] == 0: // never there
			continue
		case p.delays[d] == 0:
			lost++
		default:
			delays = append(delays, p.delays[d])
		}
		reached++
	}
	if w.Delay == nil || w.Loss == nil || len(delays) < 10 {
		return fmt.Errorf("%s: %+v, and %d delays in the log", what, w, len(delays))
	}
	slices.Sort(delays)
	var wrong []error
	for _, q := range []struct {
		at  float64
		got *float64
	}{{0.5, &w.Delay.P50}, {0.95, w.Delay.P95}} {
		if q.got == nil && repliesLost(all) && d == sample.Forward {
			continue // the delays of these are not known
		}
		want := orderstat.Quantile(delays, q.at).Seconds()
		if q.got == nil || math.Abs(*q.got-want) > *w.Delay.ErrorBound {
			wrong = append(wrong, fmt.Errorf("%s: quantile %v is %v s, that of the log %v; bound %v", what, q.at, q.got, want, *w.Delay.ErrorBound))
		}
	}
	if want := float64(lost) / float64(reached); math.Abs(*w.Loss-want) > 1.5/float64(reached) { // a packet at the ends
		wrong = append(wrong, fmt.Errorf("%s: loss %v, that of the log %v", what, *w.Loss, want))
	}
	if *w.Delay.ErrorBound > 0.02 {
		wrong = append(wrong, fmt.Errorf("%s: bound %v", what, *w.Delay.ErrorBound))
	}
	return errors.Join(wrong...)
}

// repliesLost reports whether more than a fiftieth of the packets that arrived forward have no reply.
func repliesLost(all []passed) bool {
	arrived, lost := 0, 0
	for _, p := range all {
		if p.delays[sample.Forward] != 0 {
			arrived++
			if p.delays[sample.Reverse] == 0 {
				lost++
			}
		}
	}
	return 50*lost > arrived
}

// The delay, loss and rating of light packets beside a saturation of the WiBro link are those of the same packets in the
// link's log: the loaded direction has its full queue (110 kB at 2.5 Mb/s are 352 ms, 1100 kB at 10 Mb/s 880 ms), the other
// none. A machine without time for the processes starves the load, or ends its session.
func TestWorkingDelayIsThatOfTheLinksLog(t *testing.T) {
	o := overWibro(t)
	o.Classifier = lightPackets
	s := newSite(t, o)
	standstill.Decide(t, standstill.Begin(t), func(r precision.TB) {
		if err := s.workingRound(t, o.Profile); err != nil {
			r.Errorf("%v", err)
		}
	})
}

func (s *site) workingRound(t *testing.T, profile lab.Profile) error {
	begin := instant.Now()
	p := s.Test(t, "saturation", "--clock-bound=1ms", "--rate-forward=5Mbit", "--rate-reverse=30Mbit", "--duration=6s", "--skip=1s")
	if status := p.Wait(t); status != 0 {
		return fmt.Errorf("status %d: %s", status, &p.Stderr)
	}
	r := finishWorking(t, p)
	if len(r.Working.Parts) != 3 || len(r.Transfers) != 2 || len(r.Notes) > 0 {
		return fmt.Errorf("%+v, %d transfers", r.Working, len(r.Transfers))
	}
	all := slices.DeleteFunc(truth(t, s.Network), func(p passed) bool { return p.at < begin })
	idle := &r.Working.Parts[0]
	var wrong []error
	for i, d := range sample.Directions() {
		part := &r.Working.Parts[1+i]
		if string(part.Loaded) != d.String() || idle.Loaded != working.None {
			return fmt.Errorf("parts %s and %s", idle.Loaded, part.Loaded)
		}
		from, to := r.span(i, time.Duration(i)*profile.Reverse.Delay)
		within := slices.DeleteFunc(slices.Clone(all), func(p passed) bool { return p.at < from || p.at > to })
		for _, way := range sample.Directions() {
			wrong = append(wrong, agrees(string(part.Loaded)+" loaded, "+way.String(), part.Way(way), way, within))
		}
		if err := errors.Join(wrong...); err != nil {
			return err
		}
		link := []lab.Link{profile.Forward, profile.Reverse}[i]
		full := link.Delay.Seconds() + 8*float64(link.Queue)/float64(link.Rate)
		if got := part.Way(d).Delay.P50; got < 0.9*full || got > 1.05*full {
			wrong = append(wrong, fmt.Errorf("%s loaded: median %v s, want the full queue, %v", d, got, full))
		}
		other := part.Way(1 - d)
		unknown := d == sample.Reverse && repliesLost(within)
		for _, quiet := range []*float64{other.Delay.P95, &other.Delay.P50, &idle.Way(d).Delay.P50} {
			if quiet == nil && !unknown || quiet != nil && *quiet > 0.045 {
				wrong = append(wrong, fmt.Errorf("%s loaded: %+v in the other direction, %+v before", d, other.Delay, idle.Way(d).Delay))
			}
		}
		if before, after := *idle.Way(d).R, *part.Way(d).R; before < 85 || after > 40 {
			wrong = append(wrong, fmt.Errorf("%s loaded: R from %v to %v", d, before, after))
		}
		if other.R == nil && !unknown || other.R != nil && *other.R < 80 {
			wrong = append(wrong, fmt.Errorf("%s loaded: %+v in the other direction, want an R of 80", d, other))
		}
		if got := r.Values.R[d.String()][string(part.Loaded)]; got != *part.Way(d).R {
			wrong = append(wrong, fmt.Errorf("%s: R of %v in the values, want that of the part, %v", d, got, *part.Way(d).R))
		}
	}
	return errors.Join(wrong...)
}

// TCP loads one direction after the other; the light packets go beside it, and their bytes count.
func TestWorkingDelayOfTCP(t *testing.T) {
	s := newSite(t, overWibro(t))
	standstill.Decide(t, standstill.Begin(t), func(round precision.TB) {
		r := finishWorking(t, s.Test(t, "tcp", "--congestion-control=cubic", "--duration=6s"))
		if len(r.Working.Parts) != 3 {
			t.Fatalf("%+v", r.Working)
		}
		for i, d := range sample.Directions() {
			part := r.Working.Parts[1+i]
			if string(part.Loaded) != d.String() || part.Way(d).Delay == nil || part.Way(d).Delay.P95 == nil || *part.Way(d).Delay.P95 < 0.15 || part.Way(1-d).Delay.P50 > 0.05 || part.Packets < 50 {
				round.Errorf("%s loaded: %+v", d, part)
			}
		}
	})
}
