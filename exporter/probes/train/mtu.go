package train

import (
	"context"
	"fmt"
	"time"

	"oneway.example/exporter/core/ipheader"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/stream"
	"oneway.example/exporter/load/traffictypes/udptraffic"
)

// Sizes of the search for the path's MTU, in bytes of the IP packet.
const (
	// base4 and base6 are sizes that nearly every path carries; base6 is the minimum MTU of IPv6 (RFC 8200 section 5).
	base4 = ipheader.AnyPathBytes
	base6 = 1280
	// floor4 is the datagram size that every IPv4 host accepts (RFC 1122 section 3.3.2), the smallest size probed.
	// IPv6's is base6.
	floor4 = 576
	// ethernet is the most common MTU, pppoe another common one (RFC 2516 section 7): probed first, as in RFC 8899
	// section 5.3.2.
	ethernet = 1500
	pppoe    = 1492
)

// maxUnclear is the number of consecutive unclear results that end the search.
const maxUnclear = 3

// probeResult is the result of the probes of one size.
type probeResult uint8

const (
	// passed: at least one arrived intact.
	passed probeResult = iota
	// tooLarge: none arrived although smaller packets sent between them did, or the sender's interface refuses the
	// size.
	tooLarge
	// unclear: nothing arrived. The path is down or congested.
	unclear
)

// mtuSearch finds the largest packet that passes a path in one direction unfragmented: the search phase of RFC 8899
// (Packetization Layer Path MTU Discovery for datagrams, section 5) over sizes of single packets with fragmentation
// disabled. It uses no ICMP messages: a router that drops large packets without a message (a black hole) is found
// too.
//
// It probes the base size, then the common MTUs and one byte more, then halves the remaining range. Results are
// final: the caller repeats lost probes (MAX_PROBES of RFC 8899 section 5.1.2). The zero value is not usable; see
// newMTUSearch.
type mtuSearch struct {
	floor, base, top int
	// largestPassed is the largest size that has passed, 0: none. smallestFailed is the smallest that has not;
	// initially the largest probed size plus one.
	largestPassed, smallestFailed int
	// unclears counts consecutive unclear results.
	unclears int
}

// newMTUSearch returns a search up to top, the largest size probed.
func newMTUSearch(ipv6 bool, top int) *mtuSearch {
	s := &mtuSearch{floor: floor4, base: base4, top: top, smallestFailed: top + 1}
	if ipv6 {
		s.floor, s.base = base6, base6
	}
	return s
}

// next returns the size to probe; false: the search has ended.
func (s *mtuSearch) next() (ipBytes int, ok bool) {
	switch {
	case s.unclears >= maxUnclear:
		return 0, false
	case s.largestPassed == 0 && s.smallestFailed > s.base:
		return s.base, true
	case s.largestPassed == 0 && s.smallestFailed > s.floor:
		return s.floor, true // the base size is lost in a black hole
	case s.largestPassed == 0 || s.smallestFailed-s.largestPassed <= 1:
		return 0, false
	}
	// The most likely results first: a common size passes, one byte more does not.
	for _, usual := range []int{ethernet, pppoe} {
		if s.largestPassed < usual && usual < s.smallestFailed {
			return usual, true
		}
		if s.largestPassed == usual {
			return usual + 1, true
		}
	}
	if s.largestPassed == ethernet+1 && s.smallestFailed > s.top {
		return s.top, true // larger frames: usually the interface's MTU
	}
	return s.largestPassed + (s.smallestFailed-s.largestPassed)/2, true
}

// observe adds the result of the size returned by next.
func (s *mtuSearch) observe(ipBytes int, a probeResult) {
	s.unclears++
	switch a {
	case passed:
		s.largestPassed, s.unclears = max(s.largestPassed, ipBytes), 0
	case tooLarge:
		s.smallestFailed, s.unclears = min(s.smallestFailed, ipBytes), 0
	case unclear:
	}
}

// found returns the path's MTU in bytes of the IP packet; zero and false if it is unknown, because even the
// smallest size failed or replies stopped.
func (s *mtuSearch) found() (ipBytes int, ok bool) {
	if s.largestPassed == 0 || s.smallestFailed-s.largestPassed > 1 {
		return 0, false
	}
	return s.largestPassed, true
}

