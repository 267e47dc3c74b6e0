// Package grafana opens the dashboards in the Grafana of GRAFANA_URL, in Chromium: no panel has an error, variables have values,
// and links lead to the same path at the same time. Without GRAFANA_URL only the check itself is tested, on pages with a fault.
//
// The Grafana has the files of grafana-dashboards, with their data sources, and lets a viewer in without a password. The demo
// starts such a one, whose address it prints:
//
//	GRAFANA_HOME=/usr/share/grafana make demo
//	GRAFANA_URL=http://127.0.0.1:3000 go test -v ./tests/grafana
package grafana
