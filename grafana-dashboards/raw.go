package main

import (
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	tablepanel "github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
	"github.com/grafana/grafana-foundation-sdk/go/xychart"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/output/point"
)

// Uids of the pages of raw points.
const (
	rawPacketsUID   = "oneway-raw-packets"
	rawTrainsUID    = "oneway-raw-trains"
	rawSizeSweepUID = "oneway-raw-size-sweep"
	rawTCPUID       = "oneway-raw-tcp"
	rawIncidentUID  = "oneway-raw-incident"
	rawTrackUID     = "oneway-raw-track"
)

// allHosts selects every agent, and points without the tag host.
const allHosts = ".*"

// onHost selects the points of the selected agents, onPath those of the path and the probe.
func onHost() []string { return []string{name(hostTag) + " =~ /^$" + hostTag + "$/"} }

func onPath(more ...string) []string {
	return append(append(onHost(), is(name(metric.Path), "$path"), is(name(metric.Probe), "$probe")), more...)
}

// inRun selects the points of the run.
func inRun(more ...string) []string {
	return onPath(append([]string{is(name(point.RunField), "$run")}, more...)...)
}

// rawBoard starts a page of raw points: they have no refresh, since a run or an incident does not change.
func rawBoard(title, uid, from, description string, pages ...cog.Builder[dashboard.DashboardLink]) *boardBuilder {
	b := board(title, uid, from, description).Links(append(links(), pages...))
	return b.WithVariable(dashboard.NewDatasourceVariableBuilder(influxVariable).Label("InfluxDB").Type(influxType).
		Current(dashboard.VariableOption{
			Text:  dashboard.StringOrArrayOfString{String: new("oneway InfluxDB")},
			Value: dashboard.StringOrArrayOfString{String: new(influxUID)},
		}))
}

// rawPathVariables adds agent, path and probe as far as the measurement has them.
func rawPathVariables(b *boardBuilder, measurement string) {
	rawHostVariable(b, measurement)
	b.WithVariable(tagValues(metric.Path, "Path", measurement, onHost()...))
	b.WithVariable(tagValues(metric.Probe, "Probe", measurement, append(onHost(), is(name(metric.Path), "$path"))...))
}

func rawHostVariable(b *boardBuilder, measurement string) {
	b.WithVariable(tagValues(hostTag, "Host", measurement).IncludeAll(true).AllValue(allHosts).Current(dashboard.VariableOption{
		Text: dashboard.StringOrArrayOfString{String: new("All")}, Value: dashboard.StringOrArrayOfString{String: new("$__all")},
	}))
}

// tagValues is a variable with the values of a tag.
func tagValues(tag, label, measurement string, where ...string) *dashboard.QueryVariableBuilder {
	statement := "SHOW TAG VALUES FROM " + name(measurement) + " WITH KEY = " + name(tag)
	if len(where) > 0 {
		statement += " WHERE " + strings.Join(where, " AND ")
	}
	return rawVariable(tag, label, statement).Sort(dashboard.VariableSortAlphabeticalAsc)
}

// idVariable is a variable with the ids of runs or reports, which are a field, in the time range: the newest first, since an id
// begins with its time.
func idVariable(field, label, measurement string) *dashboard.QueryVariableBuilder {
	return rawVariable(field, label, selection{
		columns: []string{"DISTINCT(" + name(field) + ")"}, from: name(measurement), where: onPath(),
	}.String()).Sort(dashboard.VariableSortAlphabeticalDesc)
}

func rawVariable(variable, label, statement string) *dashboard.QueryVariableBuilder {
	return dashboard.NewQueryVariableBuilder(variable).Label(label).Datasource(influxSource()).Definition(statement).
		Query(dashboard.StringOrMap{Map: map[string]any{"query": statement, "refId": "InfluxVariableQueryEditor-VariableQuery"}}).
		Refresh(dashboard.VariableRefreshOnTimeRangeChanged)
}

// toPage is a link to a page with the given variables, such as var-path=$path, and the same time range.
func toPage(p page, query string) cog.Builder[dashboard.DashboardLink] {
	if query != "" {
		query = "?" + query
	}
	return dashboard.NewDashboardLinkBuilder(p.title).Type(dashboard.DashboardLinkTypeLink).
		Url("/d/" + p.uid + query).KeepTime(true).Icon("dashboard").Tooltip(p.tooltip)
}

