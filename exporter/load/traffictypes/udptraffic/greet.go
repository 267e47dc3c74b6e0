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
		d := contact{received: eventOf(s.LastReceived()), proved: eventOf(s.LastProof()), asked: eventOf(s.LastAsked()), offered: eventOf(s.LastOffered())}.decide(due)
		if at.IsValid() {
			if d.offers {
				_ = s.Offer(at) // on an error the next one may succeed
			}
			switch {
			case d.asks:
				_ = s.Ask(at)
			case d.greets:
				_ = s.KeepAlive(at)
			}
		}
		wait = d.wait
	}
}

// event is something that happened, or did not.
type event struct {
	ago time.Duration
	was bool // it happened
}

func eventOf(ago time.Duration, was bool) event { return event{ago, was} }

func (e event) isYounger(d time.Duration) bool { return e.was && e.ago < d }
func (e event) isOlder(d time.Duration) bool   { return e.was && e.ago > d }

// contact is what an end knows of the other one.
type contact struct {
	received event // the last packet
	asked    event // the last hello packet with a reply
	proved   event // when the cookie was sent that was returned last; the load server
	offered  event // the last cookie; the client
}

// decision is what an end sends now, and the time until the next one. With asks, greets has no effect.
type decision struct {
	offers, asks, greets bool
	wait                 time.Duration
}

// decide. due: no stream replaces the hello packets.
func (c contact) decide(due bool) decision {
	missing := c.received.isOlder(askAfter) && c.received.ago <= Outage // packets of the other end, which may still come
	d := decision{
		offers: c.proved.isOlder(renewAfter),
		asks:   missing || c.proved.isOlder(renewSoon),
		greets: due || c.offered.isYounger(askedFor),
		wait:   helloEvery,
	}
	if d.asks || c.asked.isYounger(askedFor) {
		d.wait = askEvery
	}
	return d
}

// replacesHello reports whether the packets of a stream show that its sender runs: they come as often as hello packets, and
// pass every path.
func replacesHello(p stream.Plan) bool { return gap(p) <= helloEvery && fitsAnyPath(p) }
