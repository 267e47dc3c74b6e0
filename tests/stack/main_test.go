package stack

import (
	"fmt"
	"os"
	"testing"

	"github.com/testcontainers/testcontainers-go/log"
)

// root is the checkout.
const root = "../.."

// required are the settings without which testcontainers looks for an image that no registry here has, or for the
// containers where they are not. tests/stack/run.sh sets them.
var required = map[string]string{
	"TESTCONTAINERS_RYUK_DISABLED": "true",
	"TESTCONTAINERS_HOST_OVERRIDE": "127.0.0.1",
}

func TestMain(m *testing.M) {
	for name, value := range required {
		if got := os.Getenv(name); got != value {
			fmt.Fprintf(os.Stderr, "stack: %s is %q, want %q: run \"make stack-test\", which sets it\n", name, got, value)
			os.Exit(1)
		}
	}
	log.SetDefault(log.NewNoopLogger())
	os.Exit(m.Run())
}

// smoke is the short form, which CI runs.
func smoke() bool { return os.Getenv("ONEWAY_STACK_SMOKE") == "1" }

// keep leaves the containers to the caller.
func keep() bool { return os.Getenv("ONEWAY_STACK_KEEP") == "1" }
