package option

import (
	"strings"
	"testing"
)

func TestBytesWithUnitNeedAUnit(t *testing.T) {
	for text, want := range map[string]Bytes{"0": 0, "10B": 10, "1.5kB": 1500, "1MiB": 1 << 20} {
		if b, err := BytesWithUnit(text); err != nil || b != want {
			t.Errorf("%q: %d, %v", text, b, err)
		}
	}
	for text, want := range map[string]string{"10": "it has no unit; write 10B, 10kB or 10MB", "1.5": "an amount of data", "": "an amount of data", "10G": "write 10GB"} {
		if _, err := BytesWithUnit(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
