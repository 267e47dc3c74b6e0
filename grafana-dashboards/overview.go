package main

import (
	"fmt"
	"strconv"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/pathstate"
	"oneway.example/exporter/core/rules"
)

const (
	overviewTitle = "Overview"
	overviewUID   = "oneway-overview"
	// rowsVariable is the variable with the number of paths that are listed.
	rowsVariable = "rows"
	noStates     = "No state of a path: no agent is scraped, or deploy/prometheus/rules is not loaded"
)

// overviewBoard shows all paths, the worst first, then what fires, the agents, and matrices of sites. Each query of a list is an instant
// query of recorded series, or of gauges, for the listed paths.
func overviewBoard() *boardBuilder {
	b := board(overviewTitle, overviewUID, "now-6h",
		"All paths, the worst first: state and reason, delay against its baseline, loss, call quality, load tests; alerts, agents and clocks; matrices of agent by site.").
		Refresh("1m").Links(append(links(page{pathTitle, pathUID, "One path"}, page{clockTitle, clockUID, "The clocks of the agents"}), runbooks()))
	agentVariables(b, metric.PathState.Name)
	b.WithVariable(labelValues("site", "Site", metric.PathLabels.Name+"{"+thisAgent+"}").IncludeAll(true).AllValue(".*").Current(all()))
	b.WithVariable(dashboard.NewCustomVariableBuilder(rowsVariable).Label("Worst").
		Values(dashboard.StringOrMap{String: new("30,100,300,1000,2500")}).
		Current(dashboard.VariableOption{
			Text: dashboard.StringOrArrayOfString{String: new("100")}, Value: dashboard.StringOrArrayOfString{String: new("100")},
		}))
	maintenanceAnnotation(b, "count by (job, instance) ("+agentsRec(rules.MaintenanceNow.Name)+")", "paths of {{instance}}")
	stateTiles(b)
	pathsRow(b)
	eventsRow(b)
	agentsRow(b)
	matrixRow(b)
	return b
}

// stateColors are the colors of the states, by their numbers.
func stateColors() []string { return []string{green, yellow, orange, red} }

// unscraped is the number of the reason of a path whose agent is not scraped.
const unscraped = -1

// pathStateWords map the numbers of states to their words.
func pathStateWords() []dashboard.ValueMapping {
	words := map[string]dashboard.ValueMappingResult{}
	for i, s := range pathstate.States() {
		words[strconv.Itoa(int(s))] = word(s.String(), stateColors()[i], int32(i))
	}
	return values(words)
}

// forText is the color for text: yellow on white cannot be read.
func forText(colorName string) string {
	if colorName == yellow {
		return "dark-yellow"
	}
	return colorName
}

// reasonWords map the numbers of reasons to their words.
func reasonWords() []dashboard.ValueMapping {
	words := map[string]dashboard.ValueMappingResult{strconv.Itoa(unscraped): word("agent not scraped", forText(yellow), 0)}
	for i, e := range pathstate.Entries() {
		words[strconv.Itoa(int(e.Reason))] = word(metric.Words(e.Word), forText(stateColors()[e.Reason.State()]), int32(i+1))
	}
	return values(words)
}

// ofSite are the paths of the selected sites: with all, those without this label, too.
func ofSite(expr string) string {
	// A matcher site!~".*" selects nothing in Prometheus, but all paths without a site in VictoriaMetrics.
	labels := metric.PathLabels.Name + "{" + thisAgent
	return "(" + expr + " unless on (job, instance, path) (" + labels + "} unless " + labels + `,site=~"$site"}))`
}

// statesNow is the state of each selected path.
func statesNow() string { return ofSite(agentsRec(rules.PathStateNow.Name)) }

// stateTiles counts the paths in each state, now and over time.
func stateTiles(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Now"))
	for i, s := range []pathstate.State{pathstate.Down, pathstate.Degraded, pathstate.Unknown, pathstate.Up} {
		b.WithPanel(tile(text{
			[]string{"Down", "Degraded", "Unknown", "Up"}[i],
			[]string{
				"Paths without any reply. The list below has the reason of each, and its runbook.",
				"Paths whose loss or delay is above its limit for certain, despite the error bounds.",
				"Paths of which nobody can tell more: too few packets, a clock that is not trusted, a load test, or an agent that is not scraped.",
				"Paths with replies, whose loss and delay are within the limits.",
			}[i],
			"none", "No states, or no rules",
		}, instant(fmt.Sprintf("count(%s == %d) or 0 * count(%s)", statesNow(), s, agentsRec(rules.PathStateNow.Name)), s.String())).Span(3).Decimals(0).
			Thresholds(steps(step{0, gray}, step{0, gray}, step{1, stateColors()[s]})))
	}
	history := bars(counted(text{
		"Paths by state", "The number of paths in each state over time, of all sites. Paths that are up are not drawn.", "none", noStates,
	}, 1, stateCounts()...)).Span(12).Height(4).Thresholds(steps(step{0, "transparent"}))
	for _, s := range pathstate.States() {
		history.OverrideByName(s.String(), props{color(stateColors()[s])})
	}
	b.WithPanel(history)
}

// stateCounts are the numbers of paths in each state but the best one, the worst first. They are 0, and not absent, where all paths are up: the
// panel's text for no data says that there is no state.
func stateCounts() (all []*prometheus.DataqueryBuilder) {
	for i := len(pathstate.States()) - 1; i > 0; i-- {
		s := pathstate.States()[i]
		all = append(all, ranged(fmt.Sprintf(`sum(%s) or 0 * sum(%s)`, agentsRec(rules.PathStateCount.Name, fmt.Sprintf(`state="%d"`, s)), agentsRec(rules.PathStateCount.Name)), s.String()))
	}
	return all
}
