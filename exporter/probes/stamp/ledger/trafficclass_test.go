package ledger

import (
	"testing"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/tstamp"
	"oneway.example/exporter/net/wire/stampfmt"
)

// Replies count as remarked only where two host blocks in a row have the same DSCP, and counts of the reflector
// go beyond their modulus.
func TestTrafficClassOfBothDirections(t *testing.T) {
	var a Account
	block := func(dscp uint8, remarked, ce uint16) {
		a.takeHostBlock(&stampfmt.Receipt{Host: true, TrafficClass: dscp << 2, Remarked: remarked, CE: ce})
	}
	replies := func(n int, dscp, ecn uint8) {
		for range n {
			a.countTrafficClass(&tstamp.In{DSCP: dscp, ECN: ecn})
		}
	}
	forward, reverse := &a.TrafficClass[sample.Forward], &a.TrafficClass[sample.Reverse]
	replies(3, 46, 0) // it is not known how they were sent
	block(46, 4000, 1)
	replies(7, 46, 0)
	block(46, 4090, 1)
	replies(5, 0, 3)
	block(46, 5, 4095) // modulo 4096
	if *forward != (TrafficClass{Optional[uint8]{46, true}, 4101, 4095}) || *reverse != (TrafficClass{Optional[uint8]{0, true}, 5, 5}) {
		t.Errorf("forward %+v, reverse %+v", *forward, *reverse)
	}
	replies(4, 0, 0)
	block(0, 9, 4095) // which of them were sent with which is not known
	if forward.Remarked != 4105 || reverse.Remarked != 5 {
		t.Errorf("forward %+v, reverse %+v", *forward, *reverse)
	}
}
