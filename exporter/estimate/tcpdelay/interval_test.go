package tcpdelay

import (
	"math/rand/v2"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/core/tcpstamp"
	"oneway.example/tests/testseed"
)

var exactClocks = Errors{Clocks: sample.Bound{Error: ms / 10, Reason: sample.OK}}

// TestQuantilesAreThoseOfTheStream has a fourth of the bytes in bursts, where every 4 KiB is a sample and the delay is
// 100 ms; elsewhere every 32 KiB is one and the delay is 50 ms.
func TestQuantilesAreThoseOfTheStream(t *testing.T) {
	var f Flow
	for k := int64(1); k <= 3200; k++ {
		d := 50 * ms
		if burst := k/80%4 == 3; burst {
			d = 100 * ms
		} else if k%8 != 0 {
			continue
		}
		sent := time.Duration(k) * ms
		f.Sent = append(f.Sent, tcpstamp.Sent{Offset: k * tcpstamp.Grid, Scheduled: at(sent - d/10), Written: at(sent - d/5), First: at(sent), Last: at(sent), Acked: at(sent + 2*d), Transmissions: 1})
		f.Received = append(f.Received, tcpstamp.Received{Offset: k * tcpstamp.Grid, At: at(sent + d)})
	}
	r := Evaluate([]Flow{f}, exactClocks)
	for _, q := range []float64{0.05, 0.5, 0.7} {
		if v, bound, ok := r.Quantile(q); !ok || v != 50*ms || bound != ms/10 {
			t.Errorf("quantile %v of %d delays: %v ± %v, %v; want 50 ms", q, len(r.Delays), v, bound, ok)
		}
		for name, of := range map[string][]time.Duration{"delays": r.Delays, "host queue": r.HostQueue, "socket": r.Socket, "acknowledged": r.Acked} {
			if v, _ := Quantile(of, q); v != 50*ms && v != 5*ms && v != 100*ms || name == "acknowledged" && v != 100*ms {
				t.Errorf("quantile %v of %s: %v", q, name, v)
			}
		}
	}
	if len(r.Samples) != 400 || r.Counts[Delay] != 400 || r.Lags != len(f.Sent) {
		t.Errorf("%d samples, counts %v, compared %d of %d", len(r.Samples), r.Counts, r.Lags, len(f.Sent))
	}
}

// TestFlowsOfOneDirectionHaveOneSpacing has a slow flow with a sample in 128 KiB beside a fast one with a sample in 32 KiB,
// with as many bytes.
func TestFlowsOfOneDirectionHaveOneSpacing(t *testing.T) {
	flow := func(step int64, d time.Duration) (f Flow) {
		for o := step; o <= 32<<20; o += step {
			sent := time.Duration(o>>10) * ms
			f.Sent = append(f.Sent, tcpstamp.Sent{Offset: o, First: at(sent), Last: at(sent), Transmissions: 1})
			f.Received = append(f.Received, tcpstamp.Received{Offset: o, At: at(sent + d)})
		}
		return f
	}
	r := Evaluate([]Flow{flow(32<<10, 20*ms), flow(128<<10, 200*ms)}, exactClocks)
	if low, _, _ := r.Quantile(0.45); low != 20*ms {
		t.Errorf("quantile 0.45: %v", low)
	}
	if high, _, _ := r.Quantile(0.55); high != 200*ms {
		t.Errorf("quantile 0.55: %v; a half of the bytes has 200 ms", high)
	}
}

// filling has a drop-tail queue that fills and overflows again and again. After each overflow the arrivals of the bytes in
// a share of the cycle are not known, where the queue is fullest.
func filling(rng *rand.Rand, share float64, missing func(*tcpstamp.Sent, *tcpstamp.Received)) (f Flow, delays []time.Duration) {
	const cycle = 100
	period := cycle/2 + rng.IntN(cycle)
	queue := time.Duration(0)
	before := time.Duration(0)
	for k := range 2000 {
		phase := float64(k%period) / float64(period)
		queue = time.Duration(phase*float64(300*ms)) + time.Duration(rng.Int64N(int64(5*ms)))
		sent := time.Duration(k) * 10 * ms
		arrived := max(before, sent+20*ms+queue)
		before = arrived
		s := tcpstamp.Sent{Offset: int64(k+1) * 8 * tcpstamp.Grid, First: at(sent), Last: at(sent), Transmissions: 1}
		x := tcpstamp.Received{Offset: s.Offset, At: at(arrived), Read: at(arrived + ms)}
		if phase > 1-share {
			x.Read = at(arrived + time.Duration(rng.Int64N(int64(200*ms))))
			missing(&s, &x)
		}
		f.Sent, f.Received = append(f.Sent, s), append(f.Received, x)
		delays = append(delays, arrived-sent)
	}
	return f, delays
}

