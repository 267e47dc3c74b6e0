package main

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/promqltest"

	"oneway.example/exporter/core/rules"
)

// TestHoursHaveSixtyMinutes: a server evaluates a group at any second of a minute, always the same one.
func TestHoursHaveSixtyMinutes(t *testing.T) {
	store := promqltest.LoadedStorage(t, `
load 15s
  oneway_probe_up{job="oneway",instance="a",path="p",probe="stamp"} 1x480
  oneway_voice_r_factor{job="oneway",instance="a",path="p",probe="stamp"} 50x480
  oneway:calendar:full_hour{job="oneway",instance="a",hour="1",day_type="weekday",zone="UTC"} 1x480
`)
	t.Cleanup(func() { _ = store.Close() })
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute, LookbackDelta: 5 * time.Minute})
	for _, r := range []rules.Rule{rules.LongMeasured, rules.LongUp, rules.LongRBelow70} {
		for offset := range 60 {
			at := time.Unix(5400, 0).Add(time.Duration(offset)*time.Second + 500*time.Millisecond)
			query, err := engine.NewInstantQuery(context.Background(), store, nil, r.Expr, at)
			if err != nil {
				t.Fatal(err)
			}
			result, err := query.Exec(context.Background()).Vector()
			if err != nil || len(result) != 1 || result[0].F != 60 {
				t.Errorf("%s at second %d: %v, %v; want 60 minutes", r.Name, offset, result, err)
			}
			query.Close()
		}
	}
}
