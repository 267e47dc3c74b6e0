package train

import (
	"context"
	"fmt"
	"time"

	"oneway.example/exporter/sample"
	"oneway.example/exporter/stream"
	"oneway.example/exporter/traffic/udp"
)

// Sizes of the search for the path's MTU, in bytes of the IP packet.
const (
	// base4 and base6 are what nearly every path carries: BASE_PLPMTU of RFC 8899
	// section 5.1.2, and the least MTU of IPv6 (RFC 8200 section 5).
	base4 = 1200
	base6 = 1280
	// floor4 is what an IPv4 host must be able to take in (RFC 1122 section 3.3.2), and
	// so the least that is worth asking for. IPv6's is base6.
	floor4 = 576
	// ethernet is the MTU that most paths have, and pppoe that of many others (RFC 2516
	// section 7): asked first, as RFC 8899 section 5.3.2 has it.
	ethernet = 1500
	pppoe    = 1492
)

// maxUnclear is how many probes may end without a reply before the search gives up.
const maxUnclear = 3

// reply is what became of the probes of one size.
type reply uint8

const (
	// passed: at least one arrived whole.
	passed reply = iota
	// tooLarge: none arrived, though smaller packets sent between them did; or the
	// sender's own interface does not take the size.
	tooLarge
	// unclear: nothing at all arrived. The path is down, or full.
	unclear
)

// mtuSearch finds the largest packet that passes a path in one direction unfragmented: the
// search phase of RFC 8899 (Packetization Layer Path MTU Discovery for datagrams,
// section 5) over sizes of single packets that nobody may fragment. It hears no ICMP
// message and needs none: a router that drops what is too large without a word (a black
// hole) is found like any other.
//
// It asks for the base size first, then for the MTUs that most paths have and one byte
// more, and halves what is left. Answers are taken as final: who asks repeats a lost probe
// (MAX_PROBES of RFC 8899 section 5.1.2). The zero value is not usable; see newMTUSearch.
type mtuSearch struct {
	floor, base, top int
	// works is the largest size that has passed, 0: none. fails is the smallest that
	// has not; at first one more than the largest that is asked for.
	works, fails int
	// unclears counts answers that were none, in a row.
	unclears int
}

// newMTUSearch begins a search that ends at top, the largest size asked for.
func newMTUSearch(ipv6 bool, top int) *mtuSearch {
	s := &mtuSearch{floor: floor4, base: base4, top: top, fails: top + 1}
	if ipv6 {
		s.floor, s.base = base6, base6
	}
	return s
}

// next is the size to ask for; false: the search has ended.
func (s *mtuSearch) next() (ipBytes int, ok bool) {
	switch {
	case s.unclears >= maxUnclear:
		return 0, false
	case s.works == 0 && s.fails > s.base:
		return s.base, true
	case s.works == 0 && s.fails > s.floor:
		return s.floor, true // the base size is lost in a black hole
	case s.works == 0 || s.fails-s.works <= 1:
		return 0, false
	}
	// What is most likely first: the usual sizes, and that one byte more is too much.
	for _, usual := range []int{ethernet, pppoe} {
		if s.works < usual && usual < s.fails {
			return usual, true
		}
		if s.works == usual {
			return usual + 1, true
		}
	}
	if s.works == ethernet+1 && s.fails > s.top {
		return s.top, true // larger frames: mostly as large as the interface's
	}
	return s.works + (s.fails-s.works)/2, true
}

// observe takes the reply to the size that next gave.
func (s *mtuSearch) observe(ipBytes int, a reply) {
	s.unclears++
	switch a {
	case passed:
		s.works, s.unclears = max(s.works, ipBytes), 0
	case tooLarge:
		s.fails, s.unclears = min(s.fails, ipBytes), 0
	case unclear:
	}
}

// found is the path's MTU in bytes of the IP packet. Zero and false: it is not known, because
// not even the smallest size passed or because the replies stopped.
func (s *mtuSearch) found() (ipBytes int, ok bool) {
	if s.works == 0 || s.fails-s.works > 1 {
		return 0, false
	}
	return s.works, true
}