// TestQuantileHoldsWithWithheldBytes compares the interval of each quantile with the quantile of all bytes.
func TestQuantileHoldsWithWithheldBytes(t *testing.T) {
	rng := rand.New(rand.NewPCG(testseed.Of(t), 4))
	for name, missing := range map[string]func(*tcpstamp.Sent, *tcpstamp.Received){
		"reordered":    func(_ *tcpstamp.Sent, x *tcpstamp.Received) { x.Reordered = true },
		"no arrival":   func(_ *tcpstamp.Sent, x *tcpstamp.Received) { x.At = 0 },
		"no departure": func(s *tcpstamp.Sent, _ *tcpstamp.Received) { s.First, s.Last, s.Transmissions = 0, 0, 0 },
		"neither of both": func(s *tcpstamp.Sent, x *tcpstamp.Received) {
			*s, *x = tcpstamp.Sent{Offset: s.Offset}, tcpstamp.Received{Offset: x.Offset}
		},
	} {
		for _, share := range []float64{0, 0.02, 0.1, 0.25, 0.4} {
			f, delays := filling(rng, share, missing)
			r := Evaluate([]Flow{f}, exactClocks)
			sorted(&delays)
			for _, q := range []float64{0.05, 0.5, 0.95, 0.99} {
				truth, _ := Quantile(delays, q)
				value, bound, ok := r.Quantile(q)
				switch {
				case share > MaxWithheld:
					if ok {
						t.Errorf("%s, %v withheld: quantile %v is %v ± %v", name, share, q, value, bound)
					}
				case !ok:
					if share < 0.02 || q < 0.9 {
						t.Errorf("%s, %v withheld: no quantile %v", name, share, q)
					}
				case (value - truth).Abs() > bound:
					t.Errorf("%s, %v withheld: quantile %v is %v ± %v, true %v", name, share, q, value, bound, truth)
				case share == 0 && bound > 10*ms:
					t.Errorf("%s: the bound of quantile %v is %v without withheld bytes", name, q, bound)
				}
			}
		}
	}
}

// TestQuantileHoldsForTheBytesBetweenSamples has delays of all bytes at 4 KiB, a queue that fills in periods or moves at
// random, and a sample in 32 KiB.
func TestQuantileHoldsForTheBytesBetweenSamples(t *testing.T) {
	rng := rand.New(rand.NewPCG(testseed.Of(t), 5))
	held, all := 0, 0
	for range 200 {
		var f Flow
		var delays []time.Duration
		period, noise, moved := 20+rng.IntN(400), time.Duration(1+rng.Int64N(int64(20*ms))), time.Duration(0)
		for k := range 2400 {
			moved = moved*19/20 + time.Duration(rng.Int64N(int64(2*noise))) - noise
			d := 100*ms + moved + time.Duration(k%period)*200*ms/time.Duration(period)
			delays = append(delays, d)
			if o := int64(k + 1); o%8 == 0 {
				sent := time.Duration(k) * ms
				f.Sent = append(f.Sent, tcpstamp.Sent{Offset: o * tcpstamp.Grid, First: at(sent), Last: at(sent), Transmissions: 1})
				f.Received = append(f.Received, tcpstamp.Received{Offset: o * tcpstamp.Grid, At: at(sent + d)})
			}
		}
		r := Evaluate([]Flow{f}, exactClocks)
		sorted(&delays)
		for _, q := range []float64{0.05, 0.5, 0.95} {
			truth, _ := Quantile(delays, q)
			if value, bound, ok := r.Quantile(q); ok {
				if all++; (value - truth).Abs() <= bound {
					held++
				}
			}
		}
	}
	if t.Logf("%d of %d hold", held, all); all < 400 || held < all*95/100 {
		t.Errorf("%d of %d quantiles are within their bound", held, all)
	}
}

// The link stops before the end of a transfer: the bytes on the way have no upper end, and the quantiles below them hold.
func TestBytesOnTheWayAtTheEndAreWithheld(t *testing.T) {
	for _, c := range []struct {
		arrived, left int // of 200 sampled bytes
		quantiles     map[float64]bool
	}{
		{200, 200, map[float64]bool{0.5: true, 0.95: true}},
		{196, 200, map[float64]bool{0.5: true, 0.9: true, 0.99: false}},
		{160, 200, map[float64]bool{0.5: true, 0.95: false}},
		{100, 200, map[float64]bool{0.5: false, 0.95: false}}, // more than MaxWithheld
		{160, 160, map[float64]bool{0.5: true, 0.95: true}},   // the others waited in the socket
	} {
		var f Flow
		for i := range 200 {
			s := tcpstamp.Sent{Offset: int64(i+1) * 8 * tcpstamp.Grid}
			if sent := time.Duration(i) * 50 * ms; i < c.left {
				s.First, s.Last, s.Transmissions = at(sent), at(sent), 1
				if i < c.arrived {
					arrived := at(sent + 100*ms + time.Duration(i)*ms/100)
					f.Received = append(f.Received, tcpstamp.Received{Offset: s.Offset, At: arrived, Read: arrived})
				}
			}
			f.Sent = append(f.Sent, s)
		}
		r := Evaluate([]Flow{f}, exactClocks)
		if r.Withheld != c.left-c.arrived || r.Counts[NoStamp] != c.left-c.arrived {
			t.Errorf("%d of %d arrived: %d withheld, classes %v", c.arrived, c.left, r.Withheld, r.Counts)
		}
		for q, want := range c.quantiles {
			if v, bound, ok := r.Quantile(q); ok != want {
				t.Errorf("%d of %d arrived, quantile %v: %v ± %v, %v", c.arrived, c.left, q, v, bound, ok)
			}
		}
	}
}
