package stamp

import (
	"math/rand/v2"
	"testing"
	"time"

	"oneway.example/exporter/net/sched"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/tests/testseed"
)

func TestEveryPossibleSizeHasALayoutThatFillsIt(t *testing.T) {
	for _, authenticated := range []bool{false, true} {
		for size := range maxSize + 2 {
			l, err := planLayout(size, authenticated)
			if err != nil {
				continue
			}
			got := l.base
			if l.followUp {
				got += followUpBytes
			}
			if l.receipt {
				got += receiptFixedBytes + 8*l.words
			}
			if l.padding >= 0 {
				got += stampfmt.TLVHeaderBytes + l.padding
			}
			if authenticated && size > l.base {
				got += hmacTLVBytes
			}
			if got != size {
				t.Fatalf("size %d, authenticated %v: layout of %d bytes: %+v", size, authenticated, got, l)
			}
		}
		if _, err := planLayout(DefaultSize(authenticated), authenticated); err != nil {
			t.Error(err)
		}
	}
	for _, size := range []int{0, 43, 45, 46, 47, maxSize + 1} {
		if _, err := planLayout(size, false); err == nil {
			t.Errorf("size %d was accepted", size)
		}
	}
}

func TestPeriodicStartsShareTheirSlots(t *testing.T) {
	const sessions = 10_000
	starts := map[time.Duration]int{}
	rng := rand.New(rand.NewPCG(testseed.Of(t), 2))
	for range sessions {
		start := slotOf(7*time.Second+sched.RandomPhase(time.Second, rng), time.Second)
		if start < 7*time.Second || start >= 8*time.Second {
			t.Fatalf("start %v is not within the first interval", start)
		}
		starts[start]++
	}
	if len(starts) != phases {
		t.Errorf("%d different starts, want all %d", len(starts), phases)
	}
	for start, n := range starts {
		if n > 2*sessions/phases {
			t.Errorf("%d of %d sessions start at %v", n, sessions, start)
		}
	}
	if got := slotOf(12345, phases-1); got != 12345 {
		t.Errorf("an interval too short for slots moved a start to %v", got)
	}
}
