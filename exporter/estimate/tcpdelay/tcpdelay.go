// Package tcpdelay evaluates what the kernels of both ends of a TCP flow have recorded about sampled bytes of its stream:
// the one-way delay of TCP data, the inter-arrival times of acknowledgments, and whether a host between both ends splits
// the connection.
package tcpdelay

import (
	"time"

	"oneway.example/exporter/core/bound"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/core/tcpstamp"
)

// Class is what is known of the delay of a sampled byte. String is the value of the metric label result.
type Class uint8

// The classes.
const (
	// Delay: the byte left once, and its arrival is known.
	Delay Class = iota
	// Retransmitted: it left more than once; Value is the time from the first transmission to its arrival.
	Retransmitted
	// Reordered: data arrived out of order about then, so that its arrival is not known.
	Reordered
	// NoStamp: a timestamp of either end is missing, also of a byte on its way at the end.
	NoStamp
	// Clocks: the clocks of both ends have no error bound, or were set: the times are impossible.
	Clocks
	// Classes is their number.
	Classes
)

// String is the value of the metric label result.
func (c Class) String() string {
	if c >= Classes {
		return "invalid"
	}
	return [...]string{"delay", "retransmitted", "reordered", "no_stamp", "clocks"}[c]
}

// Flow is the records of both ends of one flow, each in the order of Offset.
type Flow struct {
	Sent     []tcpstamp.Sent
	Received []tcpstamp.Received
	Acks     []tcpstamp.Ack
}

// Errors are those of both ends.
type Errors struct {
	// Clocks is the error bound of both clocks, or why there is none.
	Clocks sample.Bound
	// Stamps is the largest error of a transmit and of a receive timestamp together.
	Stamps time.Duration
}

// Sample is a sampled byte that both ends, or only one, have recorded.
type Sample struct {
	// Flow is the index of its flow.
	Flow   int
	Offset int64
	// Sent is when it left the sending host for the first time, by that host's clock.
	Sent instant.Time
	// The true one-way delay is in Value +- Bound, of a retransmitted byte the time from its first transmission. Both are
	// zero in the other classes.
	Value, Bound time.Duration
	Class        Class
}

// Result is the values of some flows of one direction. Those that are sorted ascend. All but the comparison of arrivals and
// acknowledgments, from Tested on, are of bytes at the same distance in all parts of all flows (see spacing).
type Result struct {
	// Samples are in the order of flow and offset.
	Samples []Sample
	Counts  [Classes]int
	// Delays are the sorted values of the class Delay, and Bound is their largest error bound.
	Delays []time.Duration
	Bound  time.Duration
	// Low and High are the sorted ends of the delays of all bytes that were sent once. Withheld is the number of those
	// without a value, of the classes Reordered and NoStamp, whose ends are limited by other bytes.
	Low, High []time.Duration
	Withheld  int
	likely    []time.Duration // their middles in the order of Samples
	// Socket is how long bytes waited in the socket, from their write until they entered the packet scheduler; HostQueue
	// how long in the packet scheduler of the sending host; Acked the time from the transmission of a byte to its
	// acknowledgment. All are sorted, of bytes that left once.
	Socket, HostQueue, Acked []time.Duration
	// Recovery are the sorted values of the class Retransmitted, and of retransmitted bytes that had not arrived at the end, which
	// are later than all others, and Resend the times between the first and the last
	// transmission of such bytes.
	Recovery, Resend []time.Duration
	// Tested is the number of bytes whose acknowledgment could have come before the byte, and Early the number of those
	// whose acknowledgment did: the receiver had found its socket empty after that, beyond the error bound of the clocks.
	// Lead is the largest such time.
	Tested, Early int
	Lead          time.Duration
	// Lag is the least time from the arrival of a byte, by the receiver's clock, to that of its acknowledgment, by the
	// sender's, of Lags bytes for which both are known within lagError. Without Lags it is undefined.
	Lag  time.Duration
	Lags int
	// Disproved: a byte had arrived before it was sent, beyond the error bound of its delay. One of the clocks is wrong.
	Disproved bool
}

// lagError is the largest error of the time from an arrival to that of the acknowledgment, without the clocks.
const lagError = 200 * time.Microsecond

// Evaluate joins the records of flows of one direction.
func Evaluate(flows []Flow, e Errors) *Result {
	r, all, apart := &Result{}, make([][]pair, len(flows)), int64(0)
	for i := range flows {
		all[i] = flows[i].pairs()
		apart = max(apart, spacing(all[i]))
	}
	for i := range all {
		r.flow(i, all[i], apart, e)
	}
	sorted(&r.Delays, &r.Low, &r.High, &r.Socket, &r.HostQueue, &r.Acked, &r.Recovery, &r.Resend)
	return r
}

