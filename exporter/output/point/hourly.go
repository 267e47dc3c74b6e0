package point

import (
	"slices"
	"strconv"
	"strings"

	"github.com/influxdata/line-protocol/v2/lineprotocol"

	"oneway.example/exporter/core/hourrow"
	"oneway.example/exporter/core/metric"
)

// HoursTitle is the Group of the measurements of hours.
const HoursTitle = "Hours"

// ZoneTag is the tag with the name of the agent's time zone.
const ZoneTag = metric.Zone

// Operation is how the fields of several rows become one: of an hour in which the agent restarted, or of a month.
type Operation string

// The operations, by the name of their function in InfluxQL and Flux.
const (
	BySum Operation = "sum"
	ByMin Operation = "min"
	ByMax Operation = "max"
)

// HourRole is how the values of an hour become a field.
type HourRole uint8

// The roles.
const (
	Increases    HourRole = iota // of a counter
	Smallest                     // of a gauge
	Largest                      // of a gauge
	Total                        // of a gauge, over its readings
	Readings                     // number of readings of a gauge
	Minutes                      // with a reading
	MinutesUp                    // with a reading above 0
	MinutesBelow                 // with a reading below Limit
)

// HourColumn is a field of the rows of hours, and where its values are.
type HourColumn struct {
	Column
	Role  HourRole
	Limit float64
	// Extreme is true of a smallest or largest value of packets, which rows have only if every window was read.
	Extreme bool
	// Measurement and Field are of the points of series, and Bound is their tag le; empty: they have none.
	Measurement, Field, Bound string
}

// Operation is how values of several rows become one.
func (c *HourColumn) Operation() Operation {
	switch c.Role {
	case Smallest:
		return ByMin
	case Largest:
		return ByMax
	case Increases, Total, Readings, Minutes, MinutesUp, MinutesBelow:
	}
	return BySum
}

// HourTable is a measurement of the rows of hours.
type HourTable struct {
	Name string
	// Tags are the tags of its points besides hour, kind of day and zone.
	Tags    []string
	Columns []HourColumn
}

func hourCount(key, measurement, field, help string) HourColumn {
	return HourColumn{Column: Column{Key: key, Kind: lineprotocol.Int, Help: help}, Role: Increases, Measurement: measurement, Field: field}
}

func hourReal(key string, as HourRole, measurement, field, help string) HourColumn {
	return HourColumn{Column: Column{Key: key, Kind: lineprotocol.Float, Help: help}, Role: as, Measurement: measurement, Field: field}
}

func hourNumber(key string, as HourRole, measurement, field, help string) HourColumn {
	return HourColumn{Column: Column{Key: key, Kind: lineprotocol.Int, Help: help}, Role: as, Measurement: measurement, Field: field}
}

// hourExtreme is the column of a gauge with the smallest or largest value of a window.
func hourExtreme(as HourRole, measurement string, d *metric.Desc, words string) HourColumn {
	c := hourReal(fieldOf(d), as, measurement, fieldOf(d), words+", in seconds. Absent if the output reads less often than every 10 s: it does not see each window.")
	c.Extreme = true
	return c
}

// fieldOf is the field of a family in the points of series.
func fieldOf(d *metric.Desc) string { return strings.TrimPrefix(d.Name, Prefix) }

// hourDistribution are the columns of a histogram.
func hourDistribution(of, measurement string, d *metric.Desc, words string) []HourColumn {
	f := fieldOf(d)
	all := []HourColumn{
		hourCount(of, measurement, f+"_count", "Number of "+words+"."),
		hourReal(f+"_sum", Increases, measurement, f+"_sum", "Sum of these, in seconds."),
	}
	for _, b := range d.Buckets {
		c := hourCount(hourrow.Bucket(of, b), d.Name+"_bucket", f+"_bucket", "Number of "+words+" of at most "+strconv.FormatFloat(b, 'f', -1, 64)+" s.")
		c.Bound = strconv.FormatFloat(b, 'g', -1, 64)
		all = append(all, c)
	}
	return all
}

