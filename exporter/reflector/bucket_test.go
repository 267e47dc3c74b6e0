package reflector

import (
	"testing"
	"time"
)

func TestBucketAllowsBurstThenRate(t *testing.T) {
	l := newLimit(100, 10)
	var b bucket
	taken := 0
	for range 50 {
		if b.take(l, 0) {
			taken++
		}
	}
	if taken != 10 {
		t.Errorf("%d packets passed at once, want the burst of 10", taken)
	}
	taken = 0
	for now := time.Duration(0); now < 10*time.Second; now += time.Millisecond {
		if b.take(l, now) {
			taken++
		}
	}
	if taken < 999 || taken > 1001 {
		t.Errorf("%d packets passed in 10 s, want 1000 +- 1", taken)
	}
}

func TestBucketForgivesSilence(t *testing.T) {
	l := newLimit(10, 3)
	var b bucket
	for range 3 {
		b.take(l, 0)
	}
	if b.take(l, 0) {
		t.Fatal("a fourth packet passed at once, burst is 3")
	}
	taken := 0
	for range 10 {
		if b.take(l, time.Hour) {
			taken++
		}
	}
	if taken != 3 {
		t.Errorf("after an hour of silence %d passed at once, want the burst of 3 again, not more", taken)
	}
}

func TestZeroLimitAllowsAll(t *testing.T) {
	for _, rate := range []int{0, -1} {
		var b bucket
		for range 1000 {
			if !b.take(newLimit(rate, 1), 0) {
				t.Fatalf("rate %d refused a packet", rate)
			}
		}
	}
}
