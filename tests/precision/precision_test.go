package precision_test

import (
	"errors"
	"fmt"
	"testing"

	"oneway.example/tests/precision"
)

// output keeps the messages of a test.
type output struct{ failed, logged string }

func (t *output) Helper()                           {}
func (t *output) Logf(format string, args ...any)   { t.logged = fmt.Sprintf(format, args...) }
func (t *output) Errorf(format string, args ...any) { t.failed = fmt.Sprintf(format, args...) }

func TestFigureThatIsMissedFailsOnAQuietMachineOnly(t *testing.T) {
	for _, c := range []struct {
		variable string
		err      error
		want     output
	}{
		{"", errors.New("late"), output{logged: "not asserted beside other work (ONEWAY_PRECISION=1 does): late"}},
		{"1", errors.New("late"), output{failed: "late"}},
		{"", nil, output{}},
		{"1", nil, output{}},
	} {
		t.Setenv(precision.Variable, c.variable)
		var got output
		precision.Missed(&got, c.err)
		if got != c.want {
			t.Errorf("%q, %v: %+v, want %+v", c.variable, c.err, got, c.want)
		}
	}
}
