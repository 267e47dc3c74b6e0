package ledger

import (
	"testing"
	"time"
)

// TestRequestsThatOvertakeAreCountedByNumbersOfReplies: 0 and 3 are lost forward, 2 is overtaken by 4 and 5, and 5
// is duplicated.
func TestRequestsThatOvertakeAreCountedByNumbersOfReplies(t *testing.T) {
	var n numbered
	for i, seq := range []uint64{1, 4, 5, 5, 2, 6} {
		if i == 3 {
			n.orders.again++
			continue
		}
		n.add(seq, 100+uint64(i), time.Duration(i))
	}
	if decided, _ := n.settle(100, 6, time.Second); decided != 0 {
		t.Errorf("%d decided before the loss timeout, want 0", decided)
	}
	if decided, missing := n.settle(100, 2*time.Second, time.Second); decided != 7 || missing != 2 {
		t.Errorf("%d decided and %d missing, want 7 and 2", decided, missing)
	}
}
