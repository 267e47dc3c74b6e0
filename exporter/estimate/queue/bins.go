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
