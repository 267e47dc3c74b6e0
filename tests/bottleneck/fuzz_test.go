package bottleneck

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
)

// FuzzTrace checks that each line is one opportunity, and that a written trace is parsed unchanged.
func FuzzTrace(f *testing.F) {
	for _, s := range []string{"0\n", "5\n5\r\n 7 \n4294967295", "4294967296\n", "1\n\n", "-1\n", ""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		all, err := ParseTrace(b)
		if err != nil {
			return
		}
		if lines := bytes.Count(b, []byte("\n")) + 1; len(all) == 0 || len(all) > lines || len(all) < lines-1 {
			t.Fatalf("trace %q has %d lines and %d opportunities", b, lines, len(all))
		}
		var written []byte
		for _, ms := range all {
			written = fmt.Appendln(written, ms)
		}
		if again, err := ParseTrace(written); err != nil || !slices.Equal(again, all) {
			t.Errorf("trace %q is parsed as %v, and written and parsed as %v, %v", b, all, again, err)
		}
	})
}
