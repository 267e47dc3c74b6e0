package tcpsweep

import (
	"slices"

	"oneway.example/exporter/core/metric"
)

const receiveBufferL = "receive_buffer_bytes"

var (
	perVariant  = []string{metric.Path, metric.Probe, metric.Direction, metric.CongestionControlL}
	perBuffers  = []string{metric.Path, metric.Probe, metric.Direction, metric.SendBufferL, receiveBufferL, metric.CongestionControlL}
	perQuantile = append(slices.Clip(perBuffers), metric.QuantileL)
	perModel    = append(slices.Clip(perBuffers), metric.ModelL)
)

// The families of the test: at most 11 series per cell, that is 3 of throughput, 3 of round-trip time, 4 of models, 1 of
// retransmissions.
var (
	ThroughputDesc = metric.Family(metric.Desc{
		Name: "oneway_tcp_sweep_throughput_bytes_per_second", Kind: metric.Gauge, Labels: perQuantile,
		Help:   "Payload bytes per second that arrived with these buffers (bytes as an application sets them, or auto), quantile (0.25, 0.5, 0.75) of the repetitions in the last run, without the omitted first part.",
		Absent: "Before the first completed run, and where no measurement of the cell was complete.",
		Source: "RFC 6349 section 4.1; Woo 2010 figures 6.5 and 6.7 (a); Halepovic 2008 figure 4",
	})
	RTTDesc = metric.Family(metric.Desc{
		Name: "oneway_tcp_sweep_rtt_seconds", Kind: metric.Gauge, Labels: perQuantile,
		Help:   "Quantile (0.25, 0.5, 0.75) of the sender's smoothed round-trip time with these buffers, in seconds, median of the repetitions in the last run.",
		Absent: "Where oneway_tcp_sweep_throughput_bytes_per_second is absent.",
		Source: "RFC 6298 section 2; Woo 2010 figure 6.7 (b); Halepovic 2008 figures 5 and 6",
	})
	RetransmittedDesc = metric.Family(metric.Desc{
		Name: "oneway_tcp_sweep_retransmitted_ratio", Kind: metric.Gauge, Labels: perBuffers,
		Help:   "Share of the payload bytes sent with these buffers that were retransmissions, median of the repetitions in the last run.",
		Absent: "Where oneway_tcp_sweep_throughput_bytes_per_second is absent.",
		Source: "RFC 6349 section 4.2; Halepovic 2008 figure 7 and table 2",
	})
	ModelDesc = metric.Family(metric.Desc{
		Name: "oneway_tcp_sweep_model_throughput_bytes_per_second", Kind: metric.Gauge, Labels: perModel, Values: metric.TCPModel.Values,
		Help:   "Payload bytes per second that a model predicts with these buffers from the window, round-trip time, timeout and retransmissions of each repetition, median of the repetitions in the last run.",
		Absent: "Where oneway_tcp_sweep_throughput_bytes_per_second is absent or a condition of the model is unknown; mathis: without a retransmission.",
		Source: "Halepovic 2008 figures 14 and 16; Mathis et al. 1997 equation 3; Padhye et al. 1998 section 2.3",
	})
	KneeDesc = metric.Family(metric.Desc{
		Name: "oneway_tcp_sweep_knee_bytes", Kind: metric.Gauge, Labels: perVariant,
		Help:   "Smallest buffer of the last run that reaches 95 % of the best throughput, in bytes: the smaller of both buffers, as the kernel limits them. The best is the mean over the cells whose repetitions overlap the best cell's. It exceeds 95 % of each other cell, and each smaller one is below 95 % of another, by the spread of the repetitions; the interval is wrong in at most 4 %.",
		Absent: "Before the first completed run, where auto-tuning alone reaches it, with fewer than 3 repetitions, where one of them ended early, and where they vary too much for a decision between neighboring sizes.",
		Source: "Woo 2010 section 6.3; design",
	})
	BDPDesc = metric.Family(metric.Desc{
		Name: "oneway_tcp_sweep_bandwidth_delay_product_bytes", Kind: metric.Gauge, Labels: perVariant,
		Help:   "Best throughput of the last run (mean over the cells whose repetitions overlap the best cell's) times the least round-trip time of all its cells, in payload bytes: what a window needs to fill the path.",
		Absent: "Before the first completed run, and where the largest buffers had the best throughput and limited the sender most of the time: the path may carry more.",
		Source: "RFC 6349 section 3.3",
	})
)

// families are the groups of the families.
func families() []metric.Group {
	return []metric.Group{{
		Title: metric.TitleTCP,
		Descs: []*metric.Desc{BDPDesc, KneeDesc, ModelDesc, RetransmittedDesc, RTTDesc, ThroughputDesc},
		Measurements: []metric.Measurement{
			{Name: "oneway_tcp_sweep", Labels: perBuffers},
			{Name: "oneway_tcp_sweep_model", Labels: perModel},
		},
	}}
}
