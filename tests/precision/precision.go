// Package precision keeps two kinds of assertion apart. What is true however busy the
// machine is (coverage, signs, states, conservation) fails a test anywhere. How precise
// it is depends on what else the machine does: that is logged, and asserted only where
// the environment says that the machine is quiet (make precision).
package precision

import "os"

// Variable of the environment says that this machine does nothing else: then a figure
// that is not reached fails its test. Unset or empty: it is logged.
const Variable = "ONEWAY_PRECISION"

// TB is what Missed needs of testing.TB.
type TB interface {
	Helper()
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
}

// Asserted reports whether the environment says that this machine is quiet.
func Asserted() bool { return os.Getenv(Variable) != "" }

// Missed is told of a figure that was not reached. err is nil if it was: nothing is said.
func Missed(t TB, err error) {
	t.Helper()
	switch {
	case err == nil:
	case Asserted():
		t.Errorf("%v", err)
	default:
		t.Logf("not asserted beside other work (%s=1 does): %v", Variable, err)
	}
}
