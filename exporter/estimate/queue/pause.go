package queue

import "time"

// pauses finds where the sender paused until the queue was empty, and then some: the link stood
// idle, which says nothing of its rate. The result has, by packet of the load, the octets that
// the link would have carried in the idle time before that packet; nil: there is none.
//
// A packet that comes after such a pause has waited for nothing, though most have waited, and
// arrives more than two usual gaps after the one before. What a path holds up, or a link that
// has become slower, has waited.
func (r *run) pauses() []float64 {
	var gaps, waits []time.Duration
	last := -1
	for i := range r.load {
		p := &r.load[i]
		if p.Arrived == 0 {
			continue
		}
		if last >= 0 {
			gaps = append(gaps, p.Arrived.Sub(r.load[last].Arrived))
		}
		waits, last = append(waits, p.Arrived.Sub(p.Sent)-r.base()), i
	}
	if len(gaps) == 0 || len(waits) == len(r.load) {
		return nil // nothing was lost: the load may be no more than the link carries
	}
	usual := at(sorted(gaps), 0.5)
	empty := usual + r.jitter()
	if usual <= 0 || at(sorted(waits), 0.5) < standing*usual+r.jitter() {
		return nil // no queue
	}
	var out []float64
	for i, k := 0, -1; i < len(r.load); i++ {
		p := &r.load[i]
		if p.Arrived == 0 {
			continue
		}
		if k++; k > 0 && gaps[k-1] > 2*usual && waits[k] < empty {
			if out == nil {
				out = make([]float64, len(r.load))
			}
			out[i] = float64(r.bytes) * (seconds(gaps[k-1])/seconds(usual) - 1)
		}
	}
	return out
}

// unsent is what the link would have carried before packet i of the load, had the sender not
// paused.
func (r *run) unsent(i int) float64 {
	if r.paused == nil {
		return 0
	}
	return r.paused[i]
}
