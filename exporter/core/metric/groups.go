package metric

import (
	"cmp"
	"slices"
	"strings"
)

// Group is a section of the documentation and its families.
type Group struct {
	// Title is the section. Groups with one title are one section.
	Title string
	// Experimental families may change their name, labels or meaning in any version, as the changelog lists. The others are
	// stable: they change only in a major version, after a version that exports both.
	Experimental bool
	// Descs are the families, sorted by name.
	Descs []*Desc
	// Measurements name the measurements of the families' points (package point) by labels.
	Measurements []Measurement
	// Prefix begins the names of the measurements of the families whose labels no member of Measurements has, such as "oneway_web".
	// Their labels, except path, probe and quantile_rank, follow it: oneway_web_direction_reason. Without a Prefix these families
	// have no points.
	Prefix string

	// joined are the measurements of families that another group brought with it.
	joined map[*Desc]Measurement
}

// Measurement is the measurement of a group's families with these labels. It keeps its name and labels: InfluxDB 3 freezes the
// tags of a table at the first write.
type Measurement struct {
	Name string
	// Labels are the labels in any order, without quantile_rank.
	Labels []string
	// Facts are the labels that are fields instead of tags: of text, or of a number with FactIsInt at the end.
	Facts []string
}

// FactIsInt marks a member of Measurement.Facts that is a number.
const FactIsInt = ":int"

// MeasurementFor returns the measurement of a family of the group; an empty Name: its points are in none.
func (g *Group) MeasurementFor(d *Desc) Measurement {
	if m, ok := g.joined[d]; ok {
		return m
	}
	labels := slices.DeleteFunc(slices.Sorted(slices.Values(d.Labels)), func(l string) bool { return l == QuantileL })
	for _, m := range g.Measurements {
		if slices.Equal(slices.Sorted(slices.Values(m.Labels)), labels) {
			return m
		}
	}
	if g.Prefix == "" {
		return Measurement{}
	}
	others := slices.DeleteFunc(slices.Clone(labels), func(l string) bool { return l == Path || l == Probe })
	return Measurement{Name: strings.Join(append([]string{g.Prefix}, others...), "_"), Labels: labels}
}

// Declarer is implemented by a Type of a registry that has families of its own.
type Declarer interface {
	// MetricGroups returns the groups of these families. Families of a group with the title of another group join that one, and keep
	// the measurements that their own group names.
	MetricGroups() []Group
}

// Declared returns the groups of those types that are Declarers.
func Declared[T any](types []T) (all []Group) {
	for _, t := range types {
		if d, ok := any(t).(Declarer); ok {
			all = append(all, d.MetricGroups()...)
		}
	}
	return all
}

// Groups lists the families of this package and the declared ones, in the order of the documentation.
func Groups(declared ...Group) []Group {
	all := []Group{
		probesGroup(), packetsGroup(), delayGroup(), voiceGroup(),
		runsGroup(), loadGroup(), workingGroup(), sizeSweepGroup(), capacityGroup(), tcpGroup(),
		clockGroup(), pulseGroup(), loadServerGroup(), outputsGroup(), onDemandGroup(), repliesGroup(), verdictsGroup(), selfGroup(),
	}
	for _, g := range declared {
		i := slices.IndexFunc(all, func(other Group) bool { return other.Title == g.Title })
		if i < 0 {
			all = append(all, g)
			continue
		}
		joined := &all[i]
		for _, d := range g.Descs {
			if m := g.MeasurementFor(d); m.Name != "" {
				if joined.joined == nil {
					joined.joined = map[*Desc]Measurement{}
				}
				joined.joined[d] = m
			}
		}
		joined.Descs = append(joined.Descs, g.Descs...)
		slices.SortFunc(joined.Descs, func(a, b *Desc) int { return cmp.Compare(a.Name, b.Name) })
		joined.Measurements = append(joined.Measurements, g.Measurements...)
	}
	return all
}
