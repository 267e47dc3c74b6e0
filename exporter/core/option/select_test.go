package option

import "testing"

type named string

func (n named) Name() string { return string(n) }

func TestTypeIsSelectedByItsName(t *testing.T) {
	for name, want := range map[string]string{
		"stamp": "",
		"stmp":  `key is "stmp"; did you mean "stamp"?`,
		"nope":  `key is "nope"; it must be stamp or saturation`,
		"":      `key is ""; it must be stamp or saturation`,
	} {
		got, err := Select("key", name, []named{"stamp", "saturation"})
		switch {
		case want == "" && (err != nil || got != named(name)):
			t.Errorf("%s: got %q, %v", name, got, err)
		case want != "" && (err == nil || err.Error() != want || got != ""):
			t.Errorf("%q: got %q, %v; want %s", name, got, err, want)
		}
	}
}
