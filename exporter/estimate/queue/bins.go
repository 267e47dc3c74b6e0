package queue

import (
	"time"

	"oneway.example/exporter/estimate/order"
)

// series are the load in bins of whole seconds, and its first seconds in finer ones.
func (r *run) series() (perSecond, first []Bin) {
	load := r.length() + 1
	width := (load + MaxBins*time.Second - 1) / (MaxBins * time.Second) * time.Second
	fine := max(min(First, load)/MaxBins, time.Millisecond)
	return r.bins(width, int((load+width-1)/width)), r.bins(fine, min(MaxBins, int((load+fine-1)/fine)))
}

// bins is the load from its begin in n bins.
func (r *run) bins(width time.Duration, n int) []Bin {
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
		b, delays := &bins[k], order.Sorted(delays[k])
		b.Elapsed, b.Count = time.Duration(k+1)*width, len(delays)
		b.Sent /= seconds(width)
		b.Received /= seconds(width)
		b.Min, b.Median, b.Max = order.Quantile(delays, 0), order.Quantile(delays, 0.5), order.Quantile(delays, 1)
	}
	return bins
}
