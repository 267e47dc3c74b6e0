package udptraffic

import (
	"context"
	"net/netip"
	"time"

	"oneway.example/exporter/core/ctxtime"
	"oneway.example/exporter/load/stream"
)

// helloEvery is the interval of hello packets while an end sends no stream that shows that it runs. The timeouts of both ends
// allow for lost ones.
const helloEvery = 500 * time.Millisecond

// greet sends hello packets, which also preserve the mapping of a NAT, until ctx ends; to returns where, and whether one is
// due.
func greet(ctx context.Context, s *stream.Session, to func() (at netip.AddrPort, due bool)) {
	for ctxtime.Sleep(ctx, helloEvery) { // the interval of the packets
		if at, due := to(); due {
			_ = s.KeepAlive(at) // on an error the next one may succeed
		}
	}
}

// replacesHello reports whether the packets of a stream show that its sender runs: they come as often as hello packets, and
// pass every path.
func replacesHello(p stream.Plan) bool { return gap(p) <= helloEvery && fitsAnyPath(p) }
