package metric

import (
	"math"
	"slices"
	"sync"
)

// Scope is the set of series of one object with a start and an end: a path, a clock, a link. It opens each series at its
// first use and closes all of them together. It is safe for concurrent use, except for the methods with a Place, but a
// series must not be written to while it is dropped, and after Close no method except Close may be called. Make one with
// NewScope or Profile.Scope.
type Scope struct {
	sink    Sink
	profile Profile
	closed  bool // guarded by mu
	lead    []string

	mu sync.Mutex // guards the fields below; held while the sink opens series
	// open has a free place, without descriptor, where a series was dropped.
	open []opened
	// labels has each combination of label values after the leading ones once; nil: free.
	labels [][]string
	last   int // index in open of the last series found
}

// opened is a series of a scope.
type opened struct {
	desc   *Desc
	series Series
	shown  float64 // the value that was written last by Place; NaN: absent
	labels int     // index
}

// Place is the place of a series in its scope, kept by a caller that writes the series often; a scope has at most 65,535
// such series. The zero value is a series that is not open yet.
type Place uint16

// NewScope makes a scope of profile Full.
func NewScope(sink Sink, lead ...string) *Scope { return Full.Scope(sink, lead...) }

// Profile is the profile of the scope.
func (s *Scope) Profile() Profile { return s.profile }

// Series is the series of d with the leading label values and more: the same one each time, opened by the first call.
// Only that call allocates. After Close it returns a series that discards.
func (s *Scope) Series(d *Desc, more ...string) Series {
	if d = d.In(s.profile); d == nil {
		return discarded{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return discarded{}
	}
	return s.open[s.index(d, more)].series
}

// index is the index of a series, which it opens if it is not open. The caller holds mu.
func (s *Scope) index(d *Desc, more []string) int {
	if i := s.find(d, more); i >= 0 {
		return i
	}
	one := opened{desc: d, series: s.sink.Series(d, append(s.lead, more...)...), labels: s.combination(more)}
	if d.Kind == Gauge {
		one.shown = math.NaN()
	}
	if one.labels < 0 {
		one.labels = put(&s.labels, slices.Clone(more), func(one []string) bool { return one == nil })
	}
	s.last = put(&s.open, one, func(one opened) bool { return one.desc == nil })
	return s.last
}

// put stores an element in a free place, or appends it, and returns its index.
func put[E any](all *[]E, one E, free func(E) bool) int {
	i := slices.IndexFunc(*all, free)
	if i < 0 {
		i = len(*all)
		*all = append(*all, one)
	}
	(*all)[i] = one
	return i
}

// noLabels is the index of no labels after the leading ones.
const noLabels = math.MaxInt

// combination is the index of label values; negative: no series has them.
func (s *Scope) combination(more []string) int {
	if len(more) == 0 {
		return noLabels
	}
	return slices.IndexFunc(s.labels, func(one []string) bool { return slices.Equal(one, more) })
}

// find is the index of a series; negative: it is not open, or the profile excludes it (nil). Most callers write their series in the same order each time, so
// the search begins at the last one found. The caller holds mu.
func (s *Scope) find(d *Desc, more []string) int {
	labels := s.combination(more)
	if d == nil || labels < 0 {
		return -1
	}
	for range s.open {
		if one := &s.open[s.last]; one.desc == d && one.labels == labels {
			return s.last
		}
		if s.last++; s.last == len(s.open) {
			s.last = 0
		}
	}
	return -1
}

// Flag is the value of a Boolean gauge, 1 or 0.
func Flag(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// Set sets a gauge.
func (s *Scope) Set(d *Desc, v float64, more ...string) { s.Series(d, more...).Set(v) }

// SetIf sets a gauge if the value is known, and clears it if not.
func (s *Scope) SetIf(d *Desc, v float64, known bool, more ...string) {
	if known {
		s.Set(d, v, more...)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.find(d.In(s.profile), more); i >= 0 {
		s.open[i].series.Clear()
	}
}

// Total is Series.SetTotal. A total of zero also opens the counter, so that its first increase is visible.
func (s *Scope) Total(d *Desc, total float64, more ...string) { s.Series(d, more...).SetTotal(total) }

// TotalAt is Total for a counter whose place the caller keeps. It writes only a total that has changed. Such a caller is the
// only user of the scope while it calls this method, and writes the series by this method only.
func (s *Scope) TotalAt(at *Place, d *Desc, total uint64, more ...string) {
	if one := s.at(at, d, more); one != nil && one.shown != float64(total) {
		one.shown = float64(total)
		one.series.SetTotal(one.shown)
	}
}

// SetIfAt is SetIf for a gauge whose place the caller keeps, on the terms of TotalAt.
func (s *Scope) SetIfAt(at *Place, d *Desc, v float64, known bool, more ...string) {
	if !known {
		if *at == 0 {
			return
		}
		v = math.NaN()
	}
	if one := s.at(at, d, more); one != nil && math.Float64bits(one.shown) != math.Float64bits(v) {
		one.shown = v
		one.series.Set(v)
	}
}

// at is the series at a place, opened if it is not open yet; nil: the profile excludes it, or the scope is closed.
func (s *Scope) at(at *Place, d *Desc, more []string) *opened {
	if *at == 0 {
		if d = d.In(s.profile); d == nil {
			return nil
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.closed {
			return nil
		}
		*at = Place(s.index(d, more) + 1)
	}
	if int(*at) > len(s.open) {
		return nil // after Close
	}
	return &s.open[*at-1]
}

// Drop closes a series if it is open. The next use opens a new one.
func (s *Scope) Drop(d *Desc, more ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.find(d.In(s.profile), more); i >= 0 {
		s.drop(i)
	}
}

// DropAll closes all series of a family.
func (s *Scope) DropAll(d *Desc) {
	d = d.In(s.profile)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, one := range s.open {
		if one.desc != nil && one.desc == d {
			s.drop(i)
		}
	}
}

// drop closes the series at an index, and frees its labels if no other series has them. The caller holds mu.
func (s *Scope) drop(i int) {
	one := s.open[i]
	one.series.Close()
	s.open[i] = opened{}
	same := func(other opened) bool { return other.desc != nil && other.labels == one.labels }
	if one.labels != noLabels && !slices.ContainsFunc(s.open, same) {
		s.labels[one.labels] = nil
	}
}

// Renew starts the totals of all counters at zero: those of a source that restarts continue from their values. It opens all
// series again, so handles of Series are obsolete; places stay valid. Like Close it must not be called within an Update.
func (s *Scope) Renew() {
	s.mu.Lock()
	old := slices.Clone(s.open)
	for i := range s.open {
		one := &s.open[i]
		if one.desc == nil {
			continue
		}
		var more []string
		if one.labels != noLabels {
			more = s.labels[one.labels]
		}
		if one.series = s.sink.Series(one.desc, append(s.lead, more...)...); one.desc.Kind == Counter {
			one.shown = 0
		}
	}
	s.mu.Unlock()
	s.close(old)
}

// Update is Sink.Update.
func (s *Scope) Update(f func()) { s.sink.Update(f) }

// Close closes all series in one Update, so it must not be called within one. A second call does nothing.
func (s *Scope) Close() {
	s.mu.Lock()
	all := s.open
	s.closed, s.open, s.labels, s.last = true, nil, nil, 0
	s.mu.Unlock()
	s.close(all)
}

// close closes series in one Update. The caller does not hold mu: a function in an Update may wait for it.
func (s *Scope) close(all []opened) {
	s.sink.Update(func() {
		for _, one := range all {
			if one.desc != nil {
				one.series.Close()
			}
		}
	})
}
