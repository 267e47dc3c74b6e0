package delay

import (
	"cmp"
	"iter"
	"slices"
	"time"
)

// interval is a delay and its bound.
type interval struct{ value, bound time.Duration }

// samples holds delays with their bounds: 8 bytes each while all values are within 2.1 s of the first one and all
// bounds are below 4.3 s, otherwise 16. The zero value is empty.
type samples struct {
	first time.Duration
	// near has the difference from first in the upper and the bound in the lower 32 bits, so that its order is that
	// of the values. far has all samples if one does not fit, and near has none then.
	near   []int64
	far    []interval
	sorted int // how many there were when they were sorted
}

func (s *samples) len() int { return len(s.near) + len(s.far) }

// add allocates only if there are more samples than ever before.
func (s *samples) add(v interval) {
	if s.len() == 0 {
		s.first = v.value
	}
	if len(s.far) == 0 {
		difference := int64(v.value - s.first)
		fits := int64(int32(difference)) == difference && difference < 0 == (v.value < s.first)
		if fits && v.bound < 1<<32 {
			s.near = extend(s.near, difference<<32|int64(v.bound))
			return
		}
		s.far = slices.AppendSeq(s.far, s.all())
		s.near = s.near[:0]
	}
	s.far = append(s.far, v)
}

// extend appends v. A short list grows by 8 places: the windows of thousands of sessions have some 20 packets.
func extend[T any](list []T, v T) []T {
	if n := len(list); n == cap(list) && n < 64 {
		list = append(make([]T, 0, n+8), list...)
	}
	return append(list, v)
}

func (s *samples) unpack(near int64) interval {
	return interval{s.first + time.Duration(near>>32), time.Duration(uint32(near))}
}

// all yields the samples, in the order of their values once they are sorted.
func (s *samples) all() iter.Seq[interval] {
	return func(yield func(interval) bool) {
		for _, v := range s.near {
			if !yield(s.unpack(v)) {
				return
			}
		}
		for _, v := range s.far {
			if !yield(v) {
				return
			}
		}
	}
}

// sort sorts the samples by value.
func (s *samples) sort() {
	if s.sorted == s.len() {
		return
	}
	slices.Sort(s.near)
	slices.SortFunc(s.far, func(a, b interval) int { return cmp.Compare(a.value, b.value) })
	s.sorted = s.len()
}

// value returns the value of a rank, 1 being the smallest; the samples must be sorted.
func (s *samples) value(rank uint64) time.Duration {
	if len(s.far) > 0 {
		return s.far[rank-1].value
	}
	return s.unpack(s.near[rank-1]).value
}

// reset empties s and keeps its memory, that of far only if it was used.
func (s *samples) reset() {
	if len(s.far) == 0 {
		s.far = nil
	}
	*s = samples{near: s.near[:0], far: s.far[:0]}
}

// ends are the lower and the upper ends of samples, each sorted.
type ends struct {
	lows, highs []time.Duration
}

func (s *samples) ends() *ends {
	o := &ends{lows: make([]time.Duration, 0, s.len()), highs: make([]time.Duration, 0, s.len())}
	for v := range s.all() {
		o.lows = append(o.lows, v.value-v.bound)
		o.highs = append(o.highs, v.value+v.bound)
	}
	slices.Sort(o.lows)
	slices.Sort(o.highs)
	return o
}
