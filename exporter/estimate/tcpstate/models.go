// Package tcpstate computes what a transfer over TCP achieved, from samples of its connections: throughput, round-trip
// times, what limited it, the metrics of RFC 6349, and the throughput that models predict.
//
// Rates are bytes of payload per second. A function that cannot know its value returns false.
package tcpstate

import "math"

// Conditions are what the models compute the rate of one flow from. Zero values are unknown, except Loss.
type Conditions struct {
	// Window is the largest window of the flow, in bytes of payload.
	Window float64 `json:"window_bytes"`
	// MeanWindow is the mean of its outstanding bytes.
	MeanWindow float64 `json:"mean_window_bytes"`
	// MSS is the payload of a full segment, in bytes.
	MSS float64 `json:"mss_bytes"`
	// RTT is the mean round-trip time of the acknowledged bytes, and RTO the first retransmission timeout, in seconds.
	RTT float64 `json:"rtt_seconds"`
	RTO float64 `json:"rto_seconds"`
	// Loss is the share of segments that indicate a loss, 0 to 1.
	Loss float64 `json:"loss_ratio"`
}

// Model is a formula for the throughput of a flow.
type Model struct {
	Name string
	// Rate returns bytes of payload per second; false: its conditions are unknown or out of its range.
	Rate func(Conditions) (float64, bool)
}

// Models returns the models by name.
func Models() [4]Model {
	return [4]Model{
		{"mathis", Mathis},
		{"padhye", Padhye},
		{"window", Window},
		{"sawtooth", Sawtooth},
	}
}

// Window returns the mean window in each round trip: what leaves, as the round-trip time is that of the same segments
// (Little 1961). It shows that the measured values agree; where the rate varies, the smoothed round-trip time follows late.
func Window(c Conditions) (float64, bool) {
	return known(c.MeanWindow/c.RTT, c.RTT > 0 && c.MeanWindow > 0)
}

// Sawtooth returns 0.75 W/RTT: each loss halves the window, which then grows linearly to W (Halepovic 2008 section 4.5
// and figure 14, with the window that the receiver offers as W; Kurose and Ross 2008).
func Sawtooth(c Conditions) (float64, bool) {
	return known(0.75*c.Window/c.RTT, c.RTT > 0 && c.Window > 0)
}

// Mathis returns MSS/RTT C/sqrt(p) with C = sqrt(3/2): periodic losses, and a window that grows by each acknowledged
// segment (Mathis et al. 1997). Linux counts segments, so that delayed acknowledgments do not
// change C. Without a loss there is no rate; it is too large for losses above a few percent, as it has no timeouts.
func Mathis(c Conditions) (float64, bool) {
	return known(c.MSS/c.RTT*math.Sqrt(1.5/c.Loss), c.MSS > 0 && c.RTT > 0 && c.Loss > 0 && c.Loss <= 1)
}

// segmentsPerACK is b of Padhye's model: 1 for a window that grows by each acknowledged segment (RFC 5348 section 3.1).
const segmentsPerACK = 1.0

// Padhye returns the send rate of the full model: losses by duplicate acknowledgments and timeouts, and a limited window
// (Padhye et al. 1998; Halepovic 2008 figure 16). Without a loss it is W/RTT, at p = 1 one segment in 64 RTO. An RTO
// less than the RTT counts as that: it is of another time than the mean.
func Padhye(c Conditions) (float64, bool) {
	if !(c.Window >= c.MSS && c.MSS > 0 && c.RTT > 0 && c.RTO > 0 && c.Loss >= 0 && c.Loss <= 1) {
		return 0, false
	}
	const b = segmentsPerACK
	p, most, rtt, rto := c.Loss, c.Window/c.MSS, c.RTT, max(c.RTO, c.RTT)
	// Numerator and denominator are multiplied by p(1-p), which removes the poles at 0 and 1.
	q := 1 - p
	base := (2 + b) / (3 * b)
	w, rounds := most, b/8*most*p+q/most+2*p
	// The mean window without a limit, times p.
	if free := base*p + math.Sqrt(8*q*p/(3*b)+base*p*base*p); free < most*p {
		w = free / p
		rounds = b/2*free + p
	}
	timeout := timeoutShare(p, w)
	backoff := 1 + p*(1+p*(2+p*(4+p*(8+p*(16+p*32)))))
	segments := q*q + w*p*q + timeout*p
	seconds := rtt*rounds*q + timeout*rto*backoff*p
	return known(c.MSS*segments/seconds, true)
}

// timeoutShare returns the probability that a loss in a window of w segments ends in a timeout: that fewer than three
// duplicate acknowledgments arrive.
func timeoutShare(p, w float64) float64 {
	if p <= 0 {
		return min(1, 3/w)
	}
	lost := func(n float64) float64 { return -math.Expm1(n * math.Log1p(-p)) } // 1-(1-p)^n
	if w <= 3 || p >= 1 {
		return 1
	}
	return min(1, lost(3)*(1+(1-lost(3))*lost(w-3))/lost(w))
}

// known makes a value absent that is not known, or no number.
func known(v float64, ok bool) (float64, bool) {
	if !ok || math.IsInf(v, 0) || math.IsNaN(v) {
		return 0, false
	}
	return v, true
}
