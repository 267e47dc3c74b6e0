package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/geomap"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/record"
)

const (
	noTrack     = "No position in this time range: configure gpsd (see chrony-config)"
	noTrackLink = "No position, or no delay of this path and probe, in this time range"
)

// rawTrackBoard shows where the agent was, and what it measured there.
func rawTrackBoard() *boardBuilder {
	b := rawBoard("Track", rawTrackUID, "now-6h", "Positions of an agent that moves, colored by its speed and by the delay of a path. From InfluxDB; the map needs no internet.",
		toPage(page{pathTitle, pathUID, "Delay, loss and voice quality of this path over time"}, samePath+"&var-"+metric.Probe+"=${probe}"),
		toPage(page{clockTitle, clockUID, "The receiver and the clocks of the agents"}, ""),
		toPage(rawIncidentPage(), samePath+"&var-"+metric.Probe+"=${probe}"))
	delays, _ := place(metric.DelayQuantile, "0.5")
	rawHostVariable(b, record.Track.Name)
	b.WithVariable(tagValues(metric.Path, "Path", delays, onHost()...))
	b.WithVariable(tagValues(metric.Probe, "Probe", delays, append(onHost(), is(name(metric.Path), "$path"))...))
	b.WithVariable(directionVariable())
	b.WithRow(dashboard.NewRowBuilder("Where"))
	b.WithPanel(trackMap(text{
		"Track, by speed",
		"Positions of the selected agents, at most 10 000, colored by the speed over ground: green is slow, red is fast. Select one host: positions of several agents are not told apart.",
		"velocityms", noTrack,
	}, "speed", []step{{0, green}, {8, yellow}, {17, orange}, {28, red}}, rawTable(selection{
		columns: []string{as(position("latitude_degrees"), latitude), as(position("longitude_degrees"), longitude), as(position("speed_meters_per_second"), "speed")},
		from:    name(record.Track.Name), where: onHost(), limit: "10000",
	}.String())))
	b.WithPanel(trackMap(text{
		"Track, by delay, $direction",
		"Mean position and mean of the median delay of the path in each interval, colored by the delay: green below 50 ms, yellow from 50 ms, orange from 100 ms, red from 200 ms. Intervals without a position or a delay are absent.",
		"s", noTrackLink,
	}, "delay", []step{{0, green}, {0.05, yellow}, {0.1, orange}, {0.2, red}}, meanPosition(), meanDelay()).Interval("10s").
		WithTransformation(transform("joinByField", map[string]any{"byField": "Time", "mode": "inner"})))
	b.WithRow(dashboard.NewRowBuilder("When"))
	b.WithPanel(rawLines(text{
		"Speed", "Speed over ground by the receiver.", "velocityms", noTrack,
	}, rawSeries(selection{
		columns: []string{"MEAN(" + position("speed_meters_per_second") + ")"}, from: name(record.Track.Name), where: onHost(), by: []string{"time($__interval)", name(hostTag)}, fill: "none",
	}.String(), "$tag_"+hostTag)).Span(12).Interval("1s"))
	b.WithPanel(rawLines(text{
		"Delay, $direction", "Median and 95th percentile (dashed) of the delay of the path in the windows of the agent; in a long time range their means over an interval, which are no quantiles of it.", "s", noTrackLink,
	}, delayOverTime("0.5", "median"), delayOverTime("0.95", "95 %")).Span(12).Interval("10s").
		OverrideByName("median", props{color(blue)}).
		OverrideByName("95 %", props{color(blue), dashed()}))
	return b
}

// Columns of positions.
const latitude, longitude = "latitude", "longitude"

// trackMap is a map without a base layer from the internet: countries.geojson is a file of Grafana itself.
func trackMap(t text, of string, colors []step, qs ...influxQuery) *geomap.PanelBuilder {
	markers := map[string]any{
		"showLegend": true,
		"style": map[string]any{
			"color": map[string]any{"field": of, "fixed": green}, "opacity": 0.8,
			"size":   map[string]any{"fixed": 4, "min": 2, "max": 15},
			"symbol": map[string]any{"fixed": "img/icons/marker/circle.svg", "mode": "fixed"},
		},
	}
	land := map[string]any{
		"src":   "public/maps/countries.geojson",
		"style": map[string]any{"color": map[string]any{"fixed": gray}, "opacity": 0.1, "lineWidth": 1},
	}
	return geomap.NewPanelBuilder().Title(t.title).Description(t.description).NoValue(t.none).Unit(t.unit).
		Datasource(influxSource()).Targets(rawTargets(qs)).Span(12).Height(14).
		Basemap(common.NewMapLayerOptionsBuilder().Type("geojson").Name("land").Config(land)).
		Layers([]cog.Builder[common.MapLayerOptions]{
			common.NewMapLayerOptionsBuilder().Type("markers").Name(of).Config(markers).Tooltip(true).
				Location(common.NewFrameGeometrySourceBuilder().Mode(common.FrameGeometrySourceModeCoords).Latitude(latitude).Longitude(longitude)),
		}).
		View(geomap.NewMapViewConfigBuilder().Id("fit").AllLayers(false).Layer(of).Padding(10)).
		Controls(geomap.NewControlsOptionsBuilder().ShowZoom(true).ShowScale(true).ShowAttribution(false).MouseWheelZoom(true)).
		Tooltip(geomap.NewTooltipOptionsBuilder().Mode(geomap.TooltipModeDetails)).
		ColorScheme(dashboard.NewFieldColorBuilder().Mode(dashboard.FieldColorModeIdThresholds)).
		Thresholds(steps(colors...))
}

func meanPosition() influxQuery {
	return rawTable(selection{
		columns: []string{as("MEAN("+position("latitude_degrees")+")", latitude), as("MEAN("+position("longitude_degrees")+")", longitude)},
		from:    name(record.Track.Name), where: onHost(), by: []string{"time($__interval)"}, fill: "none",
	}.String())
}

// delaysOf selects a quantile of the delay of the windows.
func delaysOf(rank, column string) selection {
	measurement, field := place(metric.DelayQuantile, rank)
	return selection{
		columns: []string{as("MEAN("+name(field)+")", column)}, from: name(measurement),
		where: onPath(is(name(metric.Direction), "$direction")), by: []string{"time($__interval)"}, fill: "none",
	}
}

func meanDelay() influxQuery { return rawTable(delaysOf("0.5", "delay").String()) }

func delayOverTime(rank, alias string) influxQuery {
	return rawSeries(delaysOf(rank, alias).String(), alias)
}
