package queue

import (
	"slices"
	"time"

	"oneway.example/exporter/estimate/order"
)

// perSecond is the load in bins of whole seconds, MaxBins at the most.
func (r *run) perSecond(load time.Duration) []Bin {
	wide := max(1, (load+time.Second*time.Duration(r.o.MaxBins)-1)/(time.Second*time.Duration(r.o.MaxBins)))
	width := wide * time.Second
	return r.bins(width, int((load+width-1)/width))
}

// first is the first seconds in MaxBins bins.
func (r *run) first(load time.Duration) []Bin {
	width := max(min(r.o.First, load)/time.Duration(r.o.MaxBins), time.Millisecond)
	return r.bins(width, min(r.o.MaxBins, int((load+width-1)/width)))
}

// bins is the load from its begin in n bins.
func (r *run) bins(width time.Duration, n int) []Bin {
	if n <= 0 {
		return nil
	}
	bins := make([]Bin, n)
	delays := make([][]time.Duration, n)
	for i := range r.load {
		p := &r.load[i]
		if p.Arrived != 0 {
			if k := int(max(r.arrivedAt(p), 0) / width); k < n {
				bins[k].Received += float64(p.IPBytes)
			}
		}
		k := int(max(r.elapsed(p.Sent), 0) / width)
		if k >= n {
			continue
		}
		b := &bins[k]
		b.Sent += float64(p.IPBytes)
		b.Packets++
		if p.Arrived == 0 {
			b.Lost++
		} else if d, ok := r.delay(p); ok {
			delays[k] = append(delays[k], d)
		}
	}
	for k := range bins {
		bins[k].finish(time.Duration(k+1)*width, width, delays[k])
	}
	return bins
}

func (b *Bin) finish(end, width time.Duration, delays []time.Duration) {
	b.Elapsed = end
	b.Sent /= seconds(width)
	b.Received /= seconds(width)
	if b.Count = len(delays); b.Count > 0 {
		slices.Sort(delays)
		b.Min, b.Median, b.Max = delays[0], order.Quantile(delays, 0.5), delays[b.Count-1]
	}
}

// median is the median of what was received in the whole seconds from..to.
func (r *run) median(from, to time.Duration) float64 {
	first, last := int((from+time.Second-1)/time.Second), int(to/time.Second)
	if last <= first {
		return 0
	}
	bytes := make([]float64, last-first)
	for i := range r.load {
		p := &r.load[i]
		if p.Arrived == 0 {
			continue
		}
		if k := int(max(r.arrivedAt(p), 0)/time.Second) - first; k >= 0 && k < len(bytes) {
			bytes[k] += float64(p.IPBytes)
		}
	}
	slices.Sort(bytes)
	n := len(bytes)
	return (bytes[(n-1)/2] + bytes[n/2]) / 2
}

// mean is what arrived in a part, by the second.
func (r *run) mean(w part) float64 {
	octets := 0.0
	for i := range r.load {
		if p := &r.load[i]; p.Arrived != 0 && w.holds(r.arrivedAt(p)) {
			octets += float64(p.IPBytes)
		}
	}
	if w.length() <= 0 {
		return 0
	}
	return octets / seconds(w.length())
}
