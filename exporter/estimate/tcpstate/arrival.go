package tcpstate

import (
	"slices"
	"time"

	"oneway.example/exporter/estimate/orderstat"
)

// Arrival is the payload of a flow that had arrived at a time.
type Arrival struct {
	At      time.Duration
	Payload int64
}

// Throughput is what arrived over all flows.
type Throughput struct {
	// Seconds is the time from the first arrival on.
	Seconds float64
	// Rate is without the omitted time; PerSecond is that of each whole second, nothing omitted.
	Rate      float64
	PerSecond []float64
}

// Rate computes the throughput of flows, each with its arrivals in order: the first with a payload of zero, the last
// with all of it. The time begins with the first payload of any flow, so that the path's delay does not count, and takes as
// long as sending: after it a queue drains. A plan of zero is the time to the last arrival. Payload arrives linearly
// between its samples.
func Rate(flows [][]Arrival, planned, omit time.Duration) (t Throughput, ok bool) {
	begin, end, ok := times(flows, planned, func(a, b time.Duration) time.Duration { return max(a, b) })
	if !ok {
		return t, false
	}
	t.Seconds = (end - begin).Seconds()
	t.PerSecond = make([]float64, int((end-begin)/time.Second))
	for _, f := range flows {
		t.Rate += rate(f, begin+omitted(omit, end-begin), end)
		for i, n := range Seconds(f, begin, end) {
			t.PerSecond[i] += n
		}
	}
	return t, true
}

// FlowRates is what arrived over each flow while all of them sent.
type FlowRates struct {
	// Seconds is the time from the first arrival of any flow on.
	Seconds float64
	// Rates are without the omitted time, and PerSecond, by flow, those of each whole second after it.
	Rates     []float64
	PerSecond [][]float64
}

// Each computes the throughput of each flow as Rate does that of all, but a plan of zero is the time to the earliest last
// arrival of a flow: after it the others share the path among fewer. A flow without arrivals has the rate zero.
func Each(flows [][]Arrival, planned, omit time.Duration) (r FlowRates, ok bool) {
	begin, end, ok := times(flows, planned, func(a, b time.Duration) time.Duration { return min(a, b) })
	if !ok {
		return r, false
	}
	r.Seconds = (end - begin).Seconds()
	begin += omitted(omit, end-begin)
	for _, f := range flows {
		r.Rates, r.PerSecond = append(r.Rates, rate(f, begin, end)), append(r.PerSecond, Seconds(f, begin, end))
	}
	return r, true
}

// times returns the first arrival and the end of the time of flows: the planned one, or which of the last arrivals.
func times(flows [][]Arrival, planned time.Duration, which func(a, b time.Duration) time.Duration) (begin, end time.Duration, ok bool) {
	for _, f := range flows {
		n := len(f)
		switch {
		case n == 0:
		case !ok:
			begin, end, ok = f[0].At, f[n-1].At, true
		default:
			begin, end = min(begin, f[0].At), which(end, f[n-1].At)
		}
	}
	if planned > 0 {
		end = begin + planned
	}
	return begin, end, ok && end > begin
}

// omitted returns the time to omit of a transfer that took some time: a short one, as it ended by its bytes, omits none.
func omitted(omit, took time.Duration) time.Duration {
	if omit >= took/2 {
		return 0
	}
	return omit
}

func rate(f []Arrival, begin, end time.Duration) float64 {
	return (payloadAt(f, end) - payloadAt(f, begin)) / (end - begin).Seconds()
}

// Seconds returns the payload of a flow in each whole second of a time.
func Seconds(f []Arrival, begin, end time.Duration) (all []float64) {
	before := payloadAt(f, begin)
	for at := begin + time.Second; at <= end; at += time.Second {
		now := payloadAt(f, at)
		all, before = append(all, now-before), now
	}
	return all
}

func payloadAt(f []Arrival, at time.Duration) float64 {
	i, _ := slices.BinarySearchFunc(f, at, func(a Arrival, at time.Duration) int {
		if a.At <= at {
			return -1
		}
		return 1
	})
	switch {
	case i == 0 || at == f[0].At: // also without arrivals
		return 0
	case i == len(f):
		return float64(f[i-1].Payload)
	}
	a, b := f[i-1], f[i]
	return float64(a.Payload) + float64(b.Payload-a.Payload)*float64(at-a.At)/float64(b.At-a.At)
}

// State is that of a sender at a time: the kernel's TCP_INFO. Times are totals since its begin.
type State struct {
	At time.Duration
	// RTT is the smoothed round-trip time; zero: none yet.
	RTT time.Duration
	// Acked and Outstanding are the bytes that were acknowledged, and those sent and not yet acknowledged.
	Acked, Outstanding int64
	// Busy is the time with data to send, of which RwndLimited waited for the peer's receive window and SndbufLimited for
	// room in the send buffer.
	Busy, RwndLimited, SndbufLimited time.Duration
}

// Sending is how flows sent.
type Sending struct {
	// Quartiles and Mean are those of the smoothed round-trip times, under the flows' own load.
	Quartiles [3]time.Duration
	Mean      time.Duration
	// OfBytes is the mean over the acknowledged bytes: where the rate varies, most bytes leave while the times are short.
	OfBytes time.Duration
	// Window is the largest number of outstanding bytes of a flow, as the mean of all flows; MeanWindow the mean number.
	Window, MeanWindow float64
}

// Sent computes how flows sent after the omitted time, weighted by time: of the samples of an interval the first counts,
// as the traces of the first seconds have many more. The interval is more than zero.
func Sent(flows [][]State, interval, omit time.Duration) (r Sending, ok bool) {
	var all []time.Duration
	sum, ofBytes, bytes := 0.0, 0.0, 0.0
	for _, f := range flows {
		next, largest, acked := omit, int64(0), int64(-1)
		for _, s := range f {
			if s.At < omit || s.RTT <= 0 {
				continue
			}
			largest = max(largest, s.Outstanding)
			if s.At < next {
				continue
			}
			all, sum = append(all, s.RTT), sum+float64(s.RTT)
			r.MeanWindow += float64(s.Outstanding)
			if acked >= 0 && s.Acked > acked {
				bytes, ofBytes = bytes+float64(s.Acked-acked), ofBytes+float64(s.Acked-acked)*float64(s.RTT)
			}
			acked = s.Acked
			next += interval * ((s.At-next)/interval + 1) // a sample may be late
		}
		r.Window += float64(largest) / float64(len(flows))
	}
	if len(all) == 0 {
		return Sending{}, false
	}
	slices.Sort(all)
	for i := range r.Quartiles {
		r.Quartiles[i] = orderstat.Quantile(all, float64(i+1)/4)
	}
	r.Mean = time.Duration(sum / float64(len(all)))
	if r.OfBytes = r.Mean; bytes > 0 {
		r.OfBytes = time.Duration(ofBytes / bytes)
	}
	r.MeanWindow /= float64(len(all))
	return r, true
}
