package tcp

import (
	"slices"
	"time"

	"oneway.example/exporter/estimate/order"
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
	begin, end := time.Duration(-1), time.Duration(0)
	for _, f := range flows {
		if n := len(f); n > 0 {
			if begin < 0 || f[0].At < begin {
				begin = f[0].At
			}
			end = max(end, f[n-1].At)
		}
	}
	if begin < 0 {
		return t, false
	}
	if planned > 0 {
		end = begin + planned
	}
	if end <= begin {
		return t, false
	}
	arrived := func(at time.Duration) (n float64) {
		for _, f := range flows {
			n += payloadAt(f, at)
		}
		return n
	}
	t.Seconds = (end - begin).Seconds()
	if omit >= (end-begin)/2 { // short, as it ended by its bytes
		omit = 0
	}
	t.Rate = (arrived(end) - arrived(begin+omit)) / (end - begin - omit).Seconds()
	before := arrived(begin)
	for at := begin + time.Second; at <= end; at += time.Second {
		now := arrived(at)
		t.PerSecond, before = append(t.PerSecond, now-before), now
	}
	return t, true
}

func payloadAt(f []Arrival, at time.Duration) float64 {
	i, _ := slices.BinarySearchFunc(f, at, func(a Arrival, at time.Duration) int {
		if a.At <= at {
			return -1
		}
		return 1
	})
	switch {
	case i == 0 || at == f[0].At:
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
	// Outstanding are the bytes that were sent and not acknowledged.
	Outstanding int64
	// Busy is the time with data to send, of which RwndLimited waited for the peer's receive window and SndbufLimited for
	// room in the send buffer.
	Busy, RwndLimited, SndbufLimited time.Duration
}

// Sending is how flows sent.
type Sending struct {
	// Quartiles and Mean are those of the smoothed round-trip times, under the flows' own load.
	Quartiles [3]time.Duration
	Mean      time.Duration
	// Window is the largest number of outstanding bytes of a flow, as the mean of all flows; MeanWindow the mean number.
	Window, MeanWindow float64
}

// Sent computes how flows sent after the omitted time, weighted by time: of the samples of an interval the first counts,
// as the traces of the first seconds have many more. The interval is more than zero.
func Sent(flows [][]State, interval, omit time.Duration) (r Sending, ok bool) {
	var all []time.Duration
	sum := 0.0
	for _, f := range flows {
		next, largest := omit, int64(0)
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
			next += interval * ((s.At-next)/interval + 1) // a sample may be late
		}
		r.Window += float64(largest) / float64(len(flows))
	}
	if len(all) == 0 {
		return Sending{}, false
	}
	slices.Sort(all)
	for i := range r.Quartiles {
		r.Quartiles[i] = order.Quantile(all, float64(i+1)/4)
	}
	r.Mean = time.Duration(sum / float64(len(all)))
	r.MeanWindow /= float64(len(all))
	return r, true
}