// toRaw is a link from a page of Prometheus to one of raw points. probe is the variable with the probe there.
func toRaw(p page, probe string) cog.Builder[dashboard.DashboardLink] {
	return toPage(p, "var-"+metric.Path+"=${path}&var-"+metric.Probe+"=${"+probe+"}")
}

var samePath = "var-" + metric.Path + "=${path}"

// Pages of raw points, as links name them.
func rawPacketsPage() page {
	return page{"Raw packets", rawPacketsUID, "The run packet by packet, from InfluxDB"}
}

func rawTrainsPage() page {
	return page{"Raw trains", rawTrainsUID, "The packet trains of a run, from InfluxDB"}
}

func rawSizeSweepPage() page {
	return page{"Raw size sweep", rawSizeSweepUID, "The cells of one run of a size sweep, from InfluxDB"}
}

func rawTCPPage() page {
	return page{"TCP trace", rawTCPUID, "The connections of the run sample by sample, from InfluxDB"}
}

func rawIncidentPage() page {
	return page{"Incident", rawIncidentUID, "The packets before a report of an incident, from InfluxDB"}
}

func rawTrackPage() page {
	return page{"Track", rawTrackUID, "Positions of this agent, colored by speed or by delay, from InfluxDB"}
}

// rawLines is a plot over time of raw points.
func rawLines(t text, qs ...influxQuery) *timeseries.PanelBuilder {
	return lines(t).Datasource(influxSource()).Targets(rawTargets(qs)).
		Thresholds(steps(step{0, "transparent"}))
}

// points draws points without lines.
func points() props {
	return props{prop("custom.drawStyle", "points"), prop("custom.pointSize", 4), prop("custom.showPoints", "always")}
}

// scatter is a plot of columns over the first column that is a number; each query is a table.
func scatter(t text, qs ...influxQuery) *xychart.PanelBuilder {
	return xychart.NewPanelBuilder().Title(t.title).Description(t.description).Unit(t.unit).NoValue(t.none).
		Datasource(influxSource()).Targets(rawTargets(qs)).Span(12).Height(9).
		Mapping(xychart.SeriesMappingAuto).Series([]cog.Builder[xychart.XYSeriesConfig]{}).
		Show(xychart.XYShowModePoints).PointSize(xychart.NewXychartFieldConfigPointSizeBuilder().Fixed(3)).
		PointStrokeWidth(0).FillOpacity(80).
		Thresholds(steps(step{0, "transparent"})).
		Legend(common.NewVizLegendOptionsBuilder().ShowLegend(true).
			DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom)).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeSingle))
}

// cell is a column of a table of raw points.
type cell struct {
	// title is the name of the column, expr its field or tag in InfluxQL.
	title, expr, unit string
	// bytes converts a tag in bytes per second to bits per second; InfluxQL does not calculate with tags.
	bytes bool
	// text: a value that is no number is no dash but the noValue text in own.
	text bool
	own  props
}

// rawCells is a table with a row per point.
func rawCells(t text, s selection, cs ...cell) *tablepanel.PanelBuilder {
	order := map[string]int{}
	p := plainTable(t).Span(24).Height(9).Decimals(1).Thresholds(steps(step{0, gray})).Datasource(influxSource())
	hidden := map[string]bool{"Time": true}
	for i, c := range cs {
		column := c.title
		if c.bytes {
			column += " (bytes)"
			hidden[column] = true
			p.WithTransformation(numberOf(column)).WithTransformation(times(column, "8", c.title))
		}
		s.columns = append(s.columns, as(c.expr, column))
		order[c.title] = i
		own := dashes()
		if c.text {
			own = nil
		}
		if c.unit != "" {
			own = append(own, prop("unit", c.unit))
		}
		p.OverrideByName(c.title, append(own, c.own...))
	}
	return p.Targets(rawTargets([]influxQuery{rawTable(s.String())})).
		WithTransformation(transform("organize", map[string]any{
			"excludeByName": hidden, "indexByName": order, "renameByName": map[string]string{},
		}))
}
