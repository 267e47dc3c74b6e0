package traffictypes

import (
	"maps"
	"slices"
	"testing"
)

func TestTypesHaveUniqueNames(t *testing.T) {
	names := map[string]bool{}
	for _, one := range All() {
		if name := one.Name(); name == "" || names[name] {
			t.Errorf("name %q is empty or a duplicate", name)
		}
		names[one.Name()] = true
	}
	if got := slices.Collect(maps.Keys(names)); !slices.Contains(got, "udp") {
		t.Errorf("types are %v; udp is missing", got)
	}
}
