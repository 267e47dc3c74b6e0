package metric

import "fmt"

// Profile selects the families that a probe of a path exports.
type Profile uint8

// The profiles.
const (
	// Full is all families: at most 150 series per path and probe without faults, at most 220 with every reason and event
	// that has a series.
	Full Profile = iota
	// Slim is the families for monitoring thousands of paths, at most 14 series per path and probe. Its histograms have
	// native buckets only; scrapes that accept none get quantile gauges instead.
	Slim
)

// String is the name in the configuration.
func (p Profile) String() string { return [...]string{"full", "slim"}[p] }

// ProfileByName finds a profile by its name. The error lists the names.
func ProfileByName(name string) (Profile, error) {
	for _, p := range []Profile{Full, Slim} {
		if p.String() == name {
			return p, nil
		}
	}
	return Full, fmt.Errorf("is %q; it must be full or slim", name)
}

// In is the descriptor of the family in the profile, the same pointer each time; nil if the profile excludes it.
func (d *Desc) In(p Profile) *Desc {
	if p == Full {
		return d
	}
	return d.slim
}

// StandIn is a gauge of profile Slim that is exported only to scrapes that accept no native histograms; nil if the
// profile excludes the family.
func (d *Desc) StandIn() *Desc { return d.standIn }

// StandsIn reports whether d is a StandIn.
func (d *Desc) StandsIn() bool { return d.standIn == d }

// derive sets the descriptors of the family in profile Slim.
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

// restricted is a sink that accepts the families of one profile.
type restricted struct {
	Sink
	profile Profile
}

// Sink returns a sink that passes the families of the profile to another sink and discards all others.
func (p Profile) Sink(to Sink) Sink {
	if p == Full {
		return to
	}
	return restricted{to, p}
}

// Series opens the series in the sink if the profile includes the family.
func (r restricted) Series(d *Desc, values ...string) Series {
	if d = d.In(r.profile); d == nil {
		return discarded{}
	}
	return r.Sink.Series(d, values...)
}

// Whole is the sink without a profile's restriction.
func Whole(s Sink) Sink {
	if r, ok := s.(restricted); ok {
		return r.Sink
	}
	return s
}

// ProfileOf is the profile of a sink that Profile.Sink made; Full for all others.
func ProfileOf(s Sink) Profile {
	if r, ok := s.(restricted); ok {
		return r.profile
	}
	return Full
}
