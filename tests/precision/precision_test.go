package precision_test

import (
	"errors"
	"fmt"
	"testing"

	"oneway.example/tests/precision"
)

// told keeps what a test is told.
type told struct{ failed, logged string }

func (t *told) Helper()                           {}
func (t *told) Logf(format string, args ...any)   { t.logged = fmt.Sprintf(format, args...) }
func (t *told) Errorf(format string, args ...any) { t.failed = fmt.Sprintf(format, args...) }

func TestFigureThatIsMissedFailsOnAQuietMachineOnly(t *testing.T) {
	for _, c := range []struct {
		variable string
		err      error
		want     told
	}{
		{"", errors.New("late"), told{logged: "not asserted beside other work (ONEWAY_PRECISION=1 does): late"}},
		{"1", errors.New("late"), told{failed: "late"}},
		{"", nil, told{}},
		{"1", nil, told{}},
	} {
		t.Setenv(precision.Variable, c.variable)
		var got told
		precision.Missed(&got, c.err)
		if got != c.want {
			t.Errorf("%q, %v: %+v, want %+v", c.variable, c.err, got, c.want)
		}
	}
}
