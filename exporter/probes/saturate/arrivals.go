package saturate

import (
	"cmp"
	"slices"
	"time"

	"oneway.example/exporter/heavy"
	"oneway.example/exporter/instant"
)

// arrivals are the packets of a transfer that came, in the order in which they did. What
// came until an instant is counted, so that a packet which comes much later than the others
// takes nothing off the rate of the time in which they came.
type arrivals struct {
	at     []instant.Time
	octets []float64 // IP octets until then, less those of the first
	// origin is when the first packet that was sent would have come with the smallest delay of
	// all, by the receiver's clock. It is zero if none came.
	origin instant.Time
	// begin is when that packet left, by the sender's.
	begin instant.Time
}

func arrivalsOf(t *heavy.Transfer) (a arrivals) {
	type one struct {
		at     instant.Time
		octets float64
	}
	var all []one
	for i := range t.Packets {
		p := &t.Packets[i]
		if !p.Sent.Present() {
			continue
		}
		if a.begin == 0 {
			a.begin = p.Sent.At
		}
		if p.Copies == 0 || !p.Arrived.Present() {
			continue
		}
		all = append(all, one{p.Arrived.At, float64(p.IPBytes)})
		if would := p.Arrived.At.Add(-p.Sent.At.Sub(a.begin)); a.origin == 0 || would < a.origin {
			a.origin = would
		}
	}
	slices.SortFunc(all, func(x, y one) int { return cmp.Compare(x.at, y.at) })
	sum := 0.0
	for i, p := range all {
		if i > 0 { // n packets of one size have n-1 intervals
			sum += p.octets
		}
		a.at, a.octets = append(a.at, p.at), append(a.octets, sum)
	}
	return a
}

// until is what had come at an instant. Between two packets the later one is coming.
func (a *arrivals) until(at instant.Time) float64 {
	i, exact := slices.BinarySearch(a.at, at)
	switch {
	case len(a.at) == 0 || i == 0 && !exact:
		return 0
	case i == len(a.at):
		return a.octets[i-1]
	case exact:
		for i+1 < len(a.at) && a.at[i+1] == at {
			i++
		}
		return a.octets[i]
	}
	part := float64(at.Sub(a.at[i-1])) / float64(a.at[i].Sub(a.at[i-1]))
	return a.octets[i-1] + part*(a.octets[i]-a.octets[i-1])
}

// rate is what came in a part of the time, in IP octets a second; from and to count from
// origin.
func (a *arrivals) rate(from, to time.Duration) float64 {
	if to <= from {
		return 0
	}
	return (a.until(a.origin.Add(to)) - a.until(a.origin.Add(from))) / (to - from).Seconds()
}

// waited is how much longer a packet took than the fastest of all.
func (a *arrivals) waited(p *heavy.Packet) time.Duration {
	return p.Arrived.At.Sub(a.origin) - p.Sent.At.Sub(a.begin)
}
