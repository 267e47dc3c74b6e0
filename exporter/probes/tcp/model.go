package tcp

import (
	"time"

	"oneway.example/exporter/core/option"
	"oneway.example/exporter/estimate/tcpstate"
	"oneway.example/exporter/load/traffictypes/tcptraffic"
)

// Models is what models predict for a direction.
type Models struct {
	// Throughput has the payload bytes per second of all flows, by model; a model whose conditions are unknown is
	// absent.
	Throughput map[string]float64 `json:"throughput_bytes_per_second"`
	// Conditions are the measured ones of a mean flow: its outstanding bytes as the window, and each retransmission as
	// a sign of a loss, which is the most that losses can be.
	Conditions tcpstate.Conditions `json:"conditions"`
}

// Ratios are the metrics of RFC 6349. Unknown values are nil.
type Ratios struct {
	// Efficiency is the share of the sent payload that was not sent again.
	Efficiency *float64 `json:"efficiency_ratio,omitempty"`
	// BufferDelay is the growth of the mean round-trip time over the least, as a share of that.
	BufferDelay *float64 `json:"buffer_delay_ratio,omitempty"`
	// Ideal is the most throughput that the configured rate of the link allows, and TransferTime the time that the payload
	// took over that at the ideal.
	Ideal        *float64 `json:"ideal_throughput_bytes_per_second,omitempty"`
	TransferTime *float64 `json:"transfer_time_ratio,omitempty"`
}

// compare adds what the throughput could be: by models, and by the rate of the link.
func (d *Direction) compare(t *tcptraffic.Result, sent tcpstate.Sending, link option.Rate, ipv6 bool) {
	if link > 0 {
		d.LinkRate = new(float64(link))
	}
	c := tcpstate.Conditions{Window: sent.Window, MeanWindow: sent.MeanWindow, RTT: sent.OfBytes.Seconds()}
	header, n, complete := 0.0, float64(len(t.Sender)), true
	for i := range t.Sender {
		f := &t.Sender[i].Final
		complete = complete && f.MSS > 0
		c.MSS += float64(f.MSS) / n
		c.RTO += f.RTO.Seconds() / n
		header += float64(f.HeaderBytes(ipv6)) / n
	}
	if d.RTTMin != nil {
		d.RFC6349.BufferDelay = known(tcpstate.BufferDelay(sent.Mean, time.Duration(*d.RTTMin*1e9)))
	}
	if d.Retransmitted != nil {
		d.RFC6349.Efficiency = new(1 - *d.Retransmitted)
	}
	if !complete { // the kernel's state of a flow is unknown
		return
	}
	if d.Retransmitted != nil {
		c.Loss = *d.Retransmitted
		d.Models = &Models{Throughput: map[string]float64{}, Conditions: c}
		for _, m := range tcpstate.Models() {
			if rate, ok := m.Rate(c); ok {
				d.Models.Throughput[m.Name] = n * rate
			}
		}
	}
	ideal, ok := tcpstate.Ideal(float64(link), c.MSS, header)
	if d.RFC6349.Ideal = known(ideal, ok); ok && d.Throughput != nil {
		d.RFC6349.TransferTime = known(tcpstate.TransferTimeRatio(ideal, *d.Throughput))
		d.LinkUsed = new(*d.Throughput / ideal)
	}
}

// known returns nil for a value that is not.
func known(v float64, ok bool) *float64 {
	if !ok {
		return nil
	}
	return &v
}
