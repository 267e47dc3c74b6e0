// Package truth is time as nobody in the lab can bend it: the processor's time
// stamp counter, which the host and its guests read alike, and a straight line
// from it to UTC.
//
// A guest's clock is compared with it by Read, in a Track of many such pairs, and
// so every stamp that the guest's kernel has taken gets its place on the counter.
// The one assumption is that the counters of the processors agree; Linux takes a TSC
// as its clock source on no other terms (arch/x86/kernel/tsc_sync.c).
package truth

import (
	"time"

	"oneway.example/exporter/core/instant"
)

// Line relates the counter to UTC by definition: what it says is the truth of one run.
type Line struct {
	// Counter and UTC are one moment.
	Counter uint64       `json:"counter"`
	UTC     instant.Time `json:"utc"`
	// Hertz is the counter's frequency.
	Hertz float64 `json:"hertz"`
}

// Calibrate measures the counter's frequency against the host's clock for as long
// as it is told, and begins the line now. fast is added to the rate of the result, as a
// ratio: against it the guests, which run at the host's rate, drift by -fast, as a
// crystal does.
func Calibrate(measure time.Duration, fast float64) Line {
	start, from, _ := Read()
	time.Sleep(measure)
	end, to, _ := Read()
	return Line{Counter: end, UTC: to, Hertz: float64(end-start) / to.Sub(from).Seconds() / (1 + fast)}
}

// At is the true time at a reading of the counter.
func (l Line) At(counter uint64) instant.Time {
	return l.UTC.Add(time.Duration(float64(int64(counter-l.Counter)) / l.Hertz * 1e9))
}

// tries is how often Read reads at most: a guest's system call is a switch of
// processes on the host, which now and then takes a hundred times as long.
const tries = 4

// goodEnough ends the tries: about 40 us, what a guest's system call takes.
const goodEnough = 100_000 // counts

// Read reads this kernel's CLOCK_REALTIME between two readings of the counter and
// returns the middle of these with it. gap is how many counts they are apart: the pair
// is wrong by no more than half of it. Of a few tries the narrowest is taken.
func Read() (counter uint64, at instant.Time, gap uint64) {
	for i := range tries {
		before := Counter()
		now := instant.Now()
		after := Counter()
		if i == 0 || after-before < gap {
			counter, at, gap = before+(after-before)/2, now, after-before
		}
		if gap < goodEnough {
			break
		}
	}
	return counter, at, gap
}
