package runreason_test

import (
	"testing"

	"oneway.example/exporter/core/runreason"
)

func TestEachReasonHasARemedyThatFitsAReport(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range runreason.All() {
		if (r.Remedy == "") != (r.Name == runreason.OK) || len(r.Remedy) > 200 {
			t.Errorf("%s: %q", r.Name, r.Remedy)
		}
		if seen[r.Name] || runreason.Find(r.Name) != r {
			t.Errorf("%s is there twice", r.Name)
		}
		if r.Refusal != (r.Status >= 400 && r.Status < 600) || r.Retried && !r.Refusal {
			t.Errorf("%s: refusal %v, status %d, retried %v", r.Name, r.Refusal, r.Status, r.Retried)
		}
		if r.Ends && r.Ended == "" || r.Ended != "" && !r.Refusal {
			t.Errorf("%s: it ends a session as %q; ends %v, refusal %v", r.Name, r.Ended, r.Ends, r.Refusal)
		}
		seen[r.Name] = true
	}
	if r := runreason.Find("weather"); r != (runreason.Reason{}) {
		t.Errorf("%+v", r)
	}
}
