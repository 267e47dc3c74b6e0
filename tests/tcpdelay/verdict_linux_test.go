package tcpdelay

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/tcpstamp"
	"oneway.example/tests/tcplog"
)

// truth is the comparison of samples with the log.
type truth struct {
	// sent are sampled bytes of the sender, stamped those of them that left it, received those of the receiver, joined those of both, reordered those of joined
	// without a certain arrival.
	sent, stamped, received, joined, reordered int
	// delays are those of bytes that were sent once, recoveries those of others.
	delays, recoveries errors
	// again is the number of stamped bytes that the log has more than once, and missed those of which the sender has fewer
	// transmissions, or other times. withheld has more of them than the log, and so is in no delay.
	again, missed, withheld int
	// entry are the times from the first stamp of the sender to the entry into the link, and width the errors of
	// the receiver's coalescing.
	entry, width []time.Duration
}

// errors counts values outside of their bound.
type errors struct {
	all, outside int
	// worst is the largest distance of a value from the truth, beyond its bound.
	worst time.Duration
}

func (e *errors) add(o errors) {
	e.all, e.outside, e.worst = e.all+o.all, e.outside+o.outside, max(e.worst, o.worst)
}

// count counts a value with the distance from the truth beyond its bound.
func (e *errors) count(beyond time.Duration) {
	e.all++
	if beyond > 0 {
		e.outside++
		e.worst = max(e.worst, beyond)
	}
}

func (v *truth) add(o *truth) {
	v.sent, v.stamped, v.received, v.joined, v.reordered = v.sent+o.sent, v.stamped+o.stamped, v.received+o.received, v.joined+o.joined, v.reordered+o.reordered
	v.delays.add(o.delays)
	v.recoveries.add(o.recoveries)
	v.again, v.missed, v.withheld = v.again+o.again, v.missed+o.missed, v.withheld+o.withheld
	v.entry, v.width = append(v.entry, o.entry...), append(v.width, o.width...)
}

// sender compares the stamps of the sending end with the entries of the byte into the link.
func (v *truth) sender(t *testing.T, s *tcpstamp.Sent, b *tcplog.Byte) {
	t.Helper()
	first, last := b.Entries[0], b.Entries[len(b.Entries)-1]
	v.entry = append(v.entry, first.Sub(s.First))
	if len(b.Entries) > 1 {
		v.again++
	}
	outside := func(stamp, entry instant.Time) bool { return entry.Sub(stamp).Abs()-inside(stamp, entry) > stampErrors }
	switch more := int(s.Transmissions) - len(b.Entries); {
	case more > 0 && !outside(s.First, first):
		v.withheld++
	case more < 0 || outside(s.First, first) || outside(s.Last, last):
		v.missed++
		t.Logf("byte %d: %d transmissions, the last %v after the first; the link has %d, from %v to %v after that", s.Offset, s.Transmissions,
			s.Last.Sub(s.First), len(b.Entries), first.Sub(s.First), last.Sub(s.First))
	}
}

// arrival compares the delay, or the recovery, with the log.
func (v *truth) arrival(t *testing.T, s *tcpstamp.Sent, r *tcpstamp.Received, b *tcplog.Byte) {
	t.Helper()
	into := &v.delays
	if s.Transmissions > 1 {
		into = &v.recoveries
	}
	if b.Lost {
		t.Errorf("byte %d was received, and the link has not delivered it", s.Offset)
		return
	}
	if r.Reordered {
		v.reordered++
		if b.Arrival.After > r.Read {
			t.Errorf("byte %d was read at %v and left the link %v later", r.Offset, r.Read, b.Arrival.After.Sub(r.Read))
		}
		return
	}
	// The value is late by up to Early; the log's own error is the width of an exit.
	value, first := r.At.Sub(s.First), b.Entries[0]
	low, high := b.Arrival.After.Sub(first), b.Arrival.Before.Sub(first)
	beyond := max(low-value, value-r.Early-high-inside(s.First, first)) - stampErrors
	into.count(beyond)
	v.width = append(v.width, r.Early)
	if beyond > 0 {
		t.Logf("byte %d: %v after it was sent, up to %v earlier; by the log %v to %v; %d transmissions, %d entries, entered %v after its stamp", s.Offset, value, r.Early, low, high,
			s.Transmissions, len(b.Entries), first.Sub(s.First))
	}
}

func (v *truth) String() string {
	quantiles := func(all []time.Duration) string {
		if len(all) == 0 {
			return "none"
		}
		all = slices.Sorted(slices.Values(all))
		at := func(q float64) time.Duration { return all[int(q*float64(len(all)-1))] }
		return fmt.Sprintf("least %v, median %v, 99 %% %v, 99.9 %% %v, most %v", at(0), at(0.5), at(0.99), at(0.999), at(1))
	}
	return fmt.Sprintf("sampled %d sent, %d of them left, %d received, %d joined, %d reordered; delays %+v, recoveries %+v; %d sent again, %d missed, %d withheld; entry after the stamp: %s; coalescing: %s",
		v.sent, v.stamped, v.received, v.joined, v.reordered, v.delays, v.recoveries, v.again, v.missed, v.withheld, quantiles(v.entry), quantiles(v.width))
}

// judge allows one sample in a thousand outside of its bound. Half of the segments enter the link at once after their timestamp:
// otherwise it is that of another segment.
func (v *truth) judge(t *testing.T) {
	t.Helper()
	if v.delays.all < 100 {
		t.Fatalf("%d delays were compared, want at least 100", v.delays.all)
	}
	if median := slices.Sorted(slices.Values(v.entry))[len(v.entry)/2]; median > 100*time.Microsecond {
		t.Errorf("half of the segments enter the link %v after their timestamp", median)
	}
	if n := v.delays.outside + v.recoveries.outside; n > max(1, (v.delays.all+v.recoveries.all)/1000) {
		t.Errorf("%d of %d are outside of their bound", n, v.delays.all+v.recoveries.all)
	}
	if v.missed > max(1, v.stamped/1000) || v.withheld > max(2, v.stamped/20) {
		t.Errorf("of %d bytes with stamps, %d lack transmissions, and %d have too many", v.stamped, v.missed, v.withheld)
	}
}
