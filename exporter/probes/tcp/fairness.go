package tcp

import (
	"fmt"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/estimate/fairness"
	"oneway.example/exporter/estimate/orderstat"
	"oneway.example/exporter/estimate/tcpstate"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/report"
)

// Fairness is how the flows of a direction shared the path while all of them sent (Halepovic 2008 figure 13).
type Fairness struct {
	// Seconds is the time of the comparison, of which the omitted part does not count: that of sending, or, of a
	// transfer by bytes and of one that ended early, the time until the first flow had received all.
	Seconds float64 `json:"duration_seconds"`
	// Jain is the index of the mean rates: 1 if all are equal, 1/n if one of n flows has all. Quartiles are those of the
	// index of each whole second.
	Jain      float64     `json:"jain_ratio"`
	Quartiles *[3]float64 `json:"jain_quartiles_ratio,omitempty"`
	// Variants has what the flows of each congestion control have, in the order of names; absent if the record of the sender did
	// not arrive.
	Variants []Variant `json:"congestion_controls,omitempty"`

	flows int
}

// Variant is what the flows with a congestion control have.
type Variant struct {
	CongestionControl string `json:"congestion_control"`
	Flows             int    `json:"flows"`
	// Share is their part of the throughput, and OfFair that part over the part of equal flows: 1 is fair.
	Share  float64 `json:"share_ratio"`
	OfFair float64 `json:"of_fair_share_ratio"`
	// Throughput is the least, the median and the largest of a flow.
	Throughput [3]float64 `json:"throughput_bytes_per_second"`
}

// throughputRanks are the label values of Variant.Throughput.
func throughputRanks() [3]string { return [3]string{"0", "0.5", "1"} }

// compareFlows adds the rates of the flows and their fairness, which is unknown if nothing arrived.
func (d *Direction) compareFlows(r *tcpstate.FlowRates) {
	index, ok := fairness.Over(r.Rates, r.PerSecond)
	if !ok {
		return
	}
	names, by := make([]string, len(d.Flows)), map[string][]float64{}
	for i, rate := range r.Rates {
		if from := d.Flows[i].SenderEnd; from != nil {
			names[i] = from.CongestionControl
		}
		by[names[i]] = append(by[names[i]], rate)
		d.Flows[i].Throughput = &rate
	}
	d.Fairness = &Fairness{flows: len(d.Flows), Seconds: r.Seconds, Jain: index.Whole, Quartiles: index.Quartiles}
	shares, _ := fairness.Shares(names, r.Rates) // known as the index is
	for _, s := range shares {
		if s.Variant == "" { // unknown
			continue
		}
		rates := orderstat.Sorted(by[s.Variant])
		d.Fairness.Variants = append(d.Fairness.Variants, Variant{
			CongestionControl: s.Variant, Flows: s.Flows, Share: s.Ratio, OfFair: s.OfFair,
			Throughput: [3]float64{rates[0], orderstat.Median(rates), rates[len(rates)-1]},
		})
	}
}

// summary has a line for the index and, of mixed flows, one for each congestion control.
func (f *Fairness) summary(line func(quantity string, numbers ...report.Number) probe.Result) []probe.Result {
	lines := []probe.Result{line("fairness", report.Number{Value: &f.Jain, Unit: unit.Index, Text: fmt.Sprintf("(Jain, %d flows)", f.flows)})}
	if len(f.Variants) > 1 {
		for _, v := range f.Variants {
			lines = append(lines, line("share of "+v.CongestionControl,
				report.Number{Value: &v.Share, Unit: unit.Index}, report.Number{Value: &v.OfFair, Unit: unit.Index, Text: "of its fair share"}))
		}
	}
	return lines
}

func (f *Fairness) publish(v *loadtest.Values, direction string) {
	v.Set(metric.TCPFairness, f.Jain, direction)
	for _, one := range f.Variants {
		for i, rank := range throughputRanks() {
			v.Set(metric.TCPFlowThroughput, one.Throughput[i], direction, one.CongestionControl, rank)
		}
	}
}
