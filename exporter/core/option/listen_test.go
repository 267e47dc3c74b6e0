package option

import "testing"

// TestOnlyAPortThatIsTakenIsADuplicate: an element that could not be read is the zero Listen, which is also ":0".
func TestOnlyAPortThatIsTakenIsADuplicate(t *testing.T) {
	for _, c := range []struct {
		all  []string
		want string
	}{
		{[]string{":862", "127.0.0.1:862", ":863"}, ""},
		{[]string{"localhost:862", ":0"}, ""},
		{[]string{"127.0.0.1:0", "127.0.0.1:0"}, ""},
		{[]string{":862", ":0", ":862"}, `listen[2] is ":862" for the second time`},
		{[]string{"127.0.0.1:862", "[::ffff:127.0.0.1]:862"}, `listen[1] is "127.0.0.1:862" for the second time`},
	} {
		all := make(Listens, len(c.all))
		for i, text := range c.all {
			_ = all[i].UnmarshalText([]byte(text)) // its error is reported in its place
		}
		got := ""
		if err := all.Check(862); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%q: %q, want %q", c.all, got, c.want)
		}
	}
}
