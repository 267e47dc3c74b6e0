package loadcontrol

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"oneway.example/tests/lab"
)

// TestMain fails if a goroutine of this package is left after all tests.
func TestMain(m *testing.M) {
	code := lab.Main(m.Run)
	if left := leaked(); code == 0 && left != "" {
		fmt.Fprintf(os.Stderr, "goroutines left:\n%s\n", left)
		code = 1
	}
	os.Exit(code)
}

// leaked returns the stacks of goroutines of this package that do not end.
func leaked() (left string) {
	for range 100 { // goroutines that are ending need some time
		buf := make([]byte, 4<<20)
		left = ""
		for stack := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
			if strings.Contains(stack, "oneway.example/exporter/load/loadcontrol.") && !strings.Contains(stack, "TestMain") {
				left += stack + "\n\n"
			}
		}
		if left == "" {
			return ""
		}
		time.Sleep(20 * time.Millisecond) // polls runtime.Stack: the end of a goroutine of another package cannot be waited for
	}
	return left
}
