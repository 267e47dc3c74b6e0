package loadcontrol

import (
	"encoding/hex"
	"strings"
	"testing"
)

// FuzzPin: a pin has all 256 bits, whatever the separators, and is parsed again as the load server
// prints it.
func FuzzPin(f *testing.F) {
	digits := strings.Repeat("0aF9", 16)
	for _, s := range []string{pinPrefix + digits, "SHA256:" + digits, pinPrefix + digits[2:], pinPrefix + "0a:F9:" + digits[4:], digits, "sha256:::"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		sum, err := parsePin(s)
		if err != nil {
			if len(err.Error()) > 1000 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		if again, err := parsePin(pinPrefix + hex.EncodeToString(sum[:])); err != nil || again != sum {
			t.Errorf("%q is %x, and that is %x, %v", s, sum, again, err)
		}
		if n := len(strings.ReplaceAll(s, ":", "")); n != len("sha256")+2*len(sum) {
			t.Errorf("%q has %d characters", s, n)
		}
	})
}
