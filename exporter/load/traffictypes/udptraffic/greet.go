package udptraffic

import (
	"context"
	"net/netip"
	"time"

	"oneway.example/exporter/core/ctxtime"
	"oneway.example/exporter/load/stream"
)

// Hello packets. An end sends one every helloEvery, without a reply, while it sends no stream that shows that it runs. An end that has
// received nothing for askAfter sends one every askEvery, with a reply, until Outage is over: at 96 bytes, 10 kb/s with headers. The
// other end, which loses the replies as well, then sends its own as often, for askedFor.
//
// So a path that loses 90 % of the packets of one direction, at random, passes none of 180 there in Outage with a probability of
// 0.9^180, 1 in 100,000,000. Two a second alone would be 20, and 12 %.
//
// The load server offers the client a new cookie, as often as a hello packet, once the last one returned is older than renewAfter (RFC 7675
// section 5.1: an interval of 5 s), and asks as well once it is older than renewSoon. The client returns it in its hello packets,
// and sends them beside a stream as well for askedFor.
const (
	helloEvery = 500 * time.Millisecond
	askAfter   = 2 * helloEvery
	askEvery   = 100 * time.Millisecond
	askedFor   = 2 * time.Second
	renewAfter = 5 * time.Second
	renewSoon  = 10 * time.Second
)

// greet sends hello packets, which also preserve the mapping of a NAT, until ctx ends; to returns where, and whether one is
// due. Without an address none is sent.
func greet(ctx context.Context, s *stream.Session, to func() (at netip.AddrPort, due bool)) {
	for wait := helloEvery; ctxtime.Sleep(ctx, wait); { // the interval of the packets
		at, due := to()
		ago, greeted := s.LastReceived()
		provedAgo, proved := s.LastProof()
		asks := greeted && missing(ago) || proved && provedAgo > renewSoon
		askedAgo, asked := s.LastAsked()
		offeredAgo, offered := s.LastOffered()
		if at.IsValid() {
			if proved && provedAgo > renewAfter {
				_ = s.Offer(at) // on an error the next one may succeed
			}
			switch {
			case asks:
				_ = s.Ask(at)
			case due || offered && offeredAgo < askedFor:
				_ = s.KeepAlive(at)
			}
		}
		wait = greetEvery(asks || asked && askedAgo < askedFor)
	}
}

// missing reports whether packets of the other end are missing, the last of them received so long ago, and may still come.
func missing(ago time.Duration) bool { return ago > askAfter && ago <= Outage }

// greetEvery returns the time until the next hello packet. often: packets of either end are missing, or a cookie.
func greetEvery(often bool) time.Duration {
	if often {
		return askEvery
	}
	return helloEvery
}

// replacesHello reports whether the packets of a stream show that its sender runs: they come as often as hello packets, and
// pass every path.
func replacesHello(p stream.Plan) bool { return gap(p) <= helloEvery && fitsAnyPath(p) }
