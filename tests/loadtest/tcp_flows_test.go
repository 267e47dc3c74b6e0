package loadtest

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/probes/tcp"
	"oneway.example/tests/lab"
	"oneway.example/tests/precision"
	"oneway.example/tests/tcplog"
)

// arrivals returns the payload of each flow that left the link in a direction, without the cookie, and when the first did.
func (s *site) arrivals(t *testing.T, d sample.Direction) (flows [][]tcplog.Arrival, first instant.Time) {
	t.Helper()
	s.Drained(t)
	for _, c := range tcplog.Connections(s.Network.Log(d), s.Network.Log(1-d)) {
		all := c.Arrivals()
		if d == sample.Forward {
			all = all[1:]
		}
		if flows = append(flows, all); first == 0 || all[0].At < first {
			first = all[0].At
		}
	}
	return flows, first
}

// rate returns the payload per second of a flow in a time after another.
func rate(flow []tcplog.Arrival, zero instant.Time, from, until time.Duration) (sum float64) {
	for _, a := range flow {
		if after := a.At.Sub(zero); after >= from && after < until {
			sum += float64(a.Bytes) / (until - from).Seconds()
		}
	}
	return sum
}

func jain(rates []float64) float64 {
	sum, squares := 0.0, 0.0
	for _, r := range rates {
		sum, squares = sum+r, squares+r*r
	}
	return sum * sum / squares / float64(len(rates))
}

// unread is what a receive buffer of 64 KiB may hold, as a busy host reads later than payload arrives.
const unread = 128 << 10

// Flows of one congestion control, and of two, share a link: the throughput of each, Jain's index and the shares are those
// of the link's log.
func TestFairnessIsThatOfTheLinksLog(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		flows int
		flags []string
	}{
		{"4 equal", 4, []string{"--flows=4", "--congestion-control=cubic"}},
		{"10 equal", 10, []string{"--flows=10", "--congestion-control=cubic"}},
		{"4 mixed", 4, []string{"--flows=4", "--congestion-control=cubic", "--congestion-control=reno", "--congestion-control=cubic", "--congestion-control=reno"}},
		{"10 mixed", 10, []string{"--flows=10", "--congestion-control=cubic", "--congestion-control=reno"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			const lasts, omit, bits = 8 * time.Second, 2 * time.Second, 10e6
			link := lab.Link{Rate: bits, Delay: 10 * time.Millisecond, Queue: 60_000}
			s := newSite(t, lab.Options{Profile: lab.Profile{Name: "shared", Forward: link, Reverse: link}, Segments: segments()})
			r := s.StartTCP(t, append(c.flags, "--receive-buffer-bytes=64KiB", "--duration="+lasts.String(), "--omit="+omit.String(), "--direction=reverse", "--link-rate-reverse=10Mbit")...).FinishTCP(t, 0)
			flows, zero := s.arrivals(t, sample.Reverse)
			d, truth, measured := r.Result.Directions[0], []float64{}, []float64{}
			for _, f := range flows {
				truth = append(truth, rate(f, zero, omit, lasts))
			}
			for _, f := range d.Flows {
				measured = append(measured, *f.Throughput)
			}
			slices.Sort(measured) // the log has ports, but not the numbers of flows
			slices.Sort(truth)
			t.Logf("Jain %.3f by the log %.3f, quartiles by second %.3f; flows %.1f kB/s, by the log %.1f; %+v", d.Fairness.Jain, jain(truth), *d.Fairness.Quartiles, scaled(measured), scaled(truth), d.Fairness.Variants)
			if len(truth) != c.flows || len(measured) != c.flows {
				t.Fatalf("%d flows, %d in the log", len(measured), len(truth))
			}
			fair := bits / 8 * efficiency / float64(c.flows)
			for i := range truth {
				if math.Abs(measured[i]-truth[i]) > 0.1*fair+unread/(lasts-omit).Seconds() {
					t.Errorf("flow of rank %d: %.1f kB/s, by the log %.1f", i, measured[i]/1e3, truth[i]/1e3)
				}
			}
			if math.Abs(d.Fairness.Jain-jain(truth)) > 0.05 || math.Abs(d.Fairness.Jain-jain(measured)) > 1e-9 || d.Fairness.Jain < 0.5 {
				t.Errorf("Jain %v; of the flows %v, by the log %v", d.Fairness.Jain, jain(measured), jain(truth))
			}
			sharesAreOfTheFlows(t, d)
			sum := mean(truth) * float64(c.flows)
			if used := sum / (bits / 8 * efficiency); math.Abs(*d.LinkUsed-used) > 0.1 || *d.LinkRate != bits/8 {
				t.Errorf("%v of the link's rate of %v, by the log %v", *d.LinkUsed, *d.LinkRate, used)
			}
		})
	}
}