// A size is asked for with so many single packets (MAX_PROBES of RFC 8899 section 5.1.2),
// each followed by a small one: a witness that the path is up, without whose arrival a lost
// probe says nothing about its size.
const (
	probes       = 3
	witnessBytes = 128
	probeSpace   = 20 * time.Millisecond
)

// ask sends the probes of one size and says what became of them.
func ask(ctx context.Context, s *udp.Session, d sample.Direction, ipBytes int, p *timeout) (reply, error) {
	var segments []stream.Segment
	for i := range 2 * probes {
		payload := []int{ipBytes, witnessBytes}[i%2] - s.Overhead()
		interval := max(probeSpace, leastTime(payload, s.Limits().BytesPerSecond))
		segments = append(segments, stream.Segment{PayloadBytes: payload, Interval: interval, Burst: 1, Bursts: 1})
	}
	t, err := s.TransferWithin(ctx, d, s.Plan(segments...), p.idle(leastIdleProbes), nil)
	if err != nil {
		return unclear, fmt.Errorf("train: path MTU: %d bytes: %w", ipBytes, err)
	}
	p.learn(t)
	tried, refused, arrived, witnesses := 0, 0, 0, 0
	for i := range t.Packets {
		p := &t.Packets[i]
		came := min(1, int(p.Copies))
		if p.Segment%2 == 1 {
			witnesses += came
			continue
		}
		tried++
		if p.Sent.Present() {
			arrived += came
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

// leastTime is how long so many bytes of UDP payload must take at a limit in bytes a
// second, 0: none.
func leastTime(payload int, limit float64) time.Duration {
	if limit <= 0 {
		return 0
	}
	return time.Duration(float64(payload)/limit*1e9) + time.Microsecond
}

// pathMTU searches for the MTU of one direction; 0: it was not found.
func pathMTU(ctx context.Context, s *udp.Session, d sample.Direction, top int, p *timeout) (int, error) {
	search := newMTUSearch(isIPv6(s), top)
	for size, ok := search.next(); ok; size, ok = search.next() {
		a, err := ask(ctx, s, d, size, p)
		if err != nil {
			return 0, err
		}
		search.observe(size, a)
	}
	mtu, _ := search.found()
	return mtu, nil
}

// isIPv6 tells the session's family by the headers of its packets.
func isIPv6(s *udp.Session) bool { return s.Overhead() > 28 }

// Headers in bytes: those of IP, which each fragment has again, and of UDP.
const (
	header4  = 20
	header6  = 40
	fragment = 8 // IPv6's extension header of a fragment (RFC 8200 section 4.5)
)

// onTheWire is what a packet of ipBytes moves over a path of that MTU, in IP bytes: as
// much, or more if it is fragmented, since each fragment has a header of its own (RFC 791
// section 3.2; RFC 8200 section 4.5). mtu 0: not known.
func onTheWire(ipBytes, mtu int, ipv6 bool) int {
	if mtu == 0 || ipBytes <= mtu {
		return ipBytes
	}
	header, each := header4, header4
	if ipv6 {
		header, each = header6, header6+fragment
	}
	data := ipBytes - header
	space := (mtu - each) / 8 * 8 // all but the last carry a multiple of eight bytes
	return data + (data+space-1)/space*each
}

// timeout is how long to wait, in one direction, for packets that may be lost. Without it
// each lost train, and each size that is too large for the path, costs all of drain_timeout.
// The zero value knows nothing, and waits as configured.
type timeout struct {
	largest time.Duration // lag seen so far
	known   bool
}

// What has not come after lags times the largest lag seen, which is longer than any delay
// seen, is lost; but nothing is before a least time, in which a host or a radio link may
// pause. Trains fill a queue, in which the words of both ends wait too, or are lost and come
// again: a session that is silent for so long is given up.
const (
	lags            = 4
	leastIdleProbes = time.Second
	leastIdleTrains = 3 * time.Second
)

// learn takes the lag of a transfer that lost nothing.
func (p *timeout) learn(t *udp.Transfer) {
	if lag, ok := t.Lag(); ok {
		p.largest, p.known = max(p.largest, lag), true
	}
}

// idle is for udp.Session.TransferWithin; zero: as configured.
func (p *timeout) idle(least time.Duration) time.Duration {
	if !p.known {
		return 0
	}
	return max(least, lags*p.largest)
}
