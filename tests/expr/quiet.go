package expr

import (
	"slices"

	"oneway.example/exporter/core/metric"
)

// Reasons why a series may be absent in a healthy system.
const (
	neverHappened = "counts by reason appear with the first event"
	noLoss        = "absent without loss"
	noHistory     = "absent until there is history"
	noOverride    = "absent unless a site sets it"
	noDaemon      = "only with a clock daemon"
	noReceiver    = "only with a receiver configured (clock: gpsd)"
	noPulse       = "only with a pulse configured (clock: pps)"
	noCalibration = "absent until oneway calibrate has run"
	noNative      = "only in a server that takes native histograms"
	noLoadTest    = "only with such a load test configured, and after its first run"
)

// quiet is why the result of a query may be empty in a healthy system, because one of its series may be absent.
func quiet(query string) string {
	reasons := map[string]string{
		metric.ProbeSkipped.Name:          neverHappened,
		metric.ResolveFailures.Name:       neverHappened,
		metric.DirectionUnknown.Name:      neverHappened,
		metric.PacketsDiscarded.Name:      neverHappened,
		metric.DelayInvalid.Name:          neverHappened,
		metric.TimestampsMissing.Name:     neverHappened,
		metric.SendErrors.Name:            neverHappened,
		metric.SocketDrops.Name:           neverHappened,
		metric.ClockQueryFailures.Name:    neverHappened,
		metric.DSCPRemarked.Name:          neverHappened,
		metric.CongestionExperienced.Name: neverHappened,
		metric.ClockOffset.Name:           noDaemon,
		metric.ClockFrequency.Name:        noDaemon,
		metric.ClockSkew.Name:             noDaemon,
		metric.ClockReferenceInfo.Name:    noDaemon,
		metric.ClockLastUpdate.Name:       noDaemon,
		metric.DelayLowConfidence.Name:    neverHappened,
		metric.DelayTXUncertainty.Name:    neverHappened,
		metric.TimestampCalibration.Name:  noCalibration,
		metric.IPDV.Name:                  noNative,
		metric.Residence.Name:             noNative,
		metric.LossBurst.Name:             noLoss,
		metric.LossBurstRatio.Name:        noLoss,

		"oneway:load_test:recent":                             noLoadTest,
		"oneway:capacity_bytes_per_second:median":             noLoadTest,
		"oneway:capacity_bytes_per_second:median2h":           noLoadTest,
		"oneway:capacity_bytes_per_second:baseline7d":         noHistory,
		"oneway:udp_throughput_bytes_per_second:median2h":     noLoadTest,
		"oneway:udp_throughput_bytes_per_second:baseline7d":   noHistory,
		"oneway:tcp_throughput_bytes_per_second:median2h":     noLoadTest,
		"oneway:tcp_throughput_bytes_per_second:baseline7d":   noHistory,
		"oneway:working_delay_excess_seconds":                 noLoadTest,
		"oneway:working_delay_excess:runs_below":              noLoadTest,
		"oneway:clock_disagreement_seconds":                   noPulse,
		"oneway:clock_disagreement_bound_seconds":             noPulse,
		"oneway:schedule_skipped:ratio5m":                     neverHappened,
		"oneway:delay_excess:cause":                           neverHappened,
		"oneway:delay_seconds:quantile_baseline7d":            noHistory,
		"oneway:round_trip_time_seconds:quantile_baseline7d":  noHistory,
		"oneway:delay_min_seconds:baseline7d":                 noHistory,
		"oneway:delay_min_seconds:min1h":                      noHistory,
		"oneway:delay_seconds:histogram_quantile1h":           noHistory,
		"oneway:round_trip_time_seconds:histogram_quantile1h": noHistory,
		"oneway:delay_seconds:histogram_quantile1d":           noHistory,
		"oneway:delay_seconds:quantile1h":                     noHistory,
		"oneway:round_trip_time_seconds:quantile1h":           noHistory,
		"oneway:delay_excess_seconds":                         noHistory,
		"oneway:round_trip_time_excess_seconds":               noHistory,
		"oneway:delay_min_excess_seconds":                     noHistory,
		"oneway:calendar":                                     noHistory,
	}
	for _, s := range Selectors(query) {
		name := Family(s.Name)
		if why, ok := reasons[name]; ok {
			return why
		}
		if why := unconfigured(name); why != "" {
			return why
		}
		if s.Offset {
			return noHistory
		}
	}
	return ""
}

// ofLoadTests are the groups of families that only agents with load tests have.
var ofLoadTests = []string{
	"Runs of load tests", "Link under load", "Packet size by packet rate", "Capacity by packet trains", "TCP",
	"Working delay: of others while a load test runs", "Load server",
}

// unconfigured is why an agent may not have a family at all: receiver, pulse and load tests are optional.
func unconfigured(name string) string {
	for _, g := range metric.Groups() {
		for _, d := range g.Descs {
			switch {
			case d.Name != name:
			case slices.Contains(ofLoadTests, g.Title):
				return noLoadTest
			case slices.Contains(d.Labels, metric.ReceiverL):
				return noReceiver
			case slices.Contains(d.Labels, metric.PulseL):
				return noPulse
			}
		}
	}
	return ""
}
