package report

import "testing"

func TestQuantilesOfValuesAreNamedByTheirRank(t *testing.T) {
	for label, want := range map[string]string{
		"0": "min", "0.05": "p5", "0.25": "p25", "0.5": "p50", "0.95": "p95", "0.99": "p99", "0.999": "p99_9", "1": "max",
		"forward": "forward", "1200": "1200", "0.5x": "0.5x", "G.711": "G.711",
	} {
		v := Values{}
		v.Set(1, "delay_seconds", label)
		if _, ok := v["delay_seconds"].(map[string]any)[want]; !ok {
			t.Errorf("%s: %v, want %s", label, v, want)
		}
	}
}
