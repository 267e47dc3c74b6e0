package vmlab

import (
	"strings"
	"testing"

	"oneway.example/tests/vmlab/record"
)

func TestEveryPacketIsReceivedLostOrOutstanding(t *testing.T) {
	dropped := 1.0
	at := func(counter uint64, first bool, sent, received, lost, flying float64) record.Metrics {
		const labels = "{lab,stamp,forward}"
		return record.Metrics{Counter: counter, First: first, Values: map[string]*float64{
			"oneway_packets_sent_total" + labels: &sent, "oneway_packets_received_total" + labels: &received,
			"oneway_packets_lost_total" + labels: &lost, "oneway_packets_outstanding" + labels: &flying,
			"oneway_packets_host_dropped_total" + labels: &dropped,
		}}
	}
	// The starting agent has not exported losses yet: those of the earlier one are not its own.
	restarted := at(7, true, 3, 3, 0, 0)
	delete(restarted.Values, "oneway_packets_lost_total{lab,stamp,forward}")
	all := []record.Metrics{at(1, true, 9, 9, 9, 9), at(3, false, 11, 7, 2, 1), at(5, false, 21, 7, 5, 8), restarted, at(9, false, 9, 5, 3, 2)}
	if seen, err := conserved(all, Span{3, 9}); err != nil || seen != 2 {
		t.Errorf("%d looks, %v; want 2", seen, err)
	}
	for _, in := range []Span{{1, 2}, {3, 10}} {
		if _, err := conserved(all, in); err == nil || !strings.Contains(err.Error(), "lab,stamp,forward") {
			t.Errorf("%v: %v; want a fault", in, err)
		}
	}
}