// hourCounter is the column of a counter: its name without prefix and suffix.
func hourCounter(measurement string, d *metric.Desc, words string) HourColumn {
	return hourCount(strings.TrimSuffix(fieldOf(d), "_total"), measurement, fieldOf(d), words)
}

// HourTables are the measurements of the rows of hours.
func HourTables() []HourTable {
	const packets, delay, probe, voice = Prefix + "packets", Prefix + "delay", Prefix + "probe", Prefix + "voice"
	const packetsRound, delayRound = packets + "_round_trip", delay + "_round_trip"
	r := fieldOf(metric.VoiceR)
	below := func(limit float64) HourColumn {
		text := strconv.FormatFloat(limit, 'f', -1, 64)
		c := hourNumber("minutes_below_"+text, MinutesBelow, voice, r, "Minutes in which R was below "+text+" (ITU-T G.109).")
		c.Limit = limit
		return c
	}
	direction := append([]HourColumn{
		hourCounter(packets, metric.PacketsSent, "Packets sent."),
		hourCounter(packets, metric.PacketsLost, "Packets lost. Loss is these over received, lost and undecided ones, each summed over the hours."),
		hourCounter(packets, metric.PacketsUndecided, "Packets whose outcome stays unknown."),
		hourCounter(packets, metric.PacketsReceived, "Packets received."),
		hourCounter(packets, metric.PacketsHostDropped, "Packets dropped by the receiving host."),
		hourExtreme(Smallest, delay, metric.DelayMin, "Smallest known delay"),
		hourExtreme(Largest, delay, metric.DelayMax, "Largest known delay"),
		hourReal(fieldOf(metric.DelayErrorBound), Largest, delay, fieldOf(metric.DelayErrorBound), "Largest error bound of the delays, in seconds."),
	}, hourDistribution(hourrow.Delays, delay, metric.Delay, "known delays")...)
	round := append([]HourColumn{
		hourCounter(packetsRound, metric.RoundTripLost, "Packets lost there or back."),
		hourCounter(packetsRound, metric.RoundTripReceived, "Packets that had a reply."),
		hourExtreme(Smallest, delayRound, metric.RoundTripTimeMin, "Smallest round trip"),
		hourExtreme(Largest, delayRound, metric.RoundTripTimeMax, "Largest round trip"),
		hourNumber("measured_minutes", Minutes, probe, fieldOf(metric.ProbeUp), "Minutes in which the path was measured."),
		hourNumber("up_minutes", MinutesUp, probe, fieldOf(metric.ProbeUp), "Minutes in which it had a reply: availability is these over the measured ones."),
	}, hourDistribution(hourrow.RoundTrips, delayRound, metric.RoundTripTime, "round trips")...)
	rating := []HourColumn{
		hourNumber("voice_readings", Readings, voice, r, "Number of readings of R, one in each interval of the output."),
		hourReal(r+"_sum", Total, voice, r, "Sum of these: the mean is this over their number."),
		hourReal(r+"_min", Smallest, voice, r, "Lowest R."),
		below(70), below(80),
	}
	return []HourTable{
		{hourrow.OfDirection, []string{metric.Direction, metric.Path, metric.Probe}, direction},
		{hourrow.OfRoundTrip, []string{metric.Path, metric.Probe}, round},
		{hourrow.OfVoice, []string{metric.BufferL, metric.CodecL, metric.Direction, metric.ModelL, metric.Path, metric.Probe}, rating},
	}
}

// HourMeasurements lists the measurements of the rows of hours.
func HourMeasurements() (all []Measurement) {
	for _, t := range HourTables() {
		m := Measurement{Name: t.Name, Group: HoursTitle, Tags: slices.Sorted(slices.Values(append(t.Tags, DayTypeTag, LocalHourTag, ZoneTag)))}
		for _, c := range t.Columns {
			m.Columns = append(m.Columns, c.Column)
		}
		slices.SortFunc(m.Columns, func(a, b Column) int { return strings.Compare(a.Key, b.Key) })
		all = append(all, m)
	}
	return all
}
