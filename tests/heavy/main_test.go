// Package heavy runs whole heavy tests between real processes over an emulated link:
// clients, responders and agents that are started together, killed, cut off and reloaded.
// What was sent, and when, is what the link has seen, not what any of them says.
package heavy

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"oneway.example/exporter/wire/load"
	"oneway.example/tests/lab"
)

// binary is the program under test, built once; empty where there is no lab.
var binary string

func TestMain(m *testing.M) {
	os.Exit(lab.Main(func() int {
		if lab.Available() != nil {
			return m.Run() // every test skips, and says why
		}
		dir, err := os.MkdirTemp("", "oneway-heavy")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		binary = filepath.Join(dir, "oneway")
		if out, err := exec.Command("go", "build", "-o", binary, "oneway.example/exporter/cmd/oneway").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}))
}

// testPackets picks the packets of streams for the link's log; the key is their session.
func testPackets(payload []byte, _, _ netip.AddrPort) (session uint64, ok bool) {
	h, err := load.Parse(payload)
	return h.Session, err == nil && h.Type == load.Data
}
