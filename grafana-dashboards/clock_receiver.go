package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"

	"oneway.example/exporter/metric"
)

const byReceiver = "{{instance}} {{receiver}}"

// fewSatellites are the least with which a receiver can solve for place and time.
const fewSatellites = 4

func clockReceiverRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Receiver"))
	connected := agents(metric.GNSSConnected)
	fix := "((" + connected + " == 0) - 1) or " + agents(metric.GNSSFix) + " or (" + connected + " * 0)"
	b.WithPanel(states(text{
		"Fix",
		"What the receiver has: a fix in three or two dimensions, none, nothing said yet, or no connection to gpsd or its device. Without a fix its time and pulse are its own crystal's.",
		"none", noReceiver,
	}, ranged(orNone(fix, "-2", metric.ReceiverL), byReceiver)).Height(6).ShowValue(common.VisibilityModeAuto).
		Thresholds(steps(step{0, gray})).
		Mappings(values(map[string]dashboard.ValueMappingResult{
			"3": word("3D fix", green, 0), "2": word("2D fix", yellow, 1), "1": word("no fix", red, 2),
			"0": word("says nothing", orange, 3), "-1": word("not connected", red, 4),
			"-2": word("no receiver configured (clock: gpsd)", faint, 5),
		})))
	b.WithPanel(counted(text{
		"Satellites",
		"Satellites in the solution and in view. Below four (the line) there is no full fix; many seen and few used is a bad place for the antenna.",
		"none", noReceiver,
	}, 12,
		ranged(agents(metric.GNSSSatellitesUsed), byReceiver+" used"),
		ranged(agents(metric.GNSSSatellitesSeen), byReceiver+" seen"),
	).Height(6).
		Thresholds(steps(step{0, red}, step{fewSatellites, "transparent"})).ThresholdsStyle(line()).
		OverrideByRegexp("/ used$/", props{prop("custom.lineWidth", 2)}).
		OverrideByRegexp("/ seen$/", props{dashed()}))
	b.WithPanel(plot(text{
		"Sawtooth",
		"Quantization error of the pulse that a timing receiver tells of itself (qErr): some tens of nanoseconds, far below what an interrupt costs. Lines at ± 100 ns.",
		"s", "No receiver configured, or one that does not tell (qErr)",
	}, ranged(agents(metric.GNSSSawtooth), byReceiver)).
		Thresholds(steps(step{0, orange}, step{-1e-7, "transparent"}, step{1e-7, orange})).ThresholdsStyle(line()))
	b.WithPanel(plot(text{
		"Time in the receiver's sentences",
		"System clock minus the time in the last sentence (NMEA): a sentence comes late by tens to hundreds of milliseconds. Beyond half a second (the lines) a pulse that is locked to it is taken for the wrong second, and all delays are off by exactly one.",
		"s", noReceiver,
	}, ranged(agents(metric.GNSSTimeOffset), byReceiver)).
		AxisSoftMin(0).AxisSoftMax(0.55).
		Thresholds(steps(step{0, red}, step{-0.5, "transparent"}, step{0.5, red})).ThresholdsStyle(line()))
	b.WithPanel(plot(text{
		"Age of the last message",
		"Seconds since the receiver's last message, at the time of the scrape; a receiver speaks once a second. The line is at 10 s.",
		"s", noReceiver,
	}, ranged("timestamp("+agents(metric.GNSSLastMessage)+") - "+agents(metric.GNSSLastMessage), byReceiver)).
		Height(6).AxisSoftMin(0).AxisSoftMax(12).
		Thresholds(steps(step{0, "transparent"}, step{10, red})).ThresholdsStyle(line()))
	b.WithPanel(counted(text{
		"gpsd: connections and lines not understood",
		"Connections that were made to gpsd, and lines of it that could not be read, by reason, a minute. After the first connection, each one more means that gpsd or its device went away.",
		perMinute, noReceiver,
	}, leastMinute,
		ranged(minutely(agents(metric.GNSSConnections)), byReceiver+" connections"),
		ranged(minutely(agents(metric.GNSSMalformed)), byReceiver+" malformed: {{reason}}"),
	).Height(6).Thresholds(steps(step{0, "transparent"}, step{1, orange})))
}
