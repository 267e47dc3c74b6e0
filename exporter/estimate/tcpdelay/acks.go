package tcpdelay

import (
	"cmp"
	"slices"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/tcpstamp"
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
	// Tested is the number of pairs of acknowledgments, the next ones for which it is known when the last byte of each arrived
	// at the receiver, and Compressed that of the pairs that came in less than 0.75 of the time between those arrivals
	// (Paxson 1997 section 6.1, after Mogul 1992): data that arrive in clumps are no ACK compression. The clocks need
	// not be synchronized. A pair is not tested if 0.75 of that time is within the errors, so that it could not be found
	// compressed.
	Compressed, Tested int
}

// CompressedRatio is the ratio below which acknowledgments are compressed.
const CompressedRatio = 0.75

// Acks evaluates the acknowledgments of flows of one direction, each in the order of arrival.
func Acks(flows ...Flow) *Interarrival {
	r := &Interarrival{}
	var errors []time.Duration
	for i := range flows {
		all, received := flows[i].Acks, flows[i].Received
		for len(all) > 0 {
			n := slices.IndexFunc(all, func(a tcpstamp.Ack) bool { return a.Burst != all[0].Burst })
			if n < 0 {
				n = len(all)
			}
			errors = r.burst(all[:n], errors)
			if ordered(all[:n]) {
				r.compress(all[:n], received)
			}
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

// ordered reports whether the times of a burst are possible: the clock was not set.
func ordered(all []tcpstamp.Ack) bool {
	for i := range all[1:] {
		if !possible(all[i].At, all[i+1].At) {
			return false
		}
	}
	return true
}

func (r *Interarrival) burst(all []tcpstamp.Ack, errors []time.Duration) []time.Duration {
	if len(all) < 3 || !ordered(all) {
		return errors
	}
	for i := 1; i < len(all); i++ {
		a, b := &all[i-1], &all[i]
		gap := b.At.Sub(a.At)
		r.Times = append(r.Times, gap)
		err := max(a.Early, b.Early)
		errors = append(errors, err)
		if err > gap/10 {
			r.Uncertain++
		}
	}
	return errors
}

// compress tests the acknowledgments of a burst whose last bytes' arrivals are known.
func (r *Interarrival) compress(all []tcpstamp.Ack, received []tcpstamp.Received) {
	var before *tcpstamp.Ack
	var sent instant.Time // the one before, when its last byte arrived
	for i := range all {
		b := &all[i]
		k, found := slices.BinarySearchFunc(received, b.Offset, func(x tcpstamp.Received, offset int64) int { return cmp.Compare(x.Offset, offset) })
		if !found || received[k].At == 0 || received[k].Reordered || received[k].Early > lagError {
			continue
		}
		at := received[k].At
		if before != nil && possible(sent, at) {
			gap, err := b.At.Sub(before.At), b.Early+lagError
			if limit := time.Duration(CompressedRatio * float64(at.Sub(sent)-received[k].Early)); limit > err {
				r.Tested++
				if gap+err < limit {
					r.Compressed++
				}
			}
		}
		before, sent = b, at
	}
}
