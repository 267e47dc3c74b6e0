package main

import (
	"encoding/json"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// inText finds the limits that a description has: "the line is at 10 us", "orange from 2 %".
var inText = regexp.MustCompile(`(?i)\b(?:lines? (?:is )?at|beyond|(?:green|yellow|orange|red|good|bad) (?:above|below|from)) (± )?(\d[\d.]*)(?: (%|(?:ms|us|ns|s|ppm)\b))?`)

// TestLimitsOfDescriptionsAreThresholdsOfTheirPanel: a threshold that changes changes the description.
func TestLimitsOfDescriptionsAreThresholdsOfTheirPanel(t *testing.T) {
	scales := map[string]float64{"%": 1e-2, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
	found := 0
	eachPanel(t, func(t *testing.T, p dashboard.Panel) {
		if p.Description == nil {
			return
		}
		limits := limitsOf(t, p)
		for _, m := range inText.FindAllStringSubmatch(*p.Description, -1) {
			found++
			v, err := strconv.ParseFloat(strings.TrimRight(m[2], "."), 64)
			if err != nil {
				t.Fatal(err)
			}
			if scale, ok := scales[m[3]]; ok {
				v *= scale
			}
			if !has(limits, v) || m[1] != "" && !has(limits, -v) {
				t.Errorf("%s: %q, and its thresholds are %v", *p.Title, m[0], limits)
			}
		}
	})
	if found < 20 {
		t.Errorf("%d limits found", found)
	}
}

// limitsOf are the values of all thresholds of a panel and of its overrides.
func limitsOf(t *testing.T, p dashboard.Panel) (limits []float64) {
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var panel any
	if err := json.Unmarshal(text, &panel); err != nil {
		t.Fatal(err)
	}
	var find func(v any)
	find = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, of := range v {
				steps, isSteps := of.([]any)
				for _, s := range steps {
					if step, ok := s.(map[string]any); ok && isSteps && key == "steps" {
						if limit, ok := step["value"].(float64); ok {
							limits = append(limits, limit)
						}
					}
				}
				find(of)
			}
		case []any:
			for _, of := range v {
				find(of)
			}
		}
	}
	find(panel)
	return limits
}

func has(limits []float64, v float64) bool {
	for _, l := range limits {
		if math.Abs(l-v) <= 1e-9*math.Abs(v) {
			return true
		}
	}
	return false
}
