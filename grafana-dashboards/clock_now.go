package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"

	"oneway.example/exporter/metric"
)

// Seconds since the daemon's last update: chronyd's largest usual polling interval
// is 1024 s, so that a silence beyond it is one.
const (
	updateLate = 1100
	updateLost = 4 * 1024
)

// clockNowRow shows the state of the clock; there is one such row for
// each agent, since a tile of many values cannot be read.
func clockNowRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Clock of $instance").Repeat("instance"))
	b.WithPanel(tile(text{
		"State", "What the clock is in. Delays are reported in synchronized and in holdover (source lost, the bound grows) only; none: the configuration says that nothing disciplines it.", "none",
		"The agent says nothing of its clock",
	}, instant(stateNumber(agents), byInstance)).Span(4).
		Mappings(values(stateNumbers())).Thresholds(steps(step{0, gray})))
	b.WithPanel(tile(text{
		"Trusted now", "Whether delays that are measured now are valid as far as this end's clock goes (RFC 7679 section 3.7.1).", "none",
		"Not known",
	}, instant(agents(metric.ClockSynchronized), byInstance)).Span(3).
		Thresholds(steps(step{0, gray})).
		Mappings(values(map[string]dashboard.ValueMappingResult{
			"1": word("yes", green, 0), "0": word("no", red, 1),
		})))
	b.WithPanel(tile(text{
		"Error bound", "How far this clock may be from UTC at most: |offset| + root dispersion aged by the skew + root delay / 2, and what a slew moves. Orange from 1 ms, the floor of OnewayClockErrorTooLarge; a pulse gives some tens of microseconds.", "s",
		"No bound: not trusted",
	}, instant(agents(metric.ClockErrorBound), byInstance)).Span(4).Decimals(1).
		Thresholds(steps(step{0, gray}, step{0, green}, step{0.001, orange}, step{0.1, red})))
	b.WithPanel(tile(text{
		"Source", "What the clock follows: kind (pps: a pulse; nmea: a receiver's sentences alone; ptp; ntp; local), reference id, stratum and what it announces of leap seconds.", "none",
		noDaemon,
	}, table(referenceFacts())).Span(7).
		ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"}).Fields("/^facts$/")).
		Thresholds(steps(step{0, gray})).
		Text(common.NewVizTextDisplayOptionsBuilder().ValueSize(20)))
	b.WithPanel(tile(text{
		"Last update", "Time since the daemon last heard its source. Orange above chronyd's longest usual polling interval (1024 s), red above four of them.", "s",
		"Never, or silent",
	}, instant("timestamp("+agents(metric.ClockLastUpdate)+") - "+agents(metric.ClockLastUpdate), byInstance)).Span(3).Decimals(0).
		Thresholds(steps(step{0, gray}, step{-1, green}, step{updateLate, orange}, step{updateLost, red})))
	b.WithPanel(tile(text{
		"Steps", "How often the clock jumped in the time range. A step while the clock was running is a fault (OnewayClockStepped); at the start of the daemon it is usual.", "none",
		"The agent says nothing of its clock",
	}, instant("round(increase("+agents(metric.ClockSteps)+dashboardRange+"))", byInstance)).Span(3).Decimals(0).
		Thresholds(steps(step{0, gray}, step{0, green}, step{1, orange})))
}

// clockStates are the states with a color each, the good ones first.
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

// stateNumber numbers the states of a clock.
func stateNumber(sel func(*metric.Desc, ...string) string) string {
	return numbered(clockStates(), func(name string) string {
		return sel(metric.ClockState, metric.StateL+`="`+name+`"`)
	})
}

// stateNumbers turns the numbers back into words.
func stateNumbers() map[string]dashboard.ValueMappingResult { return numbers(clockStates()) }

// referenceFacts joins labels, which a tile cannot show, into one that it can.
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
