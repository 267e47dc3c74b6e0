package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"

	"oneway.example/exporter/core/metric"
)

const byReceiver = "{{instance}} {{receiver}}"

// fewSatellites is the smallest number of satellites for a solution of position and time.
const fewSatellites = 4

func clockReceiverRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("GNSS receiver"))
	connected := agents(metric.GNSSConnected)
	fix := "((" + connected + " == 0) - 1) or " + agents(metric.GNSSFix) + " or (" + connected + " * 0)"
	b.WithPanel(states(text{
		"Fix",
		"Fix of the receiver: 3D, 2D, none, no report so far, or no connection to gpsd or its device. Without a fix, time and pulse come from the free-running oscillator of the receiver.",
		"none", noReceiver,
	}, ranged(orNone(fix, "-2", metric.ReceiverL), byReceiver)).Height(6).ShowValue(common.VisibilityModeAuto).
		Thresholds(steps(step{0, gray})).
		Mappings(values(map[string]dashboard.ValueMappingResult{
			"3": word("3D fix", green, 0), "2": word("2D fix", yellow, 1), "1": word("no fix", red, 2),
			"0": word("no report", orange, 3), "-1": word("not connected", red, 4),
			"-2": word("no receiver configured (clock: gpsd)", faint, 5),
		})))
	b.WithPanel(counted(text{
		"Satellites",
		"Satellites used in the solution and in view. A 3D fix needs four (the line). Many in view and few used indicate a poor antenna location.",
		"none", noReceiver,
	}, 12,
		ranged(agents(metric.GNSSSatellitesUsed), byReceiver+" used"),
		ranged(agents(metric.GNSSSatellitesSeen), byReceiver+" in view"),
	).Height(6).
		Thresholds(steps(step{0, red}, step{fewSatellites, "transparent"})).ThresholdsStyle(line()).
		OverrideByRegexp("/ used$/", props{prop("custom.lineWidth", 2)}).
		OverrideByRegexp("/ in view$/", props{dashed()}))
	b.WithPanel(plot(text{
		"Sawtooth",
		"Quantization error of the pulse as reported by a timing receiver (qErr): some tens of nanoseconds, far below interrupt latency. Lines at ± 100 ns.",
		"s", "No receiver configured, or it does not report qErr",
	}, ranged(agents(metric.GNSSSawtooth), byReceiver)).
		Thresholds(steps(step{0, orange}, step{-1e-7, "transparent"}, step{1e-7, orange})).ThresholdsStyle(line()))
	b.WithPanel(plot(text{
		"Time offset of NMEA sentences",
		"System clock minus the time in the last NMEA sentence; a sentence arrives tens to hundreds of milliseconds late. Beyond ± 0.5 s (the lines) a pulse that is numbered by the sentences is assigned to the wrong second, and all delays are wrong by 1 s.",
		"s", noReceiver,
	}, ranged(agents(metric.GNSSTimeOffset), byReceiver)).
		AxisSoftMin(0).AxisSoftMax(0.55).
		Thresholds(steps(step{0, red}, step{-0.5, "transparent"}, step{0.5, red})).ThresholdsStyle(line()))
	b.WithPanel(plot(text{
		"Age of the last message",
		"Time from the receiver's last message to the scrape; receivers send at least one message per second. The line is at 10 s.",
		"s", noReceiver,
	}, ranged("timestamp("+agents(metric.GNSSLastMessage)+") - "+agents(metric.GNSSLastMessage), byReceiver)).
		Height(6).AxisSoftMin(0).AxisSoftMax(12).
		Thresholds(steps(step{0, "transparent"}, step{10, red})).ThresholdsStyle(line()))
	b.WithPanel(counted(text{
		"gpsd: connections and malformed lines",
		"Connections to gpsd, and lines from gpsd that could not be decoded, by reason, per minute. Each connection after the first shows that gpsd or its device was lost.",
		perMinute, noReceiver,
	}, leastMinute,
		ranged(minutely(agents(metric.GNSSConnections)), byReceiver+" connections"),
		ranged(minutely(agents(metric.GNSSMalformed)), byReceiver+" malformed: {{reason}}"),
	).Height(6).Thresholds(steps(step{0, "transparent"}, step{1, orange})))
}
