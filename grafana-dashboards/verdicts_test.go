package main

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

// The agent of a verdict from InfluxDB is a host without a port; the instances of $agent have one.
func TestVerdictsAreOfTheAgentOrOfAHost(t *testing.T) {
	panel, err := trendVerdicts().Build()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(panel)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`agent=~\\"([^"]*)\\"`).FindStringSubmatch(string(text))
	if found == nil || !strings.Contains(string(text), `time() - max by`) {
		t.Fatalf("no agent or no age in %s", text)
	}
	matcher := regexp.MustCompile("^(?:" + strings.ReplaceAll(found[1], "$agent", "seoul:9861|seoul:9862") + ")$")
	for agent, want := range map[string]bool{"seoul:9861": true, "seoul:9862": true, "seoul": true, "busan:9861": false} {
		if matcher.MatchString(agent) != want {
			t.Errorf("%s: shown is %v, want %v", agent, !want, want)
		}
	}
}
