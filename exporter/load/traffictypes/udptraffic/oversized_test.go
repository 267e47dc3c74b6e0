package udptraffic

import (
	"strings"
	"testing"

	"oneway.example/exporter/load/stream"
)

// A transfer whose packets were all lost for their size has no result, and says what is known of the MTU; loss for other
// reasons is a result.
func TestTransferBelowTheMTUOfNoPacketIsNoResult(t *testing.T) {
	for what, c := range map[string]struct {
		counts   Counts
		sent     stream.Sent
		received stream.Received
		want     string
	}{
		"a router reported the MTU":         {Counts{Sent: 2, Lost: 2, NotTried: 98}, stream.Sent{PathMTU: 1400}, stream.Received{}, "forward: the path's MTU is 1400, and its packets have 1410 bytes: choose a packet_bytes of at most 1400"},
		"some had passed before":            {Counts{Sent: 9, Arrived: 8, Lost: 1, NotTried: 91}, stream.Sent{PathMTU: 1400}, stream.Received{}, "at most 1400"},
		"with feedback":                     {Counts{Sent: 2, Lost: 2}, stream.Sent{PathMTU: 1400}, stream.Received{}, "at most 1400"},
		"routers report nothing":            {Counts{Sent: 100, Lost: 100}, stream.Sent{}, stream.Received{}, "forward: cannot tell: no packet of 1410 bytes arrived, of 100, though the control connection works; the path's MTU may be smaller"},
		"the sender's interface":            {Counts{Planned: 100, Refused: 100}, stream.Sent{TooLarge: 100}, stream.Received{}, "exceed the MTU of its interface: choose a smaller packet_bytes"},
		"the interface during the transfer": {Counts{Planned: 100, Sent: 9, Arrived: 9, Refused: 91}, stream.Sent{TooLarge: 91}, stream.Received{}, "forward: 91 of 100 packets of 1410 bytes did not leave the sender, as they exceed the MTU of its interface: choose"},
		"one arrived":                       {Counts{Sent: 100, Lost: 99, Arrived: 1}, stream.Sent{}, stream.Received{}, ""},
		"one arrived damaged":               {Counts{Sent: 100, Lost: 100, Damaged: Damaged{0, 1}}, stream.Sent{}, stream.Received{}, ""},
		"the receiving host":                {Counts{Sent: 100, Lost: 100}, stream.Sent{}, stream.Received{Dropped: 5}, ""},
		"few packets":                       {Counts{Sent: 2, Lost: 2}, stream.Sent{}, stream.Received{}, ""},
		"an MTU that others exceeded":       {Counts{Sent: 100, Arrived: 100}, stream.Sent{PathMTU: 1450}, stream.Received{}, ""},
		"a firewall of the sender":          {Counts{Planned: 100, Refused: 100}, stream.Sent{}, stream.Received{}, ""},
	} {
		x := &Transfer{Packets: []Packet{{IPBytes: 1410}}, Sent: &c.sent, Received: &c.received, Counts: c.counts}
		err := x.Oversized("packet_bytes", 0)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", what, err, c.want)
		}
	}
	x := &Transfer{Packets: []Packet{{IPBytes: 1428}}, Sent: &stream.Sent{PathMTU: 1400}, Received: &stream.Received{}, Counts: Counts{Sent: 1, Lost: 1}}
	if err := x.Oversized("message_bytes", 28); err == nil || !strings.Contains(err.Error(), "choose a message_bytes of at most 1372") {
		t.Errorf("payload: %v", err)
	}
}
