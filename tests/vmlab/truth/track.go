package truth

import (
	"encoding/binary"
	"errors"
	"math"
	"sort"
	"time"

	"oneway.example/exporter/core/instant"
)

// Pair is a clock's reading at a reading of the counter, wrong by Gap/2 counts at most.
type Pair struct {
	Counter uint64
	Clock   instant.Time
	Gap     uint32
}

// PairBytes is the length of an encoded Pair.
const PairBytes = 20

// AppendTo appends p to b: counter, clock, gap, little endian.
func (p Pair) AppendTo(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, p.Counter)
	b = binary.LittleEndian.AppendUint64(b, uint64(p.Clock))
	return binary.LittleEndian.AppendUint32(b, p.Gap)
}

// ParsePairs decodes as many whole pairs as b holds.
func ParsePairs(b []byte) []Pair {
	pairs := make([]Pair, 0, len(b)/PairBytes)
	for ; len(b) >= PairBytes; b = b[PairBytes:] {
		pairs = append(pairs, Pair{
			Counter: binary.LittleEndian.Uint64(b),
			Clock:   instant.Time(binary.LittleEndian.Uint64(b[8:])),
			Gap:     binary.LittleEndian.Uint32(b[16:]),
		})
	}
	return pairs
}

// Track is what a guest's clock said over a run.
type Track struct {
	line  Line
	pairs []Pair // in the order of the counter
	steps []instant.Time
}

// stepLimit is the change of a clock's offset between two neighboring pairs above
// which it was stepped. Slewing is at most a tenth of the time between them.
const stepLimit = time.Millisecond

// slewLimit is the highest rate at which a clock is slewed: 100000 ppm (adjtimex's tick).
const slewLimit = 0.11

// NewTrack makes a track of the pairs whose gap is at most widest; those with more
// say too little.
func NewTrack(line Line, pairs []Pair, widest time.Duration) *Track {
	limit := uint32(min(widest.Seconds()*line.Hertz, math.MaxUint32))
	t := &Track{line: line}
	for _, p := range pairs {
		if p.Gap <= limit && (len(t.pairs) == 0 || p.Counter > t.pairs[len(t.pairs)-1].Counter) {
			t.pairs = append(t.pairs, p)
		}
	}
	for i := 1; i < len(t.pairs); i++ {
		if a, b := t.pairs[i-1], t.pairs[i]; t.stepped(a, b) {
			t.steps = append(t.steps, line.At(a.Counter+(b.Counter-a.Counter)/2))
		}
	}
	return t
}

// Len is the number of pairs in use.
func (t *Track) Len() int { return len(t.pairs) }

// Reasons for which a track cannot tell.
var (
	ErrNoTrack = errors.New("truth: no pairs around that moment")
	ErrStep    = errors.New("truth: the clock was stepped around that moment")
	ErrEarly   = errors.New("truth: the clock was stepped around that moment, perhaps after it was seen")
)

// longest is the time between two pairs that are still taken for neighbors.
const longest = 2 * time.Second

// True is the true time at which the clock said at: the last time it did so before
// the counter stood at seen, which tells the two such moments of a clock that was
// stepped back apart. blur is how far the result may be off.
func (t *Track) True(at instant.Time, seen uint64) (truth instant.Time, blur time.Duration, err error) {
	i := sort.Search(len(t.pairs), func(i int) bool { return t.pairs[i].Counter > seen })
	for i = min(i, len(t.pairs)-1); i > 0; i-- {
		a, b := t.pairs[i-1], t.pairs[i]
		if t.line.At(seen).Sub(t.line.At(b.Counter)) > remoteBack {
			break
		}
		if at < a.Clock || at > b.Clock {
			continue
		}
		if t.stepped(a, b) {
			if seen < b.Counter {
				return 0, 0, ErrEarly
			}
			return 0, 0, ErrStep
		}
		from, to := t.line.At(a.Counter), t.line.At(b.Counter)
		if to.Sub(from) > longest {
			return 0, 0, ErrNoTrack
		}
		share := float64(at-a.Clock) / float64(max(1, b.Clock-a.Clock))
		blur = time.Duration(float64(max(a.Gap, b.Gap)) / 2 / t.line.Hertz * 1e9)
		return from.Add(time.Duration(share * float64(to-from))), blur, nil
	}
	return 0, 0, ErrNoTrack
}

// remoteBack is how long before it was seen a stamp can have been taken.
const remoteBack = 10 * time.Second

// stepped tells whether slewing cannot explain what happened between a and b.
func (t *Track) stepped(a, b Pair) bool {
	elapsed := t.line.At(b.Counter).Sub(t.line.At(a.Counter))
	moved := (b.Clock.Sub(a.Clock) - elapsed).Abs()
	return moved > stepLimit+time.Duration(slewLimit*float64(elapsed))
}

// Offset is the clock minus the truth when the counter stood at counter.
func (t *Track) Offset(counter uint64) (time.Duration, error) {
	i := sort.Search(len(t.pairs), func(i int) bool { return t.pairs[i].Counter > counter })
	if i == 0 || i == len(t.pairs) {
		return 0, ErrNoTrack
	}
	a, b := t.pairs[i-1], t.pairs[i]
	if t.stepped(a, b) {
		return 0, ErrStep
	}
	before, after := a.Clock.Sub(t.line.At(a.Counter)), b.Clock.Sub(t.line.At(b.Counter))
	share := float64(counter-a.Counter) / float64(b.Counter-a.Counter)
	return before + time.Duration(share*float64(after-before)), nil
}

// Steps are the true times of the steps: the middle of the pairs around each.
func (t *Track) Steps() []instant.Time { return t.steps }
