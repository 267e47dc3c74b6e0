package reflector

import (
	"hash/maphash"
	"net/netip"
	"time"
)

// limit is a rate: one event per interval, with a burst. The zero value allows everything.
//
// It is the generic cell rate algorithm (ITU-T I.371 annex A) instead of a token count: the state of a source is one
// time, and nothing is rounded.
type limit struct {
	interval  time.Duration
	tolerance time.Duration
}

func newLimit(perSecond, burst int) limit {
	if perSecond <= 0 {
		return limit{}
	}
	interval := max(1, time.Second/time.Duration(perSecond))
	return limit{interval: interval, tolerance: interval * time.Duration(max(burst, 1)-1)}
}

// of returns the limit for a source's packets of session s, or of none. A session that is proven or authenticated has
// twice the burst, so that packets with its spoofed address cannot use up its rate.
func (l limit) of(s *session) limit {
	if s != nil && (s.tier == proven || s.key.auth == 1) {
		l.tolerance += l.tolerance + l.interval
	}
	return l
}

// bucket is the time at which the next event is due if all events were evenly spaced.
type bucket time.Duration

// open reports whether an event at now is within the limit, without counting it.
func (b *bucket) open(l limit, now time.Duration) bool {
	return time.Duration(*b)-now <= l.tolerance
}

// take counts one event at now, if it is within the limit.
func (b *bucket) take(l limit, now time.Duration) bool {
	if l.interval == 0 {
		return true
	}
	if !b.open(l, now) {
		return false
	}
	*b = bucket(max(time.Duration(*b), now) + l.interval)
	return true
}

// newSessionSlots is the number of buckets for sources, and for networks. Two in the same slot share it.
const newSessionSlots = 1 << 12

// newSessionLimit limits new sessions: of one source (/32 or /64), of one network (/24 or /48) and in total. Its size
// is constant.
type newSessionLimit struct {
	seed maphash.Seed // random, so that no sender can choose another's bucket

	perSource, perNetwork, inAll limit

	sources, networks [newSessionSlots]bucket
	all               bucket
}

// Shares of one source and of one network in the new sessions, and the burst in seconds.
const (
	sourceShare, networkShare = 4, 2
	newSessionBurst           = 4
	// minNewSessions is the minimum burst, so that a few senders can start at once with a small table.
	minNewSessions = 64
)

// newNewSessionLimit returns the limit of one of so many sockets, an equal share of perSecond; no limit if perSecond is
// not positive.
func newNewSessionLimit(perSecond, sockets int) *newSessionLimit {
	n := &newSessionLimit{seed: maphash.MakeSeed()}
	if perSecond > 0 {
		perSecond = max(perSecond/sockets, 1)
		share := func(k int) limit {
			rate := max(perSecond/k, minNewSessions)
			return newLimit(rate, newSessionBurst*rate)
		}
		n.perSource, n.perNetwork, n.inAll = share(sourceShare), share(networkShare), share(1)
	}
	return n
}

func (n *newSessionLimit) buckets(a netip.Addr) (source, network *bucket) {
	key := sourceKey(a)
	source = &n.sources[maphash.Comparable(n.seed, key)%newSessionSlots]
	if a.Unmap().Is4() {
		key[15] = 0
	} else {
		key[6], key[7] = 0, 0
	}
	return source, &n.networks[maphash.Comparable(n.seed, key)%newSessionSlots]
}

// open reports whether a session of a may open at now.
func (n *newSessionLimit) open(a netip.Addr, now time.Duration) bool {
	if !n.all.open(n.inAll, now) {
		return false // the cheapest check first: a flood ends here
	}
	source, network := n.buckets(a)
	return source.open(n.perSource, now) && network.open(n.perNetwork, now)
}

// take is open, and counts the session if it may open.
func (n *newSessionLimit) take(a netip.Addr, now time.Duration) bool {
	if !n.open(a, now) {
		return false
	}
	source, network := n.buckets(a)
	return n.all.take(n.inAll, now) && source.take(n.perSource, now) && network.take(n.perNetwork, now)
}

// dropsBefore is the period before a session opens whose drops are reported to it, at least and at most twice that: its
// first packets may be among them.
const dropsBefore = 2 * time.Second

// dropCount is the number of packets that the kernel dropped at a socket, or that the shard refused without a session,
// at the current batch and dropsBefore earlier.
type dropCount struct {
	total  uint64
	before [2]uint64 // the older first; the newer one was stored at turned
	turned time.Duration
}

// update sets the total.
func (d *dropCount) update(total uint64, now time.Duration) {
	if age := now - d.turned; age >= 2*dropsBefore {
		d.before, d.turned = [2]uint64{d.total, d.total}, now
	} else if age >= dropsBefore {
		d.before, d.turned = [2]uint64{d.before[1], d.total}, now
	}
	d.total = total
}
