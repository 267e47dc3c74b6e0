package tcpstate

import (
	"math"
	"testing"
	"time"
)

// The table is from a direct evaluation of the paper's formulas with 60 digits, MSS 1448 and b = 1:
//
//	from decimal import Decimal as D, getcontext
//	getcontext().prec = 60
//	def padhye(W, mss, rtt, rto, p, b=D(1)):
//	    w, q = W/mss, 1-p
//	    Q = lambda x: min(D(1), (1-q**3)*(1+q**3*(1-q**(x-3)))/(1-q**x))
//	    f = sum([D(1), p, 2*p**2, 4*p**3, 8*p**4, 16*p**5, 32*p**6])
//	    u = (2+b)/(3*b) + (8*q/(3*b*p) + ((2+b)/(3*b))**2).sqrt()
//	    m, r = (u, b/2*u+1) if u < w else (w, b/8*w + q/(p*w) + 2)
//	    return mss*(q/p + m + Q(m)/q) / (rtt*r + Q(m)*rto*f/q)
func TestPadhyeIsThatOfAnIndependentEvaluation(t *testing.T) {
	for _, c := range [][5]float64{
		{2896, 0.12, 0.4, 1e-9, 24133.33314},
		{2896, 0.12, 0.4, 1e-5, 24131.36262},
		{2896, 0.12, 0.4, 0.001, 23937.93534},
		{2896, 0.12, 0.4, 0.01, 22318.97588},
		{2896, 0.12, 0.4, 0.05, 17219.2869},
		{2896, 0.12, 0.4, 0.3, 6002.309825},
		{2896, 0.12, 0.4, 0.999999, 56.56289623},
		{65536, 0.12, 0.4, 1e-9, 546133.1634},
		{65536, 0.12, 0.4, 1e-5, 544439.4913},
		{65536, 0.12, 0.4, 0.001, 420536.1091},
		{65536, 0.12, 0.4, 0.01, 135743.0243},
		{65536, 0.12, 0.4, 0.05, 48165.96976},
		{65536, 0.12, 0.4, 0.3, 8325.130958},
		{65536, 0.12, 0.4, 0.9, 116.0806538},
		{1e6, 0.014, 0.214, 1e-9, 71424260.7},
		{1e6, 0.014, 0.214, 1e-5, 40018368.45},
		{1e6, 0.014, 0.214, 0.0001, 12599049.09},
		{1e6, 0.014, 0.214, 0.001, 3850410.304},
		{1e6, 0.014, 0.214, 0.01, 932376.9827},
		{1e6, 0.014, 0.214, 0.3, 19631.11987},
		{1e6, 0.014, 0.214, 0.999999, 105.7250406},
	} {
		got, ok := Padhye(Conditions{Window: c[0], MSS: 1448, RTT: c[1], RTO: c[2], Loss: c[3]})
		if !ok || math.Abs(got/c[4]-1) > 1e-9 {
			t.Errorf("%v: %.10g, %v", c, got, ok)
		}
	}
}

// Without a loss a window leaves in each round trip; with all segments lost, one leaves in 64 timeouts.
func TestLimitsOfTheModels(t *testing.T) {
	c := Conditions{Window: 65536, MSS: 1448, RTT: 0.1, RTO: 0.3}
	at := func(model func(Conditions) (float64, bool), loss float64) float64 {
		c := c
		c.Loss = loss
		v, ok := model(c)
		if !ok {
			return math.NaN()
		}
		return v
	}
	for _, v := range []struct {
		what      string
		got, want float64
	}{
		{"Padhye, p = 0", at(Padhye, 0), 655360},
		{"Padhye, p = 1e-300", at(Padhye, 1e-300), 655360},
		{"Padhye, p = 1", at(Padhye, 1), 1448 / (64 * 0.3)},
		// Each segment is lost: sqrt(3/2) segments in a round trip.
		{"Mathis, p = 1", at(Mathis, 1), 14480 * math.Sqrt(1.5)},
		// Losses of 1 %: 12.2 segments in a round trip.
		{"Mathis, p = 0.01", at(Mathis, 0.01), 14480 * 12.24745},
	} {
		if !(math.Abs(v.got/v.want-1) < 1e-6) {
			t.Errorf("%s: %v, want %v", v.what, v.got, v.want)
		}
	}
	if v, ok := Mathis(c); ok {
		t.Errorf("Mathis without a loss: %v", v)
	}
	if v, _ := Sawtooth(c); v != 491520 {
		t.Errorf("0.75 W/RTT: %v", v)
	}
	if v, ok := Window(c); ok {
		t.Errorf("without a mean window: %v", v)
	}
	c.MeanWindow = 50000
	if v, _ := Window(c); v != 500000 {
		t.Errorf("mean window: %v", v)
	}
	// Padhye agrees with Mathis where losses are rare, timeouts rarer, and the window does not limit.
	rare := Conditions{Window: 1e9, MSS: 1448, RTT: 0.1, RTO: 0.3, Loss: 1e-6}
	p, _ := Padhye(rare)
	if m, _ := Mathis(rare); math.Abs(p/m-1) > 0.01 {
		t.Errorf("Padhye %v, Mathis %v", p, m)
	}
}

