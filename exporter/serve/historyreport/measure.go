// Package historyreport reads months of hourly samples of paths, and says what they show: hours of the day, trends and changes
// (`oneway trends`), and two conditions against each other (`oneway compare`). The estimators are in estimate/history.
package historyreport

import (
	"oneway.example/exporter/core/hourrow"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/estimate/history"
)

// Measure is a quantity of a path, one sample an hour or a run.
type Measure struct {
	// Name is what users select, Words what the text has.
	Name, Words string
	Unit        unit.Unit
	Better      history.Better
	// recorded and whole are long-term series of Prometheus; whole is the whole of a share, and undecided the part of it without an outcome. bound
	// is the series of the error bound. Without recorded only InfluxDB has the quantity.
	recorded, whole, undecided, bound string
	// matcher of the recorded series.
	matcher string
	// points are fields of a measurement of the line protocol.
	points fields
	// distribution is the histogram that the months follow from; nil: there are none.
	distribution *metric.Desc
}

// fields are where points have a quantity.
type fields struct {
	measurement, value, bound string
	function                  string // of the values of an hour
	// rows is the measurement of rows of hours that has it; empty: none.
	rows string
	// rank is the rank of a quantile of delays.
	rank float64
}

// counters are the fields of a share, the events first; packetOutcomes reads them.
func (fields) counters() []string {
	return []string{"packets_lost_total", "packets_sent_total", "packets_received_total", "packets_undecided_total"}
}

// Share reports whether the quantity is a share of a whole, such as loss.
func (m *Measure) Share() bool { return m.whole != "" }

// OfRuns reports whether the quantity is of runs of a load test: their points have the local hour of the agent.
func (m *Measure) OfRuns() bool { return m.points.measurement == runPoints }

// runPoints has the runs of the probe tcp.
const runPoints = "oneway_run_tcp"

// Measures are all quantities.
func Measures() []Measure {
	delay := func(name, words, field string, rank float64) Measure {
		return Measure{
			Name: name, Words: words, Unit: unit.Seconds, Better: history.Lower,
			points: fields{measurement: "oneway_delay", value: field, bound: "delay_error_bound_seconds", function: "mean", rows: hourrow.OfDirection, rank: rank},
		}
	}
	// Of the quantiles of an hour the rules record p50 and p95.
	ofHours := func(m Measure, rank string) Measure {
		m.recorded, m.matcher, m.bound = rules.LongDelayQuantiles.Name, metric.QuantileL+`="`+rank+`"`, rules.LongBound.Name
		m.distribution = metric.Delay
		return m
	}
	return []Measure{
		ofHours(delay("delay", "delay p50", "delay_p50_seconds", 0.5), "0.5"),
		ofHours(delay("delay-p95", "delay p95", "delay_p95_seconds", 0.95), "0.95"),
		delay("delay-p99", "delay p99", "delay_p99_seconds", 0.99),
		{
			Name: "loss", Words: "loss", Unit: unit.Ratio, Better: history.Lower,
			recorded: rules.LongIncrease(metric.PacketsLost), whole: rules.LongOutcomes.Name, undecided: rules.LongIncrease(metric.PacketsUndecided),
			points: fields{measurement: "oneway_packets", value: "packets_lost_total", rows: hourrow.OfDirection},
		},
		{
			Name: "r", Words: "R", Unit: unit.RFactor, Better: history.Higher, recorded: rules.LongR.Name,
			points: fields{measurement: "oneway_voice", value: "voice_r_factor", function: "mean", rows: hourrow.OfVoice},
		},
		{
			Name: "throughput", Words: "TCP throughput", Unit: unit.BytesPerSecond, Better: history.Higher, recorded: rules.LongLast(metric.TCPThroughput),
			points: fields{measurement: runPoints, value: "tcp_throughput_bytes_per_second", function: "last"},
		},
	}
}

// fewKnown is why an hour has no quantile of its delays, and what there is in place of it.
func (m *Measure) fewKnown() string {
	others := "--measure=loss does not need them"
	if m.points.rank > 0.5 {
		others = "--measure=delay needs half of them, --measure=loss none"
	}
	return "too few of the delays are known, as where replies are lost, so that a quantile has no upper limit; " + others
}

// MeasureNames are the names of all.
func MeasureNames() (names []string) {
	for _, m := range Measures() {
		names = append(names, m.Name)
	}
	return names
}

// MeasureByName is one of Measures.
func MeasureByName(name string) (Measure, bool) {
	for _, m := range Measures() {
		if m.Name == name {
			return m, true
		}
	}
	return Measure{}, false
}
