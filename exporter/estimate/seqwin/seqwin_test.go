package seqwin

import (
	"math"
	"math/bits"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSequence1263457HasThreeReorderedPackets(t *testing.T) {
	var w Window
	w.Start(1)
	want := []Verdict{Unique, Unique, Unique, Reordered, Reordered, Reordered, Unique}
	for i, n := range []uint64{1, 2, 6, 3, 4, 5, 7} {
		if got := w.Add(n, 0); got != want[i] {
			t.Errorf("Add(%d) = %d, want %d", n, got, want[i])
		}
	}
	c := w.Counts()
	if c.Reordered != 3 || c.Received != 7 || c.Lost != 0 || c.Pending() != 0 {
		t.Errorf("counts %+v", c)
	}
}

// A known tool reports this stream as 0 lost: it counts duplicates as out-of-order packets, which cancel losses.
func TestTwoPercentLossIsCountedDespiteFivePercentDuplication(t *testing.T) {
	var w Window
	for n := range uint64(10000) {
		if n%50 == 7 {
			continue
		}
		w.Add(n, 0)
		if n%20 == 0 {
			w.Add(n, 0)
		}
	}
	w.Finish(10000, 0)
	c := w.Counts()
	if c.Lost != 200 || c.Received != 9800 || c.Duplicated != 500 || c.Reordered != 0 || c.Bursts != 200 {
		t.Errorf("counts %+v", c)
	}
}

func TestDuplicatesOfEverythingNeverMakeALossNegative(t *testing.T) {
	var w Window
	for n := range uint64(1000) {
		for range 3 {
			w.Add(n, 0)
		}
	}
	if c := w.Counts(); c.Lost != 0 || c.Received != 1000 || c.Duplicated != 2000 || c.Pending() != 0 {
		t.Errorf("counts %+v", c)
	}
}

func TestCopyAfterTheLossTimeoutIsLateAndStaysLost(t *testing.T) {
	var w Window
	w.Add(0, 0)
	w.Add(2, 0)
	w.Expire(3*time.Second, 3*time.Second)
	if c := w.Counts(); c.Lost != 0 {
		t.Fatal("decided before the end of the wait")
	}
	w.Expire(3*time.Second+2*ms, 3*time.Second)
	if got := w.Add(1, 4*time.Second); got != Late {
		t.Errorf("first copy after the wait: %d, want Late", got)
	}
	if got := w.Add(1, 4*time.Second); got != Duplicate {
		t.Errorf("second copy after the wait: %d, want Duplicate", got)
	}
	if c := w.Counts(); c.Lost != 1 || c.Late != 1 || c.Duplicated != 1 || c.Received != 2 || c.Reordered != 0 {
		t.Errorf("counts %+v", c)
	}
}

func TestWaitShorterThanAMillisecondIsRoundedUp(t *testing.T) {
	var w Window
	w.Add(0, 0)
	w.Add(2, 0)
	w.Expire(2*ms, 1500*time.Microsecond)
	if c := w.Counts(); c.Lost != 0 {
		t.Error("decided after 2 ms, want not before 1.5 ms plus the 1 ms resolution of the clock")
	}
	w.Expire(3*ms, 1500*time.Microsecond)
	if c := w.Counts(); c.Lost != 1 {
		t.Error("not decided after twice the wait")
	}
}

// Two goroutines may read the clock and then compete for the window's lock.
func TestClockReadingFromBeforeTheAddExpiresNothing(t *testing.T) {
	var w Window
	w.Add(0, time.Second)
	w.Add(2, time.Second)
	w.Expire(time.Second-5*ms, 3*time.Second)
	if c := w.Counts(); c.Lost != 0 {
		t.Errorf("a time 5 ms in the past decided %d as lost", c.Lost)
	}
}

func TestExpireWorksAcrossTheWrapOfTheMillisecondClock(t *testing.T) {
	const wrap = time.Duration(1<<32) * ms
	var w Window
	w.Add(0, wrap-ms)
	w.Add(2, wrap-ms)
	w.Expire(wrap+time.Second, 3*time.Second)
	if c := w.Counts(); c.Lost != 0 {
		t.Error("decided early")
	}
	w.Expire(wrap+4*time.Second, 3*time.Second)
	if c := w.Counts(); c.Lost != 1 {
		t.Error("not decided")
	}
}

func TestOutageIsOneBurstHoweverLong(t *testing.T) {
	for _, gap := range []uint64{1, 63, 64, 255, 256, 257, Size - 1, Size, Size + 1, 2*Size - 1, 2 * Size, 2*Size + 1, 1 << 31} {
		var w Window
		w.Add(0, 0)
		w.Add(1, 0)
		w.Add(gap+2, 0)
		w.Add(gap+3, 0)
		w.Expire(4*time.Second, 3*time.Second)
		c := w.Counts()
		if c.Lost != gap || c.Bursts != 1 || c.Received != 4 || c.Base != gap+4 {
			t.Errorf("gap %d: %+v", gap, c)
		}
		received := 0
		for _, word := range c.Recent {
			received += bits.OnesCount64(word)
		}
		// The two after the gap, and those before it that are recent enough.
		if want := 2 + min(2, RecentBits-2-int(min(gap, RecentBits-2))); received != want {
			t.Errorf("gap %d: Recent has %d received, want %d", gap, received, want)
		}
	}
}

func TestStartLeavesLowerNumbersOutOfTheCounts(t *testing.T) {
	var w Window
	w.Start(100)
	w.Add(100, 0)
	if got := w.Add(99, 0); got != Late {
		t.Errorf("number below the first: %d, want Late", got)
	}
	if c := w.Counts(); c.Lost != 0 || c.Received != 1 || c.Pending() != 0 {
		t.Errorf("counts %+v", c)
	}
}

func TestFinishDecidesTheTailThatNothingOvertook(t *testing.T) {
	var w Window
	w.Add(0, 0)
	w.Finish(5, time.Second)
	w.Finish(3, time.Second) // an older report changes nothing
	if c := w.Counts(); c.Lost != 4 || c.Received != 1 || c.Base != 5 || c.Next != 5 || c.Bursts != 1 {
		t.Errorf("counts %+v", c)
	}
	if got := w.Add(4, time.Second); got != Late {
		t.Errorf("after Finish: %d, want Late", got)
	}
	if got := w.Add(5, time.Second); got != Unique {
		t.Errorf("the next number: %d, want Unique", got)
	}
}

func TestNumbersNearTheEndOf64BitsNeitherHangNorWrap(t *testing.T) {
	for _, n := range []uint64{math.MaxUint64, math.MaxUint64 - Size, 1 << 63} {
		var w Window
		if got := w.Add(n, 0); got != Late {
			t.Errorf("Add(%d) = %d, want Late", n, got)
		}
		w.Finish(n, 0)
		if c := w.Counts(); c.Received+c.Lost+c.Pending() != c.Next-c.First {
			t.Errorf("%d: counts %+v", n, c)
		}
	}
}

func TestExtendTakesTheNearestNumber(t *testing.T) {
	for _, c := range []struct {
		last uint64
		wire uint32
		want uint64
	}{
		{0, 0, 0},
		{0, 7, 7},
		{0, math.MaxUint32, math.MaxUint32}, // nothing below 0
		{1<<32 - 1, 0, 1 << 32},
		{1 << 32, math.MaxUint32, 1<<32 - 1},
		{5<<32 + 10, 12, 5<<32 + 12},
		{5<<32 + 10, math.MaxUint32 - 1, 5<<32 - 2},
		{5<<32 - 10, 3, 5<<32 + 3},
		{1 << 40, 1 << 31, 1<<40 + 1<<31},
		{1 << 40, 1<<31 + 1, 1<<40 - 1<<31 + 1},
	} {
		if got := Extend(c.last, c.wire); got != c.want {
			t.Errorf("Extend(%d, %d) = %d, want %d", c.last, c.wire, got, c.want)
		}
	}
}

// memory is the size of a window's tables.
func memory(w *Window) int { return 8*(len(w.seen)+len(w.overdue)) + 8*len(w.gaps.ring) }

func TestSteadyStateAllocatesNothing(t *testing.T) {
	var w Window
	var n uint64
	w.Add(n, 0)
	if got := memory(&w); got > 128 {
		t.Errorf("a new window takes %d bytes, want at most 128", got)
	}
	if allocs := testing.AllocsPerRun(1000, func() {
		n += 3
		w.Add(n, time.Duration(n)*ms)
		w.Add(n-1, time.Duration(n)*ms)
		w.Add(n, time.Duration(n)*ms)
		w.Expire(time.Duration(n)*ms, time.Second)
		w.Finish(n-1, time.Duration(n)*ms)
		_ = w.Counts()
	}); allocs != 0 {
		t.Errorf("%v allocations a step", allocs)
	}
}

// TestWaitIsThatOfTheClockAtAnyRate: with 512 numbers a loss at 10,000 a second would be decided after 51 ms,
// whatever the waiting time.
func TestWaitIsThatOfTheClockAtAnyRate(t *testing.T) {
	const every, wait = 100 * time.Microsecond, 3 * time.Second
	for _, back := range []uint64{300, 5000, 29_000} {
		var w Window
		const late = 40_000
		for n := range uint64(late) + back + 40_000 {
			now := time.Duration(n) * every
			w.Expire(now, wait)
			if n%100 != 7 && n != late { // one of a hundred is lost
				w.Add(n, now)
			}
			if n == late+back {
				if got := w.Add(late, now); got != Reordered {
					t.Errorf("%d numbers late, which is %v: %d, want Reordered", back, time.Duration(back)*every, got)
				}
			}
		}
		if got := memory(&w); got > 12<<10 { // 300 of 30,000 numbers are lost
			t.Errorf("%d bytes for 30,000 numbers", got)
		}
	}
}

// TestMemoryIsWithinWhatIsCharged: the most runs of missing numbers, in windows of every length.
func TestMemoryIsWithinWhatIsCharged(t *testing.T) {
	for size := Size; size <= MaxSize; size *= 2 {
		var w Window
		w.Reserve(size)
		for round := range uint64(3) {
			for n := range uint64(size / 2) {
				w.Add(2*(round*uint64(size)+n)+1, 0)
			}
			if w.length() > size {
				break // it grows, as enough numbers are received
			}
			if got := memory(&w); got > tableBytes(size) {
				t.Fatalf("%d bytes for %d numbers, want at most %d", got, size, tableBytes(size))
			}
			if c := w.Counts(); c.Pending() < uint64(size)/2-1 {
				t.Fatalf("%d of %d numbers are not decided", c.Pending(), size)
			}
		}
	}
}

func TestJumpAheadDoesNotGrowTheWindow(t *testing.T) {
	var w Window
	for n := range uint64(1000) {
		w.Add(n, 0)
	}
	for jump := range uint64(20) {
		w.Add(1e6*(jump+1), 0)
	}
	if got := memory(&w); got > Size*sparsest*2*5 {
		t.Errorf("20 numbers far ahead took %d bytes", got)
	}
	c := w.Counts()
	if c.Received != 1020 || c.Next-c.First != c.Received+c.Lost+c.Pending() {
		t.Errorf("%+v", c)
	}
}

func TestReservedWindowHasItsSizeAtOnce(t *testing.T) {
	var w Window
	w.Reserve(50_000)
	w.Add(0, 0)
	w.Add(45_000, 0)
	if got := w.Add(1, ms); got != Reordered {
		t.Errorf("%d, want Reordered", got)
	}
	w.Reset()
	if got := memory(&w); got != 0 || w.Counts() != (Counts{}) {
		t.Errorf("after Reset: %d bytes, %+v", got, w.Counts())
	}
	w.Add(0, 0)
	w.Add(1, 0)
	w.Reset()
	if got := memory(&w); got != 128 || w.Counts() != (Counts{}) || w.has(0) || w.has(1) {
		t.Errorf("after Reset of a small one: %d bytes, %+v", got, w.Counts())
	}
}

func TestOverduePacketIsLostWithoutBeingOvertaken(t *testing.T) {
	var w Window
	w.Add(0, 0)
	for n := range uint64(5) {
		if got := w.AddOverdue(n+1, 0); got != Late {
			t.Errorf("%d: %d, want Late", n+1, got)
		}
	}
	if got := w.Add(3, 0); got != Duplicate {
		t.Errorf("a second copy: %d, want Duplicate", got)
	}
	w.Add(6, 0)
	w.Add(8, 0)
	w.AddOverdue(7, 0)
	want := Counts{Base: 9, Next: 9, Received: 3, Lost: 6, Duplicated: 1, Late: 6, Bursts: 2}
	want.Recent[0] = 1<<0 | 1<<2 | 1<<8 // 8, 6 and 0
	if diff := cmp.Diff(want, w.Counts()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Counts are a comparable value without hidden references.
func TestCountsAreAPlainValue(t *testing.T) {
	var w Window
	w.Add(0, 0)
	before := w.Counts()
	w.Add(5, 0)
	if diff := cmp.Diff(Counts{Base: 1, Next: 1, Received: 1, Recent: [RecentWords]uint64{1}}, before); diff != "" {
		t.Error(diff)
	}
}

func BenchmarkAddInOrder(b *testing.B) {
	b.ReportAllocs()
	var w Window
	var n uint64
	for b.Loop() {
		w.Add(n, 0)
		n++
	}
}

func BenchmarkAddWithLoss(b *testing.B) {
	b.ReportAllocs()
	var w Window
	var n uint64
	for b.Loop() {
		w.Add(n, time.Duration(n)*ms)
		w.Expire(time.Duration(n)*ms, 3*time.Second)
		n += 1 + n&1
	}
}

// The most expensive possible packet: the longest jump that is not skipped.
func BenchmarkAddWorstJump(b *testing.B) {
	b.ReportAllocs()
	var w Window
	var n uint64
	for b.Loop() {
		w.Add(n, 0)
		n += 2 * Size
	}
}

func TestOnlyNumbersThatHaveNotArrivedAreMissing(t *testing.T) {
	var w Window
	w.Start(100)
	for _, n := range []uint64{100, 101, 104} {
		w.Add(n, 0)
	}
	for n, want := range map[uint64]bool{0: false, 99: false, 100: false, 101: false, 102: true, 103: true, 104: false, 105: true, 1 << 40: true} {
		if got := w.IsMissing(n); got != want {
			t.Errorf("number %d: %v, want %v", n, got, want)
		}
	}
	w.Expire(time.Hour, time.Second)
	if !w.IsMissing(102) {
		t.Error("a lost number is not awaited")
	}
	w.Add(104+Size, time.Hour)
	if w.IsMissing(102) || !w.IsMissing(105) {
		t.Error("a number older than the window is awaited")
	}
}
