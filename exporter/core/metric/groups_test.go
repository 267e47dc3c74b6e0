package metric_test

import (
	"slices"
	"testing"

	"oneway.example/exporter/core/metric"
)

// declaring is a type with families of its own.
type declaring []metric.Group

func (d declaring) MetricGroups() []metric.Group { return d }

func TestDeclaredGroupsFollowOrJoin(t *testing.T) {
	first, own := &metric.Desc{Name: "oneway_a"}, &metric.Desc{Name: "oneway_web_seconds"}
	joining := metric.Group{Title: metric.TitleTCP, Descs: []*metric.Desc{first}, Measurements: []metric.Measurement{{Name: "oneway_a"}}}
	types := []any{1, declaring{{Title: "Web", Descs: []*metric.Desc{own}}}, declaring{joining}}
	core, all := metric.Groups(), metric.Groups(metric.Declared(types)...)
	if len(all) != len(core)+1 || all[len(core)].Descs[0] != own {
		t.Errorf("%d groups, want the %d of the package and one more at the end", len(all), len(core))
	}
	for i, g := range core {
		n := len(g.Descs)
		if g.Title == metric.TitleTCP {
			n++
			if all[i].Descs[0] != first || !all[i].Experimental || !slices.ContainsFunc(all[i].Measurements, func(m metric.Measurement) bool { return m.Name == "oneway_a" }) {
				t.Errorf("%q does not begin with %s", g.Title, first.Name)
			}
		}
		if len(all[i].Descs) != n || all[i].Title != g.Title {
			t.Errorf("%q has %d families, want %d", all[i].Title, len(all[i].Descs), n)
		}
	}
}

// TestJoiningFamiliesKeepTheirMeasurements: the group that they join has a measurement of the same labels.
func TestJoiningFamiliesKeepTheirMeasurements(t *testing.T) {
	own := &metric.Desc{Name: "oneway_web_seconds", Labels: []string{metric.Path, metric.Probe, metric.Direction}}
	further := &metric.Desc{Name: "oneway_web_by_page_seconds", Labels: []string{metric.Path, metric.Probe, "page"}}
	all := metric.Groups(metric.Group{Title: metric.TitleTCP, Prefix: "oneway_web", Descs: []*metric.Desc{further, own}})
	g := all[slices.IndexFunc(all, func(g metric.Group) bool { return g.Title == metric.TitleTCP })]
	if a, b := g.MeasurementFor(own).Name, g.MeasurementFor(further).Name; a != "oneway_web_direction" || b != "oneway_web_page" {
		t.Errorf("measurements %q and %q, want oneway_web_direction and oneway_web_page", a, b)
	}
	if m := g.MeasurementFor(&metric.Desc{Labels: own.Labels}).Name; m != "oneway_tcp" {
		t.Errorf("a family of the group itself has measurement %q, want oneway_tcp", m)
	}
}

// TestNamesOfMeasurementsDependOnTheLabelsAlone: a family that is added later must not rename a measurement.
func TestNamesOfMeasurementsDependOnTheLabelsAlone(t *testing.T) {
	g := metric.Group{Prefix: "oneway_web", Measurements: []metric.Measurement{{Name: "oneway_page", Labels: []string{metric.Path, metric.Probe, "page"}}}}
	for _, c := range []struct {
		labels []string
		want   string
	}{
		{nil, "oneway_web"},
		{[]string{metric.Path, metric.Probe}, "oneway_web"},
		{[]string{metric.Path, metric.Probe, metric.QuantileL}, "oneway_web"},
		{[]string{metric.Path, metric.Probe, metric.ReasonL, metric.Direction}, "oneway_web_direction_reason"},
		{[]string{metric.Path, metric.Probe, metric.Direction, metric.ReasonL}, "oneway_web_direction_reason"},
		{[]string{"page", metric.Probe, metric.QuantileL, metric.Path}, "oneway_page"},
	} {
		if got := g.MeasurementFor(&metric.Desc{Labels: c.labels}).Name; got != c.want {
			t.Errorf("%v: %q, want %q", c.labels, got, c.want)
		}
	}
	if m := (&metric.Group{}).MeasurementFor(metric.Delay); m.Name != "" {
		t.Errorf("a group without a name of measurements has %q", m.Name)
	}
}
