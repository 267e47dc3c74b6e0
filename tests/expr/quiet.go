package expr

import (
	"slices"
	"strings"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
	"oneway.example/exporter/families"
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
	noSites       = "only with paths that have a site"
	noState       = "no path may be in this state"
	noWork        = "only while there is planned work (maintenance)"
	noHolidays    = "only with a list of holidays configured (calendar: holidays_file)"
	noImpairments = "only with voice_impairments configured"
	NoLoadTest    = "only with such a load test configured, and after its first run"
	noVerdicts    = "only with a file of oneway trends --metrics or oneway compare --metrics"
	noSuchType    = "only with a probe, watcher or output of its type configured"
)

// quiet is why the result of a query may be empty in a healthy system, because one of its series may be absent.
func quiet(query string) string {
	reasons := map[string]string{
		metric.ProbeSkipped.Name:             neverHappened,
		metric.ResolveFailures.Name:          neverHappened,
		metric.DirectionUnknown.Name:         neverHappened,
		metric.PacketsDiscarded.Name:         neverHappened,
		metric.DelayInvalid.Name:             neverHappened,
		metric.TimestampsMissing.Name:        neverHappened,
		metric.SendErrors.Name:               neverHappened,
		metric.SocketDrops.Name:              neverHappened,
		metric.ClockQueryFailures.Name:       neverHappened,
		metric.DSCPRemarked.Name:             neverHappened,
		metric.CongestionExperienced.Name:    neverHappened,
		metric.ClockOffset.Name:              noDaemon,
		metric.ClockFrequency.Name:           noDaemon,
		metric.ClockSkew.Name:                noDaemon,
		metric.ClockReferenceInfo.Name:       noDaemon,
		metric.ClockLastUpdate.Name:          noDaemon,
		metric.DelayLowConfidence.Name:       neverHappened,
		metric.DelayTXUncertainty.Name:       neverHappened,
		metric.TimestampCalibration.Name:     noCalibration,
		metric.IPDV.Name:                     noNative,
		metric.Residence.Name:                noNative,
		metric.Holiday.Name:                  noHolidays,
		metric.HolidaysEnd.Name:              noHolidays,
		metric.RunHoliday.Name:               noHolidays,
		metric.LossBurst.Name:                noLoss,
		metric.VoiceDelayImpairment.Name:     noImpairments,
		metric.VoiceEquipmentImpairment.Name: noImpairments,
		metric.LossBurstRatio.Name:           noLoss,
		metric.PathMaintenance.Name:          noWork,
		metric.AgentMaintenance.Name:         noWork,
		rules.MaintenanceNow.Name:            noWork,
		metric.PathEvent.Name:                neverHappened,
		rules.MaintenanceRecent.Name:         noWork,
		rules.SitePathsBad.Name:              noState,
		rules.SitePathsBadSince.Name:         noState,
		rules.SitePathsBadByPair.Name:        noState,
		rules.SiteDegradedPaths.Name:         noState,
		rules.SitePaths.Name:                 noSites,
		rules.SitePairPathsBad.Name:          noState,
		rules.SitePairPathsBadSince.Name:     noState,
		rules.SitePairDegradedPaths.Name:     noState,
		rules.SitePairPaths.Name:             noSites,

		rules.LoadTestRecent.Name:        NoLoadTest,
		rules.CapacityMedian.Name:        NoLoadTest,
		rules.CapacityMedian2h.Name:      NoLoadTest,
		rules.CapacityBaseline.Name:      noHistory,
		rules.UDPThroughputMedian.Name:   NoLoadTest,
		rules.UDPThroughputBaseline.Name: noHistory,
		rules.TCPThroughputMedian.Name:   NoLoadTest,
		rules.TCPThroughputBaseline.Name: noHistory,
		rules.WorkingDelayExcess.Name:    NoLoadTest,
		rules.WorkingDelayRunsBelow.Name: NoLoadTest,
		rules.Disagreement.Name:          noPulse,
		rules.DisagreementBound.Name:     noPulse,
		rules.ScheduleSkippedRatio.Name:  neverHappened,
		rules.DelayExcessCause.Name:      neverHappened,
		rules.DelayBaseline.Name:         noHistory,
		rules.RoundTripBaseline.Name:     noHistory,
		rules.DelayFloorBaseline.Name:    noHistory,
		rules.DelayFloor1h.Name:          noHistory,
		// The first rules of such a series are the rate and the quantile of the histogram.
		rules.DelayQuantiles1h.Rules[0].Name:     noHistory,
		rules.DelayQuantiles1h.Rules[1].Name:     noHistory,
		rules.RoundTripQuantiles1h.Rules[0].Name: noHistory,
		rules.RoundTripQuantiles1h.Rules[1].Name: noHistory,
		rules.DelayQuantiles1d.Rules[0].Name:     noHistory,
		rules.DelayQuantiles1d.Rules[1].Name:     noHistory,
		rules.DelayQuantiles1h.Name:              noHistory,
		rules.RoundTripQuantiles1h.Name:          noHistory,
		rules.DelayExcess.Name:                   noHistory,
		rules.RoundTripExcess.Name:               noHistory,
		rules.DelayFloorExcess.Name:              noHistory,
		rules.Calendar1h.Name:                    noHistory,
		rules.OffsetOf.Name:                      noHistory,
		rules.OffsetOf2h.Name:                    noHistory,
		rules.HolidayOf.Name:                     noHolidays,
		rules.HolidayOf2h.Name:                   noHolidays,
		rules.FullHour.Name:                      noHistory,
		rules.DelayFloorExcess30s.Name:           noHistory,
		rules.Calendar2h.Name:                    NoLoadTest,
		rules.CalendarOfRun.Name:                 NoLoadTest,
	}
	for _, d := range append(metric.Trend.All(), metric.Compare.All()...) {
		reasons[d.Name] = noVerdicts
	}
	if strings.Contains(query, `site!=""`) || strings.Contains(query, `site_pair!=""`) {
		return noSites
	}
	for _, s := range Selectors(query) {
		name := Family(s.Name)
		if name == rules.PathStateCount.Name && slices.ContainsFunc(s.Matchers, func(m Matcher) bool { return m.Label == metric.StateL }) {
			return noState
		}
		if why, ok := reasons[name]; ok {
			return why
		}
		if strings.HasPrefix(name, "oneway:long:") {
			return noHistory
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
	metric.TitleRuns, metric.TitleLoad, metric.TitleSizeSweep, metric.TitleCapacity, metric.TitleTCP, metric.TitleWorking, metric.TitleLoadServer,
}

// unconfigured is why an agent may not have a family at all: receiver, pulse and load tests are optional, and so is each type
// that declares families.
func unconfigured(name string) string {
	for _, g := range families.All() {
		for _, d := range g.Descs {
			switch {
			case d.Name != name:
			case slices.Contains(ofLoadTests, g.Title):
				return NoLoadTest
			case slices.Contains(d.Labels, metric.ReceiverL):
				return noReceiver
			case slices.Contains(d.Labels, metric.PulseL):
				return noPulse
			case !slices.ContainsFunc(metric.Groups(), func(g metric.Group) bool { return slices.Contains(g.Descs, d) }):
				return noSuchType
			}
		}
	}
	return ""
}
