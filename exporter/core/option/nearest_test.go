package option

import (
	"strings"
	"testing"
)

func TestNearestIsOneEditAwayFromAShortWordAndTwoFromALongerOne(t *testing.T) {
	keys := []string{"name", "type", "interval", "payload_bytes"}
	for word, want := range map[string]string{
		"nam": "name", "nme": "name", "rate": "", "tpye": "type", "intervall": "interval", "intrevals": "interval", "intreval": "interval",
		"payload": "payload_bytes", "": "", "names": "name", strings.Repeat("x", 50_000_000): "",
	} {
		if got := Nearest(word, keys); got != want {
			t.Errorf("%.20q: got %q, want %q", word, got, want)
		}
	}
}
