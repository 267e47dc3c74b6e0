package testseed_test

import (
	"fmt"
	"testing"

	"oneway.example/tests/testseed"
)

// output keeps the messages of a test.
type output struct{ fatal, log string }

func (t *output) Helper()                           {}
func (t *output) Logf(format string, args ...any)   { t.log = fmt.Sprintf(format, args...) }
func (t *output) Fatalf(format string, args ...any) { t.fatal = fmt.Sprintf(format, args...) }

func TestSeedIsFixedUnlessTheEnvironmentSaysOtherwise(t *testing.T) {
	for text, want := range map[string]uint64{"": testseed.Default, "0": 0, "18446744073709551615": 18446744073709551615} {
		t.Setenv(testseed.Variable, text)
		var got output
		if seed := testseed.Of(&got); seed != want || got.fatal != "" {
			t.Errorf("%q gives %d, %q; want %d", text, seed, got.fatal, want)
		}
		if want := fmt.Sprintf("seed %d (ONEWAY_SEED=%d repeats it)", want, want); got.log != want {
			t.Errorf("the log is %q, want %q", got.log, want)
		}
	}
}

func TestRandomSeedsDiffer(t *testing.T) {
	t.Setenv(testseed.Variable, testseed.Random)
	if a, b := testseed.Of(t), testseed.Of(t); a == b { // 2^-64 of being equal
		t.Errorf("%d twice", a)
	}
}

func TestSeedThatIsNoNumberFailsTheTest(t *testing.T) {
	for _, text := range []string{"x", "-1", "1.5", "18446744073709551616"} {
		t.Setenv(testseed.Variable, text)
		var got output
		testseed.Of(&got)
		if want := fmt.Sprintf(`testseed: ONEWAY_SEED is %q; want a whole number or "random"`, text); got.fatal != want {
			t.Errorf("%q: %q, want %q", text, got.fatal, want)
		}
	}
}
