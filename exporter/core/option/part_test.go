package option

import "testing"

func TestPartsHaveTheirNames(t *testing.T) {
	for n, want := range map[int]string{2: "half", 3: "a third", 4: "a quarter", 8: "an eighth", 10: "a tenth", 64: "1/64"} {
		if got := Part(n); got != want {
			t.Errorf("one of %d parts is %q, want %q", n, got, want)
		}
	}
}
