package tcpshort

import (
	"fmt"
	"slices"
	"time"

	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/estimate/orderstat"
	"oneway.example/exporter/estimate/tcpstate"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/traffictypes/tcptraffic"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/report"
)

// Result is the result of a run: the report's "results".
type Result struct {
	// Seed is the seed of the order of the flows.
	Seed uint64 `json:"seed"`
	// FlowTimeout is the limit of a flow's time.
	FlowTimeout report.Seconds `json:"flow_timeout_seconds"`
	// Sizes are in the order of the configuration: direction, size.
	Sizes []Size `json:"sizes"`
}

// Size is the flows of one size in one direction. Unknown values are nil.
type Size struct {
	Direction string `json:"direction"`
	// FlowBytes is the payload of each.
	FlowBytes int64 `json:"flow_bytes"`
	// CongestionControl is the one in use.
	CongestionControl string     `json:"congestion_control,omitempty"`
	Completion        Completion `json:"completion_seconds"`
	// Connect is the median time of a handshake, a part of the completion time. A flow that was not connected has a longer one than
	// all others; nil if the median is among these.
	Connect *float64 `json:"connect_seconds,omitempty"`
	// Retransmitted is the share of the payload that was sent again, over all flows.
	Retransmitted *float64 `json:"retransmitted_ratio,omitempty"`
	// Unfinished is the number of flows that did not end; they are longer than all others.
	Unfinished int `json:"unfinished_flows"`
	// Flows are in the order of measurement.
	Flows []Flow `json:"flows"`
}

// Completion has the completion times of a size, in seconds.
type Completion struct {
	Least *float64 `json:"min,omitempty"`
	// Median and Tail (95 %) are nil if the flow of that rank did not end, or with too few flows.
	Median *Quantile `json:"p50,omitempty"`
	Tail   *Quantile `json:"p95,omitempty"`
}

// Quantile is a quantile with an interval of confidence of about 95 %.
type Quantile struct {
	Value float64 `json:"value"`
	Lower float64 `json:"lower"`
	// Upper is nil if it is not among the flows that ended.
	Upper *float64 `json:"upper,omitempty"`
}

// Flow is one connection.
type Flow struct {
	Completion *float64 `json:"completion_seconds,omitempty"`
	Connect    *float64 `json:"connect_seconds,omitempty"`
	// Sent and Retransmitted are the sender's payload bytes, retransmissions included; absent if its record did not arrive.
	Sent          *int64 `json:"sent_bytes,omitempty"`
	Retransmitted *int64 `json:"retransmitted_bytes,omitempty"`
	// Unfinished is why it did not end; empty: it did.
	Unfinished string `json:"unfinished,omitempty"`

	took              time.Duration // 0: unfinished
	congestionControl string
}

// Words is the size of the flows: "10 kB".
func (z *Size) Words() string { return unit.Bytes.Format(float64(z.FlowBytes)) }

// evaluate returns the values of a transfer of one flow.
func (k *Kind) evaluate(t *tcptraffic.Result) Flow {
	from := &t.Sender[0]
	f := Flow{Unfinished: t.Cut, congestionControl: from.CongestionControl}
	if from.Known() {
		f.Sent, f.Retransmitted = &from.Final.Sent, &from.Final.Retransmitted
	}
	if t.Connect[0] > 0 {
		f.Connect = new(t.Connect[0].Seconds())
	}
	took := t.Completion[0]
	switch {
	case f.Unfinished != "":
	case took <= 0 || t.Receiver[0].Payload != t.Plan.Bytes:
		f.Unfinished = fmt.Sprintf("%d of %d bytes arrived", t.Receiver[0].Payload, t.Plan.Bytes)
	case took > k.opts.FlowTimeout:
		f.Unfinished = fmt.Sprintf("it took %v", took)
	default:
		f.took, f.Completion = took, new(took.Seconds())
	}
	return f
}

// times returns the completion times of the flows that ended.
func (z *Size) times() (all []time.Duration) {
	for _, f := range z.Flows {
		if f.took > 0 {
			all = append(all, f.took)
		}
	}
	return all
}

// summarize joins the flows of one size in one direction.
func (k *Kind) summarize(g group, flows []Flow) Size {
	z := Size{Direction: g.direction.String(), FlowBytes: g.bytes, Flows: flows}
	var sent, again int64
	var connect []float64
	unconnected := 0
	for _, f := range flows {
		if f.Sent != nil {
			sent, again = sent+*f.Sent, again+*f.Retransmitted
		}
		switch {
		case f.Connect != nil:
			connect = append(connect, *f.Connect)
		case f.Unfinished != "":
			unconnected++
		}
		if f.congestionControl != "" {
			z.CongestionControl = f.congestionControl
		}
	}
	times := z.times()
	z.Unfinished = len(flows) - len(times)
	if v, ok := tcpstate.Retransmitted(sent, again); ok {
		z.Retransmitted = &v
	}
	if median, ok := orderstat.MedianOfAll(connect, unconnected); ok {
		z.Connect = &median
	}
	if len(times) > 0 {
		z.Completion.Least = new(slices.Min(times).Seconds())
	}
	c := tcpstate.NewCompletions(times, z.Unfinished)
	z.Completion.Median, z.Completion.Tail = quantile(c, 0.5), quantile(c, 0.95)
	return z
}

func quantile(c tcpstate.Completions, q float64) *Quantile {
	v, ok := c.At(q)
	if !ok {
		return nil
	}
	r := &Quantile{Value: v.Value.Seconds(), Lower: v.Lower.Seconds()}
	if v.Upper > 0 {
		r.Upper = new(v.Upper.Seconds())
	}
	return r
}

// conclude summarizes the result in a few lines.
func (res *Result) conclude(r *loadtest.Run) {
	for _, z := range res.Sizes {
		var numbers []report.Number
		if z.Unfinished > 0 {
			numbers = append(numbers, report.Number{Value: new(float64(z.Unfinished))}, report.Number{Label: "of", Value: new(float64(len(z.Flows))), Text: "unfinished"})
		}
		if q := z.Completion.Median; q != nil {
			numbers = append(numbers, report.Number{Label: "median", Value: &q.Value, Unit: unit.Seconds})
		}
		if q := z.Completion.Tail; q != nil {
			numbers = append(numbers, report.Number{Label: "95 %:", Value: &q.Value, Unit: unit.Seconds})
		}
		r.Summary = append(r.Summary, probe.Result{Quantity: "completion of " + z.Words(), Direction: z.Direction, Numbers: numbers})
	}
}
