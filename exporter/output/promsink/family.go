package promsink

import (
	"slices"
	"strings"

	"oneway.example/exporter/core/metric"
)

// family is all series of one name.
type family struct {
	name string
	// series is in the order of the exposition: of the values of its first label, then of its second one.
	series []*series
	// shared: a scrape reads the slice, so a change makes a new one.
	shared bool
}

// variant is the series of a family with one descriptor: each profile has its own. All variants that have series at a time have
// the same labels.
type variant struct {
	*family
	sink *Sink
	desc *metric.Desc
	// permutation is, for each label in the order of names, its index in the values given to Series.
	permutation []int
}

// variant returns that of a descriptor, and makes it if it is new. The caller holds mu.
func (s *Sink) variant(d *metric.Desc) *variant {
	if v := s.variants[d]; v != nil {
		return v
	}
	at, found := slices.BinarySearchFunc(s.families, d.Name, func(f *family, name string) int { return strings.Compare(f.name, name) })
	if !found {
		s.families = slices.Insert(s.families, at, &family{name: d.Name})
	}
	v := &variant{family: s.families[at], sink: s, desc: d}
	for i := range d.Labels {
		v.permutation = append(v.permutation, i)
	}
	slices.SortFunc(v.permutation, func(a, b int) int { return strings.Compare(d.Labels[a], d.Labels[b]) })
	s.variants[d] = v
	return v
}

// find is the place of the series with these labels, or the one that it would have. guess is tried before the others: a path
// has the same place in many families.
func (f *family) find(labels []*pair, guess int) (at int, found bool) {
	first, all := 0, f.series
	if guess <= len(all) && (guess == 0 || all[guess-1].compare(labels) < 0) {
		if first = guess; guess == len(all) || all[guess].compare(labels) >= 0 {
			all = all[:min(guess+1, len(all))]
		}
	}
	at, found = slices.BinarySearchFunc(all[first:], labels, (*series).compare)
	return first + at, found
}

// compare compares the labels of a series with other ones of the same family. Equal labels are the same pair.
func (s *series) compare(labels []*pair) int {
	for i, l := range s.labels {
		if l != labels[i] {
			return strings.Compare(l.value, labels[i].value)
		}
	}
	return 0
}

func (f *family) insert(at int, one *series) {
	f.own()
	f.series = slices.Insert(f.series, at, one)
}

func (f *family) remove(at int) {
	f.own()
	f.series = slices.Delete(f.series, at, at+1)
}

// own makes the slice one that no scrape reads.
func (f *family) own() {
	if f.shared {
		f.series, f.shared = slices.Clone(f.series), false
	}
}
