package option

import "testing"

func TestNamesOfCodePointsHaveTheirNumber(t *testing.T) {
	for text, n := range map[string]string{"EF": "46", "ef": "46", "CS0": "0", "CS6": "48", "AF41": "34", "AF11": "10", "VA": "44", "LE": "1", "BE": "0"} {
		if got := CodePointMeant(text); got != "write "+n+", the number of this code point" {
			t.Errorf("%s: %q, want %s", text, got, n)
		}
	}
	for _, text := range []string{"", "4", "AF44", "AF50", "CS8", "EFG", "high"} {
		if got := CodePointMeant(text); got != "" {
			t.Errorf("%q: %q", text, got)
		}
	}
}
