package tcplog

import (
	"testing"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/tests/lab"
)

func TestSpansBeginWithTheHandshakeAndEndWithTheLastDeliveredSegment(t *testing.T) {
	segment := func(port, payload uint64, entry, exit instant.Time, outcome lab.Outcome) lab.Record {
		return lab.Record{Key: mark | payload<<sizeShift | port<<portShift, Entry: entry, Exit: lab.Interval{After: exit, Before: exit}, Outcome: outcome}
	}
	forward := []lab.Record{segment(7, 0, 10, 15, lab.Delivered), segment(7, 17, 20, 25, lab.Delivered), {Key: 5, Entry: 1}, segment(8, 0, 30, 35, lab.Delivered)}
	reverse := []lab.Record{
		segment(7, 0, 16, 18, lab.Delivered), segment(7, 1000, 26, 28, lab.Delivered), segment(7, 1000, 27, 0, lab.DroppedQueue), segment(7, 0, 40, 42, lab.Delivered),
		segment(7, 1000, 41, 42, lab.Delivered), // again
		segment(9, 1000, 50, 52, lab.Delivered),
	}
	all := Spans(forward, reverse)
	if len(all) != 2 || all[0].Begin != 10 || all[1].Begin != 30 || all[1].Last[sample.Reverse] != 0 {
		t.Fatalf("%+v", all)
	}
	if s := all[0]; s.Payload != [2]instant.Time{25, 28} || s.Last != [2]instant.Time{25, 42} {
		t.Errorf("%+v", s)
	}
}

// A port that is used again is another connection; a SYN that is sent again is not.
func TestPortThatIsUsedAgainIsAnotherSpan(t *testing.T) {
	segment := func(number uint64, entry, exit instant.Time) lab.Record {
		return lab.Record{Key: mark | 7<<portShift | number, Entry: entry, Exit: lab.Interval{After: exit, Before: exit}, Outcome: lab.Delivered}
	}
	forward := []lab.Record{segment(0, 10, 11), segment(0, 12, 13), segment(99, 20, 21), segment(0, 50, 51), segment(88, 60, 61)}
	all := Spans(forward, []lab.Record{segment(5, 30, 32), segment(5, 55, 58)})
	if len(all) != 2 || all[0].Begin != 10 || all[1].Begin != 50 || all[0].Last != [2]instant.Time{21, 32} || all[1].Last != [2]instant.Time{61, 58} {
		t.Errorf("%+v", all)
	}
}
