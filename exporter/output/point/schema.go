package point

import (
	"cmp"
	"slices"
	"strings"

	"github.com/influxdata/line-protocol/v2/lineprotocol"

	"oneway.example/exporter/core/metric"
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

// OfRun is the measurement of a run's values for a measurement of series.
func OfRun(measurement string) string { return RunPrefix + strings.TrimPrefix(measurement, Prefix) }

// place is a measurement of the families of a group that have these labels besides quantile_rank.
type place struct {
	name string
	// labels are separated by spaces.
	labels string
	// facts are the labels that are fields: of text, or a number with ":int".
	facts string
}

// factIsInt marks a fact that is a number.
const factIsInt = ":int"

const (
	byProbe     = "path probe"
	byDirection = "path probe direction"
)

// places are the measurements by title of the group. A measurement keeps its name and labels: InfluxDB 3 freezes the tags of a
// table at the first write.
func places() map[string][]place {
	return map[string][]place{
		metric.TitleProbes: {
			{name: "oneway_probe", labels: byProbe},
			{name: "oneway_probe_reason", labels: byProbe + " reason"},
			{name: "oneway_path", labels: byProbe + " peer family dscp reflector schedule payload_bytes", facts: "peer family reflector schedule payload_bytes:int"},
		},
		metric.TitlePackets: {
			{name: "oneway_packets", labels: byDirection},
			{name: "oneway_packets_reason", labels: byProbe + " reason"},
			{name: "oneway_packets_round_trip", labels: byProbe},
		},
		metric.TitleDelay: {
			{name: "oneway_delay", labels: byDirection},
			{name: "oneway_delay_reason", labels: byDirection + " reason"},
			{name: "oneway_delay_round_trip", labels: byProbe},
			{name: "oneway_delay_component", labels: byProbe + " component"},
			{name: "oneway_delay_timestamp", labels: byProbe + " source"},
		},
		metric.TitleVoice: {
			{name: "oneway_voice", labels: byDirection + " codec model buffer"},
			{name: "oneway_voice_playout", labels: byDirection + " codec buffer"},
		},
		metric.TitleRuns: {
			{name: "oneway_test", labels: byProbe},
			{name: "oneway_test_direction", labels: byDirection},
			{name: "oneway_test_result", labels: byProbe + " result reason"},
			{name: "oneway_test_corruption", labels: byDirection + " kind"},
			{name: "oneway_test_link", labels: byProbe + " link"},
			{name: "oneway_test_path", labels: "path"},
			{name: "oneway_test_path_link", labels: "path link"},
			{name: "oneway_quota", labels: "link"},
			{name: "oneway_quota_kind", labels: "kind"},
		},
		metric.TitleLoad: {
			{name: "oneway_load", labels: byDirection},
			{name: "oneway_load_elapsed", labels: byDirection + " elapsed_seconds"},
			{name: "oneway_load_state", labels: byDirection + " state"},
			{name: "oneway_load_sweep", labels: byDirection + " offered_bytes_per_second"},
		},
		metric.TitleWorking: {
			{name: "oneway_working", labels: byDirection + " loaded"},
			{name: "oneway_working_round_trip", labels: byProbe + " loaded"},
		},
		metric.TitleSizeSweep: {
			{name: "oneway_size_sweep", labels: byDirection + " packet_bytes packet_rate"},
		},
		metric.TitleCapacity: {
			{name: "oneway_capacity", labels: byDirection},
			{name: "oneway_capacity_size", labels: byDirection + " packet_bytes"},
			{name: "oneway_capacity_trains", labels: byDirection + " packet_bytes result"},
		},
		metric.TitleTCP: {
			{name: "oneway_tcp", labels: byDirection},
			{name: "oneway_tcp_round_trip", labels: byProbe},
			{name: "oneway_tcp_state", labels: byDirection + " state"},
			{name: "oneway_tcp_result", labels: byDirection + " result"},
			{name: "oneway_tcp_reason", labels: byDirection + " reason"},
			{name: "oneway_tcp_model", labels: byDirection + " model"},
			{name: "oneway_tcp_two_way", labels: byDirection + " part"},
			{name: "oneway_tcp_short", labels: byDirection + " flow_bytes"},
			{name: "oneway_tcp_congestion_control", labels: byDirection + " congestion_control"},
			{name: "oneway_tcp_sweep", labels: byDirection + " send_buffer_bytes receive_buffer_bytes congestion_control"},
			{name: "oneway_tcp_sweep_model", labels: byDirection + " send_buffer_bytes receive_buffer_bytes congestion_control model"},
			{name: "oneway_message", labels: byDirection + " message_bytes transport"},
		},
		metric.TitleClock: {
			{name: "oneway_clock", labels: "clock"},
			{name: "oneway_clock_reason", labels: "clock reason"},
			{name: "oneway_clock_state", labels: "clock state"},
			{name: "oneway_clock_reference", labels: "clock reference_id stratum leap_status kind", facts: "reference_id stratum:int leap_status kind"},
			{name: "oneway_clock_remote", labels: byProbe},
			{name: "oneway_clock_calibration", labels: "interface kind"},
		},
		metric.TitlePulse: {
			{name: "oneway_gnss", labels: "receiver"},
			{name: "oneway_gnss_reason", labels: "receiver reason"},
			{name: "oneway_pps", labels: "pps"},
			{name: "oneway_pps_reason", labels: "pps reason"},
		},
		metric.TitleLoadServer: {
			{name: "oneway_load_server"},
			{name: "oneway_load_server_token", labels: "token direction"},
			{name: "oneway_load_server_reason", labels: "reason"},
			{name: "oneway_load_server_result", labels: "result"},
		},
		metric.TitleOutputs: {
			{name: "oneway_output", labels: "output"},
			{name: "oneway_output_result", labels: "output result"},
		},
		// The replies of on-demand probes go to no output.
		metric.TitleOnDemand: {
			{name: "oneway_on_demand"},
			{name: "oneway_on_demand_result", labels: "result"},
		},
		metric.TitleSelf: {
			{name: "oneway_agent"},
			{name: "oneway_agent_host", labels: "event"},
			{name: "oneway_agent_listener", labels: "listener"},
			{name: "oneway_agent_socket", labels: "socket"},
			{name: "oneway_agent_socket_reason", labels: "socket reason"},
			{name: "oneway_agent_reflector", labels: "result"},
			{name: "oneway_timestamp", labels: byProbe + " event"},
			{name: "oneway_timestamp_origin", labels: byProbe + " event origin"},
			{name: "oneway_incident", labels: byProbe + " trigger"},
		},
	}
}

// Series lists the measurements of series, in the order of the metrics' documentation. A histogram with classic buckets has a
// measurement for them, which follows its own.
func Series() (all []Measurement) {
	for _, g := range metric.Groups() {
		for _, p := range places()[g.Title] {
			m := Measurement{Name: p.name, Group: g.Title, Tags: without(strings.Fields(p.labels), strings.Fields(strings.ReplaceAll(p.facts, factIsInt, "")))}
			slices.Sort(m.Tags)
			var buckets []Measurement
			for _, d := range g.Descs {
				if d.More || !sameLabels(d, p.labels) { // the tags of a measurement are fixed
					continue
				}
				m.add(d, strings.Fields(p.facts))
				if d.Kind == metric.Histogram && len(d.Buckets) > 0 {
					buckets = append(buckets, m.buckets(d))
				}
			}
			if len(m.Columns) > 0 {
				slices.SortFunc(m.Columns, func(a, b Column) int { return cmp.Compare(a.Key, b.Key) })
				all = append(append(all, m), buckets...)
			}
		}
	}
	return all
}

func without(all, some []string) (rest []string) {
	for _, one := range all {
		if !slices.Contains(some, one) {
			rest = append(rest, one)
		}
	}
	return rest
}

// sameLabels reports whether d has these labels besides quantile_rank.
func sameLabels(d *metric.Desc, labels string) bool {
	want, have := strings.Fields(labels), without(d.Labels, []string{metric.QuantileL})
	slices.Sort(want)
	slices.Sort(have)
	return slices.Equal(want, have)
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
		if key, isInt := strings.CutSuffix(f, factIsInt); isInt {
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

// Ranked is the field of a quantile of a Ranked column: the rank in percent is before the unit and in place of the word
// quantile, so that delay_quantile_seconds of rank 0.95 is delay_p95_seconds, and 0.999 is p99_9. It is empty for a rank that
// is not a decimal number between 0 and 1 in its shortest form.
func Ranked(key, rank string) string {
	percent := percentOf(rank)
	if percent == "" {
		return ""
	}
	base, unit := key, ""
	for _, u := range []string{"_bytes_per_second", "_seconds", "_bytes", "_ratio"} {
		if before, found := strings.CutSuffix(key, u); found {
			base, unit = before, u
			break
		}
	}
	return strings.TrimSuffix(base, "_quantile") + "_p" + percent + unit
}

// percentOf is a rank in percent with the decimal point as an underscore.
func percentOf(rank string) string {
	switch rank {
	case "0":
		return "0"
	case "1":
		return "100"
	}
	digits, found := strings.CutPrefix(rank, "0.")
	if !found || digits == "" || strings.Trim(digits, "0123456789") != "" || strings.HasSuffix(digits, "0") {
		return ""
	}
	digits += strings.Repeat("0", max(0, 2-len(digits)))
	whole, rest := strings.TrimLeft(digits[:2], "0"), digits[2:]
	if whole == "" {
		whole = "0"
	}
	if rest == "" {
		return whole
	}
	return whole + "_" + rest
}

// Measurements lists all measurements that are not of runs: of series, and of raw samples.
func Measurements() []Measurement { return append(Series(), RawMeasurements()...) }

// Reserved reports whether a key is a tag or a field of the schema, so that tags of all points cannot have it.
func Reserved(key string) bool {
	for _, m := range Measurements() {
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
