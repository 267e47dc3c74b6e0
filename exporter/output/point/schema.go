package point

import (
	"cmp"
	"slices"
	"strings"

	"github.com/influxdata/line-protocol/v2/lineprotocol"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/core/unit"
)

// Measurement is a measurement of the schema.
type Measurement struct {
	Name string
	// Group is the title of the group of its families; of raw samples it is RawTitle.
	Group string
	// Tags are the tag keys in their order. Every point has all of them.
	Tags []string
	// Columns are the fields, sorted by key. A field whose value is not known is absent from the point.
	Columns []Column
}

// Column is a field of a measurement, or the fields of a family's quantiles: of a Ranked one Key is the name without rank.
type Column struct {
	Key  string
	Kind lineprotocol.ValueKind
	// Desc is the source; nil: a raw sample, which Help describes.
	Desc *metric.Desc
	// Part is which number of the family this is.
	Part Part
	// Ranked: a field for each value of label quantile_rank; see Ranked.
	Ranked bool
	Help   string
}

// Part is a number of a series.
type Part uint8

// The parts.
const (
	// Number is the value of a counter or gauge.
	Number Part = iota
	// Count and Sum are of a histogram, Bucket is the cumulative count of a classic bucket, named by the tag le.
	Count
	Sum
	Bucket
	// Fact is the value of a label of an info family.
	Fact
)

// BucketTag is the tag with the upper bound of a classic bucket, as in Prometheus.
const BucketTag = "le"

// NoLabel is the tag value of an empty label: every point of a measurement has all of its tags.
const NoLabel = "none"

// RunField is the field with the id of a run, the name of its report. It is no tag: the number of runs is not limited.
const RunField = "run"

// Prefixes of measurements: those of runs have RunPrefix in place of Prefix.
const (
	Prefix    = "oneway_"
	RunPrefix = "oneway_run_"
)

// Tags of the values of a run besides its labels: the hour (0..23) and the kind of day (weekday, weekend, holiday) of its end, in the local time of
// the agent. InfluxQL cannot group by the hour of the day.
const (
	LocalHourTag = metric.LocalHourL
	DayTypeTag   = metric.DayTypeL
)

// OfRun is the measurement of the values of runs.
func (m Measurement) OfRun() Measurement {
	m.Name = OfRun(m.Name)
	m.Tags = slices.Sorted(slices.Values(append(slices.Clone(m.Tags), DayTypeTag, LocalHourTag)))
	m.Columns = append(slices.Clone(m.Columns), Column{Key: RunField, Kind: lineprotocol.String})
	return m
}

// OfRun is the measurement of a run's values for a measurement of series.
func OfRun(measurement string) string { return RunPrefix + strings.TrimPrefix(measurement, Prefix) }

// Series lists the measurements of the families of these groups, in the order of the metrics' documentation. A histogram with
// classic buckets has a measurement for them, which follows its own.
func Series(groups []metric.Group) (all []Measurement) {
	for i := range groups {
		g := &groups[i]
		places := slices.Clone(g.Measurements)
		for _, d := range g.Descs {
			if p := g.MeasurementFor(d); p.Name != "" && !slices.ContainsFunc(places, func(o metric.Measurement) bool { return sameTags(o, p) }) {
				places = append(places, p)
			}
		}
		for _, p := range places {
			all = append(all, seriesAt(g, p)...)
		}
	}
	return all
}

// sameTags reports whether both are one measurement. Two with one name and different labels are a fault of their group, which
// then has two measurements of that name.
func sameTags(a, b metric.Measurement) bool {
	return a.Name == b.Name && slices.Equal(a.Labels, b.Labels)
}

// seriesAt is a measurement of a group, followed by the classic buckets of its histograms; it is empty if no family has its labels.
func seriesAt(g *metric.Group, place metric.Measurement) (all []Measurement) {
	m := Measurement{Name: place.Name, Group: g.Title}
	for _, l := range slices.Sorted(slices.Values(place.Labels)) {
		if !slices.Contains(place.Facts, l) && !slices.Contains(place.Facts, l+metric.FactIsInt) {
			m.Tags = append(m.Tags, l)
		}
	}
	for _, d := range g.Descs {
		if d.More || !sameTags(g.MeasurementFor(d), place) { // the tags of a measurement are fixed
			continue
		}
		m.add(d, place.Facts)
		if d.Kind == metric.Histogram && len(d.Buckets) > 0 {
			all = append(all, m.buckets(d))
		}
	}
	if len(m.Columns) == 0 {
		return nil
	}
	slices.SortFunc(m.Columns, func(a, b Column) int { return cmp.Compare(a.Key, b.Key) })
	return slices.Insert(all, 0, m)
}

