package probe

import "oneway.example/exporter/core/document"

// LightValues has the values that light probes share, by quantity and then by direction, of the last window or of the whole
// measurement. What is unknown, or not measured by the type of the probe, is null or absent.
type LightValues struct {
	// Delay is the one-way delay; lost packets count as infinite in its quantiles. It is unknown without trusted clocks.
	Delay *document.ByDirection[*Distribution] `json:"delay_seconds,omitempty"`
	// Variation is the delay minus its minimum (PDV, RFC 5481), IPDV that between consecutive packets, signed (RFC 3393).
	Variation *document.ByDirection[*Distribution] `json:"delay_variation_seconds,omitempty"`
	IPDV      *document.ByDirection[*Distribution] `json:"ipdv_seconds,omitempty"`
	// Jitter is that of RFC 3550.
	Jitter *document.ByDirection[*float64] `json:"jitter_seconds,omitempty"`
	// Loss is the share of lost packets. BurstRatio is BurstR of G.107; unknown without loss.
	Loss       *document.ByDirection[*float64] `json:"loss_ratio,omitempty"`
	BurstRatio *document.ByDirection[*float64] `json:"loss_burst_ratio,omitempty"`
	// Voice has the ratings of each codec.
	Voice *document.ByDirection[[]Voice] `json:"voice,omitempty"`
	// RoundTrip is free of clock error: (T4-T1)-(T3-T2).
	RoundTrip *Distribution `json:"round_trip_time_seconds,omitempty"`
	// RoundTripLoss is the share of packets without a reply within the loss timeout.
	RoundTripLoss *float64 `json:"round_trip_loss_ratio,omitempty"`
	// HostQueue is the time from user space to the kernel's transmit timestamp, above all the wait in a queue of this host's own
	// interface: it is in no delay. Profile full only.
	HostQueue *Distribution `json:"host_queue_seconds,omitempty"`
}

// Distribution is in seconds. A quantile that lost packets make infinite, or packets without a known delay could change by more than
// the clocks' bound and a tenth of the median, is null.
type Distribution struct {
	// Min is the smallest value.
	Min *float64 `json:"min"`
	// P50 is the median, P95 and P99 are the quantiles 0.95 and 0.99.
	P50 *float64 `json:"p50"`
	P95 *float64 `json:"p95"`
	P99 *float64 `json:"p99"`
	// Max is the largest value.
	Max *float64 `json:"max"`
	// ErrorBound is the bound of Min and P50, by the clocks, and where the delay of some packets is not known of all quantiles.
	// Variation has none.
	ErrorBound *float64 `json:"error_bound,omitempty"`
}

// Voice is the rating of one codec with one kind of playout buffer.
type Voice struct {
	// Codec is its name in METRICS.md.
	Codec string `json:"codec"`
	// Buffer is the kind of playout buffer: fixed or adaptive.
	Buffer string `json:"buffer"`
	// Model is g107 or simplified.
	Model string `json:"model"`
	// R is the rating, 0 to 100 (ITU-T G.107).
	R float64 `json:"r_factor"`
	// ErrorBound limits the error of R caused by the bound of the delay, and by packets without a known delay.
	ErrorBound float64 `json:"r_factor_error_bound"`
	// MOS is the mean opinion score, 1 to 4.5 (ITU-T G.107 Annex B).
	MOS float64 `json:"mos"`
}
