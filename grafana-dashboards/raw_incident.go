package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/record"
)

const noIncident = "No report of an incident of this path and probe in this time range"

// rawIncidentBoard shows the packets that a report of an incident has: the minutes before a blow-up.
func rawIncidentBoard() *boardBuilder {
	b := rawBoard("Incident", rawIncidentUID, "now-7d", "The packets of a light path in the minutes before delay or loss left its baseline: delays with their error bounds, lost packets, round-trip time. From InfluxDB.",
		toPage(page{pathTitle, pathUID, "Delay, loss and voice quality of this path over time"}, samePath+"&var-"+metric.Probe+"=${probe}"),
		toPage(rawTrackPage(), ""))
	rawPathVariables(b, record.IncidentPackets.Name)
	b.WithVariable(idVariable(reportField, "Report", record.IncidentPackets.Name))
	b.WithRow(dashboard.NewRowBuilder("Packet by packet"))
	b.WithPanel(incidentDelay("forward", incident("forward_delay_seconds"), incident("forward_delay_error_bound_seconds")))
	b.WithPanel(incidentDelay("reverse", incident("reverse_delay_seconds"), incident("reverse_delay_error_bound_seconds")))
	b.WithPanel(incidentLosses())
	b.WithPanel(incidentRoundTrip())
	return b
}

// reportField has the id of the report.
const reportField = "report"

// inReport selects the packets of the report.
func inReport(more ...string) []string {
	return onPath(append([]string{is(incident(reportField), "$"+reportField)}, more...)...)
}

// ofIncident selects a column of the report's packets.
func ofIncident(alias, expr string, more ...string) influxQuery {
	return rawSeries(selection{columns: []string{expr}, from: name(record.IncidentPackets.Name), where: inReport(more...)}.String(), alias)
}

// lostPackets has a lost packet at 0: it has no delay.
func lostPackets() influxQuery {
	return ofIncident("lost", incident("seq")+" * 0", is(incident("outcome"), record.Lost.String()))
}

func incidentDelay(direction, delay, bound string) *timeseries.PanelBuilder {
	return rawLines(text{
		"Delay " + direction,
		"One-way delay of each packet over the time at which it was sent, with its error bound as a band; lost round trips are at 0, in red. A packet without a valid delay is absent.",
		"s", noIncident,
	},
		ofIncident("upper", delay+" + "+bound),
		ofIncident("lower", delay+" - "+bound),
		ofIncident(direction, delay),
		lostPackets(),
	).Span(24).Height(9).
		OverrideByName(direction, append(points(), color(colorOf(direction)))).
		OverrideByName("upper", append(edge(color(colorOf(direction))), filledTo("lower", 25)...)).
		OverrideByName("lower", edge(color(colorOf(direction)))).
		OverrideByName("lost", append(points(), color(red)))
}

func incidentLosses() *timeseries.PanelBuilder {
	return bars(rawLines(text{
		"Lost packets",
		"Packets without a reply within the loss timeout, by the interval in which they were sent. The direction of the loss is not known from one packet.",
		"none", noIncident + ", or no packet was lost",
	}, rawSeries(selection{
		columns: []string{"COUNT(" + incident("seq") + ")"}, from: name(record.IncidentPackets.Name), where: inReport(is(incident("outcome"), record.Lost.String())),
		by: []string{"time($__interval)"}, fill: "none",
	}.String(), "lost"))).Span(12).Height(8).Decimals(0).AxisSoftMax(3).
		OverrideByName("lost", props{color(red)})
}

func incidentRoundTrip() *timeseries.PanelBuilder {
	return rawLines(text{
		"Round-trip time",
		"Round-trip time of each packet without the time in the reflector. It is free of clock error.",
		"s", noIncident,
	}, ofIncident("round trip", incident("round_trip_time_seconds")), lostPackets()).Span(12).Height(8).
		OverrideByName("round trip", append(points(), color(green))).
		OverrideByName("lost", append(points(), color(red)))
}
