package point

import (
	"github.com/influxdata/line-protocol/v2/lineprotocol"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/record"
)

// RunPacket is the measurement of the packets of runs.
const RunPacket = "oneway_run_packet"

// RawTitle is the Group of the measurements of raw samples.
const RawTitle = "Raw samples"

// RawMeasurements lists the measurements of raw samples: of the packets of runs, and of these tables.
func RawMeasurements(tables []*record.Schema) []Measurement {
	text := func(key, help string) Column { return Column{Key: key, Kind: lineprotocol.String, Help: help} }
	count := func(key, help string) Column { return Column{Key: key, Kind: lineprotocol.Int, Help: help} }
	seconds := func(key, help string) Column { return Column{Key: key, Kind: lineprotocol.Float, Help: help} }
	all := []Measurement{{Name: RunPacket, Group: RawTitle, Tags: []string{metric.Direction, metric.Path, metric.Probe}, Columns: []Column{
		count("copies", "Uncorrupted copies that arrived, the first one included; 0: the packet was lost."),
		count("damage", "Damage of the packet: 0 none, 1 truncated, 2 overwritten, 3 bit errors, 4 in the header."),
		seconds("delay_error_bound_seconds", "Largest error bound of the delays of the transfer, in seconds; absent if they have none, or no copy arrived."),
		text("delay_reason", "ok, or why the delays of the transfer have no bound: the values of label reason of oneway_delay_invalid_total."),
		seconds("delay_seconds", "One-way delay of the first copy by the clocks of both ends, in seconds; absent if none arrived, or it has no timestamp. It is there without synchronized clocks too: then only differences of two delays have a meaning."),
		count("every", "Packets that this point represents; above 1 in the thinned part of a transfer. The sum over a transfer is the number of its packets."),
		count("ip_bytes", "Size of the packet with its IP header, in bytes."),
		count("lost", "1 if no uncorrupted copy arrived, else 0. An integer, since InfluxQL has no sum of booleans."),
		text(RunField, record.RunHelp),
		count("segment", "Part of the transfer, such as a step of a sweep, from 0."),
		seconds("sent_seconds", "Time of sending after the begin of the transfer, in seconds: InfluxQL cannot subtract times, and Grafana reads them in milliseconds."),
		count("seq", "Number of the packet in its transfer."),
	}}}
	for _, s := range tables {
		all = append(all, measurementOf(s))
	}
	return all
}

// Raw makes points of raw samples. Points of one measurement and tag set never have the same time: the later one is moved by
// 1 ns, since stores would overwrite the first one. emit receives a point that is valid during the call. It is not safe for
// concurrent use. Make one with NewRaw.
type Raw struct {
	point Point
	texts *Table
	wide  *Wide
	times times
	// fields are the fields of each schema.
	fields map[*record.Schema][]field
	// overlap is the last report of each path.
	overlap map[string]overlap
}

// NewRaw makes a Raw, in which the values of runs are of the families of these groups.
func NewRaw(groups []metric.Group) *Raw {
	t := NewTable(groups)
	return &Raw{texts: t, wide: NewWide(t), times: times{}, fields: map[*record.Schema][]field{}, overlap: map[string]overlap{}}
}

// begin starts a point.
func (r *Raw) begin(measurement string, tags ...Tag) *Point {
	p := &r.point
	p.Measurement, p.Tags = measurement, p.Tags[:0]
	for _, t := range tags {
		p.Tags = append(p.Tags, Tag{t.Key, orNone(t.Value)})
	}
	return p
}

// Result emits the values of a run: one point for each measurement and tag set, at the begin of the run.
func (r *Raw) Result(from *record.Result, emit func(*Point)) {
	r.wide.BeginRun(from, emit)
	defer r.wide.End()
	byName := map[string][]*record.Value{}
	for i := range from.Values {
		v := &from.Values[i]
		byName[v.Desc.Name] = append(byName[v.Desc.Name], v)
	}
	var one metric.Reading
	for _, d := range r.texts.Order() {
		for _, v := range byName[d.Name] {
			one.Labels = append(append(one.Labels[:0], from.Path, from.Probe), v.Labels...)
			read(v, &one)
			r.wide.Add(v.Desc, &one)
		}
	}
}

// read sets the numbers of a run's value.
func read(v *record.Value, to *metric.Reading) {
	to.Number, to.Count, to.Sum, to.Buckets = 0, 0, 0, to.Buckets[:0]
	if v.Desc.Kind != metric.Histogram {
		for _, x := range v.Values {
			to.Number = x
		}
		return
	}
	to.Buckets = append(to.Buckets, make([]uint64, len(v.Desc.Buckets))...)
	for _, x := range v.Values {
		to.Count++
		to.Sum += x
		for i, bound := range v.Desc.Buckets {
			if x <= bound {
				to.Buckets[i]++
			}
		}
	}
}

func seconds(ns int64) float64 { return float64(ns) / 1e9 }
