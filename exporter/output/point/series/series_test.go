package series

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/influxdata/line-protocol/v2/lineprotocol"
	dto "github.com/prometheus/client_model/go"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/families"
	"oneway.example/exporter/output/point"
	"oneway.example/exporter/output/promsink"
	"oneway.example/tests/testseed"
)

const at = instant.Time(1_790_000_000e9)

// ranks are values of label quantile_rank.
var ranks = []string{"0", "0.05", "0.5", "0.95", "0.999", "1"}

// filled is a sink with series of all families.
func filled(rng *rand.Rand) *promsink.Sink {
	sink := promsink.New(promsink.Options{})
	for _, g := range families.All() {
		for _, d := range g.Descs {
			for i := range 8 {
				labels := make([]string, len(d.Labels))
				for k, name := range d.Labels {
					switch name {
					case metric.QuantileL:
						labels[k] = ranks[rng.IntN(len(ranks))]
					case "payload_bytes", "stratum":
						labels[k] = strconv.Itoa(len(name))
					case metric.ReasonL:
						labels[k] = []string{"", "late"}[rng.IntN(2)]
					default:
						labels[k] = fmt.Sprintf("%s %d,=é\"", name, (i+k)%3)
					}
				}
				if strings.HasSuffix(d.Name, "_info") {
					labels[0] = fmt.Sprint("own ", i) // one series of each
				}
				one := sink.Series(d, labels...)
				if fill(rng, d, one); d.Kind == metric.Gauge && i == 7 {
					one.Set(rng.ExpFloat64()) // each family has a point, whatever the seed
				}
			}
		}
	}
	return sink
}

func fill(rng *rand.Rand, d *metric.Desc, s metric.Series) {
	switch d.Kind {
	case metric.Counter:
		s.Add(float64(rng.Int64N(1 << 53)))
	case metric.Gauge:
		if x := rng.IntN(8); x > 0 { // else absent
			s.Set([]float64{math.Inf(1), 0, 1, -1, rng.NormFloat64() * 1e-6, rng.NormFloat64() * 1e9, rng.ExpFloat64()}[x-1])
		}
	case metric.Histogram:
		for range rng.IntN(20) {
			s.Observe(rng.ExpFloat64())
		}
	}
}

func convert(t *testing.T, from Source) (all []point.Point) {
	t.Helper()
	err := New(families.All()).Convert(from, at, func(p *point.Point) {
		all = append(all, point.Point{Measurement: p.Measurement, Tags: slices.Clone(p.Tags), Fields: slices.Clone(p.Fields), At: p.At})
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// numbers are the fields of points by measurement, tags and key.
func numbers(t *testing.T, all []point.Point) map[string]lineprotocol.Value {
	t.Helper()
	found, tagSets := map[string]lineprotocol.Value{}, map[string]bool{}
	for _, p := range all {
		set := p.Measurement + fmt.Sprint(p.Tags)
		if tagSets[set] {
			t.Errorf("%s has two points", set)
		}
		tagSets[set] = true
		for _, f := range p.Fields {
			key := set + f.Key
			if _, twice := found[key]; twice {
				t.Errorf("%s is there twice", key)
			}
			found[key] = f.Value
		}
	}
	return found
}

// TestPointsHaveTheNumbersOfTheScrape makes the fields from the scraped families in another way, and compares each.
func TestPointsHaveTheNumbersOfTheScrape(t *testing.T) {
	sink := filled(rand.New(rand.NewPCG(testseed.Of(t), 1)))
	families, err := sink.Gather()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]lineprotocol.Value{}
	for _, f := range families {
		expected(t, f, want)
	}
	for name, source := range map[string]Source{"the sink": sink, "the scrape": Families(families)} {
		got := numbers(t, convert(t, source))
		if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b lineprotocol.Value) bool { return a.Equal(b) })); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	t.Logf("%d families, %d fields", len(families), len(want))
}

// expected adds the fields of a family.
func expected(t *testing.T, f *dto.MetricFamily, to map[string]lineprotocol.Value) {
	t.Helper()
	for _, m := range point.Series(families.All()) {
		for _, c := range m.Columns {
			if c.Desc.Name != f.GetName() {
				continue
			}
			for _, one := range f.Metric {
				labels := map[string]string{}
				for _, l := range one.Label {
					labels[l.GetName()] = l.GetValue()
				}
				set := func(v any) {
					var tags []point.Tag
					for _, key := range m.Tags {
						if labels[key] == "" {
							labels[key] = "none"
						}
						tags = append(tags, point.Tag{Key: key, Value: labels[key]})
					}
					key := c.Key
					if c.Ranked {
						key = point.Ranked(key, labels[metric.QuantileL])
					}
					if value, ok := lineprotocol.NewValue(v); ok { // not if it is infinite
						to[m.Name+fmt.Sprint(tags)+key] = value
					}
				}
				switch c.Part {
				case point.Number:
					if f.GetType() == dto.MetricType_COUNTER {
						set(int64(one.Counter.GetValue()))
					} else {
						set(one.Gauge.GetValue())
					}
				case point.Count:
					set(int64(one.Histogram.GetSampleCount()))
				case point.Sum:
					set(one.Histogram.GetSampleSum())
				case point.Fact:
					if set(labels[c.Key]); c.Kind == lineprotocol.Int {
						set(int64(len(c.Key))) // see filled
					}
				case point.Bucket:
					for _, b := range one.Histogram.Bucket {
						labels[point.BucketTag] = fmt.Sprint(b.GetUpperBound())
						set(int64(b.GetCumulativeCount()))
					}
					labels[point.BucketTag] = "+Inf"
					set(int64(one.Histogram.GetSampleCount()))
				}
			}
		}
	}
}