// add adds the fields of a family.
func (m *Measurement) add(d *metric.Desc, facts []string) {
	key := strings.TrimPrefix(d.Name, Prefix)
	switch d.Kind {
	case metric.Counter:
		m.Columns = append(m.Columns, Column{Key: key, Kind: lineprotocol.Int, Desc: d})
	case metric.Gauge:
		m.Columns = append(m.Columns, Column{Key: key, Kind: lineprotocol.Float, Desc: d, Ranked: slices.Contains(d.Labels, metric.QuantileL)})
	case metric.Histogram:
		m.Columns = append(m.Columns,
			Column{Key: key + "_count", Kind: lineprotocol.Int, Desc: d, Part: Count}, Column{Key: key + "_sum", Kind: lineprotocol.Float, Desc: d, Part: Sum})
	}
	for _, f := range facts {
		c := Column{Key: f, Kind: lineprotocol.String, Desc: d, Part: Fact}
		if key, isInt := strings.CutSuffix(f, metric.FactIsInt); isInt {
			c.Key, c.Kind = key, lineprotocol.Int
		}
		m.Columns = append(m.Columns, c)
	}
}

// buckets is the measurement of a histogram's classic buckets.
func (m *Measurement) buckets(d *metric.Desc) Measurement {
	tags := append(slices.Clone(m.Tags), BucketTag)
	slices.Sort(tags)
	column := Column{Key: strings.TrimPrefix(d.Name, Prefix) + "_bucket", Kind: lineprotocol.Int, Desc: d, Part: Bucket}
	return Measurement{Name: d.Name + "_bucket", Group: m.Group, Tags: tags, Columns: []Column{column}}
}

// units are the ends of the names of fields and the units that they mean; an end of another one stands before it.
var units = [...]struct{ suffix, unit string }{
	{"_timestamp_seconds", "s since 1970"},
	{"_meters_per_second", "m/s"},
	{"_bytes_per_second", "B/s"},
	{"_seconds", "s"},
	{"_bytes", "B"},
	{"_degrees", "°"},
	{"_ratio", "1"},
}

// Unit is the unit of a field by its name, for documents; "1" without one, and empty for a text.
func (c *Column) Unit() string {
	switch {
	case c.Kind == lineprotocol.String:
		return ""
	case c.Part == Count || c.Part == Bucket:
		return "1"
	}
	key := strings.TrimSuffix(strings.TrimSuffix(c.Key, "_sum"), "_total")
	for _, u := range units {
		if strings.HasSuffix(key, u.suffix) {
			return u.unit
		}
	}
	return "1"
}

// Ranked is the field of a quantile of a Ranked column: the rank in percent is before the unit and in place of the word
// quantile, so that delay_quantile_seconds of rank 0.95 is delay_p95_seconds, and 0.999 is p99_9. It is empty for a rank that
// is not a decimal number between 0 and 1 in its shortest form.
func Ranked(key, rank string) string {
	percent := unit.RankPercent(rank)
	if percent == "" {
		return ""
	}
	base, unit := key, ""
	for _, u := range units {
		if before, found := strings.CutSuffix(key, u.suffix); found {
			base, unit = before, u.suffix
			break
		}
	}
	return strings.TrimSuffix(base, "_quantile") + "_p" + percent + unit
}

// Measurements lists all measurements that are not of runs: of series of these groups, of hours, and of raw samples.
func Measurements(groups []metric.Group, tables []*record.Schema) []Measurement {
	return append(append(Series(groups), HourMeasurements()...), RawMeasurements(tables)...)
}

// Reserved reports whether a key is a tag or a field of the schema of these groups and tables, so that tags of all points cannot have it.
func Reserved(groups []metric.Group, tables []*record.Schema, key string) bool {
	for _, m := range Measurements(groups, tables) {
		if slices.Contains(m.Tags, key) || slices.ContainsFunc(m.Columns, func(c Column) bool { return c.Has(key) }) {
			return true
		}
	}
	return key == "time" // a column of InfluxDB
}

// Has reports whether key is the column's field, or one of its ranked fields.
func (c *Column) Has(key string) bool {
	if c.Key == key || !c.Ranked {
		return c.Key == key
	}
	before, after, _ := strings.Cut(Ranked(c.Key, "1"), "100")
	return len(key) > len(before)+len(after) && strings.HasPrefix(key, before) && strings.HasSuffix(key, after)
}
