package unit

import "testing"

func TestWordsAgreeWithTheirNumber(t *testing.T) {
	for n, want := range map[uint64]string{0: "0 packets have", 1: "1 packet has", 2: "2 packets have", 1 << 63: "9223372036854775808 packets have"} {
		if got := Counted(n, "packet has", "packets have"); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
}
