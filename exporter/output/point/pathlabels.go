package point

import (
	"cmp"
	"maps"
	"slices"
	"sync/atomic"

	"oneway.example/exporter/core/metric"
)

// PathLabels are the labels of paths, which become tags of their points. The zero value has no labels. It is safe for concurrent use.
type PathLabels struct{ current atomic.Pointer[labels] }

// labels are the labels of paths by path and name, and the names of all.
type labels struct {
	names []string
	paths map[string]map[string]string
}

// Set replaces the labels of all paths: by path and name.
func (p *PathLabels) Set(paths map[string]map[string]string) {
	names := map[string]bool{}
	for _, some := range paths {
		for name := range some {
			names[name] = true
		}
	}
	p.current.Store(&labels{slices.Sorted(maps.Keys(names)), paths})
}

// Version changes with each Set; nil is a PathLabels without labels.
func (p *PathLabels) Version() any {
	if p == nil {
		return (*labels)(nil)
	}
	return p.current.Load()
}

// Tagger adds the tags of an output and the labels of paths to points. A point of a path has the labels of all paths, since a
// measurement always has the same tags: one that its path lacks is the tag of the output with that name, else NoLabel. A label of a path
// precedes a tag of the output, as a label precedes an external label in Prometheus. It is not safe for concurrent use.
type Tagger struct {
	own    []Tag // sorted
	from   *PathLabels
	known  *labels
	ofPath map[string][]Tag // with own
}

// NewTagger makes a Tagger with these tags of an output; from may be nil.
func NewTagger(own []Tag, from *PathLabels) Tagger {
	own = slices.Clone(own)
	slices.SortFunc(own, func(a, b Tag) int { return cmp.Compare(a.Key, b.Key) })
	return Tagger{own: own, from: from}
}

// Append appends the tags of a point and the added ones, in the order of keys.
func (t *Tagger) Append(to, tags []Tag) []Tag {
	added := t.added(tags)
	for _, one := range tags {
		for len(added) > 0 && added[0].Key < one.Key {
			to, added = append(to, added[0]), added[1:]
		}
		to = append(to, one)
	}
	return append(to, added...)
}

// added are the tags that are added to a point.
func (t *Tagger) added(tags []Tag) []Tag {
	i := slices.IndexFunc(tags, func(one Tag) bool { return one.Key == metric.Path })
	if i < 0 || t.from == nil {
		return t.own
	}
	if current := t.from.current.Load(); current != t.known {
		t.known, t.ofPath = current, map[string][]Tag{}
	}
	if t.known == nil || len(t.known.names) == 0 {
		return t.own
	}
	path := tags[i].Value
	if _, configured := t.known.paths[path]; !configured {
		path = "" // the number of other paths is not limited
	}
	all, found := t.ofPath[path]
	if !found {
		all = t.known.tags(path, t.own)
		t.ofPath[path] = all
	}
	return all
}

// tags are the labels of a path with the tags of an output, in the order of keys.
func (l *labels) tags(path string, own []Tag) []Tag {
	values := map[string]string{}
	for _, name := range l.names {
		values[name] = NoLabel
	}
	for _, one := range own {
		values[one.Key] = one.Value
	}
	maps.Copy(values, l.paths[path])
	var all []Tag
	for _, name := range slices.Sorted(maps.Keys(values)) {
		all = append(all, Tag{name, values[name]})
	}
	return all
}
