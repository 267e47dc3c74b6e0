// Package precision separates two kinds of assertion. Truth that does not depend on the load of the
// machine (coverage, signs, states, conservation) is asserted everywhere. Precision
// depends on the load: it is logged, and asserted only if
// the environment declares the machine quiet (make precision).
package precision

import "os"

// Variable is the environment variable that declares this machine quiet: then a value
// outside of its limit fails its test. Unset or empty: it is logged.
const Variable = "ONEWAY_PRECISION"

// TB is what Missed needs of testing.TB.
type TB interface {
	Helper()
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
}

// Asserted reports whether the environment declares this machine quiet.
func Asserted() bool { return os.Getenv(Variable) != "" }

// Missed reports a value outside of its limit. A nil err is ignored.
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
