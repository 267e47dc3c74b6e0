package stamp

import (
	"testing"
	"time"
)

func TestSessionsThatBeginTogetherStartOneByOne(t *testing.T) {
	kind := New()
	const now = time.Hour
	for i := range time.Duration(1000) {
		if got := kind.turn(now); got != i*startGap {
			t.Fatalf("session %d waits %v, want %v", i, got, i*startGap)
		}
	}
	if got := kind.turn(now + time.Second); got != 0 {
		t.Errorf("a session that begins a second later waits %v, want 0", got)
	}
	if got := kind.turn(now + time.Second); got != startGap {
		t.Errorf("the next one waits %v, want %v", got, startGap)
	}
}
