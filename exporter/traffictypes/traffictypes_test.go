package traffictypes

import (
	"maps"
	"slices"
	"testing"
)

func TestTypesHaveNamesOfTheirOwn(t *testing.T) {
	names := map[string]bool{}
	for _, one := range All() {
		if name := one.Name(); name == "" || names[name] {
			t.Errorf("%q is a name twice, or none", name)
		}
		names[one.Name()] = true
	}
	if got := slices.Collect(maps.Keys(names)); !slices.Contains(got, "udp") {
		t.Errorf("%v: udp is not among them", got)
	}
}
