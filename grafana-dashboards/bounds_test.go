package main

import (
	"encoding/json"
	"regexp"
	"slices"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"

	"oneway.example/exporter/core/metric"
)

// TestQuantilesOfTCPDataHaveTheirBounds: a panel with a quantile has the error bound of that quantile.
func TestQuantilesOfTCPDataHaveTheirBounds(t *testing.T) {
	found := 0
	eachPanel(t, func(t *testing.T, p dashboard.Panel) {
		text, err := json.Marshal(p.Targets)
		if err != nil {
			t.Fatal(err)
		}
		ranks := func(d *metric.Desc) (all []string) {
			for _, m := range regexp.MustCompile(d.Name+`\{[^}]*`+metric.QuantileL+`=\\"([0-9.]+)\\"`).FindAllStringSubmatch(string(text), -1) {
				all = append(all, m[1])
			}
			slices.Sort(all)
			return slices.Compact(all)
		}
		quantiles, bounds := ranks(metric.TCPDelayQuantile), ranks(metric.TCPDelayQuantileBound)
		found += len(quantiles)
		if !slices.Equal(quantiles, bounds) {
			t.Errorf("%s: has the quantiles %v and the bounds of %v", *p.Title, quantiles, bounds)
		}
	})
	if found < 8 {
		t.Errorf("%d quantiles found", found)
	}
}
