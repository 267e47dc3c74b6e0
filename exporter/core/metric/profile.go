package metric

import (
	"fmt"
	"slices"
)

// Profile selects the families that a probe of a path exports.
type Profile uint8

// The largest numbers of series of a path and probe in the profiles: without faults, and with every reason and event that has a
// series. The tests of probes check them.
const (
	MaxFull       = 160
	MaxFullFaults = 245
	MaxSlim       = 16
	// OfAgent is how many of them the agent has and not the probe: state and reason of the path.
	OfAgent = 2
)

// The profiles.
const (
	// Full is all families: at most MaxFull series per path and probe without faults, at most MaxFullFaults with every reason and event
	// that has a series.
	Full Profile = iota
	// Slim is the families for monitoring thousands of paths, at most MaxSlim series per path and probe. Its histograms have
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

// Quantile is the descriptor of d, a gauge of quantiles, for one rank in the profile; nil if the profile excludes it. Profile
// Slim has rank 0.5, and rank 0.95 for scrapes that accept no native histograms.
func (p Profile) Quantile(d *Desc, rank float64) *Desc {
	switch {
	case p == Full || rank == 0.5:
		return d.In(p)
	case rank == 0.95:
		return d.slimClassicOnly
	}
	return nil
}

// derive sets the descriptors of the family in profile Slim. Its histograms have no classic buckets, and its counters no
// created timestamp: about 14 bytes each would be a tenth of a scrape.
func (d *Desc) derive() {
	if !d.Slim {
		return
	}
	slim := *d
	slim.Buckets, slim.NoCreated = nil, true
	classicOnly := slim
	classicOnly.ClassicOnly = true
	slim.slim, classicOnly.slim = &slim, &classicOnly
	d.slim, d.slimClassicOnly = &slim, &classicOnly
}

// Scope makes a scope without series, which opens the series of the profile only. All its series have the label values lead
// first. A nil sink is Discard.
func (p Profile) Scope(sink Sink, lead ...string) *Scope {
	if sink == nil {
		sink = Discard{}
	}
	return &Scope{sink: sink, profile: p, lead: slices.Clip(lead)}
}
