package pathlabel

import (
	"fmt"
	"strings"
	"testing"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/output/promsink"
)

func TestWrongLabelsAreErrors(t *testing.T) {
	for labels, want := range map[[2]string]string{
		{"site", "Seoul, 2"}:               "<nil>",
		{"site_2", "ü"}:                    "<nil>",
		{"__site", "a"}:                    "labels.__site is no name of a label; it must begin with a letter, and have at most 64 letters, digits and single _",
		{"a__b", "a"}:                      "labels.a__b is no name of a label; it must begin with a letter, and have at most 64 letters, digits and single _",
		{"a-b", "a"}:                       "labels.a-b is no name of a label; it must begin with a letter, and have at most 64 letters, digits and single _",
		{"instance", "a"}:                  "labels.instance has the name of a label of metrics or targets, or of a field of points; choose another, such as path_instance",
		{"direction", "a"}:                 "labels.direction has the name of a label of metrics or targets, or of a field of points; choose another, such as path_direction",
		{"probe_up", "a"}:                  "labels.probe_up has the name of a label of metrics or targets, or of a field of points; choose another, such as path_probe_up",
		{"delay_p95_seconds", "a"}:         "labels.delay_p95_seconds has the name of a label of metrics or targets, or of a field of points; choose another, such as path_delay_p95_seconds",
		{"time", "a"}:                      "labels.time has the name of a label of metrics or targets, or of a field of points; choose another, such as path_time",
		{"site", ""}:                       `labels.site is ""; it must be text of 1 to 128 printable characters`,
		{"site", "a\n"}:                    `labels.site is "a\n"; it must be text of 1 to 128 printable characters`,
		{"site", strings.Repeat("ü", 128)}: "<nil>",
		{"site", strings.Repeat("ü", 129)}: `labels.site is "` + strings.Repeat("ü", 129) + `"; it must be text of 1 to 128 printable characters`,
	} {
		if got := fmt.Sprint(NewChecker(metric.Groups(), nil).Check(map[string]string{labels[0]: labels[1]})); got != want {
			t.Errorf("%q: got %s\nwant %s", labels, got, want)
		}
	}
}

func TestNumberOfLabelsIsLimited(t *testing.T) {
	numbered := func(prefix string, n int) map[string]string {
		all := map[string]string{}
		for i := range n {
			all[fmt.Sprintf("%s%02d", prefix, i)] = "x"
		}
		return all
	}
	c := NewChecker(metric.Groups(), nil)
	for _, p := range []string{"a", "b", "a"} {
		if err := c.Check(numbered(p, MaxLabels)); err != nil {
			t.Error(err)
		}
	}
	if got, want := fmt.Sprint(c.Check(numbered("c", 1))), "labels.c00 is the name of one more label; all paths together may have 32 names"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := fmt.Sprint(NewChecker(metric.Groups(), nil).Check(numbered("d", MaxLabels+1))), "labels has 17 labels; a path may have 16"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// published is the exposition without comments.
func published(t *testing.T, sink *promsink.Sink) string {
	t.Helper()
	all, err := sink.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, f := range all {
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			lines = append(lines, fmt.Sprintf("%s{%s} %g", f.GetName(), strings.Join(labels, ","), m.GetGauge().GetValue()))
		}
	}
	return strings.Join(lines, "\n")
}

// TestEachPathHasTheLabelsOfAll: the names of the labels change while the sink has the family.
func TestEachPathHasTheLabelsOfAll(t *testing.T) {
	sink := promsink.New(promsink.Options{})
	var s Series
	for _, c := range []struct {
		own   string
		paths []Path
		want  string
	}{
		{"", []Path{{Name: "a"}, {Name: "b"}}, ""},
		{
			"",
			[]Path{{"b", map[string]string{"site": "x", "area": "1"}}, {Name: "a"}},
			"oneway_path_labels_info{area=,path=a,site=} 1\noneway_path_labels_info{area=1,path=b,site=x} 1",
		},
		{"", []Path{{"b", map[string]string{"zone": "z"}}, {Name: "a"}}, "oneway_path_labels_info{path=a,zone=} 1\noneway_path_labels_info{path=b,zone=z} 1"},
		{"", []Path{{"b", map[string]string{"zone": "y"}}}, "oneway_path_labels_info{path=b,zone=y} 1"},
		{
			"hamburg",
			[]Path{{"a", map[string]string{"site": "berlin"}}, {"b", map[string]string{"site": "seoul"}}, {"c", map[string]string{"site": "hamburg"}}, {Name: "d"}},
			"oneway_path_labels_info{path=a,site=berlin,site_pair=berlin - hamburg} 1\noneway_path_labels_info{path=b,site=seoul,site_pair=hamburg - seoul} 1\n" +
				"oneway_path_labels_info{path=c,site=hamburg,site_pair=} 1\noneway_path_labels_info{path=d,site=,site_pair=} 1",
		},
		{"hamburg", []Path{{"c", map[string]string{"site": "hamburg"}}}, "oneway_path_labels_info{path=c,site=hamburg} 1"},
		{"hamburg", []Path{{"c", nil}}, ""},
		{"", nil, ""},
	} {
		if s.Publish(sink, c.own, c.paths); published(t, sink) != c.want {
			t.Errorf("got\n%s\nwant\n%s", published(t, sink), c.want)
		}
	}
}