// segments selects those of transfers.
func segments() lab.SegmentClassifier {
	client, _ := lab.Addresses()
	return tcplog.Segments(client, loadcontrol.DefaultPort)
}

func scaled(rates []float64) (kB []float64) {
	for _, r := range rates {
		kB = append(kB, r/1e3)
	}
	return kB
}

// sharesAreOfTheFlows checks the variants against the throughput of the flows.
func sharesAreOfTheFlows(t *testing.T, d *tcp.Direction) {
	t.Helper()
	by, sum := map[string][]float64{}, 0.0
	for _, f := range d.Flows {
		by[f.CongestionControl] = append(by[f.CongestionControl], *f.Throughput)
		sum += *f.Throughput
	}
	if len(d.Fairness.Variants) != len(by) {
		t.Errorf("%d variants, want %d", len(d.Fairness.Variants), len(by))
	}
	for _, v := range d.Fairness.Variants {
		own, n := by[v.CongestionControl], float64(len(by[v.CongestionControl]))
		share := n * mean(own) / sum
		if v.Flows != len(own) || math.Abs(v.Share-share) > 1e-9 || math.Abs(v.OfFair-share*float64(len(d.Flows))/n) > 1e-9 ||
			v.Throughput[0] != slices.Min(own) || v.Throughput[2] != slices.Max(own) {
			t.Errorf("%+v, flows %v of %v", v, own, sum)
		}
	}
}

// A download over wibro whose acknowledgments meet the queue of an upload in its middle: begin and end of the upload, and
// the throughput of both in each part, are those of the link's log.
func TestTwoWayRunIsThatOfTheLinksLog(t *testing.T) {
	o := overWibro(t)
	o.Segments = segments()
	s := newSite(t, o)
	r := s.StartTCP(t, "--direction=reverse-forward", "--congestion-control=cubic", "--receive-buffer-bytes=64KiB",
		"--duration=13s", "--omit=1s", "--overlap-start=4s", "--overlap-duration=5s").FinishTCP(t, 0)
	x := r.Result.TwoWay
	if x == nil || x.Directions[0].Direction != "reverse" || x.Directions[1].Direction != "forward" {
		t.Fatalf("%+v", x)
	}
	downs, zero := s.arrivals(t, sample.Reverse)
	ups, first := s.arrivals(t, sample.Forward)
	down, up := downs[0], ups[0]
	begin, end := first.Sub(zero).Seconds(), up[len(up)-1].At.Sub(zero).Seconds()
	t.Logf("forward from %.3f to %.3f s ± %.3f, by the log %.3f to %.3f", x.Begin, x.End, x.Bound, begin, end)
	if x.Bound < 0.022 || x.Bound > 0.040 {
		t.Errorf("error bound %v; the path has a round trip of 44 ms", x.Bound)
	}
	// A busy host reads later than payload arrives, and discards what it has not read when the sender resets.
	var late error
	if math.Abs(x.Begin-begin) > x.Bound+0.01 || math.Abs(x.End-end) > x.Bound+0.02 {
		late = fmt.Errorf("forward from %.3f to %.3f s ± %.3f, by the log %.3f to %.3f", x.Begin, x.End, x.Bound, begin, end)
	}
	if precision.Missed(t, late); math.Abs(x.Begin-begin) > 1 || math.Abs(x.End-end) > 2 {
		t.Error(late)
	}
	ceil := func(at float64) int { return int(math.Ceil(at)) }
	for _, c := range []struct {
		part        string
		from, until int
		got         *float64
		flow        []tcplog.Arrival
	}{
		{"reverse before", 1, int(x.Begin), x.Directions[0].Before, down},
		{"reverse during", ceil(x.Begin + 1), int(x.End), x.Directions[0].During, down},
		{"reverse after", ceil(x.End), len(x.Directions[0].PerSecond), x.Directions[0].After, down},
		{"forward during", ceil(x.Begin + 1), int(x.End), x.Directions[1].During, up},
	} {
		truth := rate(c.flow, zero, time.Duration(c.from)*time.Second, time.Duration(c.until)*time.Second)
		if seconds := float64(c.until - c.from); c.got == nil || math.Abs(*c.got-truth) > 0.05*truth+unread/seconds {
			t.Errorf("%s: %.1f kB/s, by the log %.1f", c.part, *cmp.Or(c.got, new(0.0))/1e3, truth/1e3)
			continue
		}
		t.Logf("%s: %.1f kB/s, by the log %.1f", c.part, *c.got/1e3, truth/1e3)
	}
	t.Logf("correlation %+v; per second %.0f, %.0f", x.Correlation, scaled(x.Directions[0].PerSecond), scaled(x.Directions[1].PerSecond))
}
