package vmlab

import (
	"fmt"
	"slices"
	"strings"

	"oneway.example/tests/flaky"
)

// RerunFailed performs each scenario with faults once more, after all others, and returns the results with the new ones. A
// scenario that has no fault then is flaky, and kept gets its faults. The first scenario starts the daemons of the guests, so
// it fails again.
func RerunFailed(perform func(Scenario) (*Result, error), results []*Result, kept *flaky.Kept) ([]*Result, error) {
	for _, r := range slices.Clone(results) {
		if len(r.Faults) == 0 {
			continue
		}
		again, err := perform(r.Scenario)
		if err != nil {
			return results, fmt.Errorf("%s, once more: %w", r.Scenario.Name, err)
		}
		results = append(results, again)
		if len(again.Faults) > 0 {
			continue
		}
		r.Flaky = true
		if _, err := kept.Add(r.Scenario.Name, strings.Join(r.Faults, "\n")+"\n"); err != nil {
			return results, err
		}
	}
	if n := len(kept.Files); n > flaky.Max {
		return results, fmt.Errorf("%d flaky scenarios: at most %d are accepted", n, flaky.Max)
	}
	return results, nil
}