// The number of packets for one size (MAX_PROBES of RFC 8899 section 5.1.2), each followed by a small packet. Only
// if the small packet arrives does a lost probe depend on its size.
const (
	probes       = 3
	controlBytes = 128
	probeSpace   = 20 * time.Millisecond
)

// probeSize sends the probes of one size and returns their result.
func probeSize(ctx context.Context, s *udptraffic.Session, d sample.Direction, ipBytes int, p *timeout) (probeResult, error) {
	var segments []stream.Segment
	for i := range 2 * probes {
		payload := []int{ipBytes, controlBytes}[i%2] - s.Overhead()
		interval := max(probeSpace, minTime(payload, s.Limits().BytesPerSecond))
		segments = append(segments, stream.Segment{PayloadBytes: payload, Interval: interval, Burst: 1, Bursts: 1})
	}
	t, err := s.TransferWithin(ctx, d, s.Plan(segments...), p.idle(minIdleProbes), nil)
	if err != nil {
		return unclear, fmt.Errorf("train: path MTU: %d bytes: %w", ipBytes, err)
	}
	p.add(t)
	tried, refused, arrived, witnesses := 0, 0, 0, 0
	for i := range t.Packets {
		p := &t.Packets[i]
		received := min(1, int(p.Copies))
		if p.Segment%2 == 1 {
			witnesses += received
			continue
		}
		tried++
		if p.Sent.Present() {
			arrived += received
		} else {
			refused++
		}
	}
	switch {
	case arrived > 0:
		return passed, nil
	case tried == probes && (refused == probes || witnesses > probes/2):
		return tooLarge, nil
	}
	return unclear, nil
}

// minTime is the least time for so many bytes of UDP payload at a limit in bytes a second, 0: none.
func minTime(payload int, limit float64) time.Duration {
	if limit <= 0 {
		return 0
	}
	return time.Duration(float64(payload)/limit*1e9) + time.Microsecond
}

// pathMTU searches for the MTU of one direction; 0: not found.
func pathMTU(ctx context.Context, s *udptraffic.Session, d sample.Direction, top int, p *timeout) (int, error) {
	search := newMTUSearch(isIPv6(s), top)
	for size, ok := search.next(); ok; size, ok = search.next() {
		a, err := probeSize(ctx, s, d, size, p)
		if err != nil {
			return 0, err
		}
		search.observe(size, a)
	}
	mtu, _ := search.found()
	return mtu, nil
}

// isIPv6 derives the address family from the size of the headers.
func isIPv6(s *udptraffic.Session) bool { return s.Overhead() == ipheader.MaxUDP }

// fragment is the length in bytes of IPv6's extension header of a fragment (RFC 8200 section 4.5).
const fragment = 8

// onTheWire is the size in IP bytes of a packet of ipBytes on a path of that MTU; a fragmented packet is larger,
// since each fragment has its own header (RFC 791 section 3.2; RFC 8200 section 4.5). mtu 0: unknown.
func onTheWire(ipBytes, mtu int, ipv6 bool) int {
	if mtu == 0 || ipBytes <= mtu {
		return ipBytes
	}
	header := ipheader.WithIP(ipv6, 0)
	each := header
	if ipv6 {
		each += fragment
	}
	data := ipBytes - header
	space := (mtu - each) / 8 * 8 // all but the last carry a multiple of eight bytes
	return data + (data+space-1)/space*each
}

// timeout is the time to wait, in one direction, for packets that may be lost. Without it each lost train, and each
// size above the path's MTU, takes drain_timeout. The zero value waits as configured.
type timeout struct {
	largest time.Duration // lag seen so far
	known   bool
}

// A packet is lost after lags times the largest lag measured, which exceeds any delay measured, but not before a
// least time, in which a host or a radio link may pause. Trains fill a queue in which control messages are delayed
// or lost as well; a session without messages for that long is closed.
const (
	lags          = 4
	minIdleProbes = time.Second
	minIdleTrains = 3 * time.Second
)

// add adds the lag of a transfer without losses.
func (p *timeout) add(t *udptraffic.Transfer) {
	if lag, ok := t.Lag(); ok {
		p.largest, p.known = max(p.largest, lag), true
	}
}

// idle is the timeout for udptraffic.Session.TransferWithin; zero: as configured.
func (p *timeout) idle(least time.Duration) time.Duration {
	if !p.known {
		return 0
	}
	return max(least, lags*p.largest)
}