// flow evaluates the pairs of a flow; those on the spacing are in distributions.
func (r *Result) flow(flow int, all []pair, apart int64, e Errors) {
	var spaced []pair
	first, before := len(r.Samples), int64(0)
	for _, p := range all {
		r.compare(p, e)
		if p.sent.Offset-before < apart {
			continue
		}
		before = p.sent.Offset
		one := Sample{Flow: flow, Offset: p.sent.Offset, Sent: p.sent.First, Class: NoStamp}
		switch {
		case p.received != nil:
			r.classify(&one, p.sent, p.received, e)
		case p.sent.Transmissions > 1 && e.Clocks.Reason == sample.OK:
			r.Recovery = append(r.Recovery, unlimited) // it had not arrived at the end
		}
		r.Counts[one.Class]++
		r.Samples, spaced = append(r.Samples, one), append(spaced, p)
	}
	r.intervals(spaced, r.Samples[first:], e)
}

// compare compares the arrival of a byte with its acknowledgment.
func (r *Result) compare(p pair, e Errors) {
	s, at := p.sent, p.received
	if at == nil {
		return
	}
	r.test(s, at, e)
	if s.Transmissions == 1 && s.Acked != 0 && at.At != 0 && !at.Reordered && at.Early+s.AckedEarly <= lagError {
		if lag := s.Acked.Sub(at.At); r.Lags == 0 || lag < r.Lag {
			r.Lag = lag
		}
		r.Lags++
	}
}

// classify sets the class and the value of a byte that both ends have recorded.
func (r *Result) classify(one *Sample, s *tcpstamp.Sent, at *tcpstamp.Received, e Errors) {
	r.times(s)
	switch {
	case s.First == 0 || at.At == 0:
		return
	case e.Clocks.Reason != sample.OK:
		one.Class = Clocks
		return
	case at.Reordered && !cleared(s, at, e):
		one.Class = Reordered
		return
	}
	latest, errors := at.At.Sub(s.First), bound.Sum(e.Clocks.Error, e.Stamps)
	if max(latest, -latest) > longest {
		one.Class = Clocks
		return
	}
	r.Disproved = r.Disproved || latest < -errors
	// A byte does not arrive before it is sent: a reader that was too slow does not make its delay negative.
	early := min(at.Early, max(0, bound.Sum(errors, max(0, latest))))
	one.Value, one.Bound = latest-early/2, bound.Sum(errors, early-early/2)
	if s.Transmissions > 1 {
		one.Class = Retransmitted
		r.Recovery = append(r.Recovery, one.Value)
		return
	}
	one.Class = Delay
	r.Delays = append(r.Delays, one.Value)
	r.Bound = max(r.Bound, one.Bound)
}

// cleared reports whether a byte was first sent after the receiver had noticed the data out of order: all such data were sent
// before, so that the bounds of the byte's arrival hold.
func cleared(s *tcpstamp.Sent, at *tcpstamp.Received, e Errors) bool {
	return at.Doubt != 0 && at.Doubt < at.Read && s.First.Sub(at.Doubt) > bound.Sum(e.Clocks.Error, e.Stamps)
}

// longest is the longest time between two events of a transfer, which takes at most that.
const longest = 24 * time.Hour

// add adds the time between two events at one end. Both are absent if zero; a time that is impossible is not added: the clock was
// set, or the remote end reports what it has not measured.
func add(to *[]time.Duration, from, until instant.Time) {
	if possible(from, until) {
		*to = append(*to, until.Sub(from))
	}
}

func possible(from, until instant.Time) bool {
	return from != 0 && until >= from && until.Sub(from) <= longest
}

// times adds the times of the sending host.
func (r *Result) times(s *tcpstamp.Sent) {
	if s.Transmissions > 1 {
		add(&r.Resend, s.First, s.Last)
		return
	}
	add(&r.HostQueue, s.Scheduled, s.First)
	if s.First != 0 {
		add(&r.Socket, s.Written, s.Scheduled)
	}
	add(&r.Acked, s.First, s.Acked)
}

// test looks for an acknowledgment that came before the byte. It is possible to see one if the byte certainly was on its
// way for some time.
func (r *Result) test(s *tcpstamp.Sent, at *tcpstamp.Received, e Errors) {
	if e.Clocks.Reason != sample.OK || !possible(s.First, s.Acked) || at.NotBefore == 0 {
		return
	}
	certain := at.NotBefore.Add(-e.Clocks.Error)
	if certain <= s.First || !possible(s.First, certain) {
		return
	}
	r.Tested++
	if lead := certain.Sub(s.Acked); lead > 0 {
		r.Early++
		r.Lead = max(r.Lead, lead)
	}
}
