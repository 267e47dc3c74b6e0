package tcpsweep

import (
	"fmt"
	"strconv"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/estimate/orderstat"
	"oneway.example/exporter/estimate/tcpstate"
	"oneway.example/exporter/load/traffictypes/tcptraffic"
	"oneway.example/exporter/net/tcpsocket"
	"oneway.example/exporter/probe/report"
	"oneway.example/exporter/probes/tcp"
)

// Cell is a combination of buffers and a congestion control in one direction.
type Cell struct {
	Direction sample.Direction `json:"-"`
	// SendBuffer and ReceiveBuffer are sizes as an application sets them; 0: auto-tuning.
	SendBuffer    int64 `json:"send_buffer_bytes"`
	ReceiveBuffer int64 `json:"receive_buffer_bytes"`
	// CongestionControl as configured; empty: the default of the sending host.
	CongestionControl string `json:"configured_congestion_control,omitempty"`
}

// String is "forward: 64KiB to 64KiB, cubic".
func (c Cell) String() string {
	s := fmt.Sprintf("%v: %v to %v", c.Direction, Size(c.SendBuffer), Size(c.ReceiveBuffer))
	if c.CongestionControl != "" {
		s += ", " + c.CongestionControl
	}
	return s
}

// label is the value of a label: bytes, or "auto".
func (s Size) label() string {
	if s == 0 {
		return auto
	}
	return strconv.FormatInt(int64(s), 10)
}

// Result is the result of a run: the report's "result".
type Result struct {
	// Seed is the seed of the order of the cells.
	Seed uint64 `json:"seed"`
	// CellDuration is the time of sending of one measurement of a cell, of which Omit is left out.
	CellDuration report.Seconds `json:"cell_duration_seconds"`
	Omit         report.Seconds `json:"omit_seconds"`
	// Knees are by direction and congestion control.
	Knees []Knee `json:"knees"`
	// Cells are in the order of the configuration: direction, congestion control, send buffer, receive buffer.
	Cells   []MeasuredCell `json:"cells"`
	Omitted []Omission     `json:"omitted,omitempty"`
}

// Omission is a cell that was not measured as often as configured, and the reason in words.
type Omission struct {
	Cell
	DirectionName string `json:"direction"`
	Measured      int    `json:"measurements"`
	Why           string `json:"reason"`
}

// MeasuredCell is a cell and its results. Unknown values are nil.
type MeasuredCell struct {
	Cell
	DirectionName string `json:"direction"`
	// Used is the congestion control in use.
	Used string `json:"congestion_control,omitempty"`
	// Throughput are the quartiles of that of the repetitions: payload that arrived.
	Throughput *[3]float64 `json:"throughput_quartiles_bytes_per_second,omitempty"`
	// RTT are the medians of the repetitions' quartiles of the sender's smoothed round-trip time; RTTMin is the least of all.
	RTT    *[3]float64 `json:"rtt_quartiles_seconds,omitempty"`
	RTTMin *float64    `json:"rtt_min_seconds,omitempty"`
	// Retransmitted is the median share of the sent payload that was sent again.
	Retransmitted *float64 `json:"retransmitted_ratio,omitempty"`
	// Limited has the mean shares of the time by what limited the sender, and Limit that of more than half; empty: cannot tell.
	Limited tcpstate.Limits `json:"limited_ratio,omitempty"`
	Limit   tcpstate.Limit  `json:"limited_by,omitempty"`
	// Send and Receive are the buffers of the kernel at the end of the last measurement that counts.
	Send    tcpsocket.Buffer `json:"send_buffer"`
	Receive tcpsocket.Buffer `json:"receive_buffer"`
	// Repetitions are in the order of measurement.
	Repetitions []Repetition `json:"repetitions"`
}

// name is the congestion control: that in use, if known.
func (m *MeasuredCell) name() string {
	if m.Used != "" {
		return m.Used
	}
	return m.CongestionControl
}

