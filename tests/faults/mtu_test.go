package faults

import (
	"fmt"
	"strings"
	"testing"

	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/tests/loadsite"
)

// On a path that carries only small packets, and says nothing of that, a test of large ones has no result and names the option:
// the path is not dead.
func TestTestsOfPacketsThatAreTooLargeHaveNoResult(t *testing.T) {
	s := newSite(t, wide())
	nft(t, s.Network.Server, "inet", "input", "udp length > 1300")
	nft(t, s.Network.Client, "inet", "input", "udp length > 1300")
	nft(t, s.Network.Server, "inet", "input", fmt.Sprintf("tcp dport %d meta length > 1300", loadcontrol.DefaultPort)) // the control connection fits
	nft(t, s.Network.Client, "inet", "input", fmt.Sprintf("tcp sport %d meta length > 1300", loadcontrol.DefaultPort))
	incomplete := func(what string, r loadsite.Result, key string) {
		if r.Outcome != "incomplete" || r.Reason != "packet_too_large" || !strings.Contains(r.Error, "no packet of 14") || !strings.Contains(r.Error, "choose a smaller "+key) {
			t.Errorf("%s: %s, %s: %s", what, r.Outcome, r.Reason, r.Error)
		}
	}
	for _, direction := range []string{"forward", "reverse"} {
		r := s.saturation(t, "--direction="+direction, "--drain-timeout=500ms").Finish(t, 1)
		incomplete(direction, r, "packet_bytes")
	}
	sweep := []string{"--max-wait=30s", "--direction=forward", "--packet-rates=50", "--cell-duration=500ms", "--repetitions=1", "--drain-timeout=500ms", "--packet-bytes=1400"}
	incomplete("size-sweep", s.Test(t, "size-sweep", sweep...).Finish(t, 1), "packet_bytes")
	r := s.Test(t, "size-sweep", append(sweep, "--packet-bytes=500")...).Finish(t, 0)
	if r.Outcome != "completed" || !strings.Contains(strings.Join(r.Notes, "\n"), "no packet of 1400 bytes arrived") {
		t.Errorf("%s, %q: want the cell of 1400 bytes omitted", r.Outcome, r.Notes)
	}
	r = s.Test(t, "message", "--max-wait=30s", "--direction=forward", "--duration=1s", "--message-bytes=1400", "--drain-timeout=500ms").Finish(t, 1)
	incomplete("message", r, "message_bytes")
	if !strings.Contains(strings.Join(r.Notes, "\n"), "UDP: partial: forward: cannot tell: no packet of 1428 bytes arrived") {
		t.Errorf("message: %q", r.Notes)
	}
}
