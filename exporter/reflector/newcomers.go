package reflector

import (
	"hash/maphash"
	"net/netip"
	"time"
)

// newcomerSlots is how many buckets there are for sources, and for networks. Two that meet in
// one share it.
const newcomerSlots = 1 << 12

// newcomers limits the sessions that begin: of one source (/32 or /64), of one network (/24 or
// /48) and in all. Its size does not depend on who asks.
type newcomers struct {
	seed maphash.Seed // by which nobody can aim at another's bucket

	perSource, perNetwork, inAll limit

	sources, networks [newcomerSlots]bucket
	all               bucket
}

// Shares of one source and of one network in the sessions that may begin, and for how many
// seconds' worth of them may begin at once.
const (
	sourceShare, networkShare = 4, 2
	newcomerBurst             = 4
	// fewestNewcomers keeps a small table open to a handful of senders that start at once.
	fewestNewcomers = 64
)

// newNewcomers lets one of so many sockets have its share of the sessions that may begin each
// second; no limit, if that is not positive.
func newNewcomers(perSecond, sockets int) *newcomers {
	n := &newcomers{seed: maphash.MakeSeed()}
	if perSecond > 0 {
		perSecond = max(perSecond/sockets, 1)
		share := func(k int) limit {
			rate := max(perSecond/k, fewestNewcomers)
			return newLimit(rate, newcomerBurst*rate)
		}
		n.perSource, n.perNetwork, n.inAll = share(sourceShare), share(networkShare), share(1)
	}
	return n
}

func (n *newcomers) buckets(a netip.Addr) (source, network *bucket) {
	key := sourceKey(a)
	source = &n.sources[maphash.Comparable(n.seed, key)%newcomerSlots]
	if a.Unmap().Is4() {
		key[15] = 0
	} else {
		key[6], key[7] = 0, 0
	}
	return source, &n.networks[maphash.Comparable(n.seed, key)%newcomerSlots]
}

// open reports whether a session of a may begin at now.
func (n *newcomers) open(a netip.Addr, now time.Duration) bool {
	if !n.all.open(n.inAll, now) {
		return false // the cheapest first: in a flood it is all that is done
	}
	source, network := n.buckets(a)
	return source.open(n.perSource, now) && network.open(n.perNetwork, now)
}

// take is open, and counts the session if it may begin.
func (n *newcomers) take(a netip.Addr, now time.Duration) bool {
	if !n.open(a, now) {
		return false
	}
	source, network := n.buckets(a)
	return n.all.take(n.inAll, now) && source.take(n.perSource, now) && network.take(n.perNetwork, now)
}
