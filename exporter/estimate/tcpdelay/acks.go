package tcpdelay

import (
	"slices"
	"time"

	"oneway.example/exporter/tcpstamp"
)

// Interarrival is the times between acknowledgments that advanced, in bursts of consecutive segments.
type Interarrival struct {
	// Times are sorted.
	Times []time.Duration
	// Bound is the error of the time that nine of ten do not exceed: an acknowledgment may have waited in the backlog of the
	// sender's socket while a system call held that. Uncertain is the number of times whose error is larger than a tenth
	// of their value.
	Bound     time.Duration
	Uncertain int
	// Compressed is the number of compressed acknowledgments: those that came in less than 0.75 of the time that their bytes
	// took at the mean rate of the burst. The times at which the receiver sent them are not known here; the mean rate
	// stands for them. 0.75 is that of Paxson 1997 section 16.3.1, after Mogul 1992.
	Compressed int
}

// compressed is the largest ratio of a compressed acknowledgment.
const compressed = 0.75

// Acks evaluates the acknowledgments of flows of one direction, each in the order of arrival.
func Acks(flows ...[]tcpstamp.Ack) *Interarrival {
	r := &Interarrival{}
	var errors []time.Duration
	for _, all := range flows {
		for len(all) > 0 {
			n := slices.IndexFunc(all, func(a tcpstamp.Ack) bool { return a.Burst != all[0].Burst })
			if n < 0 {
				n = len(all)
			}
			errors = r.burst(all[:n], errors)
			all = all[n:]
		}
	}
	slices.Sort(r.Times)
	slices.Sort(errors)
	if n := len(errors); n > 0 {
		r.Bound = errors[(n-1)*9/10]
	}
	return r
}

func (r *Interarrival) burst(all []tcpstamp.Ack, errors []time.Duration) []time.Duration {
	if len(all) < 3 {
		return errors
	}
	for i := range all[1:] {
		if !possible(all[i].At, all[i+1].At) { // the clock was set
			return errors
		}
	}
	first, last := &all[0], &all[len(all)-1]
	perByte := float64(last.At.Sub(first.At)) / float64(last.Offset-first.Offset)
	for i := 1; i < len(all); i++ {
		a, b := &all[i-1], &all[i]
		gap := b.At.Sub(a.At)
		r.Times = append(r.Times, gap)
		err := max(a.Early, b.Early)
		errors = append(errors, err)
		if err > gap/10 {
			r.Uncertain++
		}
		if float64(gap) < compressed*perByte*float64(b.Offset-a.Offset) {
			r.Compressed++
		}
	}
	return errors
}