// Repetition is one measurement of a cell. Unknown values are nil.
type Repetition struct {
	// Partial is why it ended early: it then counts in no result. Empty: it did not.
	Partial    string      `json:"ended_early,omitempty"`
	Throughput *float64    `json:"throughput_bytes_per_second,omitempty"`
	RTT        *[3]float64 `json:"rtt_quartiles_seconds,omitempty"`
	RTTMin     *float64    `json:"rtt_min_seconds,omitempty"`
	// Retransmitted is the share of the sent payload that was sent again.
	Retransmitted *float64        `json:"retransmitted_ratio,omitempty"`
	Limited       tcpstate.Limits `json:"limited_ratio,omitempty"`
	// Models are what models predict for its conditions.
	Models *tcp.Models `json:"models,omitempty"`

	used          string
	send, receive tcpsocket.Buffer
}

// evaluate computes the values of a transfer of one flow.
func (k *Kind) evaluate(t *tcptraffic.Result, ipv6 bool) Repetition {
	d := tcp.Evaluate(t, &tcp.Options{Omit: k.opts.Omit}, ipv6)
	return Repetition{
		Throughput: d.Throughput, RTT: d.RTT, RTTMin: d.RTTMin, Retransmitted: d.Retransmitted, Limited: d.Limited, Models: d.Models,
		used: t.Sender[0].CongestionControl, send: t.Sender[0].Buffer, receive: t.Receiver[0].Buffer,
	}
}

// summarize joins the measurements of a cell.
func summarize(c Cell, all []Repetition) MeasuredCell {
	m := MeasuredCell{Cell: c, DirectionName: c.Direction.String(), Repetitions: all}
	m.Send.Asked, m.Receive.Asked = int(c.SendBuffer), int(c.ReceiveBuffer)
	var throughput, retransmitted []float64
	var rtt [3][]float64
	limits, counted := tcpstate.Limits{}, 0
	for i := range all {
		one := &all[i]
		if one.Partial != "" {
			continue
		}
		m.Used, m.Send, m.Receive = one.used, one.send, one.receive
		throughput, retransmitted = known(throughput, one.Throughput), known(retransmitted, one.Retransmitted)
		if one.RTTMin != nil && (m.RTTMin == nil || *one.RTTMin < *m.RTTMin) {
			m.RTTMin = one.RTTMin
		}
		for i := range rtt {
			if one.RTT != nil {
				rtt[i] = append(rtt[i], one.RTT[i])
			}
		}
		if one.Limited != nil {
			counted++
		}
		for limit, share := range one.Limited {
			limits[limit] += share
		}
	}
	if s := orderstat.Sorted(throughput); len(s) > 0 {
		m.Throughput = &[3]float64{orderstat.Quantile(s, 0.25), orderstat.Median(s), orderstat.Quantile(s, 0.75)}
	}
	if s := orderstat.Sorted(retransmitted); len(s) > 0 {
		m.Retransmitted = new(orderstat.Median(s))
	}
	if len(rtt[0]) > 0 {
		m.RTT = new([3]float64)
		for i := range rtt {
			m.RTT[i] = orderstat.Median(orderstat.Sorted(rtt[i]))
		}
	}
	if len(limits) > 0 {
		for limit := range limits {
			limits[limit] /= float64(counted)
		}
		m.Limited, m.Limit = limits, limits.Main()
	}
	return m
}

func known(all []float64, v *float64) []float64 {
	if v == nil {
		return all
	}
	return append(all, *v)
}

// Model returns the median of a model's rates; nil: it has none.
func (m *MeasuredCell) Model(name string) *float64 {
	var rates []float64
	for _, one := range m.Repetitions {
		if one.Models == nil || one.Partial != "" {
			continue
		}
		if rate, ok := one.Models.Throughput[name]; ok {
			rates = append(rates, rate)
		}
	}
	if len(rates) == 0 {
		return nil
	}
	return new(orderstat.Median(orderstat.Sorted(rates)))
}
