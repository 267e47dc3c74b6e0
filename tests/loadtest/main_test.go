// Package loadtest runs load tests between real processes over an emulated link: clients, load servers
// and agents that are started together, killed, cut off and reloaded. The packet log of the link is the
// reference for what was sent, and when.
package loadtest

import (
	"net/netip"
	"os"
	"testing"

	"oneway.example/exporter/wire/load"
	"oneway.example/tests/program"
)

// binary is the program under test, built once; empty without a lab.
var binary string

func TestMain(m *testing.M) {
	os.Exit(program.Main(m.Run, func(built string) { binary = built }))
}

// testPackets selects the packets of streams for the link's log, by their session.
func testPackets(payload []byte, _, _ netip.AddrPort) (session uint64, ok bool) {
	h, err := load.Parse(payload)
	return h.Session, err == nil && h.Type == load.Data
}
