package point

import (
	"strconv"
	"strings"

	"github.com/influxdata/line-protocol/v2/lineprotocol"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/core/sample"
)

// Measurements of raw samples.
const (
	RunPacket      = "oneway_run_packet"
	TCPTrace       = "oneway_tcp_trace"
	TCPByte        = "oneway_run_tcp_byte"
	IncidentPacket = "oneway_incident_packet"
	Track          = "oneway_track"
)

// RawTitle is the Group of the measurements of raw samples.
const RawTitle = "Raw samples"

// Tags of raw samples besides those of the metrics.
const (
	endTag  = "end"
	flowTag = "flow"
)

// Ends of a connection: the values of tag end.
const (
	SenderEnd   = "sender"
	ReceiverEnd = "receiver"
)

// RawMeasurements lists the measurements of raw samples.
func RawMeasurements() []Measurement {
	text := func(key, help string) Column { return Column{Key: key, Kind: lineprotocol.String, Help: help} }
	count := func(key, help string) Column { return Column{Key: key, Kind: lineprotocol.Int, Help: help} }
	seconds := func(key, help string) Column { return Column{Key: key, Kind: lineprotocol.Float, Help: help} }
	run := text(RunField, "Id of the run, the name of its report.")
	return []Measurement{
		{Name: RunPacket, Group: RawTitle, Tags: []string{metric.Direction, metric.Path, metric.Probe}, Columns: []Column{
			count("copies", "Uncorrupted copies that arrived, the first one included; 0: the packet was lost."),
			count("damage", "Damage of the packet: 0 none, 1 truncated, 2 overwritten, 3 bit errors, 4 in the header."),
			seconds("delay_error_bound_seconds", "Largest error bound of the delays of the transfer, in seconds; absent if they have none, or no copy arrived."),
			text("delay_reason", "ok, or why the delays of the transfer have no bound: the values of label reason of oneway_delay_invalid_total."),
			seconds("delay_seconds", "One-way delay of the first copy by the clocks of both ends, in seconds; absent if none arrived, or it has no timestamp. It is there without synchronized clocks too: then only differences of two delays have a meaning."),
			count("every", "Packets that this point represents; above 1 in the thinned part of a transfer. The sum over a transfer is the number of its packets."),
			count("ip_bytes", "Size of the packet with its IP header, in bytes."),
			count("lost", "1 if no uncorrupted copy arrived, else 0. An integer, since InfluxQL has no sum of booleans."),
			run,
			count("segment", "Part of the transfer, such as a step of a sweep, from 0."),
			seconds("sent_seconds", "Time of sending after the begin of the transfer, in seconds: InfluxQL cannot subtract times, and Grafana reads them in milliseconds."),
			count("seq", "Number of the packet in its transfer."),
		}},
		{Name: TCPTrace, Group: RawTitle, Tags: []string{metric.Direction, endTag, flowTag, metric.Path, metric.Probe}, Columns: append(columnsOf(record.FlowColumns()), run)},
		{Name: TCPByte, Group: RawTitle, Tags: []string{metric.Direction, metric.Path, metric.Probe}, Columns: append(columnsOf(record.DelayColumns()), run)},
		{Name: IncidentPacket, Group: RawTitle, Tags: []string{metric.Path, metric.Probe}, Columns: []Column{
			seconds("forward_delay_error_bound_seconds", "Error bound of forward_delay_seconds, in seconds."),
			seconds("forward_delay_seconds", "One-way delay from this agent to the peer, in seconds."),
			text("forward_reason", "ok, or why there is no forward delay: the values of label reason of oneway_delay_invalid_total."),
			text("outcome", "received, lost (no reply within the loss timeout) or late (a reply after it; the packet has a point with lost, too)."),
			text("report", "Id of the report of the incident."),
			seconds("reverse_delay_error_bound_seconds", "Error bound of reverse_delay_seconds, in seconds."),
			seconds("reverse_delay_seconds", "One-way delay from the peer to this agent, in seconds."),
			text("reverse_reason", "As forward_reason."),
			seconds("round_trip_time_seconds", "Round-trip time without the reflector's part, in seconds."),
			count("seq", "Number of the packet."),
		}},
		{Name: Track, Group: RawTitle, Columns: []Column{
			seconds("latitude_degrees", "Latitude in degrees, WGS 84, north positive."),
			seconds("longitude_degrees", "Longitude in degrees, WGS 84, east positive."),
			seconds("speed_meters_per_second", "Speed over ground in meters per second; absent if the receiver reports none."),
		}},
	}
}