// TestEveryPointFitsTheSchema: all tags of its measurement and no others, and fields of the type of their column.
func TestEveryPointFitsTheSchema(t *testing.T) {
	schema := map[string]point.Measurement{}
	for _, m := range point.Series(families.All()) {
		schema[m.Name] = m
	}
	var e point.Encoder
	seen := map[string]bool{}
	for _, p := range convert(t, filled(rand.New(rand.NewPCG(testseed.Of(t), 2)))) {
		m := schema[p.Measurement]
		seen[p.Measurement] = true
		var keys []string
		for _, tag := range p.Tags {
			keys = append(keys, tag.Key)
			if tag.Value == "" {
				t.Errorf("%s: tag %s has no value", p.Measurement, tag.Key)
			}
		}
		if !slices.Equal(keys, m.Tags) {
			t.Errorf("%s has tags %v, want %v", p.Measurement, keys, m.Tags)
		}
		for _, f := range p.Fields {
			if !slices.ContainsFunc(m.Columns, func(c point.Column) bool { return c.Has(f.Key) && c.Kind == f.Value.Kind() }) {
				t.Errorf("%s: field %s is %v", p.Measurement, f.Key, f.Value.Kind())
			}
		}
		if _, err := e.Append(nil, &p); err != nil || p.At != at {
			t.Errorf("at %v: %v", p.At, err)
		}
	}
	if len(seen) != len(schema) {
		missing := slices.Sorted(maps.Keys(schema))
		t.Errorf("points of %d measurements, want %d; without points: %q", len(seen), len(schema), slices.DeleteFunc(missing, func(name string) bool { return seen[name] }))
	}
}

func TestUnknownFamiliesAndLabelsHaveNoPoints(t *testing.T) {
	text := func(s string) *string { return &s }
	one := 1.0
	kind := dto.MetricType_GAUGE
	gauge := func(family string, labels ...string) *dto.MetricFamily {
		m := &dto.Metric{Gauge: &dto.Gauge{Value: &one}}
		for i := 0; i < len(labels); i += 2 {
			m.Label = append(m.Label, &dto.LabelPair{Name: &labels[i], Value: &labels[i+1]})
		}
		return &dto.MetricFamily{Name: text(family), Type: &kind, Metric: []*dto.Metric{m}}
	}
	for name, f := range map[string]*dto.MetricFamily{
		"family":        gauge("go_goroutines"),
		"label":         gauge(metric.ProbeUp.Name, "path", "a", "probe", "b", "instance", "c"),
		"rank":          gauge(metric.DelayQuantile.Name, "path", "a", "probe", "b", "direction", "forward", "quantile_rank", "median"),
		"type":          gauge(metric.PacketsSent.Name, "path", "a", "probe", "b", "direction", "forward"),
		"empty family":  {Name: text(metric.ProbeUp.Name)},
		"without value": {Name: text(metric.ProbeUp.Name), Metric: []*dto.Metric{{}}},
	} {
		if all := convert(t, Families{f}); len(all) != 0 {
			t.Errorf("unknown %s: %v", name, all)
		}
	}
	if all := convert(t, Families{gauge(metric.ProbeUp.Name, "probe", "b", "path", "a")}); len(all) != 1 || all[0].Tags[0].Value != "a" {
		t.Errorf("labels in another order: %v", all)
	}
}

func TestScrapeWithoutClassicBucketsHasCountAndSum(t *testing.T) {
	sink := promsink.New(promsink.Options{NoClassic: true})
	sink.Series(metric.Delay, "a", "stamp", "forward").Observe(0.25)
	families, _ := sink.Gather()
	all := convert(t, Families(families))
	if len(all) != 1 || all[0].Measurement != "oneway_delay" || len(all[0].Fields) != 2 {
		t.Errorf("%v", all)
	}
}

// TestFamiliesOfTheSlimProfileAreIncluded: its quantile for scrapes in text, and histograms without buckets.
func TestFamiliesOfTheSlimProfileAreIncluded(t *testing.T) {
	sink := promsink.New(promsink.Options{})
	sink.Series(metric.Slim.Quantile(metric.DelayQuantile, 0.95), "a", "stamp", "forward", "0.95").Set(0.5)
	sink.Series(metric.Delay.In(metric.Slim), "a", "stamp", "forward").Observe(0.25)
	all := convert(t, sink)
	if len(all) != 1 || fmt.Sprint(all[0].Fields) != "[{delay_p95_seconds 0.5} {delay_seconds_count 1i} {delay_seconds_sum 0.25}]" {
		t.Errorf("%v", all)
	}
}
