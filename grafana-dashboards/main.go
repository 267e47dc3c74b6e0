// Command grafana-dashboards writes the dashboards of this repository as JSON.
//
// The dashboards are Go code that takes every metric name from the exporter's table: a renamed family breaks this build
// and not a panel. This is a module of its own, so that the exporter does not depend on the SDK.
package main

//go:generate go run .

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// Grafana 11.6, the oldest supported version, reads only the classic schema.
type (
	boardBuilder = dashboard.DashboardBuilder //nolint:staticcheck // see above
	boardJSON    = dashboard.Dashboard        //nolint:staticcheck // see above
)

// titleBegin begins the title of each page.
const titleBegin = "oneway / "

// board starts a page, which shows the time since from.
func board(title, uid, from, description string) *boardBuilder {
	b := dashboard.NewDashboardBuilder(titleBegin + title) //nolint:staticcheck // see above
	return b.Uid(uid).Tags([]string{"oneway"}).Description(description).
		Readonly().Time(from, "now").Timezone("browser").Tooltip(dashboard.DashboardCursorSyncCrosshair)
}

func main() {
	dir := flag.String("out", "dashboards", "directory to write to")
	readme := flag.String("readme", "README.md", "document to write the tables of figures into")
	flag.Parse()
	if err := errors.Join(write(*dir), document(*readme)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// boards are the dashboards by file name. The page Paper links to panels of the others.
func boards() map[string]*boardBuilder {
	all := pages()
	all["paper.json"] = paperBoard(all)
	return all
}

// pages are the dashboards without the page Paper.
func pages() map[string]*boardBuilder {
	return map[string]*boardBuilder{
		"buffer_sweep.json":   bufferSweepBoard(),
		"capacity.json":       capacityBoard(),
		"clock.json":          clockBoard(),
		"compare.json":        compareBoard(),
		"fairness.json":       fairnessBoard(),
		"load.json":           loadBoard(),
		"overview.json":       overviewBoard(),
		"path.json":           pathBoard(),
		"raw_incident.json":   rawIncidentBoard(),
		"raw_packets.json":    rawPacketsBoard(),
		"raw_size_sweep.json": rawSizeSweepBoard(),
		"raw_tcp.json":        rawTCPBoard(),
		"raw_track.json":      rawTrackBoard(),
		"raw_trains.json":     rawTrainsBoard(),
		"tcp.json":            tcpBoard(),
		"trends.json":         trendsBoard(),
		"voice.json":          voiceBoard(),
	}
}

// write renders all dashboards into dir.
func write(dir string) error {
	for name, b := range boards() {
		text, err := render(b)
		if err != nil {
			return fmt.Errorf("dashboards: %s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return fmt.Errorf("dashboards: %w", err)
		}
	}
	return nil
}

// document writes the tables of figures into the README.
func document(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("dashboards: %w", err)
	}
	whole, err := withFigures(string(text))
	if err != nil {
		return err
	}
	if err := os.WriteFile(name, []byte(whole), 0o644); err != nil {
		return fmt.Errorf("dashboards: %w", err)
	}
	return nil
}

// render returns the JSON of a dashboard for Grafana's file provisioning.
func render(b *boardBuilder) ([]byte, error) {
	board, err := b.Build()
	if err != nil {
		return nil, err
	}
	number(&board)
	inSight(&board)
	text, err := json.MarshalIndent(board, "", "  ")
	if err != nil {
		return nil, err
	}
	return append(text, '\n'), nil
}

// inSight shows links and annotations above the panels: the SDK's default hides them in a menu, as of Grafana 12.3.
func inSight(board *boardJSON) {
	for i := range board.Links {
		board.Links[i].Placement = nil
	}
	for i := range board.Annotations.List {
		board.Annotations.List[i].Placement = nil
	}
}

// number sets the panel ids by position: links to a panel (viewPanel=7) need an id, and the SDK does not set it.
func number(board *boardJSON) {
	id := uint32(0)
	next := func() *uint32 { id++; n := id; return &n }
	for _, p := range board.Panels {
		switch {
		case p.Panel != nil:
			p.Panel.Id = next()
		case p.RowPanel != nil:
			p.RowPanel.Id = *next()
			for i := range p.RowPanel.Panels {
				p.RowPanel.Panels[i].Id = next()
			}
		}
	}
}
