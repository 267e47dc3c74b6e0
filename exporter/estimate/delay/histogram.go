package delay

import (
	"math"
	"math/bits"
	"time"
)

const (
	// subBits: an octave is split into 2^subBits linear buckets, so that the middle of a bucket is within 1/128
	// (0.79 %) of each value in it.
	subBits   = 6
	perOctave = 1 << subBits
	// floorBits: below 2^floorBits ns (1.024 us) the buckets are 16 ns wide, finer than any timestamp.
	floorBits = 10
	// octaves covers every int64 number of nanoseconds, -2^63 included.
	octaves = 65 - floorBits
	// idleWindows is the number of windows without a value after which an octave's memory is freed: enough that an
	// octave in occasional use does not allocate each time, few enough that an outlier does not occupy memory for
	// long.
	idleWindows = 64
)

// octave counts the values of [2^n, 2^(n+1)) ns.
type octave struct {
	counts [perOctave]uint32
	total  uint32
	idle   uint8
}

// axisHalf is the positive or the negative half of the axis; an octave without a value takes no memory.
type axisHalf [octaves]*octave

// histogram counts durations in log-linear buckets. Most paths use few octaves; memory is about 0.4 KiB and 0.3 KiB
// for each octave in use.
type histogram struct {
	positive axisHalf
	// negative is nil without negative values.
	negative *axisHalf
}

// add counts one value. It allocates at the first value of an octave.
func (h *histogram) add(d time.Duration) {
	half, magnitude := &h.positive, uint64(d)
	if d < 0 {
		if h.negative == nil {
			h.negative = new(axisHalf)
		}
		half, magnitude = h.negative, -magnitude
	}
	row, column := bucket(magnitude)
	o := half[row]
	if o == nil {
		o = new(octave)
		half[row] = o
	}
	o.counts[column]++
	o.total++
}

// bucket returns the place of a magnitude of at most 2^63.
func bucket(magnitude uint64) (row, column int) {
	if magnitude < 1<<floorBits {
		return 0, int(magnitude >> (floorBits - subBits))
	}
	exponent := bits.Len64(magnitude) - 1
	return exponent - floorBits + 1, int(magnitude>>(exponent-subBits)) & (perOctave - 1)
}

// middle is the value that represents a bucket.
func middle(row, column int) time.Duration {
	if row == 0 {
		const width = 1 << (floorBits - subBits)
		return time.Duration(column*width + width/2)
	}
	exponent := row + floorBits - 1
	width := uint64(1) << (exponent - subBits)
	value := uint64(1)<<exponent + uint64(column)*width + width/2
	if value > math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(value)
}

// halfBucket is half the width of the bucket of d, rounded up: the largest distance of a value from its middle.
func halfBucket(d time.Duration) time.Duration {
	magnitude := uint64(d)
	if d < 0 {
		magnitude = -magnitude
	}
	exponent := max(bits.Len64(magnitude)-1, floorBits)
	return time.Duration(uint64(1)<<(exponent-subBits-1) + 1)
}

// at returns the value of the given rank, 1 being the smallest; the rank must not exceed the number of values.
func (h *histogram) at(rank uint64) time.Duration {
	for row := octaves - 1; h.negative != nil && row >= 0; row-- {
		o := h.negative[row]
		if rank <= o.size() {
			return -middle(row, o.find(o.size()-rank+1))
		}
		rank -= o.size()
	}
	for row, o := range h.positive {
		if rank <= o.size() {
			return middle(row, o.find(rank))
		}
		rank -= o.size()
	}
	return math.MaxInt64
}

// size is the number of values of the octave; zero for nil.
func (o *octave) size() uint64 {
	if o == nil {
		return 0
	}
	return uint64(o.total)
}

// find returns the column that holds the given rank, by magnitude.
func (o *octave) find(rank uint64) int {
	var seen uint64
	for column, n := range o.counts {
		if seen += uint64(n); seen >= rank {
			return column
		}
	}
	return perOctave - 1
}

// reset empties the histogram and keeps recently used memory.
func (h *histogram) reset() {
	h.positive.reset()
	if h.negative != nil && !h.negative.reset() {
		h.negative = nil
	}
}

// reset reports whether any octave is kept.
func (s *axisHalf) reset() (kept bool) {
	for row, o := range s {
		switch {
		case o == nil:
		case o.total > 0:
			*o = octave{}
			kept = true
		case o.idle+1 >= idleWindows:
			s[row] = nil
		default:
			o.idle++
			kept = true
		}
	}
	return kept
}
