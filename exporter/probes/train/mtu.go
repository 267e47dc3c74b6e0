package train

// Sizes of the search for the path's MTU, in octets of the IP packet.
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

// maxUnclear is how many probes may end without an answer before the search gives up.
const maxUnclear = 3

// answer is what became of the probes of one size.
type answer uint8

const (
	// passed: at least one arrived whole.
	passed answer = iota
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
// It asks for the base size first, then for the MTUs that most paths have and one octet
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
	// What is most likely first: the usual sizes, and that one octet more is too much.
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

// observe takes the answer to the size that next gave.
func (s *mtuSearch) observe(ipBytes int, a answer) {
	switch a {
	case passed:
		s.works = max(s.works, ipBytes)
		s.unclears = 0
	case tooLarge:
		s.fails = min(s.fails, ipBytes)
		s.unclears = 0
	case unclear:
		s.unclears++
	}
}

// found is the path's MTU in octets of the IP packet. False: it is not known, because not
// even the smallest size passed or because the answers stopped.
func (s *mtuSearch) found() (ipBytes int, ok bool) {
	return s.works, s.works > 0 && s.fails-s.works <= 1
}
