package metric

import "fmt"

// Profile is how many series a probe of a path has.
type Profile uint8

// The profiles.
const (
	// Full is all families, 150 series of a path and probe at the most.
	Full Profile = iota
	// Slim is what an operator of a thousand paths looks at, 14 series at the most. Its histograms have native
	// buckets only; scrapes that take none are shown quantiles in their place.
	Slim
)

// String is the word in the configuration.
func (p Profile) String() string { return [...]string{"full", "slim"}[p] }

// ProfileByName finds a profile. The error says which ones there are.
func ProfileByName(name string) (Profile, error) {
	for _, p := range []Profile{Full, Slim} {
		if p.String() == name {
			return p, nil
		}
	}
	return Full, fmt.Errorf("is %q; it must be full or slim", name)
}

// In is the family as the profile has it, the same each time; nil: it has none of it.
func (d *Desc) In(p Profile) *Desc {
	if p == Full {
		return d
	}
	return d.slim
}

// StandIn is a gauge of profile Slim whose series are shown only to scrapes that take no native histograms; nil: the
// profile has none of the family.
func (d *Desc) StandIn() *Desc { return d.standIn }

// StandsIn tells whether the series are those of a StandIn.
func (d *Desc) StandsIn() bool { return d.standIn == d }

// derive makes what profile Slim has of the family.
func (d *Desc) derive() {
	if !d.Slim {
		return
	}
	slim, standIn := *d, *d
	slim.Buckets = nil
	slim.slim, slim.standIn = &slim, &standIn
	standIn.slim, standIn.standIn = &standIn, &standIn
	d.slim, d.standIn = &slim, &standIn
}

// restricted is a sink for the series of a profile.
type restricted struct {
	Sink
	profile Profile
}

// Sink passes the families of the profile on to a sink, and discards all others.
func (p Profile) Sink(to Sink) Sink {
	if p == Full {
		return to
	}
	return restricted{to, p}
}

// Series is that of the sink, if the profile has the family.
func (r restricted) Series(d *Desc, values ...string) Series {
	if d = d.In(r.profile); d == nil {
		return discarded{}
	}
	return r.Sink.Series(d, values...)
}

// ProfileOf is the profile of what a sink takes.
func ProfileOf(s Sink) Profile {
	if r, ok := s.(restricted); ok {
		return r.profile
	}
	return Full
}
