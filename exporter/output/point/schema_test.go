package point_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/influxdata/line-protocol/v2/lineprotocol"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/families"
	"oneway.example/exporter/output/point"
)

// written lists all families of an agent that have points. Those of the replies of on-demand probes, which have another prefix,
// go to no output, nor do verdicts, which no agent has, and families whose labels the configuration chooses.
func written() (all []*metric.Desc) {
	for _, g := range families.All() {
		if g.Title == metric.TitleVerdicts {
			continue
		}
		for _, d := range g.Descs {
			if strings.HasPrefix(d.Name, point.Prefix) && !d.More {
				all = append(all, d)
			}
		}
	}
	return all
}

func TestEveryFamilyIsInOneMeasurement(t *testing.T) {
	parts := map[*metric.Desc]map[point.Part]string{}
	for _, m := range point.Series(families.All()) {
		for _, c := range m.Columns {
			if parts[c.Desc] == nil {
				parts[c.Desc] = map[point.Part]string{}
			}
			if before := parts[c.Desc][c.Part]; before != "" && c.Part != point.Fact {
				t.Errorf("%s is in %s and %s", c.Desc.Name, before, m.Name)
			}
			parts[c.Desc][c.Part] = m.Name
		}
	}
	for _, d := range written() {
		want := []point.Part{point.Number}
		if d.Kind == metric.Histogram {
			want = []point.Part{point.Count, point.Sum}
			if len(d.Buckets) > 0 {
				want = append(want, point.Bucket)
			}
		}
		for _, p := range want {
			if parts[d][p] == "" {
				t.Errorf("%s {%s} has no field for part %d; its group needs a Measurement with these labels, or a Prefix", d.Name, strings.Join(d.Labels, " "), p)
			}
		}
	}
}

func TestEveryNamedMeasurementHasFamilies(t *testing.T) {
	have := map[string]bool{}
	for _, m := range point.Series(families.All()) {
		have[m.Name] = true
	}
	for _, g := range families.All() {
		for _, m := range g.Measurements {
			if !have[m.Name] {
				t.Errorf("group %q has no family for %s", g.Title, m.Name)
			}
		}
	}
}

func TestEveryLabelIsATagOrAFieldOfItsMeasurement(t *testing.T) {
	for _, m := range point.Series(families.All()) {
		for _, c := range m.Columns {
			for _, l := range c.Desc.Labels {
				fact := slices.ContainsFunc(m.Columns, func(o point.Column) bool { return o.Part == point.Fact && o.Key == l })
				if rank := c.Ranked && l == metric.QuantileL; !slices.Contains(m.Tags, l) && !fact && !rank {
					t.Errorf("%s: label %s of %s is lost", m.Name, l, c.Desc.Name)
				}
			}
		}
	}
}

// all are the measurements with those of runs.
func all() (list []point.Measurement) {
	for _, m := range point.Series(families.All()) {
		list = append(list, m)
		list = append(list, m.OfRun())
	}
	return append(list, point.RawMeasurements(families.Tables())...)
}

func TestNamesOfMeasurementsAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range all() {
		if seen[m.Name] || !strings.HasPrefix(m.Name, point.Prefix) {
			t.Errorf("%s is there twice, or without the prefix", m.Name)
		}
		seen[m.Name] = true
	}
}

// TestKeysAreUnique also holds for ranks: no field of a rank is another field.
func TestKeysAreUnique(t *testing.T) {
	ranks := []string{"0", "0.001", "0.01", "0.05", "0.1", "0.5", "0.9", "0.95", "0.98", "0.99", "0.999", "0.9999", "1"}
	for _, m := range all() {
		if !slices.IsSorted(m.Tags) {
			t.Errorf("%s: tags %v are not sorted", m.Name, m.Tags)
		}
		seen := map[string]string{"time": "the column time"}
		add := func(key, from string) {
			if before := seen[key]; before != "" || key == "" {
				t.Errorf("%s: %q is %s and %s", m.Name, key, before, from)
			}
			seen[key] = from
		}
		for _, tag := range m.Tags {
			add(tag, "a tag")
		}
		for _, c := range m.Columns {
			if !c.Ranked {
				add(c.Key, "field "+c.Key)
				continue
			}
			for _, r := range ranks {
				add(point.Ranked(c.Key, r), "rank "+r+" of "+c.Key)
			}
		}
	}
}

func TestRanksAreReversible(t *testing.T) {
	for rank, want := range map[string]string{
		"0": "p0", "1": "p100", "0.5": "p50", "0.05": "p5", "0.95": "p95", "0.999": "p99_9", "0.001": "p0_1", "0.025": "p2_5",
		"": "", "0.50": "", "1.0": "", "2": "", ".5": "", "0.": "", "NaN": "", "1e-3": "", "0.5 ": "", "-0.5": "",
	} {
		got := point.Ranked("delay_quantile_seconds", rank)
		if want != "" {
			want = "delay_" + want + "_seconds"
		}
		if got != want {
			t.Errorf("rank %q: %q, want %q", rank, got, want)
		}
	}
	for key, want := range map[string]string{
		"tcp_rtt_seconds": "tcp_rtt_p95_seconds", "udp_rate_bytes_per_second": "udp_rate_p95_bytes_per_second",
		"queue_delay_error_bound_seconds": "queue_delay_error_bound_p95_seconds",
	} {
		if got := point.Ranked(key, "0.95"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestTypesAreThoseOfTheKinds(t *testing.T) {
	for _, m := range point.Series(families.All()) {
		for _, c := range m.Columns {
			want := map[point.Part]lineprotocol.ValueKind{point.Number: lineprotocol.Float, point.Count: lineprotocol.Int, point.Sum: lineprotocol.Float, point.Bucket: lineprotocol.Int, point.Fact: lineprotocol.String}[c.Part]
			if c.Desc.Kind == metric.Counter || c.Key == "payload_bytes" || c.Key == "stratum" {
				want = lineprotocol.Int
			}
			if c.Kind != want {
				t.Errorf("%s %s: %v, want %v", m.Name, c.Key, c.Kind, want)
			}
		}
	}
}

// TestNoLabelHasTheValueOfNoLabel: an empty label and the value none would be the same tag.
func TestNoLabelHasTheValueOfNoLabel(t *testing.T) {
	for _, d := range written() {
		for label, values := range d.Values {
			if d.Values.Allows(label, point.NoLabel) && slices.Contains(values, "") {
				t.Errorf("%s: label %s is empty or %s", d.Name, label, point.NoLabel)
			}
		}
	}
}

func TestReservedKeysAreTagsAndFields(t *testing.T) {
	for _, key := range []string{"path", "le", "delay_p95_seconds", "delay_p99_9_seconds", "delay_seconds_count", "run", "seq", "time", "peer", "flow"} {
		if !point.Reserved(families.All(), families.Tables(), key) {
			t.Errorf("%s is free", key)
		}
	}
	for _, key := range []string{"host", "site", "region"} {
		if point.Reserved(families.All(), families.Tables(), key) {
			t.Errorf("%s is reserved", key)
		}
	}
}

func TestTestedTablesAreTheTablesOfTheProgram(t *testing.T) {
	names := func(tables []*record.Schema) (all []string) {
		for _, s := range tables {
			all = append(all, s.Name)
		}
		slices.Sort(all)
		return all
	}
	if tested, all := names(point.TestedTables), names(families.Tables()); !slices.Equal(tested, all) {
		t.Errorf("tests of %q, the program has %q", tested, all)
	}
}
