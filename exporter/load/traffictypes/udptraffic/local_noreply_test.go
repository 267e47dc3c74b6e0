package udptraffic

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"
	"testing"

	"oneway.example/exporter/core/errtext"
	"oneway.example/exporter/load/stream"
	"oneway.example/exporter/net/tstamp"
)

func TestMissingReplyNamesWhatThisHostRefuses(t *testing.T) {
	told := netip.MustParseAddrPort("192.0.2.7:8620")
	for want, cause := range map[string]error{
		"no reply to UDP at 192.0.2.7:8620; is UDP 8620 open there and on the path?":                                                            nil,
		"no reply to UDP at 192.0.2.7:8620: this host did not send all packets: operation not permitted: " + errtext.ForbiddenBy:                fmt.Errorf("send: %w", syscall.EPERM),
		"no reply to UDP at 192.0.2.7:8620: this host did not send all packets: network is unreachable":                                         syscall.ENETUNREACH,
		"no reply to UDP at 192.0.2.7:8620, connection refused (ICMP port unreachable from 192.0.2.7); is UDP 8620 open there and on the path?": tstamp.ICMPError{Peer: told, Offender: told.Addr(), Type: 3, Code: 3, Err: syscall.ECONNREFUSED},
	} {
		if got := noReply(errors.Join(stream.ErrNoReply, cause), told, told); got.Error() != want {
			t.Errorf("%v: %q, want %q", cause, got, want)
		}
	}
}
