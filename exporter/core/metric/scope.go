package metric

import (
	"math"
	"slices"
	"strings"
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
	// The series, by place: what they are, their handles in the sink, and the values that were written last by Place (NaN:
	// absent). They are apart since most calls read the values only. A place is free where a series was dropped.
	keys   []key
	series []Series
	shown  []float64
	last   int // index of the last series found
}

// key identifies a series of a scope; the zero value is a free place.
type key struct {
	desc   *Desc
	labels string // the values after the leading ones, joined with separator; series with the same ones share it
}

const separator = "\x00"

// has reports whether the labels are these values.
func (k *key) has(values []string) bool {
	rest := k.labels
	for i, v := range values {
		found := true
		if i > 0 {
			rest, found = strings.CutPrefix(rest, separator)
		}
		if found {
			rest, found = strings.CutPrefix(rest, v)
		}
		if !found {
			return false
		}
	}
	return rest == ""
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
	return s.series[s.index(d, more)]
}

// index is the index of a series, which it opens if it is not open. The caller holds mu.
func (s *Scope) index(d *Desc, more []string) int {
	if i := s.find(d, more); i >= 0 {
		return i
	}
	one, what := s.sink.Series(d, append(s.lead, more...)...), key{desc: d}
	if same := slices.IndexFunc(s.keys, func(k key) bool { return k.desc != nil && k.has(more) }); same >= 0 {
		what.labels = s.keys[same].labels
	} else {
		what.labels = strings.Join(more, separator)
	}
	i := slices.Index(s.keys, key{})
	if i < 0 {
		i = len(s.keys)
		s.keys, s.series, s.shown = append(s.keys, key{}), append(s.series, nil), append(s.shown, 0)
	}
	s.keys[i], s.series[i], s.shown[i] = what, one, 0
	if d.Kind == Gauge {
		s.shown[i] = math.NaN()
	}
	s.last = i
	return i
}

// find is the index of a series; negative: it is not open, or the profile excludes it (nil). Most callers write their series in
// the same order each time, so the search begins at the last one found. The caller holds mu.
func (s *Scope) find(d *Desc, more []string) int {
	if d == nil {
		return -1
	}
	for range s.keys {
		if k := &s.keys[s.last]; k.desc == d && k.has(more) {
			return s.last
		}
		if s.last++; s.last == len(s.keys) {
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
		s.series[i].Clear()
	}
}

// Total is Series.SetTotal. A total of zero also opens the counter, so that its first increase is visible.
func (s *Scope) Total(d *Desc, total float64, more ...string) { s.Series(d, more...).SetTotal(total) }

// TotalAt is Total for a counter whose place the caller keeps. It writes only a total that has changed. While it is called, no
// other goroutine opens, drops, renews or closes series of the scope. The caller writes the series by this method only, and
// never drops it.
func (s *Scope) TotalAt(at *Place, d *Desc, total uint64, more ...string) {
	if i := int(*at) - 1; i < 0 || i >= len(s.shown) || s.shown[i] != float64(total) {
		s.write(at, d, float64(total), more)
	}
}

// SetIfAt is SetIf for a gauge whose place the caller keeps, on the terms of TotalAt.
func (s *Scope) SetIfAt(at *Place, d *Desc, v float64, known bool, more ...string) {
	i := int(*at) - 1
	switch {
	case !known && i < 0:
		return
	case !known:
		v = math.NaN()
	}
	if i < 0 || i >= len(s.shown) || math.Float64bits(s.shown[i]) != math.Float64bits(v) {
		s.write(at, d, v, more)
	}
}

// write writes a counter or gauge at a place, and opens it if it is not open yet. It does nothing if the profile excludes it
// or the scope is closed.
func (s *Scope) write(at *Place, d *Desc, v float64, more []string) {
	if *at == 0 {
		if d = d.In(s.profile); d == nil {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.closed {
			return
		}
		*at = Place(s.index(d, more) + 1)
	}
	i := int(*at) - 1
	switch {
	case i >= len(s.shown): // closed
	case d.Kind == Counter:
		s.series[i].SetTotal(v)
		s.shown[i] = v
	default:
		s.series[i].Set(v)
		s.shown[i] = v
	}
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
	for i, one := range s.keys {
		if one.desc != nil && one.desc == d {
			s.drop(i)
		}
	}
}

// drop closes the series at an index. The caller holds mu.
func (s *Scope) drop(i int) {
	s.series[i].Close()
	s.keys[i], s.series[i] = key{}, nil
}

// Renew is for the series of a source that restarts: totals of counters start at zero, and counters continue from their
// values; gauges are absent until they are set. It opens all series again, so handles of Series are obsolete; places stay
// valid. Like Close it must not be called within an Update.
func (s *Scope) Renew() {
	s.mu.Lock()
	old := slices.Clone(s.series)
	for i, one := range s.keys {
		if one.desc == nil {
			continue
		}
		more := strings.SplitN(one.labels, separator, len(one.desc.Labels)-len(s.lead))
		s.series[i] = s.sink.Series(one.desc, append(s.lead, more...)...)
		switch one.desc.Kind {
		case Counter:
			s.shown[i] = 0
		case Gauge:
			s.shown[i] = math.NaN()
			s.series[i].Clear()
		case Histogram:
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
	all := s.series
	s.closed, s.keys, s.series, s.shown, s.last = true, nil, nil, nil, 0
	s.mu.Unlock()
	s.close(all)
}

// close closes series in one Update. The caller does not hold mu: a function in an Update may wait for it.
func (s *Scope) close(all []Series) {
	s.sink.Update(func() {
		for _, one := range all {
			if one != nil {
				one.Close()
			}
		}
	})
}
