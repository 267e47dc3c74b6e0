package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
)

// Seconds since the daemon's last update. longestPoll is chronyd's default maximum polling interval.
const (
	longestPoll = 1024
	updateLate  = 1100
	updateLost  = 4 * longestPoll
)

// clockNowRow shows the current state of a clock. It is repeated for each agent, since a tile with many values is not
// readable.
func clockNowRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Clock of $instance").Repeat("instance"))
	b.WithPanel(tile(text{
		"State", "State of the clock. Delays are reported only in the states synchronized and holdover (source lost, the error bound grows). none: no clock daemon is configured.", "none",
		"No clock data from the agent",
	}, instant(stateNumber(agents), byInstance)).Span(4).
		Mappings(values(stateNumbers())).Thresholds(steps(step{0, gray})))
	b.WithPanel(tile(text{
		"Synchronized", "Whether the state of the local clock permits valid delays now (RFC 7679 section 3.7.1).", "none",
		"No clock data",
	}, instant(agents(metric.ClockSynchronized), byInstance)).Span(3).
		Thresholds(steps(step{0, gray})).
		Mappings(values(map[string]dashboard.ValueMappingResult{
			"1": word("yes", green, 0), "0": word("no", red, 1),
		})))
	b.WithPanel(tile(text{
		"Error bound", "Maximum error of this clock relative to UTC: |offset| + root dispersion, which grows by the skew, + root delay / 2 + the correction still being slewed. Orange from " + inMillis(rules.ThresholdClockErrorSeconds) + ", the lower limit of " + rules.ClockErrorTooLarge.Name + "; with a pulse some tens of microseconds are usual.", "s",
		"No bound: not synchronized",
	}, instant(agents(metric.ClockErrorBound), byInstance)).Span(4).Decimals(1).
		Thresholds(steps(step{0, gray}, step{0, green}, step{rules.ThresholdClockErrorSeconds.Default, orange}, step{0.1, red})))
	b.WithPanel(tile(text{
		"Source", "Reference of the clock: kind (pps: pulse per second; nmea: sentences of a receiver without a pulse; ptp; ntp; local), reference ID, stratum and leap status.", "none",
		noDaemon,
	}, table(referenceFacts())).Span(7).
		ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"}).Fields("/^facts$/")).
		Thresholds(steps(step{0, gray})).
		Text(common.NewVizTextDisplayOptionsBuilder().ValueSize(20)))
	b.WithPanel(tile(text{
		"Last update", "Time since the clock daemon last received an update from its source. Orange above " + amount(updateLate, "s") + " (chronyd's default maximum polling interval is " + amount(longestPoll, "s") + "), red above four such intervals.", "s",
		"No update, or no reply",
	}, instant("timestamp("+agents(metric.ClockLastUpdate)+") - "+agents(metric.ClockLastUpdate), byInstance)).Span(3).Decimals(0).
		Thresholds(steps(step{0, gray}, step{-1, green}, step{updateLate, orange}, step{updateLost, red})))
	b.WithPanel(tile(text{
		"Steps", "Number of clock steps in the time range. A step while the daemon runs is a fault (" + rules.ClockStepped.Name + "); one at its start is usual.", "none",
		"No clock data",
	}, instant("round(increase("+agents(metric.ClockSteps)+dashboardRange+"))", byInstance)).Span(3).Decimals(0).
		Thresholds(steps(step{0, gray}, step{0, green}, step{1, orange})))
}

// clockStates are the states with their colors, ordered from good to bad.
func clockStates() []state {
	return []state{
		{"synchronized", green},
		{"holdover", yellow},
		{"stepping", red},
		{"unsynchronized", red},
		{"silent", orange},
		{"none", gray},
	}
}

// stateNumber is the number of the current state of a clock.
func stateNumber(sel func(*metric.Desc, ...string) string) string {
	return numbered(clockStates(), func(name string) string {
		return sel(metric.ClockState, metric.StateL+`="`+name+`"`)
	})
}

// stateNumbers maps the numbers to the names of the states.
func stateNumbers() map[string]dashboard.ValueMappingResult { return numbers(clockStates()) }

// referenceFacts joins labels into one, since a tile shows a single field.
func referenceFacts() string {
	facts := agents(metric.ClockReferenceInfo)
	for _, r := range []struct{ to, as, from string }{
		{"s", "stratum $1", "stratum"},
		{"l", "leap $1", "leap_status"},
	} {
		facts = `label_replace(` + facts + `, "` + r.to + `", "` + r.as + `", "` + r.from + `", "(.*)")`
	}
	return `label_join(` + facts + `, "facts", " · ", "kind", "reference_id", "s", "l")`
}