// Any conditions give a finite rate or none, Padhye's at most W/RTT, and more losses never help. With b = 1 the paper's
// two cases do not join exactly: the border may raise the rate by a fourth of a round trip.
func FuzzModels(f *testing.F) {
	f.Add(65536.0, 1448.0, 0.1, 0.3, 0.01, 0.02)
	f.Add(1.0, 1.0, 1e-9, 1e-9, 0.5, 1.0)
	f.Add(math.Inf(1), math.NaN(), -1.0, 0.0, -1.0, 2.0)
	f.Fuzz(func(t *testing.T, window, mss, rtt, rto, loss, more float64) {
		c := Conditions{Window: window, MeanWindow: window, MSS: mss, RTT: rtt, RTO: rto, Loss: min(loss, more)}
		worse := c
		worse.Loss = max(loss, more)
		for _, m := range Models() {
			a, ok := m.Rate(c)
			b, worseOK := m.Rate(worse)
			if math.IsNaN(a) || math.IsInf(a, 0) || a < 0 || !ok && a != 0 {
				t.Fatalf("%s: %v of %+v", m.Name, a, c)
			}
			if ok && worseOK && b > a*1.26 {
				t.Fatalf("%s: %v of %+v, but %v at loss %v", m.Name, a, c, b, worse.Loss)
			}
		}
		a, ok := Padhye(c)
		if most := window / c.RTT; ok && a > most*(1+1e-9) {
			t.Fatalf("Padhye %v, W/RTT %v of %+v", a, most, c)
		}
	})
}

func BenchmarkPadhye(b *testing.B) {
	c := Conditions{Window: 65536, MSS: 1448, RTT: 0.1, RTO: 0.3, Loss: 0.01}
	for b.Loop() {
		Padhye(c)
	}
}

func TestMetricsOfRFC6349(t *testing.T) {
	value := func(v float64, ok bool) float64 {
		if !ok {
			return -1
		}
		return v
	}
	for _, c := range []struct {
		what      string
		got, want float64
	}{
		// 1460 and 1448 bytes of the 1538 of a frame with preamble and gap.
		{"ideal of 100 Mb/s Ethernet", value(Ideal(100e6, 1460, 40+38)), 94.9284e6},
		{"ideal with timestamps", value(Ideal(100e6, 1448, 52+38)), 94.1482e6},
		{"ideal without a rate", value(Ideal(0, 1460, 40)), -1},
		{"transfer time", value(TransferTimeRatio(100, 45)), 2.2222},
		{"transfer time of nothing", value(TransferTimeRatio(100, 0)), -1},
		{"retransmitted", value(Retransmitted(102_000, 2_000)), 0.0196078},
		{"retransmitted of nothing", value(Retransmitted(0, 0)), -1},
		{"retransmitted, more than sent", value(Retransmitted(10, 11)), -1},
		{"buffer delay", value(BufferDelay(32*time.Millisecond, 25*time.Millisecond)), 0.28},
		{"buffer delay without a baseline", value(BufferDelay(time.Second, 0)), -1},
	} {
		if math.Abs(c.got-c.want) > 1e-4*math.Abs(c.want) {
			t.Errorf("%s: %v, want %v", c.what, c.got, c.want)
		}
	}
}
