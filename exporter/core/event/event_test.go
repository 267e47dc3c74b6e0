package event

import (
	"regexp"
	"testing"
)

// TestKindsAreWordsWithAMeaning: each once in its list, as values of a label are written.
func TestKindsAreWordsWithAMeaning(t *testing.T) {
	form := regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)
	for _, list := range [][]Meaning{OfPaths(), OfAgents()} {
		seen := map[Kind]bool{}
		for _, m := range list {
			if seen[m.Kind] || !form.MatchString(string(m.Kind)) || m.Words == "" {
				t.Errorf("kind %q: %q", m.Kind, m.Words)
			}
			seen[m.Kind] = true
		}
	}
	if got := Entries(OfPaths())[0]; got != "down: no replies" {
		t.Errorf("%q", got)
	}
}