// columnsOf are the elements of a row of a report in base units. The time since the begin is a field too, as that of a packet.
func columnsOf(names []string) (all []Column) {
	for _, name := range names {
		c := Column{Key: name, Kind: lineprotocol.Int, Help: "Column " + name + " of the run's report (json.md)."}
		if base, ns := strings.CutSuffix(name, "_ns"); ns {
			c.Key, c.Kind, c.Help = base+"_seconds", lineprotocol.Float, "Column "+name+" of the run's report (json.md), in seconds."
		}
		all = append(all, c)
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
	flow  []Column
	delay []Column
	times times
	// overlap is the last report of each path.
	overlap map[string]overlap
}

// NewRaw makes a Raw.
func NewRaw() *Raw {
	t := NewTable()
	return &Raw{texts: t, wide: NewWide(t), flow: columnsOf(record.FlowColumns()), delay: columnsOf(record.DelayColumns()), times: times{}, overlap: map[string]overlap{}}
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
	r.wide.BeginRun(from.Begin, from.Run, emit)
	defer r.wide.End()
	byName := map[string][]*record.Value{}
	for i := range from.Values {
		v := &from.Values[i]
		byName[v.Desc.Name] = append(byName[v.Desc.Name], v)
	}
	var one metric.Reading
	for _, name := range r.texts.Order() {
		for _, v := range byName[name] {
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

// Flow emits the samples of one end of a connection.
func (r *Raw) Flow(from *record.Flow, emit func(*Point)) {
	end := ReceiverEnd
	if from.Sender {
		end = SenderEnd
	}
	p := r.begin(TCPTrace, Tag{metric.Direction, from.Direction.String()}, Tag{endTag, end}, Tag{flowTag, strconv.Itoa(from.Index)}, Tag{metric.Path, from.Path}, Tag{metric.Probe, from.Probe})
	run, last := Text(from.Run), r.times.of(p)
	for i := range from.Rows {
		row := &from.Rows[i]
		p.At = last.unique(from.Begin + instant.Time(row[0]))
		p.Fields = inColumns(append(p.Fields[:0], Field{RunField, run}), r.flow, row[:])
		emit(p)
	}
}

// inColumns appends the elements of a row.
func inColumns(to []Field, columns []Column, row []int64) []Field {
	for k, c := range columns {
		if v := row[k]; c.Kind == lineprotocol.Int {
			to = Int(to, c.Key, v)
		} else {
			to = Float(to, c.Key, seconds(v))
		}
	}
	return to
}

// sentColumn is the element of a record.DelayRow with the time of sending.
const sentColumn = 2

// Delays emits the sampled bytes of a run's TCP streams in a direction.
func (r *Raw) Delays(from *record.Delays, emit func(*Point)) {
	p := r.begin(TCPByte, Tag{metric.Direction, from.Direction.String()}, Tag{metric.Path, from.Path}, Tag{metric.Probe, from.Probe})
	run, last := Text(from.Run), r.times.of(p)
	for i := range from.Rows {
		row := &from.Rows[i]
		p.At = last.unique(from.Begin + instant.Time(row[sentColumn]))
		p.Fields = inColumns(append(p.Fields[:0], Field{RunField, run}), r.delay, row[:])
		emit(p)
	}
}

// Ring emits the packets of a report of an incident. Reports whose packets overlap have points of their own.
func (r *Raw) Ring(from *record.Ring, emit func(*Point)) {
	p := r.begin(IncidentPacket, Tag{metric.Path, from.Path}, Tag{metric.Probe, from.Probe})
	report, shift := Text(from.Report), r.shift(p, from.Rows)
	var last last
	for i := range from.Rows {
		row := &from.Rows[i]
		p.At = last.unique(instant.Time(row[record.RingSent] + shift))
		p.Fields = Int(append(p.Fields[:0], Field{"report", report}), "seq", row[record.RingSeq])
		p.Fields = append(p.Fields, Field{"outcome", r.texts.text(record.Outcome(row[record.RingOutcome]).String())})
		p.Fields = known(p.Fields, "forward_delay_seconds", row[record.RingForward])
		p.Fields = known(p.Fields, "forward_delay_error_bound_seconds", row[record.RingForward+1])
		p.Fields = append(p.Fields, Field{"forward_reason", r.texts.text(sample.Reason(row[record.RingForward+2]).String())})
		p.Fields = known(p.Fields, "reverse_delay_seconds", row[record.RingReverse])
		p.Fields = known(p.Fields, "reverse_delay_error_bound_seconds", row[record.RingReverse+1])
		p.Fields = append(p.Fields, Field{"reverse_reason", r.texts.text(sample.Reason(row[record.RingReverse+2]).String())})
		p.Fields = known(p.Fields, "round_trip_time_seconds", row[record.RingRoundTrip])
		emit(p)
	}
}

// Position emits a point of the track.
func (r *Raw) Position(from *record.Point, emit func(*Point)) {
	p := r.begin(Track)
	p.At = r.times.of(p).unique(from.At)
	p.Fields = Float(p.Fields[:0], "latitude_degrees", from.Latitude)
	p.Fields = Float(p.Fields, "longitude_degrees", from.Longitude)
	p.Fields = Float(p.Fields, "speed_meters_per_second", from.Speed)
	if len(p.Fields) > 0 {
		emit(p)
	}
}

// known appends a time in seconds, unless it is unknown.
func known(to []Field, key string, ns int64) []Field {
	if ns == record.NoTime {
		return to
	}
	return Float(to, key, seconds(ns))
}

func seconds(ns int64) float64 { return float64(ns) / 1e9 }
